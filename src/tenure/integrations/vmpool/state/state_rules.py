"""Allocate and deallocate on a state: the rules of the Go managers, on a state that is put right in the same step.

Nothing is changed where nothing has to be: an id that has its VM gets it again, an unknown id is no error. Cost of
each: O(n) look-ups, beside O(n) for reading and writing the text.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, get_args

from tenure.integrations.vmpool.pool_errors import VMPoolExhausted
from tenure.integrations.vmpool.state.go_json import whole_seconds
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation
from tenure.integrations.vmpool.state.state_repair import PoolFinding, PoolLine, repair_state

PickRule = Literal["hash", "rendezvous"]
PICK_RULES: tuple[PickRule, ...] = get_args(PickRule)


@dataclass(frozen=True, slots=True)
class AllocationRequest:
    """Who asks for a VM; every word is checked already."""

    allocation_id: str
    node_name: str
    pod_name: str = ""
    pod_namespace: str = ""
    passed_over: frozenset[str] = frozenset()
    """Addresses that are not picked, such as of VMs that do not answer."""
    pick: PickRule = "hash"


@dataclass(frozen=True, slots=True)
class Allocated:
    """A VM that an id has now; a new state only if it is new, with what was put right on the way."""

    entry: VMAllocation
    state: PoolState
    is_new: bool
    findings: tuple[PoolFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class Released:
    """The entries that are gone now; none, and the same state, if there was nothing to release."""

    entries: tuple[VMAllocation, ...]
    state: PoolState
    findings: tuple[PoolFinding, ...] = ()


def pick_index(count: int, allocation_id: str) -> int:
    """Return which of so many available addresses an id gets: MD5, its first four bytes as a number, modulo."""
    if count <= 1:
        return 0
    # As the Go managers pick, so that an id gets the same address from the same state, whichever manager it asks.
    digest = hashlib.md5(allocation_id.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big") % count


def pick(free: Sequence[str], allocation_id: str, rule: PickRule = "hash") -> str:
    """Return which of some free addresses an id gets; there is at least one.

    ``hash`` is the seed's: a place in the list, so the same id gets another address from another list. ``rendezvous``
    takes the address whose hash with the id is largest, so an id gets its old address again whenever that is free;
    O(free).
    """
    if rule == "hash":
        return free[pick_index(len(free), allocation_id)]
    return max(free, key=lambda ip: hashlib.md5(f"{allocation_id}\0{ip}".encode(), usedforsecurity=False).digest())


def allocate(state: PoolState, pool: PoolLine, request: AllocationRequest, now: datetime) -> Allocated:
    """Give an id its VM: the one it has, else one of those that are free. Raise ``VMPoolExhausted``."""
    existing = sole_entry(state, pool, request.allocation_id)
    if existing is not None:
        return Allocated(existing, state, is_new=False)
    repaired = repair_state(state, pool)
    found = repaired.state.allocated.get(request.allocation_id)
    if found is not None:
        return Allocated(found, repaired.state, is_new=False, findings=repaired.findings)
    available, passed_over = repaired.state.available, request.passed_over
    choice = [ip for ip in available if ip not in passed_over] if passed_over else available
    if not choice:
        raise VMPoolExhausted(in_use=len(repaired.state.allocated))
    ip = pick(choice, request.allocation_id, request.pick)
    entry = VMAllocation(
        request.allocation_id, ip, request.node_name, request.pod_name, request.pod_namespace, whole_seconds(now)
    )  # fmt: skip
    check_pick(repaired.state, pool, entry.ip)
    allocated = {**repaired.state.allocated, entry.allocation_id: entry}
    index = available.index(ip)
    rest = available[:index] + available[index + 1 :]
    changed = replace(repaired.state, allocated=allocated, available=rest)
    return Allocated(entry, changed, is_new=True, findings=repaired.findings)


def release(state: PoolState, pool: PoolLine, allocation_ids: Collection[str]) -> Released:
    """Take the VMs of ids back: to the end of those that are free, in the order of the ids.

    A VM that is not in the pool any more goes out of the state. One that another id has as well, by another writer's
    mistake, stays that id's. Ids without a VM are passed over.
    """
    gone = {each: state.allocated[each] for each in allocation_ids if each in state.allocated}
    if not gone:
        return Released((), state)
    kept = {key: entry for key, entry in state.allocated.items() if key not in gone}
    held = {pool.spelled(entry.ip) for entry in kept.values()}
    spelled = [pool.spelled(entry.ip) for entry in gone.values()]
    returned = [ip for ip in spelled if ip is not None and ip in pool.known and ip not in held]
    # Once, where two of the ids had the same VM.
    available = (*state.available, *dict.fromkeys(returned))
    repaired = repair_state(replace(state, allocated=kept, available=available), pool)
    entries = tuple(replace(entry, allocation_id=key) for key, entry in gone.items())
    return Released(entries, repaired.state, repaired.findings)


def ids_of_ip(state: PoolState, pool: PoolLine, ip: str) -> list[str]:
    """Return the ids that have an IP, in whatever spelling it is stored: one, unless another writer made a mistake."""
    return [key for key, entry in state.allocated.items() if pool.spelled(entry.ip) == ip]


def sole_entry(state: PoolState, pool: PoolLine, allocation_id: str) -> VMAllocation | None:
    """Return the entry of an id if it can be given out as it is: an IP that no other id has."""
    entry = state.allocated.get(allocation_id)
    if entry is None or entry.allocation_id != allocation_id or pool.spelled(entry.ip) != entry.ip:
        return None
    holders = sum(other.ip == entry.ip for other in state.allocated.values())
    return entry if holders == 1 else None


def check_pick(state: PoolState, pool: PoolLine, ip: str) -> None:
    """Raise if an address may not be given out: the last look before a write."""
    if ip not in pool.known or any(entry.ip == ip for entry in state.allocated.values()):
        raise AssertionError(f"{ip} was picked although it is allocated or not in the pool")
