"""C26: claims of both kinds at the same moment, several pairs on a pool, again and again: never one address for two.

A pool has one address more than pairs, so it is full most of the time: what a pair releases goes at once to claims of
other pairs, of either kind. And never do all pairs wait with one address each.
"""

import asyncio
import contextlib
import itertools
from collections import Counter

from tenure.integrations.kubernetes.metal3.objects.address_objects import position_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import KINDS_OF_IP_POOLS
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL
from tenure.integrations.kubernetes.runtime.api_errors import ObjectMissing
from tests.infrastructure.kube import KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import IPAM, install_cluster_api
from tests.integrations.kubernetes.metal3.ipam_user import IpamUser, user_of, witness
from tests.integrations.kubernetes.metal3.serving import operator_in

POOLS, PAIRS = 3, 3
"""Pools, and the pairs that are claimed from each at the same time."""
WITHIN_S = 60.0


async def claim_pairs(server: KubeServer, rounds: int) -> Counter[str]:
    """Claim pairs from pools that are too small for all, all of which one operator serves."""
    with fresh_namespace(server) as namespace, contextlib.ExitStack() as stack:
        await asyncio.to_thread(stack.enter_context, operator_in(server, namespace, webhooks=False))
        try:
            async with user_of(server, namespace) as user:
                numbers = itertools.count()
                async with witness(user) as seen:
                    await asyncio.gather(*(_pool(user, f"p{each}", numbers, rounds) for each in range(POOLS)))
                await user.delete_all(IP_POOL)
                await user.until_gone(within_s=WITHIN_S)
        finally:
            await asyncio.to_thread(stack.close)
    return Counter(pairs=rounds, address_changes=seen.seen)


async def _pool(user: IpamUser, pool: str, numbers: "itertools.count[int]", rounds: int) -> None:
    await user.pool(pool, "10.0.0.1", f"10.0.0.{PAIRS + 1}")
    await asyncio.gather(*(_pairs(user, pool, numbers, rounds) for _ in range(PAIRS)))


async def _pairs(user: IpamUser, pool: str, numbers: "itertools.count[int]", rounds: int) -> None:
    while (number := next(numbers)) < rounds:
        name = f"{pool}-{number}"
        kinds = list(KINDS_OF_IP_POOLS.values())
        await asyncio.gather(*(user.claim_of(kind, name, pool) for kind in kinds))
        places = await asyncio.gather(*(_place(user, kind, name) for kind in kinds))
        assert len(set(places)) == len(kinds), f"{name}: both kinds have {places[0]}"
        await asyncio.gather(*(user.delete(kind.claim, name) for kind in kinds))
        await asyncio.gather(*(_gone(user, kind, name) for kind in kinds))


async def _place(user: IpamUser, kind: ClaimKind, name: str) -> int | None:
    """Wait until a claim is served, and return where."""
    async with asyncio.timeout(WITHIN_S):
        path = kind.claim.path(user.namespace, name)
        while not (given := kind.given(await user.client.get(path))):  # noqa: ASYNC110 - a server is asked
            await asyncio.sleep(0.05)
    address = await user.client.get(kind.address.path(user.namespace, given))
    return position_of({"apiVersion": kind.address.api_version, **address})


async def _gone(user: IpamUser, kind: ClaimKind, name: str) -> None:
    async with asyncio.timeout(WITHIN_S):
        with contextlib.suppress(ObjectMissing):
            while await user.client.get(kind.claim.path(user.namespace, name)):  # noqa: ASYNC110 - a server is asked
                await asyncio.sleep(0.05)


async def pair_rounds(rounds: int) -> Counter[str]:
    """Claim pairs on a server of their own."""
    with private_kube() as server:
        install(server)
        install_cluster_api(server, *IPAM)
        return await claim_pairs(server, rounds)
