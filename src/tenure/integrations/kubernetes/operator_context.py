"""What the operator gives its controllers, and what it asks of them."""

import errno
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.leader_lease import LeaderLease
from tenure.integrations.kubernetes.runtime.process_probes import Sample
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter


@dataclass
class OperatorContext:
    """What controllers are given."""

    settings: OperatorSettings
    client: ApiClient
    lease: LeaderLease
    events: EventRecorder
    meter: RuntimeMeter


class Controller(Protocol):
    """A part of the operator that looks after some kinds."""

    name: str

    async def listen(self) -> int:
        """Open what others connect to, and return its port, 0 if there is none; raise ``CannotListen`` if it fails."""
        ...

    async def close(self) -> None:
        """Close what ``listen`` opened."""
        ...

    def not_ready(self) -> Mapping[str, str]:
        """Return what this part still waits for: caches that are not synced, a certificate that is missing."""
        ...

    def samples(self) -> Iterable[Sample]:
        """Return the numbers of this part, such as those of ``operator_samples``."""
        ...

    async def follow(self) -> None:
        """Keep caches up to date, on every replica, until cancelled; compare them every ten minutes (KP13)."""
        ...

    async def lead(self) -> None:
        """Do the work, on the leader, until cancelled."""
        ...


ABOUT_PORTS = frozenset({errno.EADDRINUSE, errno.EACCES})
"""What a server answers to a port that it cannot have; all other reasons are about the host."""


@dataclass(frozen=True)
class ListenOptions:
    """The options that say where something is listened to."""

    host: str
    port: str


class CannotListen(Exception):
    """A place cannot be listened on; says which and why, and ``option`` is where another can be named."""

    def __init__(self, options: ListenOptions, host: str, port: int, error: OSError | UnicodeError) -> None:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        is_port = isinstance(error, OSError) and error.errno in ABOUT_PORTS
        advice = f"{options.port} 0 takes a free one" if is_port else "name an address of this machine, as 127.0.0.1"
        super().__init__(f"{host}:{port} cannot be listened on: {reason}; {advice}")
        self.option = options.port if is_port else options.host
