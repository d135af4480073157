"""One leader at a time, on a real server: by its death, its freezing, its leaving, and while the server is away."""

import asyncio
import copy
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import (
    ApiUnreachable,
    ObjectExists,
    ObjectMissing,
    WriteConflict,
)
from tenure.integrations.kubernetes.runtime.leader_lease import LeaderLease, LeaseTimes, NotLeading, WorkEnded
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, Object

TIMES = LeaseTimes(lasts_s=2.0, stops_s=1.0, every_s=0.1)
NAMESPACE = "tenure-system"


class Candidate:
    """A replica that leads for as long as it can."""

    def __init__(self, client: ApiClient, lease: str, identity: str, times: LeaseTimes = TIMES) -> None:
        self.lease = LeaderLease(client, NAMESPACE, lease, identity, times)
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
        await until(first, True, within_s=TIMES.lasts_s)  # it was given up, so no candidate waits for its end
        first.lease.check()
    with pytest.raises(NotLeading, match="second"):
        second.lease.check()
    lease = await client.get(LEASE.path(NAMESPACE, namespace))
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("", 1)


async def away(*words: object, **more: object) -> Object:
    raise ApiUnreachable("away")


async def hang(*words: object, **more: object) -> Object:
    await asyncio.sleep(60)
    return {}


@pytest.mark.parametrize("ask", [away, hang])
async def test_a_leader_whose_server_does_not_answer_stops_before_its_lease_can_end(
    client: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch, ask: object
) -> None:
    leader = Candidate(client, namespace, "leader")
    async with standing(leader):
        await until(leader, True)
        monkeypatch.setattr(client, "_ask", ask)
        await until(leader, False, within_s=TIMES.lasts_s)
        monkeypatch.undo()
        await until(leader, True)
    assert leader.led == 2


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


