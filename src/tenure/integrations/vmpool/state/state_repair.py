"""What is put right in a state, and how: one rule for each inconsistency, always with the same result.

=========================== ==================================================================================
inconsistency               what is done
=========================== ==================================================================================
unparsable IP allocated     the entry goes
another spelling of an IP   the canonical spelling
key and id of an entry      the key counts, and the entry says so
differ
two ids on one IP           the older entry stays (by time, then by id); the other goes
allocated, not in the pool  ``keep``: it stays until it is released, and then goes; ``drop``: it goes now
available, not in the pool  it goes, and so does an unparsable one
allocated and available     no longer available
available twice             once, where it is first
in the pool, in neither     available, behind the others, in the order of the pool
held back (``held_back``)   it stays, in the pool or not
=========================== ==================================================================================

A state without any of these is left as it is, the same object: nothing is written for it.
"""

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from tenure.integrations.vmpool.state.held_back import is_held_back
from tenure.integrations.vmpool.state.ip_list import canonical_ip
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation

OutsidePool = Literal["keep", "drop"]
OUTSIDE_RULES: tuple[OutsidePool, ...] = get_args(OutsidePool)


class RepairKind(enum.StrEnum):
    """Kinds of inconsistencies. The first five are those that the metrics count under the same names."""

    UNKNOWN = "unknown"
    """An available IP that is not in the pool."""
    DUPLICATE = "duplicate"
    """An IP that is available twice, or available and allocated."""
    MISSING = "missing"
    """An IP of the pool that is neither allocated nor available."""
    DOUBLE_ALLOCATED = "double_allocated"
    INVALID = "invalid"
    """An entry whose IP is none."""
    OUTSIDE_POOL = "outside_pool"
    """An allocated IP that is not in the pool."""
    MISNAMED = "misnamed"
    """An entry that says another id than the key it stands under."""
    RESPELLED = "respelled"
    """An IP in another spelling than the canonical one."""
    MISPLACED = "misplaced"
    """State or notes that lie under ``binaryData`` of the ConfigMap."""
    UNREADABLE_NOTES = "unreadable_notes"
    """Notes that cannot be read: nobody writes them, until an operator replaces them."""


@dataclass(frozen=True, slots=True)
class PoolFinding:
    """An inconsistency: of which kind, about which IP and id, and what a repair does about it."""

    kind: RepairKind
    ip: str
    allocation_id: str
    message: str
    is_change: bool = True
    """Whether a repair changes the state for it; an allocation outside the pool that is kept is only reported."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """A state that is right, and what was wrong with the one before; the very same state if nothing was."""

    state: PoolState
    findings: tuple[PoolFinding, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Return whether anything has to be written."""
        return any(each.is_change for each in self.findings)


@dataclass
class PoolLine:
    """The addresses of a pool in their order, as this process knows them, and the same to look up.

    Everything of a process that decides on a pool has one line, so all of it follows a list that has changed.
    """

    ips: tuple[str, ...]
    generation: int = 0
    """Of the list that the pool keeps itself (``sized_list``); 0: the list is the settings'."""
    known: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.known = frozenset(self.ips)

    def follow(self, ips: tuple[str, ...], generation: int) -> bool:
        """Take another list if it is newer; return whether it was."""
        if generation <= self.generation:
            return False
        self.ips, self.known, self.generation = ips, frozenset(ips), generation
        return True

    def spelled(self, text: str) -> str | None:
        """Return an IP in its canonical spelling; nothing if it is none. Those of the pool cost one look-up."""
        return text if text in self.known else canonical_ip(text)


def repair_state(state: PoolState, pool: PoolLine, *, outside_pool: OutsidePool = "keep") -> Repaired:
    """Put a state right for a pool. Cost: O(n); a look-up an address where nothing is wrong."""
    if is_consistent(state, pool):
        return Repaired(state)
    allocated, findings = repair_entries(state.allocated, pool)
    allocated = _inside(allocated, pool, findings, outside_pool)
    held = {entry.ip for entry in allocated.values()}
    available = _available(state.available, pool, held, findings)
    if not any(each.is_change for each in findings):
        return Repaired(state, tuple(findings))
    return Repaired(replace(state, allocated=allocated, available=tuple(available)), tuple(findings))


def repair_entries(
    allocated: Mapping[str, VMAllocation], pool: PoolLine
) -> tuple[dict[str, VMAllocation], list[PoolFinding]]:
    """Put allocations right by themselves, whatever is free beside them; return what was wrong. Cost: O(n log n)."""
    findings: list[PoolFinding] = []
    return _sole_holders(_readable(allocated, pool, findings), findings), findings


