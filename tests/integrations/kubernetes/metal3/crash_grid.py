"""The crash grid (KD17): every write of a story fails in every way, and the operator dies of it, or goes on.

A cell is a pool of its own with its claims. Pools do not depend on each other, so many cells share one operator, each
with a fault of its own; where an operator dies, a new one takes over all cells.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import cycle

from tenure.integrations.kubernetes.metal3.caches.cramped_kinds import CrampedKinds
from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_name_of
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import KINDS_OF_IP_POOLS
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    IP_POOL,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.pool_writes import PoolWrites
from tenure.integrations.kubernetes.operator import MakeClient, plain_client
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.conditional_writes import SentWrite, unconditional
from tests.integrations.kubernetes.metal3.faulty_client import Cell, Moment, WriteFaults
from tests.integrations.kubernetes.metal3.grid_stories import IN_CLUSTER_STORIES, STORIES, nothing
from tests.integrations.kubernetes.metal3.ipam_user import Found, IpamUser, user_of, witness
from tests.integrations.kubernetes.metal3.serving import OperatorThread, settings_for

GRACE_S = 1.0
"""After this time an address without a claim is released, and a mark of a killed move is taken off, in tests."""
MEETS_S = 60.0
"""So long it may take on a busy machine until all cells have met their faults, or have settled."""

EVERY_STORY = {**STORIES, **IN_CLUSTER_STORIES}


@dataclass
class GridCell(Cell):
    """A cell with its story."""

    story: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.story}, {self.target or f'write {self.number}'} fails"


def cell_of(story: str, number: int, *moments: Moment) -> GridCell:
    """Return the cell in which a write of a story fails, and fails again at each further moment."""
    words = "".join(moment.value for moment in moments)
    name = f"{story.replace('-', '')}{number}{words}"
    return GridCell(name, number, moments, target=EVERY_STORY[story].target.format(cell=name), story=story)


def cells_of(story: str, number: int) -> list[GridCell]:
    """Return the cells in which a write fails at all moments.

    What was not sent is sent again, and can fail a second time in the same cell. What happens next in a story must
    happen after a single failure.
    """
    if EVERY_STORY[story].then is not nothing:
        return [cell_of(story, number, moment) for moment in Moment]
    return [cell_of(story, number, Moment.BEFORE, Moment.AFTER), cell_of(story, number, Moment.LOST)]


def beyond(writes: Mapping[str, int], times: int) -> list[GridCell]:
    """Return a cell for every story that has its time, whose writes all succeed; some more would fail, if they come."""
    counts = [(name, count + 1) for name, count in writes.items() if EVERY_STORY[name].then is nothing]
    return [
        GridCell(f"{name.replace('-', '')}beyond", number, (moment,) * times, is_beyond=True, story=name)
        for (name, number), moment in zip(counts, cycle(Moment), strict=False)
    ]


class NewcomersPoolWrites(PoolWrites):
    """Writes of a leader that learns at each reservation that the definition of pools has no room for it (KD4)."""

    async def reserve(self, key: PoolId, chosen: dict[str, int]) -> Object:
        """Reserve in the status, where the server drops it, and then in the annotation."""
        self.cramped = CrampedKinds()
        return await super().reserve(key, chosen)


@dataclass
class Stage:
    """A namespace with cells, operators that meet faults, and users."""

    server: KubeServer
    user: IpamUser
    cells: list[GridCell]
    dies: bool
    stack: AsyncExitStack
    """Stops the operators."""
    sent: list[SentWrite] = field(default_factory=list)
    """All that the operators have sent."""
    _beside: list[asyncio.Future[None]] = field(default_factory=list)
    """What users do who wait for an operator to come so far."""

    async def begin(self, *, is_foreign: bool) -> None:
        """Start the operator that meets the faults."""
        self.faults = WriteFaults(self.cells, dies=self.dies, sent=self.sent)
        self.controller = await started_in(self.stack, self.server, self.user, self.faults.make_client)
        if is_foreign:
            self.controller.passes.giving.pools.__class__ = NewcomersPoolWrites

    async def play(self) -> Found:
        """Play all stories until their faults are met; return what was there before."""
        await asyncio.gather(*(EVERY_STORY[cell.story].begin(self.user, cell.name) for cell in self.cells))
        before = await self.user.until_settled(self.controller, within_s=MEETS_S)
        self.faults.is_armed = True
        await asyncio.gather(*(self._play(cell) for cell in self.cells))
        return before

    async def _play(self, cell: GridCell) -> None:
        story = EVERY_STORY[cell.story]
        await story.act(self.user, cell.name)
        self._beside.append(asyncio.ensure_future(story.beside(self.user, cell.name)))
        await _until(cell, lambda: cell.is_beyond or cell.is_dead or cell.is_met)
        await story.then(self.user, cell.name)

    async def take_over(self) -> None:
        """Let operators follow those that died, until one has met no fault; let what was on its way arrive."""
        died = list(self.faults.cells.values())
        while self.dies and died:
            cells = [cell.for_next() for cell in died if not cell.is_met]
            faults = WriteFaults(cells, dies=True, sent=self.sent)
            faults.is_armed = True
            self.controller = await started_in(self.stack, self.server, self.user, faults.make_client)
            await self.land(faults)
            for cell in cells:
                await _until(cell, lambda cell=cell: cell.is_dead)  # type: ignore[misc]
            died = cells

    async def land(self, faults: WriteFaults) -> None:
        """Let the writes arrive that were on their way, and go on with other faults."""
        await asyncio.to_thread(self.faults.land)
        self.faults = faults

    async def check_end(self, before: Found) -> None:
        """Check that everything agrees, that every story has its end, and that nobody else lost anything."""
        async with asyncio.timeout(MEETS_S):
            await asyncio.gather(*self._beside)
        found = await self.user.until_settled(self.controller, within_s=MEETS_S)
        self.faults.is_armed = False
        if late := [cell for cell in self.cells if EVERY_STORY[cell.story].at_last is not nothing]:
            await asyncio.gather(*(EVERY_STORY[cell.story].at_last(self.user, cell.name) for cell in late))
            found = await self.user.until_settled(self.controller, within_s=MEETS_S)
        had, has = _addresses(before), _addresses(found)
        for cell in self.cells:
            wanted = {f"{cell.name}-{each}": address for each, address in EVERY_STORY[cell.story].ends_with.items()}
            given = {name: address for name, (address, _) in has.items() if name.startswith(f"{cell.name}-")}
            assert given == wanted, f"{cell}: {given}, and not {wanted}"
            kept = wanted.keys() - {f"{cell.name}-{each}" for each in EVERY_STORY[cell.story].made_again}
            lost = [name for name, each in had.items() if name in kept and has[name] != each]
            assert not lost, f"{cell}: {lost} were made again"

    async def clear(self) -> None:
        """Delete everything, and wait until nothing is left."""
        await self.user.delete_all(self.user.pools, *(kind.claim for kind in KINDS_OF_IP_POOLS.values()))
        await self.user.until_gone(self.controller, within_s=MEETS_S)


async def _until(cell: GridCell | Cell, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MEETS_S
    while not holds():
        assert time.monotonic() < deadline, f"{cell}: {cell.failed} of {cell.moments} were met: {cell.writes}"
        await asyncio.sleep(0.01)


def _addresses(found: Found) -> dict[str, tuple[str, str]]:
    """Return address and identity of its object by claim."""
    return {claim_name_of(each): (text(each, "spec", "address"), each["metadata"]["uid"]) for each in found.addresses}


async def started_in(
    stack: AsyncExitStack, server: KubeServer, user: IpamUser, make_client: MakeClient = plain_client
) -> IpamController:
    """Start an operator of a user's namespace with a lease of its own, which is stopped with the stack."""
    controllers = ("metal3", "capi") if user.pools is IP_POOL else ("in-cluster",)
    settings = settings_for(
        server, user.namespace, orphan_grace_s=GRACE_S, stale_mark_s=GRACE_S, controllers=controllers
    )
    thread = OperatorThread(server, settings, make_client=make_client)
    controller = await asyncio.to_thread(thread.start)
    stack.push_async_callback(asyncio.to_thread, thread.stop)
    return controller


