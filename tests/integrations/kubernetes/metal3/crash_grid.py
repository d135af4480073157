"""The crash grid (KD17): every write of a story fails in every way, and the operator dies of it, or goes on.

A cell is a pool of its own with its claims. Pools do not depend on each other, so many cells share one operator, each
with a fault of its own; where an operator dies, a new one takes over all cells.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle

from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_name_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLUSTER_API, KINDS_OF_IP_POOLS, METAL3
from tenure.integrations.kubernetes.metal3.objects.cramped_kinds import CrampedKinds
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    OWN_ADDRESS,
    PAUSED,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.pool_writes import PoolWrites
from tenure.integrations.kubernetes.operator import MakeClient, plain_client
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.conditional_writes import SentWrite, unconditional
from tests.integrations.kubernetes.metal3.faulty_client import Cell, Moment, WriteFaults
from tests.integrations.kubernetes.metal3.ipam_user import Found, IpamUser, user_of, witness
from tests.integrations.kubernetes.metal3.old_clusters import V1BETA1
from tests.integrations.kubernetes.metal3.serving import OperatorThread, settings_for

GRACE_S = 1.0
"""After this time an address without a claim is released, in tests."""
MEETS_S = 60.0
"""So long it may take on a busy machine until all cells have met their faults, or have settled."""

Step = Callable[[IpamUser, str], Awaitable[None]]
"""What a user does in the cell of a name."""


@asynccontextmanager
async def in_one_pass(user: IpamUser, cell: str) -> AsyncIterator[None]:
    """Pause a pool for as long as the block, so that the writes about all changes have always the same order."""
    await user.annotate(IP_POOL, cell, {PAUSED: ""})
    yield
    await user.annotate(IP_POOL, cell, {PAUSED: None})


async def nothing(user: IpamUser, cell: str) -> None:
    """Do nothing."""


async def claims_then_pool(
    user: IpamUser, cell: str, letters: str, kind: ClaimKind = METAL3, *, kept: bool = False, **spec: object
) -> None:
    """Create claims and then their pool: they are served in one pass, in the order of their names."""
    for letter in letters:
        await claim(user, cell, letter, kind, kept=kept)
    await user.pool(cell, "10.0.0.1", "10.0.0.5", **spec)


async def claim(user: IpamUser, cell: str, letter: str, kind: ClaimKind = METAL3, *, kept: bool = False) -> None:
    """Create a claim; ``kept``: with its finalizer, as the webhook makes it, so that it is served in fewer writes."""
    finalizers = [kind.claim_finalizer] if kept else []
    await user.claim_of(kind, f"{cell}-{letter}", cell, finalizers=finalizers)


async def one_served(user: IpamUser, cell: str) -> None:
    """Create a pool and a claim, which nothing that happens here may disturb."""
    await claims_then_pool(user, cell, "a")


async def two_served(user: IpamUser, cell: str) -> None:
    """Create a pool and two claims."""
    await claims_then_pool(user, cell, "ab")


async def claim_new(user: IpamUser, cell: str) -> None:
    """Create a claim."""
    await user.claim(f"{cell}-c", cell)


async def claim_kept(user: IpamUser, cell: str) -> None:
    """Create a claim that has its finalizer."""
    await claim(user, cell, "c", kept=True)


async def two_kept_at_once(user: IpamUser, cell: str) -> None:
    """Create a pool and two claims that have their finalizers."""
    await claims_then_pool(user, cell, "ab", kept=True)


async def cluster_first(user: IpamUser, cell: str) -> None:
    """Create a cluster."""
    await user.create(V1BETA1, cell, {})


async def pool_of_cluster(user: IpamUser, cell: str) -> None:
    """Create a pool of the cluster, and a claim: the pool is bound to the cluster before anything is given (E1)."""
    await claims_then_pool(user, cell, "a", clusterName=cell)


async def claim_cluster_api(user: IpamUser, cell: str) -> None:
    """Create a claim of Cluster API's that has its finalizer."""
    await claim(user, cell, "c", CLUSTER_API, kept=True)


async def two_served_cluster_api(user: IpamUser, cell: str) -> None:
    """Create a pool and two claims of Cluster API's."""
    await claims_then_pool(user, cell, "ab", CLUSTER_API)


async def delete_one_cluster_api(user: IpamUser, cell: str) -> None:
    """Delete a claim of Cluster API's; the other one stays."""
    await user.delete(CLUSTER_API.claim, f"{cell}-a")


async def go_at_once(user: IpamUser, cell: str) -> None:
    """Delete the new claim."""
    await user.delete(IP_CLAIM, f"{cell}-c")


