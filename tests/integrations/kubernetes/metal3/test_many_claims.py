"""Many claims: what waits costs nothing, what is read before the first pick, and a lease that no burst loses."""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from tenure.integrations.kubernetes.metal3.objects.claim_kinds import KINDS_OF_IP_POOLS, METAL3
from tenure.integrations.kubernetes.runtime.resource_types import EVENT, LEASE, Object, key_of
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.ipam_user import IpamUser, user_of
from tests.integrations.kubernetes.metal3.noted_operator import (
    READ,
    consistent_lists,
    next_leader,
    noted_operator,
    writes,
)
from tests.integrations.kubernetes.metal3.operator_replica import TIMES
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in
from tests.scale import runs

WAITING = runs(200, 1000, 1000)
BURST = runs(300, 1000, 1000)
POOLS = runs(60, 500, 500)
WITHIN_S = 60.0
QUIET_S = 2.0
MINUTE = timedelta(seconds=59)
"""Less a moment: the operator measures the time between events by another clock than it writes into them."""
RENEWALS = 2 * 3
"""Of the Lease in this time: it is read and written every two seconds."""


async def until_served(user: IpamUser, count: int) -> None:
    """Wait until so many claims have their addresses."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            claims = await user.all_of(METAL3.claim)
            if sum(bool(METAL3.given(each)) for each in claims) >= count:
                return
            await asyncio.sleep(0.2)


async def test_kp12_claims_that_wait_cost_no_requests(kube: KubeServer) -> None:
    """Of both kinds: each gets its message once; then nothing is written but the Lease, until there is space.

    Of each there is one event at most for a reason and a minute.
    """
    with fresh_namespace(kube) as namespace, noted_operator(kube, namespace) as (sent, meter):
        async with user_of(kube, namespace) as user:
            await user.pool("p", "10.0.0.1", "10.0.0.1")
            await user.claim("first", "p")
            await until_served(user, 1)
            kinds = list(KINDS_OF_IP_POOLS.values())
            await asyncio.gather(
                *(user.claim_of(kinds[number % 2], f"w{number}", "p") for number in range(WAITING)),
            )
            written = await _when_quiet(sent)
            events = await user.all_of(EVENT)
            noted, requests = len(sent), meter.requests
            await asyncio.sleep(QUIET_S)
            meanwhile, counted = sent[noted:], meter.requests - requests
            await user.delete(METAL3.claim, "first")
            async with asyncio.timeout(WITHIN_S):
                while not await _is_served(user, "w0"):  # noqa: ASYNC110 - a server is asked
                    await asyncio.sleep(0.05)

    assert writes(meanwhile) == []
    assert counted <= len(meanwhile) + RENEWALS, "so nothing else is sent, by no client"
    messages = [each for each in written if each.startswith("PATCH") and each.endswith("/status") and "/w" in each]
    assert len(messages) == len(set(messages)) == WAITING
    assert {each["regarding"]["name"] for each in events} >= {"w0"}
    assert said_again(events) == []


def said_again(events: Iterable[Object]) -> list[str]:
    """Return the events that came within a minute after another one on the same object, for the same reason."""
    last: dict[tuple[str, str], datetime] = {}
    again = []
    for each in sorted(events, key=lambda each: str(each["eventTime"])):
        subject, at = (each["regarding"]["uid"], each["reason"]), datetime.fromisoformat(each["eventTime"])
        if subject in last and at - last[subject] < MINUTE:
            again.append(f"{each['regarding']['name']}: {each['reason']} at {at}")
        last[subject] = at
    return again


async def _when_quiet(sent: list[str]) -> list[str]:
    """Return what was written by the time at which nothing more comes for a while."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            before = writes(sent)
            await asyncio.sleep(1.0)
            if len(before) > WAITING and writes(sent) == before:
                return before


async def _is_served(user: IpamUser, name: str) -> bool:
    claims = {key_of(each)[1]: each for each in await user.all_of(METAL3.claim)}
    return bool(METAL3.given(claims[name]))


def test_kp5_everything_is_read_again_between_the_lease_and_the_first_pick(kube: KubeServer) -> None:
    """A follower has read everything; when it leads, it reads pools, both kinds of claims and addresses once more."""
    with fresh_namespace(kube) as name:
        space = Namespace(kube, name)
        space.pool("p", "10.0.0.1-10.0.0.9")
        space.claim("c1")
        with next_leader(kube, name) as follower:
            sent = follower.sent
            as_follower = len(sent)
            assert writes(sent) == []
            follower.let_lead()
            assert space.ip("c1") == "10.0.0.1"
    picked = next(at for at, each in enumerate(sent) if each.startswith("POST") and each.endswith("/ipaddresses"))
    read = sent[as_follower:picked]
    assert {kind.full_name: len(consistent_lists(read, kind)) for kind in READ} == {kind.full_name: 1 for kind in READ}


@pytest.mark.proof
async def test_kp11_a_burst_of_claims_does_not_lose_the_lease(kube: KubeServer) -> None:
    """The lease has a session of its own; all claims are served by the one leader."""
    with fresh_namespace(kube) as namespace, operator_in(kube, namespace, lease_times=TIMES) as controller:
        async with user_of(kube, namespace) as user:
            await user.pool("p", "10.0.0.1", "10.0.15.254")
            await asyncio.gather(*(user.claim(f"c{number}", "p") for number in range(BURST)))
            await until_served(user, BURST)
            found = await user.until_settled(controller, within_s=WITHIN_S)
            lease = await user.client.get(LEASE.path("tenure-system", controller._lease._name))
            assert controller._lease.leads
            assert lease["spec"].get("leaseTransitions", 0) == 0, "it was lost, and taken again"

    assert len(found.addresses) == BURST


@pytest.mark.proof
async def test_many_pools_are_served_side_by_side(kube: KubeServer) -> None:
    """Each with claims of both kinds."""
    with fresh_namespace(kube) as namespace, operator_in(kube, namespace) as controller:
        async with user_of(kube, namespace) as user:
            await asyncio.gather(*(user.pool(f"p{number}", "10.0.0.1", "10.0.0.4") for number in range(POOLS)))
            await asyncio.gather(
                *(
                    user.claim_of(kind, f"c{number}", f"p{number}")
                    for number in range(POOLS)
                    for kind in KINDS_OF_IP_POOLS.values()
                )
            )
            found = await user.until_settled(controller, within_s=WITHIN_S)

    assert len(found.addresses) == 2 * POOLS
