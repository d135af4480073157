"""Names of the first design of Metal3's kinds, which were never released, and what becomes of them today (KD2).

The definitions list these names, since an API server removes unknown fields before any webhook sees them.
"""

import enum
from typing import NamedTuple

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import GLOBAL_POOL, IN_CLUSTER_POOL, field, mapping
from tenure.integrations.kubernetes.metal3.objects.pool_spec import SpecFault
from tenure.integrations.kubernetes.runtime.patches import Step, pointer
from tenure.integrations.kubernetes.runtime.resource_types import Object


class Treatment(enum.StrEnum):
    """What happens to an old name."""

    TRANSLATED = "translated"
    DROPPED = "dropped"


class SeedSpelling(NamedTuple):
    """An old name in a kind."""

    kind: str
    old: str
    today: str | None
    """The name that the same thing has today; nothing, if the thing is gone."""
    treatment: Treatment


SEED_SPELLINGS = (
    SeedSpelling("IPPool", "spec.allocations", "spec.preAllocations", Treatment.TRANSLATED),
    SeedSpelling("IPPool", "status.allocations", "status.indexes", Treatment.DROPPED),
    SeedSpelling("IPPool", "status.addresses", "status.indexes", Treatment.DROPPED),
    SeedSpelling("IPClaim", "spec.owner", "metadata.ownerReferences", Treatment.DROPPED),
    SeedSpelling("IPClaim", "status.ipAddress", "status.address", Treatment.DROPPED),
    SeedSpelling("IPAddress", "spec.Address", "spec.address", Treatment.TRANSLATED),
    SeedSpelling("IPAddress", "spec.claim.Name", "spec.claim.name", Treatment.TRANSLATED),
    SeedSpelling("IPAddress", "spec.pool.Name", "spec.pool.name", Treatment.TRANSLATED),
    SeedSpelling("IPAddress", "status", None, Treatment.DROPPED),
)
"""Every name that is not stored as it was written. A status is the controller's to write, so none is translated."""
IN_CLUSTER_SPELLINGS = tuple(
    SeedSpelling(type.kind, "spec.excludeAddresses", "spec.excludedAddresses", Treatment.TRANSLATED)
    for type in (IN_CLUSTER_POOL, GLOBAL_POOL)
)
"""The in-cluster provider's own first page has this name in an example, which its definition does not know."""


class Respelling(NamedTuple):
    """An object in today's names: the steps that lead there, and what stands in the way."""

    steps: list[Step]
    warnings: list[str]
    faults: list[SpecFault]


def respell(kind: str, object: Object) -> Respelling:
    """Return how the old names of an object become today's, with a warning for each."""
    found = Respelling([], [], [])
    for spelling in (*SEED_SPELLINGS, *IN_CLUSTER_SPELLINGS):
        *parents, name = spelling.old.split(".")
        if spelling.kind == kind and name in mapping(object, *parents):
            _respell(spelling, object, found)
    return found


def _respell(spelling: SeedSpelling, object: Object, found: Respelling) -> None:
    old, today = spelling.old.split("."), (spelling.today or "").split(".")
    removal: Step = {"op": "remove", "path": pointer(*old)}
    if spelling.treatment is Treatment.DROPPED:
        instead = f"; today's name is {spelling.today}" if spelling.today else ""
        found.warnings.append(f"{spelling.old}: is dropped, it is an early spelling{instead}")
        found.steps.append(removal)
        return
    value, current = field(object, *old), field(object, *today)
    if value and current and current != value:
        reason = f"differs from {spelling.today}, which is today's spelling; write {spelling.today} alone"
        found.faults.append(SpecFault(spelling.old, value, reason))
        return
    found.warnings.append(f"{spelling.old}: is stored as {spelling.today}, which is today's spelling")
    if value:
        found.steps.append({"op": "add", "path": pointer(*today), "value": value})
    found.steps.append(removal)