async def delete_one(user: IpamUser, cell: str) -> None:
    """Delete a claim; the other one stays."""
    await user.delete(IP_CLAIM, f"{cell}-a")


async def two_served_cooling(user: IpamUser, cell: str) -> None:
    """Create a pool whose released addresses cool off, and are remembered for their claims; and two claims."""
    await claims_then_pool(user, cell, "ab", tenure={"coolingSeconds": 3600, "sticky": True})


async def claim_both_again(user: IpamUser, cell: str) -> None:
    """Create a claim that must not get the released address, and then the claim again that had it."""
    await user.claim(f"{cell}-c", cell)
    await user.claim(f"{cell}-a", cell)


async def delete_both(user: IpamUser, cell: str) -> None:
    """Delete both claims."""
    async with in_one_pass(user, cell):
        await asyncio.gather(*(user.delete(IP_CLAIM, f"{cell}-{each}") for each in "ab"))


async def delete_pool_too(user: IpamUser, cell: str) -> None:
    """Delete a pool and its claims."""
    async with in_one_pass(user, cell):
        await user.delete(IP_POOL, cell)
        await asyncio.gather(*(user.delete(IP_CLAIM, f"{cell}-{each}") for each in "ab"))


async def full_pool(user: IpamUser, cell: str) -> None:
    """Create a pool of one address, and a claim."""
    await user.pool(cell, "10.0.0.1", "10.0.0.1")
    await user.claim(f"{cell}-a", cell)


async def hand_over(user: IpamUser, cell: str) -> None:
    """Delete the claim that holds the only address, while another one waits for it."""
    async with in_one_pass(user, cell):
        await user.claim(f"{cell}-b", cell)
        await user.delete(IP_CLAIM, f"{cell}-a")


async def claim_of_foreign(user: IpamUser, cell: str) -> None:
    """Create an address by hand, and then its claim (KS2)."""
    async with in_one_pass(user, cell):
        await user.address(f"{cell}-by-hand", "10.0.0.4", f"{cell}-c", cell)
        await user.claim(f"{cell}-c", cell)


async def claim_moved_in(user: IpamUser, cell: str) -> None:
    """Create a claim that arrives with its address (KD6)."""
    await user.claim(f"{cell}-c", cell, annotations={OWN_ADDRESS: "10.0.0.4"})


async def force_removed(user: IpamUser, cell: str) -> None:
    """Remove an address by force; its claim lives (KP9)."""
    await user.remove_by_force(IP_ADDRESS, f"{cell}-10-0-0-1")


@dataclass(frozen=True)
class Story:
    """What a user does in a cell, before and while writes fail, and the addresses that claims must have afterwards."""

    begin: Step
    act: Step
    then: Step = nothing
    """What happens as soon as the write has failed."""
    ends_with: Mapping[str, str] = field(default_factory=dict)
    """Addresses by the claim's letter; no other claim is left."""
    at_last: Step = nothing
    """What happens when no write fails any more."""
    made_again: str = ""
    """The letters of claims whose objects are not those from before; nobody else may lose an object."""


A, B = {"a": "10.0.0.1"}, {"b": "10.0.0.2"}
STORIES = {
    "take": Story(one_served, claim_new, ends_with={**A, "c": "10.0.0.2"}),
    "take-batch": Story(nothing, two_served, ends_with={**A, **B}),
    "take-and-go": Story(one_served, claim_new, go_at_once, A),
    "take-kept": Story(one_served, claim_kept, ends_with={**A, "c": "10.0.0.2"}),
    "take-batch-kept": Story(nothing, two_kept_at_once, ends_with={**A, **B}),
    "take-kept-and-go": Story(one_served, claim_kept, go_at_once, A),
    "take-cluster-api": Story(one_served, claim_cluster_api, ends_with={**A, "c": "10.0.0.2"}),
    "take-of-cluster": Story(cluster_first, pool_of_cluster, ends_with=A),
    "release-cluster-api": Story(two_served_cluster_api, delete_one_cluster_api, ends_with=B),
    "release": Story(two_served, delete_one, ends_with=B),
    "release-batch": Story(two_served, delete_both),
    "release-pool": Story(two_served, delete_pool_too),
    "release-cooling": Story(
        two_served_cooling,
        delete_one,
        at_last=claim_both_again,
        ends_with={**A, **B, "c": "10.0.0.3"},
        made_again="a",
    ),
    "hand-over": Story(full_pool, hand_over, ends_with={"b": "10.0.0.1"}),
    "adopt-foreign": Story(one_served, claim_of_foreign, ends_with={**A, "c": "10.0.0.4"}),
    "adopt-moved": Story(one_served, claim_moved_in, ends_with={**A, "c": "10.0.0.4"}),
    "adopt-again": Story(one_served, force_removed, ends_with=A, made_again="a"),
}


