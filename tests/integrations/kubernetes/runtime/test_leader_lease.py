"""One leader at a time, on a real server: by its death, its freezing, its leaving, and while the server is away."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiUnreachable
from tenure.integrations.kubernetes.runtime.leader_lease import LeaderLease, LeaseTimes, NotLeading
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, Object

TIMES = LeaseTimes(lasts_s=2.0, stops_s=1.0, every_s=0.1)
NAMESPACE = "tenure-system"


class Candidate:
    """A replica that leads for as long as it can."""

    def __init__(self, client: ApiClient, lease: str, identity: str) -> None:
        self.lease = LeaderLease(client, NAMESPACE, lease, identity, TIMES)
        self.led = 0
        self.at_work = False

    async def lead(self) -> None:
        self.led += 1
        self.at_work = True
        try:
            await asyncio.Event().wait()
        finally:
            self.at_work = False


@asynccontextmanager
async def standing(candidate: Candidate) -> AsyncIterator[Candidate]:
    task = asyncio.create_task(candidate.lease.run(candidate.lead))
    try:
        yield candidate
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(candidate: Candidate, leads: bool, within_s: float = 15) -> None:
    async with asyncio.timeout(within_s):
        while candidate.at_work != leads:  # noqa: ASYNC110 - a lease is polled
            await asyncio.sleep(0.01)


async def test_of_two_one_leads_and_the_other_follows_at_once_when_it_leaves(client: ApiClient, namespace: str) -> None:
    first, second = Candidate(client, namespace, "first"), Candidate(client, namespace, "second")
    async with standing(second):
        await until(second, True)
        async with standing(first):
            await asyncio.sleep(0.5)
            assert (first.led, second.lease.leads) == (0, True)
    async with standing(first):
        await until(first, True, within_s=TIMES.lasts_s)  # it was given up, so nobody waits for its end
        first.lease.check()
    with pytest.raises(NotLeading, match="second"):
        second.lease.check()
    lease = await client.get(LEASE.path(NAMESPACE, namespace))
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("", 1)


async def test_a_leader_whose_server_is_away_stops_before_its_lease_can_end(
    client: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = Candidate(client, namespace, "leader")
    async with standing(leader):
        await until(leader, True)

        async def away(*words: object, **more: object) -> Object:
            raise ApiUnreachable("away")

        monkeypatch.setattr(client, "_ask", away)
        began = asyncio.get_running_loop().time()
        await until(leader, False)
        assert asyncio.get_running_loop().time() - began < TIMES.lasts_s
        monkeypatch.undo()
        await until(leader, True)
    assert leader.led == 2


async def test_a_server_that_does_not_answer_does_not_keep_a_leader(
    client: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = Candidate(client, namespace, "leader")
    async with standing(leader):
        await until(leader, True)

        async def hang(*words: object, **more: object) -> Object:
            await asyncio.sleep(60)
            return {}

        monkeypatch.setattr(client, "_ask", hang)
        await until(leader, False, within_s=TIMES.lasts_s)
        monkeypatch.undo()


async def test_a_leader_that_was_frozen_knows_that_it_does_not_lead_when_it_wakes(
    client: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, other = Candidate(client, namespace, "leader"), Candidate(client, namespace, "other")
    async with standing(leader):
        await until(leader, True)
        # The process is frozen: its clock goes on, and nothing of it runs.
        frozen = time.monotonic() + TIMES.stops_s + 0.1
        monkeypatch.setattr(time, "monotonic", lambda: frozen)
        with pytest.raises(NotLeading):
            leader.lease.check()
        monkeypatch.undo()
    async with standing(other):
        await until(other, True)


async def test_a_holder_that_says_nothing_is_followed_after_its_lease_and_not_before(
    client: ApiClient, namespace: str
) -> None:
    dead, follower = Candidate(client, namespace, "dead"), Candidate(client, namespace, "follower")
    assert await dead.lease._try()
    async with standing(follower):
        began = asyncio.get_running_loop().time()
        await until(follower, True)
        assert asyncio.get_running_loop().time() - began >= TIMES.lasts_s


async def test_the_clocks_of_replicas_may_be_apart(client: ApiClient, namespace: str) -> None:
    follower = Candidate(client, namespace, "follower")
    spec = {"holderIdentity": "from the past", "leaseDurationSeconds": 2, "renewTime": "1999-01-01T00:00:00.000000Z"}
    await client.create(LEASE, {"metadata": {"namespace": NAMESPACE, "name": namespace}, "spec": spec})
    async with standing(follower):
        await asyncio.sleep(TIMES.lasts_s / 2)
        assert not follower.at_work  # what another clock wrote says nothing of how long ago that was
        await until(follower, True)


def test_a_lease_that_could_have_two_holders_is_not_made() -> None:
    with pytest.raises(ValueError, match="before it ends"):
        LeaseTimes(lasts_s=10, stops_s=10, every_s=1)
    with contextlib.suppress(ValueError):
        LeaseTimes(lasts_s=15, stops_s=10, every_s=2)