@pytest.mark.parametrize(("lasts_s", "stops_s", "every_s"), [(10, 10, 1), (12, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_a_lease_that_could_have_two_holders_is_not_made(lasts_s: float, stops_s: float, every_s: float) -> None:
    with pytest.raises(ValueError, match="well before it ends"):
        LeaseTimes(lasts_s, stops_s, every_s)


class Shelf:
    """The Lease of a server as a test wants it: present, gone, changed, slow, or away."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.version = 0
        self.answers_after_s = 0.0
        self.away = False
        self.gate: asyncio.Future[None] | None = None
        self.misses = 0
        """How many reads find nothing, although there is a Lease."""
        self.arrives_late = False
        """Whether a renewal from before arrives in front of the next write."""

    async def get(self, path: str) -> Object:
        await self._answer()
        if self.lease is None or self.misses:
            self.misses = max(0, self.misses - 1)
            raise ObjectMissing(404, "NotFound", path)
        return copy.deepcopy(self.lease)

    async def create(self, kind: object, lease: Object) -> Object:
        await self._answer()
        if self.lease is not None:
            raise ObjectExists(409, "AlreadyExists", "")
        self._put({**lease, "spec": lease["spec"]})
        return lease

    async def patch(self, kind: object, lease: Object, patch: Object, **words: object) -> Object:
        await self._answer()
        if self.arrives_late and self.lease is not None:
            self.arrives_late = False
            self._put(self.lease)
        if self.lease is None or patch["metadata"]["resourceVersion"] != str(self.version):
            raise WriteConflict(409, "Conflict", "")
        self._put({**self.lease, "spec": {**self.lease["spec"], **patch["spec"]}})
        return lease

    def hold(self, identity: str) -> None:
        """Let another process hold the Lease."""
        self._put({"metadata": {"namespace": "n", "name": "l"}, "spec": {"holderIdentity": identity}})

    def _put(self, lease: Object) -> None:
        self.version += 1
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self.version)}}

    async def _answer(self) -> None:
        if self.gate is not None:
            await self.gate
        await asyncio.sleep(self.answers_after_s)
        if self.away:
            raise ApiUnreachable("away")


def on(shelf: Shelf, identity: str, times: LeaseTimes) -> Candidate:
    return Candidate(shelf, "l", identity, times)  # type: ignore[arg-type]


async def test_an_answer_that_comes_too_late_is_no_right_to_lead() -> None:
    shelf = Shelf()
    shelf.answers_after_s = 0.06
    slow = on(shelf, "slow", LeaseTimes(lasts_s=1.0, stops_s=0.1, every_s=0.05))

    assert not await slow.lease._try()
    assert not slow.lease.leads


async def test_a_leader_that_is_renewed_rarely_stops_in_time() -> None:
    shelf = Shelf()
    leader = on(shelf, "leader", LeaseTimes(lasts_s=2.0, stops_s=0.6, every_s=0.5))
    async with standing(leader):
        await until(leader, True)
        began = time.monotonic()
        shelf.away = True
        await until(leader, False)
        assert time.monotonic() - began < 0.9


async def test_a_candidate_that_saw_a_holder_waits_when_the_lease_is_deleted() -> None:
    shelf, times = Shelf(), LeaseTimes(lasts_s=0.6, stops_s=0.3, every_s=0.02)
    holder, other = on(shelf, "holder", times), on(shelf, "other", times)
    assert await holder.lease._try()  # and it is frozen from now on
    async with standing(other):
        await asyncio.sleep(0.1)
        shelf.lease = None
        deleted = time.monotonic()
        await until(other, True)
        assert time.monotonic() - deleted >= times.lasts_s


async def test_a_holder_whose_lease_is_deleted_makes_it_again_and_goes_on() -> None:
    shelf = Shelf()
    holder = on(shelf, "holder", TIMES)
    assert await holder.lease._try()
    shelf.lease = None

    assert await holder.lease._try()
    assert shelf.lease is not None


@pytest.mark.parametrize("misses", [0, 1])
async def test_a_holder_that_reads_of_another_holder_stops_at_once(misses: int) -> None:
    """Also if it hears of it by the refusal of its own write."""
    shelf = Shelf()
    holder = on(shelf, "holder", TIMES)
    assert await holder.lease._try()
    shelf.hold("other")
    shelf.misses = misses

    assert not await holder.lease._try()
    assert not holder.lease.leads


@pytest.mark.parametrize("turns", range(6))
async def test_a_leader_that_is_cancelled_while_an_answer_comes_ends(turns: int) -> None:
    """``asyncio.wait_for`` swallows this cancellation in Python 3.11."""
    shelf = Shelf()
    leader = on(shelf, "leader", TIMES)
    task = asyncio.create_task(leader.lease.run(leader.lead))
    await until(leader, True)
    shelf.gate = asyncio.get_running_loop().create_future()
    await asyncio.sleep(2 * TIMES.every_s)  # the renewal waits for its answer
    gate, shelf.gate = shelf.gate, None
    gate.set_result(None)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=0.5)
    shelf.away = True  # so that what is left over ends
    task.cancel()

    assert done


async def test_a_lease_is_given_up_although_a_renewal_arrives_late() -> None:
    shelf = Shelf()
    leader = on(shelf, "leader", LeaseTimes(lasts_s=30, stops_s=20, every_s=5))
    async with standing(leader):
        await until(leader, True)
        shelf.arrives_late = True

    assert shelf.lease is not None
    assert (shelf.lease["spec"]["holderIdentity"], shelf.arrives_late) == ("", False)


async def test_work_that_returns_is_an_error_and_is_not_begun_again_and_again() -> None:
    shelf, begun = Shelf(), 0

    async def nothing() -> None:
        nonlocal begun
        begun += 1

    with pytest.raises(WorkEnded):
        async with asyncio.timeout(2):
            await on(shelf, "leader", TIMES).lease.run(nothing)
    assert begun == 1


async def test_work_that_finds_that_it_does_not_lead_is_begun_again_after_a_while() -> None:
    """``NotLeading`` may come out of a group of tasks; beside another error it does not hide it."""
    shelf, begun = Shelf(), 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        error: Exception = NotLeading("checked") if begun < 3 else RuntimeError("broken")
        raise ExceptionGroup("tasks", [NotLeading("checked"), error])

    began = time.monotonic()
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(5):
            await on(shelf, "leader", TIMES).lease.run(work)
    assert (begun, time.monotonic() - began >= 2 * TIMES.every_s) == (3, True)
    assert caught.group_contains(RuntimeError)
    assert not caught.group_contains(NotLeading)
