"""Claims that live for a moment leave nothing, and two leaders at once give no address twice."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tenure.integrations.kubernetes.metal3.ipam_kinds import IP_CLAIM, IP_POOL
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.claim_storms import come_and_go, storm
from tests.integrations.kubernetes.metal3.crash_grid import started_in
from tests.integrations.kubernetes.metal3.ipam_user import user_of, witness
from tests.integrations.kubernetes.metal3.serving import operator_in
from tests.integrations.kubernetes.runtime.toy_rounds import erase_behind


@pytest.mark.parametrize("webhooks", [True, False], ids=["webhooks", "bare"])
async def test_claims_that_are_deleted_within_50_ms_leave_nothing(kube: KubeServer, webhooks: bool) -> None:
    """They are settled within 10 s, whether the finalizer is there from the beginning (KP3) or not."""
    figures = await storm(kube, 30, seed=1, webhooks=webhooks)

    assert figures["rounds"] == 30


async def test_two_leaders_at_once_serve_every_claim_and_give_no_address_twice(kube: KubeServer) -> None:
    """A frozen old leader at its worst (KP4): both believe that they lead. Conflicts are allowed, nothing else is."""
    with fresh_namespace(kube) as namespace:
        async with user_of(kube, namespace) as user, AsyncExitStack() as stack:
            leaders = [await started_in(stack, kube, namespace) for _ in range(2)]
            await user.pool("p", "10.0.0.1", "10.0.0.100")
            async with witness(user) as seen:
                await come_and_go(user, claims=200, seed=1)
                found = await user.until_settled(*leaders)
            await user.delete_all(IP_CLAIM, IP_POOL)
            await user.until_gone(*leaders)

    assert len(found.claims) == len(found.addresses) == 100
    assert seen.seen > len(found.addresses)


async def test_a_claim_that_vanishes_although_it_has_its_finalizer_leaves_nothing(kube: KubeServer) -> None:
    """A server that deletes a claim at the very moment of its first finalizer does not see the finalizer."""
    with fresh_namespace(kube) as namespace, operator_in(kube, namespace, webhooks=False) as controller:
        async with user_of(kube, namespace) as user:
            await user.pool("p", "10.0.0.1", "10.0.0.2")
            await user.claim("c", "p")
            await user.until_settled(controller)
            await asyncio.to_thread(erase_behind, kube, f"/registry/{IP_CLAIM.group}/{IP_CLAIM.plural}/{namespace}/c")
            found = await user.until_settled(controller)

    assert (found.claims, found.addresses) == ([], [])