@dataclass
class GridCell(Cell):
    """A cell with its story."""

    story: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.story}, {self.target or f'write {self.number}'} fails"


def cell_of(story: str, number: int, *moments: Moment) -> GridCell:
    """Return the cell in which a write of a story fails, and fails again at each further moment."""
    words = "".join(moment.value for moment in moments)
    return GridCell(f"{story.replace('-', '')}{number}{words}", number, moments, story=story)


def cells_of(story: str, number: int) -> list[GridCell]:
    """Return the cells in which a write fails at all moments.

    What was not sent is sent again, and can fail a second time in the same cell. What happens next in a story must
    happen after a single failure.
    """
    if STORIES[story].then is not nothing:
        return [cell_of(story, number, moment) for moment in Moment]
    return [cell_of(story, number, Moment.BEFORE, Moment.AFTER), cell_of(story, number, Moment.LOST)]


def beyond(writes: Mapping[str, int], times: int) -> list[GridCell]:
    """Return a cell for every story that has its time, whose writes all succeed; some more would fail, if they come."""
    counts = [(name, count + 1) for name, count in writes.items() if STORIES[name].then is nothing]
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

    async def begin(self, *, is_foreign: bool) -> None:
        """Start the operator that meets the faults."""
        self.faults = WriteFaults(self.cells, dies=self.dies, sent=self.sent)
        self.controller = await started_in(self.stack, self.server, self.user.namespace, self.faults.make_client)
        if is_foreign:
            self.controller.passes.giving.pools.__class__ = NewcomersPoolWrites

    async def play(self) -> Found:
        """Play all stories until their faults are met; return what was there before."""
        await asyncio.gather(*(STORIES[cell.story].begin(self.user, cell.name) for cell in self.cells))
        before = await self.user.until_settled(self.controller, within_s=MEETS_S)
        self.faults.is_armed = True
        await asyncio.gather(*(self._play(cell) for cell in self.cells))
        return before

    async def _play(self, cell: GridCell) -> None:
        story = STORIES[cell.story]
        await story.act(self.user, cell.name)
        await _until(cell, lambda: cell.is_beyond or cell.is_dead or cell.is_met)
        await story.then(self.user, cell.name)

    async def take_over(self) -> None:
        """Let operators follow those that died, until one has met no fault; let what was on its way arrive."""
        died = list(self.faults.cells.values())
        while self.dies and died:
            cells = [cell.for_next() for cell in died if not cell.is_met]
            faults = WriteFaults(cells, dies=True, sent=self.sent)
            faults.is_armed = True
            self.controller = await started_in(self.stack, self.server, self.user.namespace, faults.make_client)
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
        found = await self.user.until_settled(self.controller, within_s=MEETS_S)
        self.faults.is_armed = False
        if late := [cell for cell in self.cells if STORIES[cell.story].at_last is not nothing]:
            await asyncio.gather(*(STORIES[cell.story].at_last(self.user, cell.name) for cell in late))
            found = await self.user.until_settled(self.controller, within_s=MEETS_S)
        had, has = _addresses(before), _addresses(found)
        for cell in self.cells:
            wanted = {f"{cell.name}-{each}": address for each, address in STORIES[cell.story].ends_with.items()}
            given = {name: address for name, (address, _) in has.items() if name.startswith(f"{cell.name}-")}
            assert given == wanted, f"{cell}: {given}, and not {wanted}"
            kept = wanted.keys() - {f"{cell.name}-{each}" for each in STORIES[cell.story].made_again}
            lost = [name for name, each in had.items() if name in kept and has[name] != each]
            assert not lost, f"{cell}: {lost} were made again"

    async def clear(self) -> None:
        """Delete everything, and wait until nothing is left."""
        await self.user.delete_all(IP_POOL, *(kind.claim for kind in KINDS_OF_IP_POOLS.values()))
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
    stack: AsyncExitStack, server: KubeServer, namespace: str, make_client: MakeClient = plain_client
) -> IpamController:
    """Start an operator with a lease of its own, which is stopped with the stack."""
    settings = settings_for(server, namespace, orphan_grace_s=GRACE_S)
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
        async with user_of(server, namespace, has_counts=not is_foreign) as user, AsyncExitStack() as stack:
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
