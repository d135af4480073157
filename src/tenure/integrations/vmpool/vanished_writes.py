"""What this process has allocated and another manager's write took away again (VD8).

Managers of today write back what they read before, whatever was written meanwhile; a write of ours may vanish so. It
is noticed at the next read of this process, told, and asserted again if the address is still free.

An entry may also be gone because somebody released it. A release by Tenure stands in the history. Any other puts the
address at the end of those that are free and counts the version up, while a state that was written back has an older
version, or the address before others that were free all the time. Where neither is seen, the entry is only reported:
a VM that its owner gave back must not be taken again.
"""

import enum
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tenure.integrations.vmpool.pool_document import PoolDocument
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.state.allocation_names import FILLER
from tenure.integrations.vmpool.state.pool_notes import HistoryLine, PoolNotes
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation
from tenure.integrations.vmpool.state.state_repair import PoolLine, repair_state
from tenure.integrations.vmpool.state.state_rules import ids_of_ip

REPORTS = 1000
"""How many reports are kept; a log line is written for each of them."""
RELEASES = ("deallocate", "recover")
"""Words of the history after which an entry is rightly gone."""
ALLOCATIONS = ("allocate", "reassert")
"""Words of the history after which an entry has to be there."""
REPAIR = "repair"
"""Word of the history of an entry that a repair took away; its address is another id's, or none at all."""


class VanishedVerdict(enum.StrEnum):
    """What became of an allocation that is not there any more."""

    REASSERTED = "reasserted"
    """It was overwritten, and its address was still free: it is there again."""
    LOST = "lost"
    """It was overwritten, and another id has its address, or it left the pool."""
    GONE = "gone"
    """Released by a manager that keeps no history, or overwritten: it is not asserted again."""


@dataclass(frozen=True, slots=True)
class VanishedWrite:
    """An allocation of this process that is not there any more."""

    entry: VMAllocation
    verdict: VanishedVerdict
    holder: str = ""
    """The id that has the address now, if one has; the id itself, if it has another address by now."""