async def play_cells(
    server: KubeServer, cells: list[GridCell], *, dies: bool, clears: bool = False, is_foreign: bool = False
) -> None:
    """Play the cells and check them: the operator goes on after each fault, or dies of it and another takes over.

    ``clears``: everything is deleted afterwards; ``is_foreign``: the server's definitions are Metal3's.
    """
    with fresh_namespace(server) as namespace:
        async with user_of(server, namespace, has_counts=not is_foreign) as user:
            await play_as(user, server, cells, dies=dies, clears=clears, is_foreign=is_foreign)


async def play_as(
    user: IpamUser, server: KubeServer, cells: list[GridCell], *, dies: bool, clears: bool = False,
    is_foreign: bool = False,
) -> None:  # fmt: skip
    """Play the cells as a user, whose namespace nobody serves yet."""
    async with AsyncExitStack() as stack:
        stage = Stage(server, user, cells, dies, stack)
        await stage.begin(is_foreign=is_foreign)
        async with witness(user):
            before = await stage.play()
            await stage.take_over()
            await stage.check_end(before)
            if clears:
                await stage.clear()
    check_sent(stage.sent)


def check_sent(sent: list[SentWrite]) -> None:
    """Check that the operators have sent writes of every sort, and each of them on a condition (KP4)."""
    assert {each.method for each in sent} == {"POST", "PATCH", "DELETE"}
    assert unconditional(sent) == []
