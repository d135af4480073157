"""A pool on a book of allocations: each is written by itself, so callers meet only where they want the same VM.

The VM of a new id is picked from those that were free when this process last looked; one that was taken meanwhile is
passed over, and after a few of these it looks again. That none is free is said only after a fresh look. What concerns
the pool as a whole (recovery, repair) is decided on all of it, and written allocation by allocation, each only if it is
as it was read.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tenure.integrations.vmpool.config_map_swap import SwapLost
from tenure.integrations.vmpool.metering.operation_count import count_try
from tenure.integrations.vmpool.metering.result_tally import CONFLICTS, ResultTally
from tenure.integrations.vmpool.modes.allocation_book import AllocationBook, StoredNotes
from tenure.integrations.vmpool.modes.config_map_place import moved_notes
from tenure.integrations.vmpool.modes.noted_results import NotedResults
from tenure.integrations.vmpool.modes.pool_fillers import (
    filler_of,
    is_filler,
    is_nobodys,
    stands_for,
    without_generation,
)
from tenure.integrations.vmpool.pool_changes import FollowList, NoObserver, PoolObserver, no_list, now
from tenure.integrations.vmpool.pool_decisions import RepairReport, check_not_failed
from tenure.integrations.vmpool.pool_document import Decide, PoolChange, PoolDocument, PoolElsewhere
from tenure.integrations.vmpool.pool_errors import PoolSwapConflict, PoolUnavailable, VMPoolExhausted
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.state.go_json import whole_seconds
from tenure.integrations.vmpool.state.held_back import held_back
from tenure.integrations.vmpool.state.pool_notes import HistoryLine, PoolNotes, PoolPlacement, read_notes, write_notes
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation
from tenure.integrations.vmpool.state.state_repair import PoolFinding, PoolLine
from tenure.integrations.vmpool.state.state_rules import AllocationRequest, pick
from tenure.integrations.vmpool.vanished_writes import VanishedWrite
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tenure.kernel.errors import Conflict, TenureError

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - items

CHOICES = 3
"""The VMs that an id names at once: if another id takes the first, the next costs no further write of the claim."""
LOOK_AFTER = 4
"""The tries on VMs that others took before the pool is read again: reading it costs as much as a few tries."""
OLD_S = 30.0
"""A look that is older is not relied on."""


@dataclass
class _Call:
    """An operation that is under way, for the log and the numbers."""

    operation: str
    about: dict[str, object]
    word: str = "error"
    attempts: int = 1
    offered: Sequence[str] = ()
    """The VMs that were offered last."""


@dataclass
class BookPlace:
    """The allocations of a pool in a book."""

    book: AllocationBook
    settings: VMPoolSettings
    observer: PoolObserver = field(default_factory=NoObserver)
    check: Callable[[], None] = field(default=lambda: None, repr=False)
    """Raises if this process must not move the pool any more: another one may have gone on with it."""
    tally: ResultTally = field(default_factory=ResultTally, repr=False)
    as_of: Callable[[], int] = field(default=lambda: 1 << 62, repr=False)
    """Return the newest generation of the address list for which the pool is known to be here. A newer address may
    belong to a place to which the pool has moved since (``FoundPlace``)."""
    follow: FollowList = field(default=no_list, repr=False)
    """Reads the list again if notes say that there is a newer one."""
    _results: NotedResults = field(init=False, repr=False)
    _held: set[str] = field(default_factory=set, repr=False)
    """VMs that are not offered: those that were held when this process last looked, and what it has seen since."""
    _free: list[str] | None = field(default=None, repr=False)
    """The others, in the order of the pool; none until they are counted again."""
    _counted_of: int = field(default=-1, repr=False)
    """The generation of the list that they were counted of."""
    _looked_at: float = field(default=float("-inf"), repr=False)
    _passed: int = 0
    """How many VMs were passed over since."""
    _healed_at: float = field(default=float("-inf"), repr=False)

    def __post_init__(self) -> None:
        self._results = NotedResults(self.book, self.tally)

    async def allocate(self, request: AllocationRequest) -> VMAllocation:
        """Give an id its VM. Cost: what ``AllocationBook.take`` costs; a look at the pool now and then."""
        pod = f"{request.pod_namespace}/{request.pod_name}" if request.pod_name else ""
        about: dict[str, object] = {"node": request.node_name, "id": request.allocation_id, "pod": pod}
        with self._call("allocate", about) as call:
            audit(PoolEvent.ATTEMPT, operation="allocate", **about, attempt=1)
            async with self._in_time():
                taken = await self.book.take(new_entry(request), self._offers(request, call))
                if taken is None and await self._has_healed():
                    taken = await self.book.take(new_entry(request), self._offers(request, call))
                # Only a VM that the id had before can be waiting for a cleanup; for a new one no request is spent.
                # Within the time as well: where the notes are not answered, a repeated allocation would have no end
                # (VS1).
                is_old = taken is not None and not taken.is_new
                noted = await self.read_notes() if is_old else PoolNotes()
            if taken is None:
                call.word = "exhausted"
                raise VMPoolExhausted(in_use=len(self._held))
            event = PoolEvent.ALLOCATED if taken.is_new else PoolEvent.EXISTING
            if taken.is_new:
                # The VMs before it were tried first, and are others'.
                self._pass_over(itertools.takewhile(lambda ip: ip != taken.entry.ip, call.offered), call)
                self._close(taken.entry.ip)
            self._resolved(call)
            call.attempts = taken.tries
            call.word = "new" if taken.is_new else "existing"
            if not taken.is_new:
                check_not_failed(taken.entry, noted)
            audit(event, **about, ip=taken.entry.ip, attempt=taken.tries)
            return without_generation(taken.entry)

    async def release(self, node_name: str, *, allocation_id: str = "", ip: str = "") -> tuple[VMAllocation, ...]:
        """Take back a VM. Cost: a look for it, its end, and a look at the notes; for one that left the list, a take."""
        about: dict[str, object] = {"node": node_name, "id": allocation_id, "ip": ip}
        ended: VMAllocation | None = None
        with self._call("deallocate", about) as call:
            try:
                async with self._in_time():
                    ended = await self._end(call, allocation_id, ip)
                    if ended is not None:
                        await self._forget_failure(ended)
                        await self._hold_back(ended.ip)
            except TenureError as error:
                if ended is None:
                    raise
                # The VM is free: an error would let the caller believe that it is not.
                audit(PoolEvent.WARNING, **about, warning=f"released, and not all of its notes were written: {error}")
            if ended is None:
                call.word = "not_found"
                audit(PoolEvent.NOT_FOUND, **about, attempt=call.attempts)
                return ()
            call.word = "released"
            self._held.discard(ended.ip)
            # Counted again, so that the VM stands at its place in the order of the pool.
            self._free = None
            audit(
                PoolEvent.RELEASED, node=node_name, id=ended.allocation_id, pod=ended.pod_name, ip=ended.ip,
                attempt=call.attempts,
            )  # fmt: skip
            return (without_generation(ended),)

    async def _end(self, call: _Call, allocation_id: str, ip: str) -> VMAllocation | None:
        """End the allocation of an id or a VM, and return it; nothing if there is none."""
        while True:
            audit(PoolEvent.ATTEMPT, operation=call.operation, **call.about, attempt=call.attempts)
            found = await (self.book.of_id(allocation_id) if allocation_id else self.book.of_ip(ip))
            # An entry that stands for a move, or holds an address back, is no pod's to release.
            if found is None or is_nobodys(found):
                return None
            if await self.book.drop(found):
                self._resolved(call)
                return found
            self._lost(call)
            call.attempts += 1

    async def _forget_failure(self, ended: VMAllocation) -> None:
        """Take the note of a failed cleanup away: where the id gets the VM again, a retry would reboot it in use."""
        while True:
            stored = await self.book.read_notes()
            notes = read_notes(stored.text)
            with contextlib.suppress(TenureError):  # the allocation has ended; what could not be read is the decider's
                await self.follow(notes)
            failure = notes.cleanup_failed.get(ended.ip)
            if failure is None or failure.allocation_id != ended.allocation_id:
                return
            kept = {ip: each for ip, each in notes.cleanup_failed.items() if ip != ended.ip}
            with contextlib.suppress(SwapLost):
                await self.book.write_notes(write_notes(replace(notes, cleanup_failed=kept).with_write("")), stored)
                return

    async def _hold_back(self, ip: str) -> None:
        """Let nobody have an address that was released after it had left the pool's list (VS9)."""
        line = self.settings.line
        if line.generation and ip not in line.known:
            await self.book.take(held_back(ip, now()), _only(ip))

    async def get(self, allocation_id: str) -> VMAllocation | None:
        """Return the VM that an id has."""
        async with self._in_time():
            return _shown(await self.book.of_id(allocation_id))

    async def find_ip(self, ip: str) -> VMAllocation | None:
        """Return the allocation of an IP."""
        async with self._in_time():
            return _shown(await self.book.of_ip(ip))

    async def read(self) -> PoolDocument:
        """Read the pool, whole: all allocations, and the notes."""
        async with self._in_time():
            document, _ = await self._read()
        return document

    async def change(
        self, operation: str, decide: Decide[T], about: Mapping[str, object], timeout_s: float | None = None
    ) -> T:
        """Decide on the whole pool, and write what differs, one after the other; decide again if it has changed."""
        ended: dict[str, VMAllocation] = {}
        with self._call(operation, dict(about)) as call:
            async with self._in_time(timeout_s):
                for attempt in range(1, 1 << 30):
                    call.attempts = attempt
                    audit(PoolEvent.ATTEMPT, operation=operation, **about, attempt=attempt)
                    document, notes = await self._read()
                    # What this call has ended already is decided on as if it were there, and not ended again.
                    allocated = {**document.state.allocated, **ended}
                    seen = replace(document, state=replace(document.state, allocated=allocated))
                    change = decide(seen)
                    if await self._applied(seen, change, notes, ended):
                        break
                    self._lost(call)
            self._resolved(call)
            call.word = change.word
            self._report(change, call)
            return change.result

    async def read_notes(self) -> PoolNotes:
        """Read what is noted."""
        return read_notes((await self.book.read_notes()).text)

    async def heal(self) -> int:
        """Remove what writers that were killed have left."""
        async with self._in_time():
            healed = await self.book.heal()
        if healed:
            audit(PoolEvent.REPAIRED, pool=self.settings.config_map_name, reason=f"{healed} unfinished writes removed")
            # The VMs that were blocked are free, which only a new look can see.
            self._looked_at = float("-inf")
        return healed

    async def put_in_place(self, node_name: str) -> tuple[PoolFinding, ...]:
        """Return nothing: a value that lies elsewhere is one that cannot be read here."""
        return ()

    async def replace_unreadable(self, node_name: str) -> RepairReport | None:
        """Replace notes that cannot be read, after a copy; return nothing if they can be.

        An allocation that cannot be read is one of many, and is the operator's to look at and to remove.
        """
        await self.read()
        async with self._in_time():
            stored = await self.book.read_notes()
            problem = read_notes(stored.text).problem
            if not problem or stored.text is None:
                return None
            at = now()
            copy = await self.book.keep_copy(f"broken-{at:%Y%m%dt%H%M%S%fz}", stored.text)
            line = HistoryLine(at, "repair", "", "", node_name)
            try:
                await self.book.write_notes(write_notes(PoolNotes().with_line(line)), stored)
            except SwapLost as error:
                raise PoolSwapConflict("repair", str(error), attempts=1) from error
        audit(PoolEvent.REPAIRED, node=node_name, part="notes", reason=problem, copy=copy)
        return RepairReport(is_written=True, copy=copy, replaced=("notes",))

    async def reassert(self, node_name: str) -> tuple[VanishedWrite, ...]:
        """Return nothing: no manager overwrites what is not its own here."""
        return ()

    @property
    def vanished(self) -> tuple[VanishedWrite, ...]:
        """Return nothing, as ``reassert`` does."""
        return ()

    async def leave(self, placement: PoolPlacement) -> Sequence[VMAllocation]:
        """Give every address to a filler. Cost: a few requests for each address, some at once."""
        to = placement.moves_to
        while True:
            self.check()
            # Before the entries are read: behind a seal nothing can be taken, so that they are all.
            is_sealed = await self.book.seal()
            entries = {entry.ip: entry for entry in await self.book.entries()}
            free = [] if is_sealed else [ip for ip in self.settings.line.ips if ip not in entries]
            moved = await _each(list(entries.values()), lambda entry: self._fill(entry, to))
            taken = await _each(free, lambda ip: self._take_filler(ip, to))
            if all(moved) and all(taken):
                # Read from the fillers, since a mover that was broken off may have written some of them.
                return [was for entry in await self.book.entries() if (was := stands_for(entry)) is not None]
            await self.book.heal()

    async def check_leave(self, placement: PoolPlacement) -> Sequence[VMAllocation]:
        """Return what would leave; raise if the book has no room for the fillers."""
        held = {entry.ip: entry for entry in await self.book.entries()}
        ips = dict.fromkeys((*self.settings.line.ips, *held))
        await self.book.check_room([filler_of(ip, placement.moves_to, held.get(ip)) for ip in ips])
        return list(held.values())

    async def prepare(self, placement: PoolPlacement, entries: Sequence[VMAllocation]) -> None:
        """Make the book ready for a pool that is to be moved here, with room for its allocations."""
        await self.book.prepare(placement.mode == placement.moves_to, entries)

    async def arrive(self) -> None:
        """Say in the book that the pool is here."""
        await self.book.arrive()

    async def enter(self, entries: Sequence[VMAllocation], notes: PoolNotes, placement: PoolPlacement) -> None:
        """Take allocations in. Cost: as many requests as to allocate them, some at once."""

        async def enter_one(entry: VMAllocation) -> None:
            # Before each of them: a mover that slept would bring back what was released since.
            self.check()
            taken = await self.book.take(entry, _only(entry.ip))
            if taken is None or taken.entry.ip != entry.ip:
                raise Conflict(f"{entry.ip} of {entry.allocation_id!r} is another id's where the pool is to go")

        await _each(list(entries), enter_one)
        stored = await self.book.read_notes()
        await self.book.write_notes(write_notes(moved_notes(read_notes(stored.text), notes)), stored)

    async def close(self) -> None:
        """Let go of the book."""
        await self._results.close()
        await self.book.close()

    async def _fill(self, entry: VMAllocation, to: str) -> bool:
        """Give the VM of an allocation to a filler that stands for it."""
        if is_filler(entry):
            return True
        filler = filler_of(entry.ip, to, entry)
        return await self.book.exchange(entry, filler)

    async def _take_filler(self, ip: str, to: str) -> bool:
        taken = await self.book.take(filler_of(ip, to), _only(ip))
        return taken is not None and taken.entry.ip == ip

    async def _offers(self, request: AllocationRequest, call: _Call) -> AsyncGenerator[Sequence[str], None]:
        """Give VMs that may be free, those that cost least first; when more are asked for, all of them were taken."""
        is_fresh = False
        while True:
            is_due = self._passed >= LOOK_AFTER or time.monotonic() - self._looked_at > OLD_S
            free = self._open_vms(request)
            if not free and is_fresh:
                return
            if is_due or not free:
                await self._look()
                is_fresh = True
                continue
            call.offered = self._picks(request, free)
            yield call.offered
            self._pass_over(call.offered, call)
            # All of them were taken meanwhile, so the look is not fresh any more.
            call.offered, is_fresh = (), False

    def _picks(self, request: AllocationRequest, free: Sequence[str]) -> list[str]:
        """Return what an id gets of some VMs, and what it gets if others have that, and so on."""
        # A copy: nearest may return the very list that it is given, and picks are taken out of it.
        near = self.book.nearest(request.allocation_id, list(free))
        picks = []
        for _ in range(min(CHOICES, len(near))):
            picks.append(pick(near, request.allocation_id, self.settings.pool_pick))
            near.remove(picks[-1])
        return picks

    def _open_vms(self, request: AllocationRequest) -> Sequence[str]:
        """Return VMs that are not known to be held. Cost: O(1), and O(n) after a look."""
        line = self._known_line()
        if self._free is None or self._counted_of != line.generation:
            self._free = [ip for ip in line.ips if ip not in self._held]
            self._counted_of = line.generation
        if not request.passed_over:
            return self._free
        return [ip for ip in self._free if ip not in request.passed_over]

    def _known_line(self) -> PoolLine:
        """Return the list; raise ``PoolElsewhere`` if it is newer than what is known of where the pool is."""
        if self.settings.line.generation > self.as_of():
            raise PoolElsewhere
        return self.settings.line

    def _close(self, ip: str) -> None:
        """Offer a VM no longer."""
        if ip not in self._held:
            self._held.add(ip)
            if self._free is not None and ip in self._free:
                self._free.remove(ip)

    def _see(self, held: Collection[str]) -> None:
        """Take over which VMs are held."""
        self._held, self._free, self._looked_at, self._passed = set(held), None, time.monotonic(), 0

    def _pass_over(self, ips: Iterable[str], call: _Call) -> None:
        """Note that VMs were taken by others meanwhile."""
        for ip in ips:
            self._close(ip)
            self._passed += 1
            self._lost(call, ip)
            call.attempts += 1

    def _lost(self, call: _Call, ip: str = "") -> None:
        """Count an attempt for which another writer was faster."""
        self.observer.conflict(call.operation)
        self.tally.add(CONFLICTS)
        about = {**call.about, "ip": ip} if ip else call.about
        audit(PoolEvent.CONFLICT, operation=call.operation, **about, attempt=call.attempts)

    def _resolved(self, call: _Call) -> None:
        """Write that an operation is done for which another writer was faster before."""
        if call.attempts > 1:
            audit(PoolEvent.RESOLVED, operation=call.operation, **call.about, attempt=call.attempts)

    async def _has_healed(self) -> bool:
        """Remove what blocks VMs although none has them, before a pool is called full; not again and again."""
        if time.monotonic() - self._healed_at < OLD_S:
            return False
        self._healed_at = time.monotonic()
        return await self.heal() > 0

    async def _look(self) -> None:
        self._see(await self.book.held_ips())

    async def _read(self) -> tuple[PoolDocument, StoredNotes]:
        entries, notes = await asyncio.gather(self.book.entries(), self.book.read_notes())
        if any(map(is_filler, entries)):
            raise PoolElsewhere
        held = {entry.ip for entry in entries}
        self._see(held)
        # Allocations and notes are not of one moment, as they are in one ConfigMap.
        said = _current(read_notes(notes.text), entries)
        free = tuple(ip for ip in self._known_line().ips if ip not in held)
        last = max((entry.allocated_at for entry in entries if entry.allocated_at is not None), default=None)
        state = PoolState({entry.allocation_id: entry for entry in entries}, free, last)
        document = PoolDocument(state, said, bool(entries) or notes.text is not None)
        self.observer.read(document)
        return document, notes

    async def _applied(
        self, seen: PoolDocument, change: PoolChange[Any], notes: StoredNotes, ended: dict[str, VMAllocation]
    ) -> bool:
        """Write what a decision changes: allocations that end, then those that begin, then the notes."""
        before = seen.state.allocated
        after = before if change.state is None else change.state.allocated
        for key, entry in before.items():
            if after.get(key) == entry or key in ended:
                continue
            if not await self.book.drop(entry):
                return False
            ended[key] = entry
        for key, entry in after.items():
            # Behind all that ends: an address that is held back from now on was an id's until here.
            if before.get(key) != entry:
                taken = await self.book.take(entry, _only(entry.ip))
                if taken is None or not taken.is_new:
                    return False
        if change.notes is None or change.notes.problem or change.notes == seen.notes:
            return True
        try:
            await self.book.write_notes(write_notes(change.notes.with_write("")), notes)
        except SwapLost:
            return False
        return True

    def _report(self, change: PoolChange[Any], call: _Call) -> None:
        for found in change.findings:
            if found.is_change:
                self.observer.repaired(found.kind.value)
                audit(
                    PoolEvent.REPAIRED, node=call.about.get("node"), id=found.allocation_id, ip=found.ip,
                    kind=found.kind.value, reason=found.message,
                )  # fmt: skip
        if change.report is not None:
            change.report(call.attempts)

    @contextlib.contextmanager
    def _call(self, operation: str, about: dict[str, object]) -> Iterator[_Call]:
        """Count an operation, and write a line if it fails."""
        began, call = time.monotonic(), _Call(operation, about)
        try:
            yield call
        except VMPoolExhausted:
            raise  # it may be asked again; whoever gives up says so
        except TenureError as error:
            audit(PoolEvent.FAILED, operation=operation, **about, attempt=call.attempts, error=error)
            raise
        finally:
            count_try(self.observer, operation, call.word, time.monotonic() - began, call.attempts)
            self._results.note_soon()

    @contextlib.asynccontextmanager
    async def _in_time(self, timeout_s: float | None = None) -> AsyncIterator[None]:
        """End what takes too long; whether a write was done is then not known."""
        limit_s = self.settings.operation_timeout_s if timeout_s is None else timeout_s
        try:
            async with asyncio.timeout(limit_s):
                yield
        except TimeoutError:
            raise PoolUnavailable(f"no answer within {limit_s:g} s", outcome="unknown") from None


