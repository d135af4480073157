"""What is decided on a pool that was read: allocate, deallocate, repair. Pure but for the time that comes in.

Each answers with the change to be written, and with the lines for the audit, which are written once it is done.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tenure.integrations.vmpool.config_map_swap import NOTES_KEY
from tenure.integrations.vmpool.pool_document import PoolChange, PoolDocument
from tenure.integrations.vmpool.pool_errors import VMNotReady
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.state.held_back import TENURE_NODE, held_back, is_held_back
from tenure.integrations.vmpool.state.pool_notes import HistoryLine, PoolNotes
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation
from tenure.integrations.vmpool.state.state_repair import (
    OutsidePool,
    PoolFinding,
    PoolLine,
    RepairKind,
    repair_state,
)
from tenure.integrations.vmpool.state.state_rules import AllocationRequest, allocate, release

TAKEN_AWAY = (RepairKind.INVALID, RepairKind.DOUBLE_ALLOCATED, RepairKind.OUTSIDE_POOL)
"""Findings for which an entry goes."""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was wrong with a pool, whether anything was written for it, and where a copy is of what was replaced."""

    findings: tuple[PoolFinding, ...] = ()
    is_written: bool = False
    copy: str = ""
    """The name of the ConfigMap with the text that could not be read; empty if there was none (VD5)."""
    replaced: tuple[str, ...] = ()
    """What could not be read and was begun afresh: ``state``, ``notes``, or both."""
    in_use: int = 0
    """How many VMs are allocated now."""
    unfinished: int = 0
    """How many writes of processes that were killed were removed, where a mode has such."""


def decide_allocation(
    document: PoolDocument, pool: PoolLine, request: AllocationRequest, now: datetime
) -> PoolChange[VMAllocation]:
    """Give an id its VM; raise ``VMPoolExhausted``, or ``VMNotReady`` where the id's VM is still to be cleaned up."""
    found = allocate(document.state, pool, request, now)
    entry = found.entry
    if not found.is_new:
        check_not_failed(entry, document.notes)
    pod = f"{entry.pod_namespace}/{entry.pod_name}" if entry.pod_name else ""

    def report(attempt: int) -> None:
        about = {"node": entry.node_name, "id": entry.allocation_id, "pod": pod, "ip": entry.ip, "attempt": attempt}
        audit(PoolEvent.ALLOCATED if found.is_new else PoolEvent.EXISTING, **about)

    if found.state is document.state:
        return PoolChange(entry, word="existing", report=report)
    notes = with_repairs(document.notes, found.findings, request.node_name, now)
    if found.is_new:
        notes = notes.with_line(HistoryLine(now, "allocate", entry.allocation_id, entry.ip, entry.node_name))
    return PoolChange(entry, found.state, notes, found.findings, "new" if found.is_new else "existing", report)


def check_not_failed(entry: VMAllocation, notes: PoolNotes) -> None:
    """Raise ``VMNotReady`` where the VM that an id has is still to be cleaned up."""
    failure = notes.cleanup_failed.get(entry.ip)
    is_older = failure is not None and entry.allocated_at is not None and entry.allocated_at > failure.at
    if failure is None or is_older or failure.allocation_id != entry.allocation_id:
        return
    # The agent tries that cleanup again: whoever were given the VM now would see it rebooted.
    raise VMNotReady(entry.ip, f"its cleanup failed ({failure.cause}) and is tried again; use another id, or wait")


def decide_release(
    document: PoolDocument, pool: PoolLine, ids: Sequence[str], node_name: str, now: datetime, did: str = "deallocate"
) -> PoolChange[tuple[VMAllocation, ...]]:
    """Take the VMs of ids back; ids without one are passed over, and nothing is written if none has one."""
    found = release(document.state, pool, ids)

    def report(attempt: int) -> None:
        for entry in found.entries:
            audit(
                PoolEvent.RELEASED, node=node_name, id=entry.allocation_id, pod=entry.pod_name, ip=entry.ip,
                attempt=attempt,
            )  # fmt: skip
        if not found.entries:
            audit(PoolEvent.NOT_FOUND, node=node_name, id=" ".join(ids), attempt=attempt)

    if not found.entries:
        return PoolChange((), word="not_found", report=report)
    notes = with_repairs(document.notes, found.findings, node_name, now)
    for entry in found.entries:
        notes = notes.with_line(HistoryLine(now, did, entry.allocation_id, entry.ip, node_name))
    # A cleanup that stays noted is tried again, and would reboot the VM under the next pod.
    kept = {ip: each for ip, each in notes.cleanup_failed.items() if each.allocation_id not in ids}
    held = {entry.ip for entry in found.state.allocated.values()}
    draining = {ip: at for ip, at in notes.draining.items() if ip in held}
    notes = replace(notes, cleanup_failed=kept, draining=draining)
    state = with_held_back(document.state, found.state, pool, now)
    return PoolChange(found.entries, state, notes, found.findings, "released", report)


