"""Claims that live for a moment leave nothing, and two leaders at once give no address twice."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL, MADE_FOR, PAUSED
from tenure.integrations.kubernetes.runtime.resource_types import key_of, uid_of
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.claim_storms import come_and_go, storm
from tests.integrations.kubernetes.metal3.crash_grid import started_in
from tests.integrations.kubernetes.metal3.ipam_user import user_of, witness
from tests.integrations.kubernetes.metal3.serving import operator_in
from tests.integrations.kubernetes.runtime.toy_rounds import erase_behind
from tests.scale import runs

STORM = runs(12, soak=30, proof=30)
"""Rounds of claims that live for a moment."""
CLAIMS = runs(80, soak=200, proof=200)
"""Claims that come and go under two leaders; half of them stay."""


@pytest.mark.parametrize("webhooks", [True, False], ids=["webhooks", "bare"])
async def test_claims_that_are_deleted_within_50_ms_leave_nothing(kube: KubeServer, webhooks: bool) -> None:
    """They are settled within 10 s, whether the finalizer is there from the beginning (KP3) or not."""
    figures = await storm(kube, STORM, seed=1, webhooks=webhooks)

    assert figures["rounds"] == STORM


async def test_two_leaders_at_once_serve_every_claim_and_give_no_address_twice(kube: KubeServer) -> None:
    """A frozen old leader at its worst (KP4): both believe that they lead. Conflicts are allowed, nothing else is."""
    with fresh_namespace(kube) as namespace:
        async with user_of(kube, namespace) as user, AsyncExitStack() as stack:
            leaders = [await started_in(stack, kube, user) for _ in range(2)]
            await user.pool("p", "10.0.0.1", f"10.0.0.{CLAIMS // 2}")
            async with witness(user) as seen:
                await come_and_go(user, claims=CLAIMS, seed=1)
                found = await user.until_settled(*leaders)
            await user.delete_all(IP_CLAIM, IP_POOL)
            await user.until_gone(*leaders)

    assert len(found.claims) == len(found.addresses) == CLAIMS // 2
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


async def test_a_claim_that_vanishes_and_is_made_again_for_a_moment_leaves_nothing(kube: KubeServer) -> None:
    """The second claim of the name does not stay for long enough to adopt the address of the first."""
    with fresh_namespace(kube) as namespace, operator_in(kube, namespace, webhooks=False) as controller:
        async with user_of(kube, namespace) as user:
            await user.pool("p", "10.0.0.1", "10.0.0.2")
            await user.claim("c", "p")
            await user.until_settled(controller)
            await user.annotate(IP_POOL, "p", {PAUSED: ""})
            await asyncio.to_thread(erase_behind, kube, f"/registry/{IP_CLAIM.group}/{IP_CLAIM.plural}/{namespace}/c")
            await user.claim("c", "p", annotations={PAUSED: ""})
            await user.annotate(IP_POOL, "p", {PAUSED: None})
            await asyncio.sleep(0.3)  # the pool is looked at while the second claim is there
            await user.delete(IP_CLAIM, "c")
            found = await user.until_settled(controller)

    assert (found.claims, found.addresses) == ([], [])


async def test_an_address_that_was_made_for_a_claim_besides_the_one_it_was_given_goes(kube: KubeServer) -> None:
    """Two leaders picked at once for one claim. An address that the operator did not make stays (KS1)."""
    with fresh_namespace(kube) as namespace, operator_in(kube, namespace, webhooks=False) as controller:
        async with user_of(kube, namespace) as user:
            await user.pool("p", "10.0.0.1", "10.0.0.3")
            claim = await user.claim("c", "p")
            (given,) = (await user.until_settled(controller)).addresses
            owner = {"apiVersion": IP_CLAIM.api_version, "kind": "IPClaim", "name": "c", "uid": uid_of(claim)}
            spec = {**given["spec"], "address": "10.0.0.2"}
            made = {MADE_FOR: f"{namespace}/c"}
            await user.create(IP_ADDRESS, "p-10-0-0-2", spec, annotations=made, ownerReferences=[owner])
            found = await user.until_settled(controller)
            await user.create(IP_ADDRESS, "by-hand", {**spec, "address": "10.0.0.3"})
            await asyncio.sleep(0.5)
            left = [key_of(each)[1] for each in await user.all_of(IP_ADDRESS)]

    assert [uid_of(each) for each in found.addresses] == [uid_of(given)]
    assert left == ["by-hand", "p-10-0-0-1"]
