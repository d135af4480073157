"""What the runtime counts; the operator's shell writes it as metrics."""

from dataclasses import dataclass, field


@dataclass
class RuntimeMeter:
    """Plain counters, which cost an addition where things happen."""

    requests: int = 0
    throttled: int = 0
    """Requests that the server turned away with 429."""
    renewed: int = 0
    """Times the credentials were read again after a 401, or when the server's certificate was not trusted."""
    conflicts: int = 0
    """Writes that were refused because the object had changed since it was read."""
    relists: dict[str, int] = field(default_factory=dict)
    """Lists by kind: the first, and each after a watch that could not be resumed."""
    drift: dict[str, int] = field(default_factory=dict)
    """Objects by kind in which a cache differed from a list."""
    events_dropped: int = 0
