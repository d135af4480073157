"""How a pool stands: what ``status`` and the metrics show of what was read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tenure.integrations.vmpool.pool_document import PoolDocument
from tenure.integrations.vmpool.state.held_back import is_held_back
from tenure.integrations.vmpool.state.pool_notes import CleanupFailure
from tenure.integrations.vmpool.vm_pool_settings import LARGEST_CONFIG_MAP, NEARLY_FULL, VMPoolSettings


@dataclass(frozen=True, slots=True)
class VMPoolStatus:
    """A pool at one moment, as it is stored. ``total`` is what is available and in use, not what is configured."""

    total: int
    available: int
    in_use: int
    pool_size: int
    """How many addresses are configured."""
    draining: tuple[str, ...] = ()
    """Allocated, and not in the pool: they go when they are released."""
    cleanup_failed: Mapping[str, CleanupFailure] = field(default_factory=dict)
    """By IP: allocated still, because their VM could not be cleaned."""
    version: int = 0
    last_updated: datetime | None = None
    size_bytes: int = 0
    """Of all values of the ConfigMap."""
    largest_bytes: int = LARGEST_CONFIG_MAP
    is_there: bool = False
    """Whether there is a ConfigMap with a state."""
    warnings: tuple[str, ...] = ()
    """What an operator should know, such as a pool that is too large for one ConfigMap (VS5)."""
    mode: str = "configmap"
    list_generation: int = 0
    """Of the list of addresses that the pool keeps itself; 0: the list is the settings' (VS9)."""


def status_of(document: PoolDocument, settings: VMPoolSettings, mode: str) -> VMPoolStatus:
    """Return how a pool stands that is in a mode, whatever its settings name. Cost: O(n) look-ups."""
    state, notes = document.state, document.notes
    held = [entry for entry in state.allocated.values() if not is_held_back(entry)]
    spelled = [settings.line.spelled(entry.ip) for entry in held]
    outside = sorted({ip for ip in spelled if ip is not None and ip not in settings.line.known})
    problems = [notes.problem] if notes.problem else []
    if document.size > LARGEST_CONFIG_MAP * NEARLY_FULL:
        problems.append(f"the ConfigMap is nearly full: {document.size} of {LARGEST_CONFIG_MAP} bytes")
    return VMPoolStatus(
        total=len(state.available) + len(held),
        available=len(state.available),
        in_use=len(held),
        pool_size=len(settings.line.ips),
        draining=tuple(outside),
        cleanup_failed=dict(notes.cleanup_failed),
        version=state.version,
        last_updated=state.last_updated,
        size_bytes=document.size,
        is_there=document.is_there,
        list_generation=settings.line.generation,
        warnings=(*settings.warnings_in(mode), *problems),
        mode=mode,
    )
