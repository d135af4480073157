"""The stories of the crash grid: what a user does in a cell, before and while writes fail, and how it must end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLUSTER_API, IN_CLUSTER, METAL3
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    BLOCK_MOVE,
    CLUSTER_API_ADDRESS,
    DELETE_FOR_MOVE,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    OWN_ADDRESS,
    PAUSED,
    PICKED_FOR,
    WISHED_ADDRESS,
)
from tenure.integrations.kubernetes.runtime.resource_types import ResourceType
from tests.integrations.kubernetes.metal3.ipam_user import IpamUser
from tests.integrations.kubernetes.metal3.old_clusters import V1BETA1

Step = Callable[[IpamUser, str], Awaitable[None]]
"""What a user does in the cell of a name."""


@asynccontextmanager
async def in_one_pass(user: IpamUser, cell: str) -> AsyncIterator[None]:
    """Pause a pool for as long as the block, so that the writes about all changes have always the same order."""
    await user.annotate(user.pools, cell, {PAUSED: ""})
    yield
    await user.annotate(user.pools, cell, {PAUSED: None})


async def nothing(user: IpamUser, cell: str) -> None:
    """Do nothing."""


async def claims_then_pool(
    user: IpamUser, cell: str, letters: str, kind: ClaimKind = METAL3, *, kept: bool = False, **spec: object
) -> None:
    """Create claims and then their pool: they are served in one pass, in the order of their names."""
    for letter in letters:
        await claim(user, cell, letter, kind, kept=kept)
    await user.pool(cell, "10.0.0.1", "10.0.0.5", **spec)


async def claim(
    user: IpamUser, cell: str, letter: str, kind: ClaimKind = METAL3, *, kept: bool = False, **metadata: object
) -> None:
    """Create a claim; ``kept``: with finalizer and mark, as the webhook makes it, so that it takes fewer writes."""
    finalizers = [kind.claim_finalizer] if kept else []
    marks = {"annotations": {BLOCK_MOVE: ""}} if kept else {}
    await user.claim_of(kind, f"{cell}-{letter}", cell, finalizers=finalizers, **{**marks, **metadata})


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


async def pause(user: IpamUser, cell: str) -> None:
    """Pause the pool, as a move does first."""
    await user.annotate(user.pools, cell, {PAUSED: ""})


async def go_on(user: IpamUser, cell: str) -> None:
    """End the pause."""
    await user.annotate(user.pools, cell, {PAUSED: None})


async def claim_in_pause(user: IpamUser, cell: str) -> None:
    """Create a claim that a move waits for, and that gets no address before the pause ends."""
    await pause(user, cell)
    await claim_kept(user, cell)


async def go_on_when_let(user: IpamUser, cell: str) -> None:
    """End the pause as soon as a move need not wait for the claim any more."""
    while BLOCK_MOVE in await user.annotations(IP_CLAIM, f"{cell}-c"):  # noqa: ASYNC110 - a server is asked
        await asyncio.sleep(0.1)
    await go_on(user, cell)


async def pause_unnamed(user: IpamUser, cell: str) -> None:
    """Pause a pool while a claim has been told its address and does not name it yet; a move waits for that."""
    await pause(user, cell)
    await user.annotate(IP_CLAIM, f"{cell}-b", {OWN_ADDRESS: None, PICKED_FOR: None, BLOCK_MOVE: ""})


async def mark(user: IpamUser, cell: str, kind: ResourceType, ending: str) -> None:
    """Mark an object as a move does that is killed before it deletes it."""
    await user.annotate(kind, f"{cell}{ending}", {DELETE_FOR_MOVE: ""})


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
    beside: Step = nothing
    """What happens as soon as an operator has come so far, be it the first or one that took over."""
    target: str = ""
    """The only write of a story, which fails whatever comes before it: on a busy server a pool's status does."""


A, B = {"a": "10.0.0.1"}, {"b": "10.0.0.2"}


def patched(kind: ResourceType, ending: str) -> str:
    """Return the write that changes the metadata of an object of a cell, as ``WriteFaults`` names it."""
    return f"patch metadata of {kind.plural} {{cell}}{ending}"


