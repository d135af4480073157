"""A pool in the seed's ConfigMap: all of it is one document, and every write swaps the whole."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.vmpool.config_map_swap import ConfigMapSwap
from tenure.integrations.vmpool.metering.result_tally import ResultTally
from tenure.integrations.vmpool.modes.config_map_mending import ConfigMapMending
from tenure.integrations.vmpool.modes.left_allocations import LeftAllocations
from tenure.integrations.vmpool.modes.pool_fillers import filler_of, is_filler, is_nobodys
from tenure.integrations.vmpool.pool_changes import FollowList, PoolChanges, PoolObserver, no_list, now
from tenure.integrations.vmpool.pool_decisions import (
    RepairReport,
    decide_allocation,
    decide_release,
    with_repairs,
)
from tenure.integrations.vmpool.pool_document import (
    Decide,
    DecideAgain,
    PoolChange,
    PoolDocument,
    PoolElsewhere,
    written_values,
)
from tenure.integrations.vmpool.pool_errors import PoolTooLarge
from tenure.integrations.vmpool.state.held_back import TENURE_NODE
from tenure.integrations.vmpool.state.pool_notes import HistoryLine, PoolNotes, PoolPlacement
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation, entry_document, read_entry
from tenure.integrations.vmpool.state.state_repair import PoolFinding, repair_entries
from tenure.integrations.vmpool.state.state_rules import AllocationRequest, ids_of_ip
from tenure.integrations.vmpool.vanished_writes import OwnAllocations, VanishedWrite
from tenure.integrations.vmpool.vm_pool_settings import LARGEST_CONFIG_MAP, VMPoolSettings
from tenure.kernel.errors import Conflict

T = TypeVar("T")

ROOM_FOR_NOTES = 4096
"""More than a write adds to the notes: its mark, counts of results, where the pool is."""
TOO_MANY_ADDRESSES = (
    "the ConfigMap has to keep an entry for each address that leaves, so that no Go manager gives it out (VD4), which "
    "there is room for up to some 4,300 of; take addresses out of the pool first (`tenure vmpool resize --remove`)"
)
MOVE = "move"
"""The one operation that may change what lies where the pool is not."""


def check_here(document: PoolDocument) -> PoolDocument:
    """Raise ``PoolElsewhere`` if what was read says that the pool is not here."""
    placement = document.notes.placement
    if placement is not None and (placement.mode != "configmap" or placement.moves_to):
        raise PoolElsewhere
    return document


def check_placement(document: PoolDocument, seen: PoolPlacement | None) -> None:
    """Raise ``Conflict`` if the pool is not where a mover has seen it: another one has gone on with the move."""
    if document.notes.placement != seen:
        raise Conflict("the pool was moved by another process meanwhile; look where it is, and begin again")


def check_not_in_seeds_mode(document: PoolDocument, wanted: str) -> None:
    """Raise ``Conflict`` if the ConfigMap has a pool that was never moved: it is used in another mode by mistake."""
    placement, state = document.notes.placement, document.state
    is_used = document.is_there
    if placement is not None:
        # One that began in another mode has nothing here, unless a Go manager has begun a pool of its own.
        is_begun = placement == PoolPlacement(placement.mode) and placement.mode != "configmap"
        is_used = is_begun and bool(state.available or not all(map(is_nobodys, state.allocated.values())))
    if is_used:
        name = document.stored.object["metadata"]["name"] if document.stored.object else "of its name"
        raise Conflict(
            f"pool_mode: the ConfigMap {name} has a pool in mode configmap; "
            f"`tenure vmpool move --to {wanted}` moves it",
            field="pool_mode",
        )


class ConfigMapPlace:
    """The allocations of a pool in one ConfigMap, which Go managers may share."""

    def __init__(
        self,
        client: ApiClient,
        settings: VMPoolSettings,
        observer: PoolObserver | None = None,
        tally: ResultTally | None = None,
        follow: FollowList = no_list,
    ) -> None:
        self._settings = settings
        self._follow = follow
        self._swap = ConfigMapSwap(client, settings.namespace, settings.config_map_name)
        self._mending = ConfigMapMending(self._swap, settings)
        self._own = OwnAllocations(settings.line)
        self._left = LeftAllocations(client, settings)
        self._changes = PoolChanges(
            self._swap, settings, self._own, observer=observer, tally=tally, follow=follow
        )  # fmt: skip

    async def allocate(self, request: AllocationRequest) -> VMAllocation:
        """Give an id its VM. Cost: one read, and one write if the VM is new; callers at the same time share both."""
        pod = f"{request.pod_namespace}/{request.pod_name}" if request.pod_name else ""
        about = {"node": request.node_name, "id": request.allocation_id, "pod": pod}
        entry = await self.change("allocate", lambda document: self.decide_allocation(document, request), about)
        return self.remember(entry)

    def decide_allocation(self, document: PoolDocument, request: AllocationRequest) -> PoolChange[VMAllocation]:
        """Decide which VM an id gets."""
        return decide_allocation(document, self._settings.line, request, now())

    def remember(self, entry: VMAllocation) -> VMAllocation:
        """Keep an eye on an allocation of this process (VD8)."""
        self._own.remember(entry)
        return entry

    async def release(self, node_name: str, *, allocation_id: str = "", ip: str = "") -> tuple[VMAllocation, ...]:
        """Take back a VM. Cost: one read, and one write if there was something to release."""

        def decide(document: PoolDocument) -> PoolChange[tuple[VMAllocation, ...]]:
            line = self._settings.line
            ids = [allocation_id] if allocation_id else ids_of_ip(document.state, line, ip)
            # An entry that stands for a move, or holds an address back, is no pod's to release.
            wanted = [id for id in ids if (found := document.state.entry(id)) is None or not is_nobodys(found)]
            return decide_release(document, line, wanted, node_name, now())

        return await self.change("deallocate", decide, {"node": node_name, "id": allocation_id, "ip": ip})

    async def get(self, allocation_id: str) -> VMAllocation | None:
        """Return the VM that an id has. Cost: one read."""
        return (await self.read()).state.entry(allocation_id)

    async def find_ip(self, ip: str) -> VMAllocation | None:
        """Return the allocation of an IP. Cost: one read."""
        state = (await self.read()).state
        ids = ids_of_ip(state, self._settings.line, ip)
        found = state.entry(ids[0]) if ids else None
        return None if found is None or is_nobodys(found) else found

    async def read(self) -> PoolDocument:
        """Read the pool, whole; raise ``PoolElsewhere``. Cost: one read."""
        return check_here(await self._changes.read())

    async def read_home(self) -> PoolDocument:
        """Read the ConfigMap, wherever the pool is. Cost: one read."""
        return await self._changes.read()

    async def change(
        self, operation: str, decide: Decide[T], about: Mapping[str, object], timeout_s: float | None = None
    ) -> T:
        """Decide on the pool, and swap it; raise ``PoolElsewhere``.

        Cost: one read, and one write if anything has changed.
        """
        if operation == MOVE:
            return await self._changes.change(operation, decide, about, timeout_s)
        return await self._changes.change(operation, lambda document: decide(check_here(document)), about, timeout_s)

    async def read_notes(self) -> PoolNotes:
        """Read what is noted."""
        return (await self.read_home()).notes

    async def heal(self) -> int:
        """Return that there is nothing to do: a swap leaves nothing half done."""
        return 0

    async def reassert(self, node_name: str) -> tuple[VanishedWrite, ...]:
        """Assert again what other managers overwrote. Cost: one read, and one write if there was something."""
        before = len(self._own.reports)
        await self.change("reassert", lambda document: PoolChange(None), {"node": node_name})
        return tuple(self._own.reports)[before:]

    @property
    def vanished(self) -> tuple[VanishedWrite, ...]:
        """Return the reports of allocations of this process that vanished, oldest first."""
        return tuple(self._own.reports)

    async def check_fits(self, entries: Sequence[VMAllocation]) -> None:
        """Raise ``PoolTooLarge`` if these allocations have no room in the ConfigMap."""
        document = await self.read_home()
        state = PoolState({entry.allocation_id: entry for entry in entries}, self._settings.line.ips)
        # Without the history, which gives way to allocations, and without the entries that were left: they are these.
        size = document.stored.size(written_values(state, replace(document.notes, history=(), left={})))
        if size > LARGEST_CONFIG_MAP:
            raise PoolTooLarge(size=size, limit=LARGEST_CONFIG_MAP)

    async def begin(self, placement: PoolPlacement) -> None:
        """Note that a pool begins in another mode, unless something is noted; raise ``Conflict`` if it is used here.

        No address is in the state then, so a Go manager that was started by mistake has none until its repair.
        """

        def decide(document: PoolDocument) -> PoolChange[None]:
            if document.notes.placement is not None:
                return PoolChange(None)
            check_not_in_seeds_mode(document, placement.mode)
            state = replace(document.state, available=())
            return PoolChange(None, state, replace(document.notes, placement=placement))

        await self.change(MOVE, decide, {})

    async def place(self, placement: PoolPlacement, seen: PoolPlacement | None) -> None:
        """Write where the pool is, if that was seen; where it is not here, no address is free from the same swap on."""

        def decide(document: PoolDocument) -> PoolChange[None]:
            if document.notes.placement == placement:
                return PoolChange(None)
            check_placement(document, seen)
            notes = replace(document.notes, placement=placement)
            if placement.mode == "configmap":
                return PoolChange(None, None, notes)
            if not placement.moves_to:
                notes = replace(notes, left={}, left_in="")  # it has arrived with them
            return PoolChange(None, self._with_fillers(document, placement), notes)

        await self.change(MOVE, decide, {})

    def _with_fillers(self, document: PoolDocument, placement: PoolPlacement) -> PoolState | None:
        """Return a state in which no address is free; of a pool too large for that, with the fillers that are there."""
        fillers = self._fillers(placement.moves_to or placement.mode, ())
        state = replace(document.state, allocated=fillers, available=())
        if not _has_room(document, state, document.notes):
            state = replace(document.state, available=())
        is_same = document.state.allocated.keys() == state.allocated.keys() and not document.state.available
        return None if is_same else state

    async def check_leave(self, placement: PoolPlacement) -> Sequence[VMAllocation]:
        """Return what would leave; raise ``PoolTooLarge`` if a filler for every address has no room."""
        document = await self.read_home()
        found, _ = self._leaving(document, {})
        state = replace(document.state, allocated=self._fillers(placement.moves_to, found), available=())
        if not _has_room(document, state, replace(document.notes, left={})):
            size = document.stored.size(written_values(state, document.notes.lightest))
            raise PoolTooLarge(size=size, limit=LARGEST_CONFIG_MAP, remedy=TOO_MANY_ADDRESSES)
        return found

    async def come_back(self, seen: PoolPlacement) -> list[VMAllocation]:
        """Take a move back that has not arrived: what was left is allocated again, all in one swap; return it."""

        def decide_on(before: PoolDocument, left: Mapping[str, Any]) -> Decide[list[VMAllocation]]:
            def decide(document: PoolDocument) -> PoolChange[list[VMAllocation]]:
                check_placement(document, seen)
                _check_same(before, document)
                entries, findings = self._leaving(document, left)
                state = self._with_entries(document, entries)
                placement = PoolPlacement("configmap", "", seen.epoch + 1)
                notes = replace(document.notes, left={}, left_in="", placement=placement)
                return PoolChange(entries, state, with_repairs(notes, findings, TENURE_NODE, now()), tuple(findings))

            return decide

        while True:
            document = await self.read_home()
            with contextlib.suppress(_LeftChanged):
                return await self.change(MOVE, decide_on(document, await self._left.read(document.notes)), {})

    def _with_entries(self, document: PoolDocument, entries: Sequence[VMAllocation]) -> PoolState:
        held = {entry.ip for entry in entries}
        free = tuple(ip for ip in self._settings.line.ips if ip not in held)
        return replace(document.state, allocated={entry.allocation_id: entry for entry in entries}, available=free)

    def _fillers(self, to: str, found: Sequence[VMAllocation]) -> dict[str, VMAllocation]:
        ips = dict.fromkeys((*self._settings.line.ips, *(entry.ip for entry in found)))
        return {each.allocation_id: each for each in (filler_of(ip, to) for ip in ips)}

    async def leave(self, placement: PoolPlacement) -> Sequence[VMAllocation]:
        """Give every address to a filler, all in one swap; what was allocated is in the notes, or where they say."""
        while True:
            document = await self.read_home()
            check_placement(document, placement)
            found, findings = self._leaving(document, await self._left.read(document.notes))
            left = {entry.allocation_id: entry_document(entry) for entry in found}
            state = replace(document.state, allocated=self._fillers(placement.moves_to, found), available=())
            # All fillers are there: an earlier try, or a mover that was broken off, has done it.
            if document.state.allocated.keys() == state.allocated.keys():
                return found
            notes = replace(document.notes, left=left, left_in="")
            if not _has_room(document, state, notes):
                # Before the swap that names it: a mover that is killed in between leaves an object that no note names.
                notes = replace(notes, left={}, left_in=await self._left.keep(left))
            change = PoolChange(None, state, notes, tuple(findings))
            with contextlib.suppress(_LeftChanged):
                await self.change(MOVE, _decide_leave(document, placement, change), {})
                return found

    def _leaving(self, document: PoolDocument, left: Mapping[str, Any]) -> tuple[list[VMAllocation], list[PoolFinding]]:
        """Return the allocations with which the pool leaves, and what was wrong with them.

        They are put right as by any other write: another manager may have been the last to write here, and no other
        mode can have an address in two spellings, or two ids on one.
        """
        known = {key: read_entry(key, each) for key, each in {**left, **_real(document)}.items()}
        allocated, findings = repair_entries(known, self._settings.line)
        return list(allocated.values()), findings

    async def prepare(self, placement: PoolPlacement, entries: Sequence[VMAllocation]) -> None:
        """Raise ``PoolTooLarge`` if these allocations have no room in the ConfigMap."""
        await self.check_fits(entries)

    async def arrive(self) -> None:
        """Do nothing: the swap that took the allocations in has said so."""

    async def enter(self, entries: Sequence[VMAllocation], notes: PoolNotes, placement: PoolPlacement) -> None:
        """Make the addresses of these allocations theirs and all others free, and say so, all in one swap."""
        arrived = placement.arrived

        def decide(document: PoolDocument) -> PoolChange[None]:
            if document.notes.placement == arrived:
                return PoolChange(None)
            check_placement(document, placement)
            state = self._with_entries(document, entries)
            said = replace(moved_notes(document.notes, notes), placement=arrived)
            return PoolChange(None, state, said)

        await self.change(MOVE, decide, {})

    async def stored_notes(self) -> PoolNotes:
        """Read what is noted, also where the list of addresses is gone that has to be followed. Cost: one read."""
        return await self._mending.stored_notes()

    async def note_list(self, generation: int) -> None:
        """Note of which generation the list of addresses is, wherever the pool is (VS9). Cost: a read and a write."""
        await self._mending.note_list(generation)

    async def close(self) -> None:
        """Wait until nothing is under way."""
        await self._changes.close()

    async def put_in_place(self, node_name: str) -> tuple[PoolFinding, ...]:
        """Move what lies under ``binaryData`` to ``data``."""
        return await self._mending.put_in_place(node_name)

    async def replace_unreadable(self, node_name: str) -> RepairReport | None:
        """Replace what cannot be read by a fresh state or fresh notes, after a copy; nothing if all can be read."""
        # Fresh notes say which list of addresses counts, as those did that cannot be read.
        await self._follow(PoolNotes(problem="not read yet"))
        return await self._mending.replace_unreadable(node_name)


class _LeftChanged(DecideAgain):
    """What the pool leaves is not what was read: another manager has written meanwhile."""


def _real(document: PoolDocument) -> dict[str, Any]:
    """Return the allocations of a state that are no fillers, as they are written."""
    found = {key: document.state.entry(key) for key in document.state.allocated}
    return {key: entry_document(each) for key, each in found.items() if each is not None and not is_filler(each)}


def _check_same(before: PoolDocument, document: PoolDocument) -> None:
    """Raise ``_LeftChanged`` unless a pool leaves with what was read before."""
    notes = document.notes
    if _real(document) != _real(before) or (notes.left, notes.left_in) != (before.notes.left, before.notes.left_in):
        raise _LeftChanged


def _decide_leave(before: PoolDocument, placement: PoolPlacement, change: PoolChange[None]) -> Decide[None]:
    """Return the decision that a pool leaves, with what was read before."""
    at = now()

    def decide(document: PoolDocument) -> PoolChange[None]:
        check_placement(document, placement)
        _check_same(before, document)
        assert change.notes is not None
        assert change.state is not None
        notes = replace(document.notes, left=change.notes.left, left_in=change.notes.left_in)
        state = replace(document.state, allocated=change.state.allocated, available=())
        notes = with_repairs(notes, change.findings, TENURE_NODE, at)
        return PoolChange(None, state, notes.with_line(HistoryLine(at, "move", "", "", "")), change.findings)

    return decide


def _has_room(document: PoolDocument, state: PoolState, notes: PoolNotes) -> bool:
    """Return whether values fit into the ConfigMap, also with what each write adds to the notes."""
    return document.stored.size(written_values(state, notes.lightest)) <= LARGEST_CONFIG_MAP - ROOM_FOR_NOTES


def moved_notes(here: PoolNotes, there: PoolNotes) -> PoolNotes:
    """Return notes that say of machines what those of the other place said, and nothing of what was left."""
    return replace(
        here, cleanup_failed=there.cleanup_failed, draining=there.draining, nodes=there.nodes, left={}, left_in=""
    )  # fmt: skip