def decide_repair(
    document: PoolDocument, pool: PoolLine, outside_pool: OutsidePool, node_name: str, now: datetime
) -> PoolChange[RepairReport]:
    """Put a state right; nothing is written where nothing is wrong.

    Nothing is dropped by a list that is older than the pool's: a process that cannot reach the list may have one.
    """
    if document.notes.list_generation > pool.generation:
        outside_pool = "keep"
    found = repair_state(document.state, pool, outside_pool=outside_pool)
    held = {entry.ip for entry in found.state.allocated.values() if not is_held_back(entry)}
    outside = sorted(held - pool.known)
    draining = {ip: document.notes.draining.get(ip, now) for ip in outside}
    is_noted = draining.keys() == document.notes.draining.keys() or bool(document.notes.problem)
    report = RepairReport((*found.findings, *notes_findings(document)), in_use=len(held))

    if not found.is_changed and is_noted:
        return PoolChange(report)
    notes = replace(with_repairs(document.notes, found.findings, node_name, now), draining=draining)
    state = with_held_back(document.state, found.state, pool, now) if found.is_changed else None
    return PoolChange(replace(report, is_written=True), state, notes, found.findings)


def with_held_back(before: PoolState, after: PoolState, pool: PoolLine, now: datetime) -> PoolState:
    """Hold back what a decision has released of what left the pool's own list: other managers know older ones (VS9)."""
    if not pool.generation:
        return after
    held = {each.ip for each in after.allocated.values()}
    gone = {ip for each in before.allocated.values() if (ip := pool.spelled(each.ip))} - held - pool.known
    new = {each.allocation_id: each for each in [held_back(ip, now) for ip in sorted(gone)]}
    return replace(after, allocated={**after.allocated, **new}) if new else after


@dataclass(frozen=True, slots=True)
class PoolFilling:
    """How many VMs of a pool are free, and which addresses are held back."""

    free: tuple[str, ...]
    held_back: frozenset[str]


def decide_hold_back(
    document: PoolDocument, pool: PoolLine, leaving: Collection[str], now: datetime
) -> PoolChange[PoolFilling]:
    """Hold addresses back that are to leave the pool, as soon as no pod has them; let go of those that are in it again.

    It is one swap, so none of them is free for anybody in between (VS9).
    """
    before = repair_state(document.state, pool)
    kept = {
        key: each for key, each in before.state.allocated.items() if not is_held_back(each) or each.ip not in pool.known
    }
    held = {each.ip for each in kept.values()}
    gone = sorted(set(leaving) - held - pool.known)
    new = {each.allocation_id: each for each in [held_back(ip, now) for ip in gone]}
    # Repaired once more, since what is free follows from what is held.
    state = repair_state(replace(before.state, allocated={**kept, **new}), pool).state
    back = frozenset(each.ip for each in state.allocated.values() if is_held_back(each))
    filling = PoolFilling(state.available, back)
    if state == document.state and document.notes.list_generation >= pool.generation:
        return PoolChange(filling)
    notes = with_repairs(document.notes, before.findings, TENURE_NODE, now)
    notes = replace(notes, list_generation=max(notes.list_generation, pool.generation))
    return PoolChange(filling, state, notes, before.findings)


def notes_findings(document: PoolDocument) -> tuple[PoolFinding, ...]:
    """Return what is wrong with the notes of a pool."""
    if NOTES_KEY in document.stored.misplaced:
        return (misplaced_finding(NOTES_KEY),)
    if not document.notes.problem:
        return ()
    said = f"{document.notes.problem}: they are left as they are, and allocations go on without them"
    return (PoolFinding(RepairKind.UNREADABLE_NOTES, "", "", said, is_change=False),)


def misplaced_finding(key: str) -> PoolFinding:
    """Return that a value lies under ``binaryData``."""
    said = f"{key} is in binaryData of the ConfigMap, where no manager looks: it is moved to data, as it is"
    return PoolFinding(RepairKind.MISPLACED, "", "", said)


def with_repairs(notes: PoolNotes, findings: Sequence[PoolFinding], node_name: str, now: datetime) -> PoolNotes:
    """Return the notes with a line for every entry that a repair took away: its owner is told so."""
    for each in findings:
        if each.is_change and each.kind in TAKEN_AWAY:
            notes = notes.with_line(HistoryLine(now, "repair", each.allocation_id, each.ip, node_name))
    return notes
