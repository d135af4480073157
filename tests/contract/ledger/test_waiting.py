"""Waiting claims: served in order of arrival when room appears; whoever leaves leaves nothing behind."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

import tenure
from tenure.service.ledger.engine_ledger import server_of
from tests.contract.ledger.timing import (
    another,
    let_deadlines_pass,
    let_waiters_die,
    news,
    nothing_waits,
    until_waiting,
    verbs,
)
from tests.scale import in_proof

pytestmark = pytest.mark.every_store

LONG = 20.0
"""Longer than any of these tests takes: whoever waits so long was forgotten."""

Waiting = asyncio.Task[tenure.Holding]


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger) -> None:
    """Lay out a pool of two addresses, both held."""
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24", name="block")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.11", name="pool")
    await ledger.allocate_many("net", owner="vm/full", count=2)


@pytest.fixture
async def other(ledger: tenure.AsyncLedger, place: str) -> AsyncIterator[tenure.AsyncLedger]:
    """Give a second ledger on the same store."""
    async with await another(ledger, place) as opened:
        yield opened


def begin(ledger: tenure.AsyncLedger, owner: str, wait_s: float = LONG, **more: str) -> Waiting:
    return asyncio.create_task(ledger.allocate("net", owner=owner, wait_s=wait_s, **more))  # type: ignore[arg-type]


async def queue_up(*asked: tuple[tenure.AsyncLedger, str]) -> list[Waiting]:
    """Let owners wait, one after the other."""
    tasks: list[Waiting] = []
    for number, (ledger, owner) in enumerate(asked, 1):
        tasks.append(begin(ledger, owner))
        await until_waiting(ledger, *(name for _, name in asked[:number]))
    return tasks


async def free(ledger: tenure.AsyncLedger, number: int = 10) -> None:
    held = await ledger.holding("net", f"192.0.2.{number}")
    await ledger.release("net", held.address, owner=held.owner)


async def done(task: Waiting) -> tenure.Holding:
    """Return what a task gets, soon."""
    async with asyncio.timeout(8):
        return await task


async def test_waiters_are_served_in_order_of_arrival(ledger: tenure.AsyncLedger) -> None:
    tasks = await queue_up(*((ledger, f"vm/{number}") for number in range(3)))
    for number, task in enumerate(tasks):
        await free(ledger)

        assert (await done(task)).owner == f"vm/{number}"
        assert not any(later.done() for later in tasks[number + 1 :])
    assert await nothing_waits(ledger)


async def test_waiters_are_served_in_order_of_arrival_across_ledgers(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    tasks = await queue_up((ledger, "vm/0"), (other, "vm/1"), (ledger, "vm/2"), (other, "vm/3"))
    for number, task in enumerate(tasks):
        await free(ledger if number < 2 else other)

        assert (await done(task)).owner == f"vm/{number}"
        assert not any(later.done() for later in tasks[number + 1 :])
    assert await nothing_waits(ledger)


async def test_the_line_can_be_read(ledger: tenure.AsyncLedger, other: tenure.AsyncLedger) -> None:
    await ledger.add_network("elsewhere")
    tasks = await queue_up((ledger, "vm/0"), (other, "vm/1"))
    tasks.append(begin(ledger, "vm/2", pool="pool", slot="nic1"))
    await until_waiting(ledger, "vm/0", "vm/1", "vm/2")
    line = await ledger.waiting("net")

    assert [(each.network, each.owner, each.slot, each.place, each.pool) for each in line] == [
        ("net", "vm/0", "", 1, None),
        ("net", "vm/1", "", 2, None),
        ("net", "vm/2", "nic1", 3, "pool"),
    ]
    assert all(each.until is not None and each.since < each.until for each in line)
    assert await ledger.waiting("elsewhere") == []
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert await nothing_waits(ledger)


async def given_up_after(ledger: tenure.AsyncLedger, owner: str) -> float | None:
    """Return how long after its arrival a claim in line is said to end."""
    [claim] = [each for each in await ledger.waiting("net") if each.owner == owner]
    return None if claim.until is None else (claim.until - claim.since).total_seconds()


async def ended(*tasks: Waiting) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(("wait_s", "told"), [(300.0, 300), in_proof(25.0, 25), (math.inf, None)])
async def test_the_line_tells_until_when_a_caller_waits_and_not_until_when_its_claim_is_renewed(
    embedded: None, ledger: tenure.AsyncLedger, wait_s: float, told: float | None
) -> None:
    task = begin(ledger, "vm/late", wait_s)
    await until_waiting(ledger, "vm/late")
    early = await given_up_after(ledger, "vm/late")
    await asyncio.sleep(1.5)  # meanwhile the claim was renewed
    later = await given_up_after(ledger, "vm/late")
    await ledger.claim("net", owner="vm/kept", patience_s=120)
    kept = await given_up_after(ledger, "vm/kept")
    await ended(task)

    assert early == later
    assert early == (None if told is None else pytest.approx(told, abs=5))
    assert kept == pytest.approx(120, abs=5)


async def test_whoever_comes_to_wait_with_a_claim_in_line_leaves_its_place_and_tells_the_later_end(
    embedded: None, ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    tasks = await queue_up((ledger, "vm/late"), (ledger, "vm/last"))
    tasks.append(begin(other, "vm/late", 600.0))
    for _ in range(200):
        if (await given_up_after(ledger, "vm/late") or 0) > 500:
            break
        await asyncio.sleep(0.05)
    end, line = await given_up_after(ledger, "vm/late"), await ledger.waiting("net")
    await ended(*tasks)

    assert end == pytest.approx(600, abs=15)
    assert [(each.place, each.owner) for each in line] == [(1, "vm/late"), (2, "vm/last")]


async def lift_reserve(ledger: tenure.AsyncLedger) -> None:
    await ledger.unreserve("net", "192.0.2.20")


async def grow(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_pool("net", "192.0.2.30")


async def cancel_pending(ledger: tenure.AsyncLedger) -> None:
    await ledger.cancel("net", "192.0.2.21", owner="vm/pending")


async def sweep(ledger: tenure.AsyncLedger) -> None:
    await let_deadlines_pass(ledger)
    await ledger.sweep()


async def end_owner(ledger: tenure.AsyncLedger) -> None:
    await ledger.release_owner("vm/full")


async def apply_release(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([tenure.Release(network="net", address="192.0.2.10", owner="vm/full")])


ROOM = [free, lift_reserve, grow, cancel_pending, let_deadlines_pass, sweep, end_owner, apply_release]


@pytest.mark.sampled
@pytest.mark.parametrize("make_room", ROOM, ids=lambda way: way.__name__)
@pytest.mark.parametrize("by", ["the same ledger", "another ledger"])
async def test_every_way_of_making_room_serves_who_waits(
    ledger: tenure.AsyncLedger,
    other: tenure.AsyncLedger,
    make_room: Callable[[tenure.AsyncLedger], Awaitable[None]],
    by: str,
) -> None:
    await ledger.reserve("net", "192.0.2.20")
    await ledger.add_pool("net", "192.0.2.20-192.0.2.21", cooling_s=60)
    await ledger.hold("net", owner="vm/pending", lasts_s=60)
    [task] = await queue_up((ledger, "vm/a"))
    await make_room(ledger if by == "the same ledger" else other)

    assert (await done(task)).owner == "vm/a"
    assert await nothing_waits(ledger)


async def test_what_makes_no_room_serves_nobody(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_pool("net", "192.0.2.20", name="cool", cooling_s=60)
    await ledger.allocate("net", owner="vm/pending", pool="cool")
    [task] = await queue_up((ledger, "vm/a"))
    await ledger.transfer("net", "192.0.2.10", owner="vm/full", to="vm/next")
    await ledger.modify_holding("net", "192.0.2.10", owner="vm/next", state="draining")
    await ledger.release("net", "192.0.2.20", owner="vm/pending")

    await asyncio.sleep(0.2)
    assert not task.done()
    task.cancel()


async def test_a_waiter_that_runs_out_of_time_leaves_nothing(ledger: tenure.AsyncLedger) -> None:
    cursor = await ledger.last_change()
    with pytest.raises(tenure.PoolExhausted, match=r"after waiting 0\.2 s") as told:
        await ledger.allocate("net", owner="vm/a", wait_s=0.2)

    assert told.value.waited_s == 0.2
    assert await nothing_waits(ledger)
    assert await verbs(ledger, cursor) == ["wait", "leave"]
    assert await ledger.holdings(owner="vm/a") == []


async def test_nobody_waits_who_does_not_say_so(ledger: tenure.AsyncLedger) -> None:
    cursor = await ledger.last_change()
    for wait_s in (None, 0):
        with pytest.raises(tenure.PoolExhausted):
            await ledger.allocate("net", owner="vm/a", wait_s=wait_s)

    assert await ledger.last_change() == cursor


async def test_a_cancelled_waiter_leaves_nothing_and_the_next_one_is_served(ledger: tenure.AsyncLedger) -> None:
    first, second = await queue_up((ledger, "vm/a"), (ledger, "vm/b"))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await until_waiting(ledger, "vm/b")
    await free(ledger)

    assert (await done(second)).owner == "vm/b"
    assert await nothing_waits(ledger)


def cancel_when_answered(ledger: tenure.AsyncLedger, task: asyncio.Task[Any], number: int = 0) -> None:
    """Cancel a waiter in the moment in which it has its answer and has not seen it yet."""
    [room] = server_of(ledger).rooms._rooms.values()
    room.guests[number].answer.add_done_callback(lambda _: task.cancel())


@pytest.mark.usefixtures("embedded")
async def test_what_a_cancelled_waiter_was_granted_in_that_moment_is_given_back(ledger: tenure.AsyncLedger) -> None:
    await ledger.modify_pool("net", "pool", cooling_s=60)
    first, second = await queue_up((ledger, "vm/a"), (ledger, "vm/b"))
    cancel_when_answered(ledger, first)
    await ledger.add_pool("net", "192.0.2.30")

    with pytest.raises(asyncio.CancelledError):
        await first
    assert (await done(second)).address == "192.0.2.30"
    assert await ledger.holdings(owner="vm/a") == []


@pytest.mark.usefixtures("embedded")
async def test_what_was_granted_under_a_key_stays_for_whoever_asks_again_under_it(ledger: tenure.AsyncLedger) -> None:
    task = begin(ledger, "vm/a", key="k-1")
    await until_waiting(ledger, "vm/a")
    cancel_when_answered(ledger, task)
    await free(ledger)
    with pytest.raises(asyncio.CancelledError):
        await task
    stayed = await ledger.holdings(owner="vm/a")

    assert stayed == [await ledger.allocate("net", owner="vm/a", key="k-1")]


@pytest.mark.usefixtures("embedded")
async def test_what_is_given_back_was_not_anothers(ledger: tenure.AsyncLedger) -> None:
    first, second = begin(ledger, "vm/a"), begin(ledger, "vm/a")
    await until_waiting(ledger, "vm/a")
    cancel_when_answered(ledger, first)
    await free(ledger)

    got = await done(second)
    assert await ledger.holdings(owner="vm/a") == [got]


@pytest.mark.usefixtures("embedded")
async def test_what_its_owner_got_in_another_way_is_not_given_back(ledger: tenure.AsyncLedger) -> None:
    [task] = await queue_up((ledger, "vm/a"))
    cancel_when_answered(ledger, task)
    await ledger.transfer("net", "192.0.2.10", owner="vm/full", to="vm/a")
    with pytest.raises(asyncio.CancelledError):
        await done(task)

    assert [each.address for each in await ledger.holdings(owner="vm/a")] == ["192.0.2.10"]
    assert await nothing_waits(ledger)


async def test_closing_the_ledger_ends_its_waiters(ledger: tenure.AsyncLedger, other: tenure.AsyncLedger) -> None:
    first, second = await queue_up((other, "vm/a"), (ledger, "vm/b"))
    await other.close()

    with pytest.raises(tenure.Conflict, match="closed"):
        await first
    await until_waiting(ledger, "vm/b")
    await free(ledger)
    assert (await done(second)).owner == "vm/b"


async def test_the_same_claim_waited_for_twice_is_one_claim(ledger: tenure.AsyncLedger) -> None:
    tasks = [begin(ledger, "vm/a") for _ in range(3)]
    await until_waiting(ledger, "vm/a")
    await free(ledger)

    got = [await done(task) for task in tasks]
    assert len({each.address for each in got}) == 1
    assert len(await ledger.holdings(owner="vm/a")) == 1
    assert await nothing_waits(ledger)


@pytest.mark.parametrize("where", ["in the same ledger", "in another ledger"])
async def test_one_of_two_who_wait_for_the_same_may_go(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, where: str
) -> None:
    staying, going = begin(ledger, "vm/a"), begin(ledger if where == "in the same ledger" else other, "vm/a")
    await until_waiting(ledger, "vm/a")
    await asyncio.sleep(0.1)
    going.cancel()
    await asyncio.gather(going, return_exceptions=True)
    await until_waiting(ledger, "vm/a")
    await free(ledger)

    assert (await done(staying)).owner == "vm/a"


async def test_two_who_want_different_things_for_one_slot_leave_nothing(ledger: tenure.AsyncLedger) -> None:
    first, second = begin(ledger, "vm/a"), begin(ledger, "vm/a", pool="pool")
    await until_waiting(ledger, "vm/a")
    for task in (second, first):
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert await nothing_waits(ledger)


async def test_a_network_that_goes_sends_its_waiters_away(ledger: tenure.AsyncLedger) -> None:
    [task] = await queue_up((ledger, "vm/a"))
    await ledger.remove_network("net", cascade=True)

    with pytest.raises(tenure.NotFound):
        await done(task)
    assert await nothing_waits(ledger)


async def test_a_network_that_goes_from_a_shared_space_sends_its_waiters_away(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("neighbour", space="net")
    [task] = await queue_up((ledger, "vm/a"))
    await ledger.remove_network("net", cascade=True)

    with pytest.raises(tenure.NotFound):
        await done(task)
    assert await nothing_waits(ledger)


async def test_a_network_of_the_same_name_is_waited_for_anew(ledger: tenure.AsyncLedger) -> None:
    [task] = await queue_up((ledger, "vm/a"))
    await ledger.apply(
        [
            tenure.RemoveNetwork(network="net", cascade=True),
            tenure.AddNetwork(network="net", space="new"),
            tenure.AddSubnet(network="net", cidr="198.51.100.0/24"),
            tenure.AddPool(network="net", range="198.51.100.7"),
            tenure.Reserve(network="net", range="198.51.100.7"),
        ]
    )
    await until_waiting(ledger, "vm/a")
    await asyncio.sleep(1.2)  # it says once more that it lives
    await ledger.unreserve("net", "198.51.100.7")

    assert (await done(task)).address == "198.51.100.7"
    assert await nothing_waits(ledger)


async def test_a_dead_waiter_stands_in_nobodys_way(ledger: tenure.AsyncLedger, other: tenure.AsyncLedger) -> None:
    assert (await other.claim("net", owner="vm/dead")).place == 1
    [alive] = [begin(ledger, "vm/alive")]
    await until_waiting(ledger, "vm/dead", "vm/alive")
    await free(ledger)
    await asyncio.sleep(0.2)
    assert not alive.done()
    cursor = await ledger.last_change()
    await let_waiters_die(ledger, "vm/dead")

    assert (await done(alive)).owner == "vm/alive"
    assert ("leave", "vm/dead") in [(each.verb, each.owner) for each in await news(ledger, cursor)]
    assert await nothing_waits(ledger)


async def test_one_who_was_taken_for_dead_gets_his_place_back(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    old, young = await queue_up((ledger, "vm/old"), (other, "vm/young"))
    await let_waiters_die(ledger, "vm/old")
    await other.sweep()
    await until_waiting(ledger, "vm/old", "vm/young")
    await free(other)

    assert (await done(old)).owner == "vm/old"
    assert not young.done()
    young.cancel()
    await asyncio.gather(young, return_exceptions=True)


async def test_waiting_through_the_log_being_trimmed(ledger: tenure.AsyncLedger) -> None:
    [task] = await queue_up((ledger, "vm/a"))
    await ledger.trim_changes(before=await ledger.last_change() + 1)
    await free(ledger)

    assert (await done(task)).owner == "vm/a"