def killed_move(kind: ResourceType, ending: str) -> Story:
    """Return the story of a mark that a killed move left on an object of a cell."""
    marks = partial(mark, kind=kind, ending=ending)
    return Story(two_served, marks, ends_with={**A, **B}, target=patched(kind, ending))


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
    "move-let": Story(one_served, claim_in_pause, beside=go_on_when_let, ends_with={**A, "c": "10.0.0.2"}),
    "move-named": Story(two_served, pause_unnamed, at_last=go_on, ends_with={**A, **B}, target=patched(IP_CLAIM, "-b")),
    "move-killed-pool": killed_move(IP_POOL, ""),
    "move-killed-claim": killed_move(IP_CLAIM, "-b"),
    "move-killed-address": killed_move(IP_ADDRESS, "-10-0-0-2"),
}


async def claim_in_cluster(user: IpamUser, cell: str, *, kept: bool = False) -> None:
    """Create a claim on a pool of the in-cluster provider's."""
    await claim(user, cell, "c", IN_CLUSTER, kept=kept)


async def one_in_cluster(user: IpamUser, cell: str) -> None:
    """Create a pool of the in-cluster provider's, and a claim."""
    await claims_then_pool(user, cell, "a", IN_CLUSTER)


async def two_in_cluster(user: IpamUser, cell: str) -> None:
    """Create a pool of the in-cluster provider's, and two claims."""
    await claims_then_pool(user, cell, "ab", IN_CLUSTER)


async def two_in_cluster_cooling(user: IpamUser, cell: str) -> None:
    """Create a pool whose released addresses cool off, and two claims."""
    await claims_then_pool(user, cell, "ab", IN_CLUSTER, addressReuseGracePeriodSeconds=3600)


async def move_in_cluster(user: IpamUser, cell: str) -> None:
    """Create a claim that arrives with its address (KD6)."""
    await claim(user, cell, "c", IN_CLUSTER, annotations={OWN_ADDRESS: "10.0.0.4"})


async def go_in_cluster(user: IpamUser, cell: str) -> None:
    """Delete the new claim."""
    await user.delete(IN_CLUSTER.claim, f"{cell}-c")


async def adopt_in_cluster(user: IpamUser, cell: str) -> None:
    """Create an address by hand, under another name than its claim would give it, and then its claim (KS2)."""
    async with in_one_pass(user, cell):
        await user.address(f"{cell}-by-hand", "10.0.0.4", f"{cell}-c", cell)
        await claim_in_cluster(user, cell)


async def take_name_in_cluster(user: IpamUser, cell: str) -> None:
    """Remove an address by force, whose claim lives; the new one has its name again (KP9)."""
    await user.remove_by_force(CLUSTER_API_ADDRESS, f"{cell}-a")


async def claim_both_again_in_cluster(user: IpamUser, cell: str) -> None:
    """Create a claim that must not get the released address, and then the claim again that had it, and asks for it."""
    await claim_in_cluster(user, cell)
    await claim(user, cell, "a", IN_CLUSTER, annotations={WISHED_ADDRESS: "10.0.0.1"})


IN_CLUSTER_STORIES = {
    "in-take": Story(one_in_cluster, claim_in_cluster, ends_with={**A, "c": "10.0.0.2"}),
    "in-take-kept": Story(one_in_cluster, partial(claim_in_cluster, kept=True), ends_with={**A, "c": "10.0.0.2"}),
    "in-take-kept-and-go": Story(one_in_cluster, partial(claim_in_cluster, kept=True), go_in_cluster, A),
    "in-release": Story(two_in_cluster, delete_one_cluster_api, ends_with=B),
    "in-release-cooling": Story(
        two_in_cluster_cooling,
        delete_one_cluster_api,
        at_last=claim_both_again_in_cluster,
        ends_with={**A, **B, "c": "10.0.0.3"},
        made_again="a",
    ),
    "in-adopt-foreign": Story(one_in_cluster, adopt_in_cluster, ends_with={**A, "c": "10.0.0.4"}),
    "in-adopt-moved": Story(one_in_cluster, move_in_cluster, ends_with={**A, "c": "10.0.0.4"}),
    "in-adopt-again": Story(one_in_cluster, take_name_in_cluster, ends_with=A, made_again="a"),
}
"""On pools of the in-cluster provider's: there the name of an address object is its claim's, and no lock."""