def is_consistent(state: PoolState, pool: PoolLine) -> bool:
    """Return whether every address of the pool is in one place, and nothing else is anywhere."""
    inside = {key: entry for key, entry in state.allocated.items() if not is_outside(entry, pool)}
    held = {entry.ip for key, entry in inside.items() if entry.allocation_id == key}
    free = set(state.available)
    sizes = len(held) == len(inside) and len(free) == len(state.available)
    # Sizes that add up to the pool's, and a union that is the pool, leave no address in both.
    return sizes and len(held) + len(free) == len(pool.ips) and held | free == pool.known


def is_outside(entry: VMAllocation, pool: PoolLine) -> bool:
    """Return whether an entry holds back an address that has left the pool, as it should."""
    return is_held_back(entry) and entry.ip not in pool.known


def _readable(
    allocated: Mapping[str, VMAllocation], pool: PoolLine, findings: list[PoolFinding]
) -> dict[str, VMAllocation]:
    """Return the entries whose IP is one, in canonical spelling, each with the id of its key."""
    kept = {}
    for key, entry in allocated.items():
        ip = pool.spelled(entry.ip)
        if ip is None:
            said = f"{entry.ip[:80]!r} of {key[:80]!r} is no IP address: the entry goes"
            findings.append(PoolFinding(RepairKind.INVALID, entry.ip, key, said))
            continue
        if ip != entry.ip:
            said = f"{entry.ip} of {key[:80]!r} is written {ip}"
            findings.append(PoolFinding(RepairKind.RESPELLED, ip, key, said))
        if entry.allocation_id != key:
            said = f"the entry of {key[:80]!r} says the id {entry.allocation_id[:80]!r}: the key counts"
            findings.append(PoolFinding(RepairKind.MISNAMED, ip, key, said))
        is_right = ip == entry.ip and entry.allocation_id == key
        kept[key] = entry if is_right else replace(entry, ip=ip, allocation_id=key)
    return kept


def _sole_holders(allocated: dict[str, VMAllocation], findings: list[PoolFinding]) -> dict[str, VMAllocation]:
    """Return the entries without those whose IP an older one has."""
    first: dict[str, str] = {}
    for key in sorted(allocated, key=lambda key: age_order(allocated[key])):
        first.setdefault(allocated[key].ip, key)
    for key, entry in allocated.items():
        if (holder := first[entry.ip]) != key:
            said = f"{entry.ip} is allocated to {holder[:80]!r}, who had it before {key[:80]!r}: that entry goes"
            findings.append(PoolFinding(RepairKind.DOUBLE_ALLOCATED, entry.ip, key, said))
    return {key: entry for key, entry in allocated.items() if first[entry.ip] == key}


def age_order(entry: VMAllocation) -> tuple[bool, float, bytes]:
    """Return what entries are ordered by: the oldest first, those without a time last, then by the bytes of the id."""
    at = entry.allocated_at
    return at is None, at.timestamp() if at else 0.0, entry.allocation_id.encode()


def _inside(
    allocated: dict[str, VMAllocation], pool: PoolLine, findings: list[PoolFinding], outside_pool: OutsidePool
) -> dict[str, VMAllocation]:
    is_dropped = outside_pool == "drop"
    outside = {
        key: entry for key, entry in allocated.items()
        if entry.ip not in pool.known and not is_held_back(entry)
    }  # fmt: skip
    for key, entry in outside.items():
        then = "the entry goes" if is_dropped else "it stays until it is released, and is then not available"
        said = f"{entry.ip} of {key[:80]!r} is not in the pool: {then}"
        findings.append(PoolFinding(RepairKind.OUTSIDE_POOL, entry.ip, key, said, is_dropped))
    return {key: entry for key, entry in allocated.items() if key not in outside} if is_dropped else allocated


def _available(stored: Sequence[str], pool: PoolLine, held: Collection[str], findings: list[PoolFinding]) -> list[str]:
    kept: dict[str, None] = {}
    for text in stored:
        ip = pool.spelled(text)
        if ip is None or ip not in pool.known:
            said = f"{text[:80]!r} is available and not in the pool: it goes"
            findings.append(PoolFinding(RepairKind.UNKNOWN, text, "", said))
        elif ip in held or ip in kept:
            why = "allocated" if ip in held else "available twice"
            findings.append(PoolFinding(RepairKind.DUPLICATE, ip, "", f"{ip} is available and {why}: one goes"))
        else:
            if ip != text:
                findings.append(PoolFinding(RepairKind.RESPELLED, ip, "", f"{text} is written {ip}"))
            kept[ip] = None
    for ip in pool.ips:
        if ip not in kept and ip not in held:
            said = f"{ip} of the pool is neither allocated nor available: it is available now"
            findings.append(PoolFinding(RepairKind.MISSING, ip, "", said))
            kept[ip] = None
    return list(kept)