def new_entry(request: AllocationRequest) -> VMAllocation:
    """Return the entry of a request, without a VM yet."""
    return VMAllocation(
        request.allocation_id, "", request.node_name, request.pod_name, request.pod_namespace, whole_seconds(now())
    )


def _shown(entry: VMAllocation | None) -> VMAllocation | None:
    return None if entry is None or is_nobodys(entry) else without_generation(entry)


def _current(notes: PoolNotes, entries: Sequence[VMAllocation]) -> PoolNotes:
    """Return notes without failures of allocations that have ended since."""
    held = {(entry.ip, entry.allocation_id): entry.allocated_at for entry in entries}
    kept = {
        ip: each for ip, each in notes.cleanup_failed.items()
        if (at := held.get((ip, each.allocation_id))) is not None and at <= each.at
    }  # fmt: skip
    return notes if kept.keys() == notes.cleanup_failed.keys() else replace(notes, cleanup_failed=kept)


async def _only(ip: str) -> AsyncGenerator[Sequence[str], None]:
    yield (ip,)


AT_ONCE = 32


async def _each(items: Sequence[I], work: Callable[[I], Awaitable[T]]) -> list[T]:
    """Do a piece of work for each item, so many at once; raise the first error when nothing is under way any more.

    What were still at work then would write after the Lease was given up.
    """
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(item: I) -> T:
        async with turns:
            return await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
