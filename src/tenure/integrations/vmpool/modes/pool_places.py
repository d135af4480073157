"""Which place serves a pool: the one that its notes name, and every process follows.

Where a pool is stands in the notes of the ConfigMap of its name, in all modes, from its first write on; a ledger says
it as well, for those who see nothing else. A process reads it at its first call, and again whenever its place has not
found what was asked for, or the list of addresses is newer than what it knew then. In a place that the pool has left,
no address of any list up to that time is free, and no id gets a VM other than its own. So what a process finds there
is still true; only what it does not find has to be looked for again.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.leader_lease import LeaseTimes
from tenure.integrations.vmpool.address_list.list_follower import ListFollower
from tenure.integrations.vmpool.address_list.sized_list_object import SizedListObject
from tenure.integrations.vmpool.cells.cell_requests import CellRequests
from tenure.integrations.vmpool.cells.object_cells import ObjectCells
from tenure.integrations.vmpool.cells.shard_cells import ShardCells
from tenure.integrations.vmpool.metering.result_tally import ResultTally
from tenure.integrations.vmpool.modes.allocation_book import AllocationBook
from tenure.integrations.vmpool.modes.book_place import BookPlace
from tenure.integrations.vmpool.modes.cell_allocations import CellAllocations, pool_root
from tenure.integrations.vmpool.modes.config_map_place import ConfigMapPlace, check_not_in_seeds_mode
from tenure.integrations.vmpool.modes.ledger_allocations import LedgerAllocations
from tenure.integrations.vmpool.modes.pool_place import PoolPlace
from tenure.integrations.vmpool.pool_changes import NoObserver, PoolObserver
from tenure.integrations.vmpool.pool_document import PoolElsewhere
from tenure.integrations.vmpool.pool_errors import NO_CLIENT, PoolForbidden, PoolUnavailable
from tenure.integrations.vmpool.state.pool_notes import PoolNotes, PoolPlacement
from tenure.integrations.vmpool.vm_pool_settings import MODES, VMPoolSettings
from tenure.kernel.errors import Conflict, Invalid

T = TypeVar("T")

LOOK_EVERY_S = 0.2
"""How often a caller looks whether a pool that is being moved has arrived."""


_MOVES: ContextVar[bool] = ContextVar("moves", default=False)
"""Whether a task moves the pool; other calls of this process need no Lease."""


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """Where a process has found the pool, and as of when: what is offered rests on this one value."""

    placement: PoolPlacement
    generation: int = 0
    """The generation of the address list that was known before the look. The pool may have moved before an address of a
    newer list came, so no such address is offered until the pool was looked for again."""
    is_noted: bool = True
    """Whether the notes say so; if not, only the settings of this process do."""


@dataclass
class PoolPlaces:
    """The places that a pool can be at, for one process."""

    client: ApiClient | None
    settings: VMPoolSettings
    observer: PoolObserver | None = None
    tally: ResultTally = field(default_factory=ResultTally, repr=False)
    """Results that no write has noted yet."""
    check: Callable[[], None] = field(default=lambda: None, repr=False)
    """Raises if this process must not move the pool any more."""
    lease: LeaseTimes | None = field(default=None, repr=False)
    """How long the Lease of a process lasts that moves the pool, or changes its list."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    """Of callers in this process that want to be the only one."""
    _opened: dict[tuple[str, int], PoolPlace] = field(default_factory=dict, repr=False)
    _found: FoundPlace | None = None
    """None before the first call."""

    _known_ledgers: set[str] = field(default_factory=set, repr=False)
    """What ``PoolPlacement.ledger`` said and this process has found in its ledger."""
    _needs_no_note: bool = False
    """Whether this process has no right to note where the pool begins: then the ledger says so instead."""

    follower: ListFollower | None = field(init=False, default=None, repr=False)
    """Follows the list of addresses that the pool keeps itself; none without a cluster."""

    def __post_init__(self) -> None:
        if self.client is not None:
            self.follower = ListFollower(SizedListObject(self.client, self.settings), self.settings.line)
        if self.client is None and self.settings.pool_mode != "ledger":
            raise Invalid(NO_CLIENT, field="client")
        if self.settings.pool_mode == "configmap":
            # It is read by every call, and says itself if the pool is elsewhere.
            self._found = FoundPlace(PoolPlacement("configmap"))

    @property
    def home(self) -> ConfigMapPlace:
        """Return the place whose notes say where the pool is."""
        place = self.at("configmap")
        assert isinstance(place, ConfigMapPlace)
        return place

    @property
    def mode(self) -> str:
        """Return the mode in which the pool was found last."""
        return self.settings.pool_mode if self._found is None else self._found.placement.mode

    def at(self, mode: str, epoch: int = 0) -> PoolPlace:
        """Return the place of a mode; there is one ConfigMap of the seed's name, and every other place is new."""
        key = (mode, 0 if mode == "configmap" else epoch)
        if key not in self._opened:
            self._opened[key] = self._open(*key)
        return self._opened[key]

    async def current(self, *, is_whole: bool = False, may_write: bool = False) -> PoolPlace:
        """Return the place that serves; for work on the whole pool it is looked at anew.

        The ConfigMap need not be looked at before: what is read there says so itself. Work that ``may_write`` notes
        first where the pool begins, so that no process takes its own settings for that.
        """
        found = self._found
        if found is None or (is_whole and found.placement.mode != "configmap"):
            found = await self.find()
        if may_write and not found.is_noted:
            await self._begin(found.placement)
            # Another process may have noted another place first, which counts.
            found = await self.find()
        return self.at(found.placement.mode, found.placement.epoch)

    async def _begin(self, placement: PoolPlacement) -> None:
        """Note where a pool begins, unless another process has noted something else."""
        try:
            await self.home.begin(await self.identified(placement))
        except PoolForbidden:
            if placement.mode != "ledger":
                raise
            # The account of a pod whose pool is in a ledger needs no rights in the cluster: the ledger says it.
            self._needs_no_note = True

    @property
    def generation(self) -> int:
        """Return up to which list of addresses it is known where the pool is."""
        return -1 if self._found is None else self._found.generation

    async def has_moved(self) -> bool:
        """Return whether the pool is elsewhere than it was; while it is being moved, wait until it has arrived."""
        before = self._found
        if before is None or before.placement.mode == "configmap":
            return False
        return (await self.find()).placement != before.placement

    async def find(self) -> FoundPlace:
        """Find where the pool is; while it is being moved, wait."""
        while True:
            generation = self.settings.line.generation
            placement, is_noted = await self._arrived()
            await self.check_ledger(placement)
            # The look says nothing of a list that came meanwhile.
            if self.settings.line.generation == generation:
                self._found = FoundPlace(placement, generation, is_noted)
                return self._found

    async def _arrived(self) -> tuple[PoolPlacement, bool]:
        """Return where the pool is once it is not being moved, and whether that is noted."""
        try:
            async with asyncio.timeout(self.settings.operation_timeout_s):
                while (found := await self._noted()) is not None and found.moves_to:  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_EVERY_S)  # only the server knows
        except TimeoutError:
            said = "the pool is being moved to another mode, which has not ended; `tenure vmpool move` goes on with it"
            raise PoolUnavailable(said, outcome="none") from None
        is_noted = found is not None or self.settings.pool_mode == "configmap" or self._needs_no_note
        return found or PoolPlacement(self.settings.pool_mode), is_noted

    async def placement(self) -> PoolPlacement:
        """Read where the pool is; one that was never used is where the setting says."""
        return await self._noted() or PoolPlacement(self.settings.pool_mode)

    async def _noted(self) -> PoolPlacement | None:
        """Read what is noted of where the pool is."""
        if self.client is None:
            return await self._placement_in_ledger()
        try:
            document = await self.home.read_home()
        except PoolForbidden:
            if self.settings.pool_mode != "ledger":
                raise
            # The account of a pod whose pool is in a ledger needs no rights in the cluster.
            return await self._placement_in_ledger()
        placement = document.notes.placement
        if self.settings.pool_mode != "configmap":
            check_not_in_seeds_mode(document, self.settings.pool_mode)
        if placement is not None and placement.mode not in MODES:
            raise Conflict(f"pool_mode: the pool is in mode {placement.mode!r}, which this version does not know")
        return placement

    async def identified(self, placement: PoolPlacement) -> PoolPlacement:
        """Return a placement that says which ledger the pool is in, if it is in one."""
        if placement.mode != "ledger":
            return placement
        try:
            return replace(placement, ledger=await self._in_time(self._ledger_at(placement.epoch).begin()))
        except PoolElsewhere:
            name = self.settings.config_map_name
            raise Conflict(
                f"pool_ledger: the ledger knows the pool {name!r} as one that was moved, and the ConfigMap that said "
                "where it is has gone: bring that back, or name another pool (POOL_CONFIGMAP_NAME)",
                field="pool_ledger",
            ) from None

    async def check_ledger(self, placement: PoolPlacement) -> None:
        """Raise ``Conflict`` if the settings name another ledger than the pool's: it would give the VMs out again."""
        wanted = placement.ledger if placement.mode == "ledger" else ""
        if not wanted or wanted in self._known_ledgers:
            return
        if await self._in_time(self._ledger_at(placement.epoch).identity()) != wanted:
            raise Conflict(
                f"pool_ledger: the pool {self.settings.config_map_name!r} is in another ledger than the one that is "
                "named (VM_POOL_LEDGER): name the same ledger on all nodes; if that of the pool is gone for good, "
                "delete the ConfigMap, and the pool begins anew",
                field="pool_ledger",
            )
        self._known_ledgers.add(wanted)

    async def _in_time(self, work: Awaitable[T]) -> T:
        """Wait for a ledger as long as an operation may take."""
        limit_s = self.settings.operation_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await work
        except TimeoutError:
            raise PoolUnavailable(f"no answer of the ledger within {limit_s:g} s", outcome="none") from None

    @property
    def _ledger(self) -> LedgerAllocations:
        """Return the ledger, which says itself whether it has the pool."""
        return self._ledger_at(0)

    def _ledger_at(self, epoch: int) -> LedgerAllocations:
        """Return the ledger's network of a pool that was so often moved before."""
        place = self.at("ledger", epoch)
        assert isinstance(place, BookPlace)
        assert isinstance(place.book, LedgerAllocations)
        return place.book

    async def say_where(self, placement: PoolPlacement) -> None:
        """Say in the ledger where the pool is, for nodes without a cluster; also that it does not come after all."""
        if placement.mode == "ledger" or not self.settings.pool_ledger:
            await self.at(placement.mode, placement.epoch).arrive()
        else:
            await self._ledger.stays_away(placement.epoch)

    async def _placement_in_ledger(self) -> PoolPlacement:
        """Read in the ledger where the pool is; raise ``Conflict`` if it has left: the cluster says where to."""
        said = await self._ledger.whereabouts()
        if said.state == "left":
            raise Conflict(
                "pool_ledger: the pool was moved from this ledger to another mode, and only its cluster says to which: "
                "name a kubeconfig (--kubeconfig, KUBECONFIG), or the ledger in which it is",
                field="pool_ledger",
            )
        return PoolPlacement("ledger", "ledger" if said.state == "coming" else "", said.epoch)

    def _open(self, mode: str, epoch: int) -> PoolPlace:
        settings, observer = self.settings, self.observer
        if mode == "ledger":
            if not settings.pool_ledger:
                needed = "the pool is in a ledger: name its URL (VM_POOL_LEDGER)"
                raise Invalid(f"pool_ledger: {needed}", field="pool_ledger")
            token = settings.pool_token or None
            # An id gets its old VM again whenever that is free: a ledger remembers which one it was.
            policy = "sticky" if settings.pool_pick == "rendezvous" else None
            pool = settings.config_map_name
            book = LedgerAllocations(settings.pool_ledger, pool, settings.line, token, policy, epoch)
            return self._on_book(book)
        if self.client is None:
            raise Invalid(NO_CLIENT, field="client")
        if mode == "configmap":
            return ConfigMapPlace(self.client, settings, observer, self.tally, self.follow)
        requests = CellRequests(settings.operation_timeout_s, settings.schedule, self._check, _MOVES.get)
        root = pool_root(settings.config_map_name if not epoch else f"{settings.config_map_name}.e{epoch}")
        if mode == "per-ip":
            cells = CellAllocations(ObjectCells(self.client, settings.namespace, root, requests))
        else:
            shards = ShardCells(self.client, settings.namespace, root, settings.pool_shards, requests)
            cells = CellAllocations(shards)
        return self._on_book(cells)

    def _on_book(self, book: AllocationBook) -> BookPlace:
        observer = self.observer or NoObserver()
        return BookPlace(
            book, self.settings, observer, self._check, self.tally, lambda: self.generation, self.follow
        )  # fmt: skip

    @contextlib.contextmanager
    def as_mover(self) -> Iterator[None]:
        """Ask before every write of a piece of work whether this process may still move the pool."""
        before = _MOVES.set(True)
        try:
            yield
        finally:
            _MOVES.reset(before)

    def _check(self) -> None:
        """Call ``check`` as it is at that moment: it changes while this process has the Lease."""
        self.check()

    async def follow(self, notes: PoolNotes) -> bool:
        """Read the list of addresses again if there is a newer one; return whether it has changed."""
        return self.follower is not None and await self.follower.follow(notes)

    async def close(self) -> None:
        """Wait until nothing is under way anywhere."""
        if self.follower is not None:
            await self.follower.close()
        for place in self._opened.values():
            await place.close()