@dataclass(frozen=True)
class Reassertion:
    """A document in which what had vanished is there again, and the reports; the same document if nothing had."""

    document: PoolDocument
    vanished: tuple[VanishedWrite, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Return whether anything has to be written."""
        return any(each.verdict is VanishedVerdict.REASSERTED for each in self.vanished)


class OwnAllocations:
    """The allocations that this process has made and not released, and how the pool looked when it was last seen.

    Cost of a look: one look-up for each of them.
    """

    def __init__(self, pool: PoolLine) -> None:
        self._pool = pool
        self._entries: dict[str, VMAllocation] = {}
        self._version = 0
        self._free: frozenset[str] = frozenset()
        self.reports: deque[VanishedWrite] = deque(maxlen=REPORTS)

    def __len__(self) -> int:
        return len(self._entries)

    def remember(self, entry: VMAllocation) -> None:
        """Keep an eye on an allocation of this process."""
        self._entries[entry.allocation_id] = entry

    def look(self, document: PoolDocument, now: datetime) -> Reassertion:
        """Find what has vanished, and return the document with what can be asserted again. Nothing is noted yet."""
        state, notes = document.state, document.notes
        missing = [entry for entry in self._entries.values() if not _is_there(state, self._pool, entry)]
        found = [self._judge(entry, state, notes) for entry in missing]
        vanished = [each for each in found if each is not None]
        for each in vanished:
            if each.verdict is VanishedVerdict.REASSERTED:
                state, notes = self._again(state, notes, each.entry, now)
        return Reassertion(replace(document, state=state, notes=notes), tuple(vanished))

    def written(self, state: PoolState, vanished: Sequence[VanishedWrite]) -> None:
        """Note a state that this process wrote itself: what is not in it was released here."""
        self._tell(vanished)
        self._keep(state, set())

    def seen(self, state: PoolState, vanished: Sequence[VanishedWrite]) -> None:
        """Note a state that was read and is not going to be written: what could be asserted again is left for later."""
        told = [each for each in vanished if each.verdict is not VanishedVerdict.REASSERTED]
        self._tell(told)
        later = {each.entry.allocation_id for each in vanished} - {each.entry.allocation_id for each in told}
        self._keep(state, later)

    def _judge(self, entry: VMAllocation, state: PoolState, notes: PoolNotes) -> VanishedWrite | None:
        """Say what became of an entry; nothing if it was released by Tenure."""
        since = entry.allocated_at
        lines = [line for line in notes.history if line.allocation_id == entry.allocation_id]
        # A line that is older than the entry is about an earlier allocation of the id.
        did = lines[-1].did if lines and (since is None or lines[-1].at >= since) else ""
        if did in RELEASES:
            return None
        # The id has another address by now: with this one again it would have two.
        if entry.allocation_id in state.allocated:
            return VanishedWrite(entry, VanishedVerdict.GONE, entry.allocation_id)
        holder = next(iter(ids_of_ip(state, self._pool, entry.ip)), "")
        if holder.startswith(FILLER):
            return None  # the pool has moved, and the allocation with it
        if holder or did == REPAIR or entry.ip not in self._pool.known:
            is_sure = did == REPAIR or state.version <= self._version
            return VanishedWrite(entry, VanishedVerdict.LOST if is_sure else VanishedVerdict.GONE, holder)
        is_overwritten = state.version <= self._version or self._is_in_old_place(entry.ip, state.available)
        return VanishedWrite(entry, VanishedVerdict.REASSERTED if is_overwritten else VanishedVerdict.GONE)

    def _is_in_old_place(self, ip: str, available: Sequence[str]) -> bool:
        """Return whether an address stands before others that were free when the pool was last seen."""
        if ip not in available:
            return False
        behind = available[available.index(ip) + 1 :]
        return any(each in self._free for each in behind)

    def _again(
        self, state: PoolState, notes: PoolNotes, entry: VMAllocation, now: datetime
    ) -> tuple[PoolState, PoolNotes]:
        # Repaired first, so that the address is free under its own spelling alone.
        repaired = repair_state(state, self._pool).state
        available = tuple(ip for ip in repaired.available if ip != entry.ip)
        allocated = {**repaired.allocated, entry.allocation_id: entry}
        line = HistoryLine(now, "reassert", entry.allocation_id, entry.ip, entry.node_name)
        return replace(repaired, allocated=allocated, available=available), notes.with_line(line)

    def _keep(self, state: PoolState, later: Collection[str]) -> None:
        self._entries = {
            id: each for id, each in self._entries.items() if id in later or _is_there(state, self._pool, each)
        }
        # What was seen before is the evidence for those that are still to be asserted again.
        if not later:
            self._version = state.version
            self._free = frozenset(state.available)

    def _tell(self, vanished: Sequence[VanishedWrite]) -> None:
        for each in vanished:
            self.reports.append(each)
            entry = each.entry
            about = {"node": entry.node_name, "id": entry.allocation_id, "pod": entry.pod_name, "ip": entry.ip}
            if each.verdict is VanishedVerdict.GONE:
                audit(PoolEvent.GONE, **about, holder=each.holder)
                continue
            audit(PoolEvent.VANISHED, **about)
            event = PoolEvent.REASSERTED if each.verdict is VanishedVerdict.REASSERTED else PoolEvent.LOST
            audit(event, **about, holder=each.holder)


def gone_lines(document: PoolDocument) -> list[HistoryLine]:
    """Return allocations of the history that are not there, and that no line of Tenure ends.

    Another manager has released them, or written over them. A process that still runs notices that of its own
    allocations, and asserts them again; what a process made that has ended is noticed by this alone (VD8).
    """
    there = document.state.allocated
    return [line for line in _last_lines(document) if line.did in ALLOCATIONS and line.allocation_id not in there]


def returned_lines(document: PoolDocument, pool: PoolLine) -> list[HistoryLine]:
    """Return releases of the history whose allocations are there again: another manager wrote over them (VD8).

    An allocation that is younger than the release is a new one. Both times are whole seconds, and a manager of today
    may have allocated again within one: so what is found is told, and never released.
    """
    there = document.state.allocated
    return [
        line for line in _last_lines(document)
        if line.did in RELEASES and (entry := there.get(line.allocation_id)) is not None
        and (pool.spelled(entry.ip) or entry.ip) == (pool.spelled(line.ip) or line.ip)
        and (entry.allocated_at is None or entry.allocated_at <= line.at)
    ]  # fmt: skip


def _last_lines(document: PoolDocument) -> Iterable[HistoryLine]:
    """Return what was done last with each id, where other managers may write as well."""
    if document.notes.placement is not None and document.notes.placement.mode != "configmap":
        return ()
    return {line.allocation_id: line for line in document.notes.history if line.allocation_id}.values()


def _is_there(state: PoolState, pool: PoolLine, entry: VMAllocation) -> bool:
    """Return whether an id still has its address; another spelling of it is the same one."""
    found = state.allocated.get(entry.allocation_id)
    return found is not None and (found.ip == entry.ip or pool.spelled(found.ip) == entry.ip)
