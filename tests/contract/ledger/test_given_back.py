"""What a waiting caller was granted and never saw is given back, unless any other answer has reported it meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

import tenure
from tenure.kernel.holdings.actor import Asker
from tenure.service.allocator.claim import Granted
from tenure.service.allocator.waiting_line import Seat
from tenure.service.apply.operations import read_claim
from tenure.service.engine.waiting_rooms import Guest
from tenure.service.ledger.engine_ledger import server_of
from tests.contract.ledger.test_waiting import cancel_when_answered, done, free, other, plan, queue_up
from tests.contract.ledger.timing import news, nothing_waits, until, until_waiting
from tests.scale import PROOF

pytestmark = pytest.mark.every_store

__all__ = ["other", "plan"]

Asking = Callable[[tenure.AsyncLedger], Awaitable[tenure.Holding]]


async def allocated(ledger: tenure.AsyncLedger) -> tenure.Holding:
    return await ledger.allocate("net", owner="vm/a")


async def allocated_by_name(ledger: tenure.AsyncLedger) -> tenure.Holding:
    return await ledger.allocate("net", owner="vm/a", address="192.0.2.10")


async def allocated_under_a_key(ledger: tenure.AsyncLedger) -> tenure.Holding:
    return await ledger.allocate("net", owner="vm/a", key="k-1")


async def allocated_at_random(ledger: tenure.AsyncLedger) -> tenure.Holding:
    return await ledger.allocate("net", owner="vm/a", policy="random")


async def waited(ledger: tenure.AsyncLedger) -> tenure.Holding:
    return await ledger.allocate("net", owner="vm/a", wait_s=5.0)


async def claimed(ledger: tenure.AsyncLedger) -> tenure.Holding:
    status = await ledger.claim("net", owner="vm/a")
    assert status.holding is not None
    return status.holding


async def applied(ledger: tenure.AsyncLedger) -> tenure.Holding:
    [holding] = await ledger.apply([tenure.Allocate(network="net", owner="vm/a")])
    assert isinstance(holding, tenure.Holding)
    return holding


async def allocated_with_others(ledger: tenure.AsyncLedger) -> tenure.Holding:
    [holding] = await ledger.allocate_many("net", owners=["vm/a"])
    return holding


async def allocated_as_a_run(ledger: tenure.AsyncLedger) -> tenure.Holding:
    [holding] = await ledger.allocate_many("net", owners=["vm/a"], contiguous=True)
    return holding


async def labelled(ledger: tenure.AsyncLedger) -> tenure.Holding:
    return await ledger.modify_holding("net", "192.0.2.10", owner="vm/a", labels={"team": "shop"})


async def left_as_it_is(ledger: tenure.AsyncLedger) -> tenure.Holding:
    return await ledger.modify_holding("net", "192.0.2.10", owner="vm/a", labels={})


async def confirmed(ledger: tenure.AsyncLedger) -> tenure.Holding:
    return await ledger.confirm("net", "192.0.2.10", owner="vm/a")


async def moved_on(ledger: tenure.AsyncLedger) -> tenure.Holding:
    return await ledger.transfer("net", "192.0.2.10", owner="vm/a", to="vm/b")


ANSWERS = [
    allocated,
    allocated_by_name,
    allocated_under_a_key,
    allocated_at_random,
    waited,
    claimed,
    applied,
    allocated_with_others,
    allocated_as_a_run,
    labelled,
    left_as_it_is,
    confirmed,
    moved_on,
]


def ask_before_the_give_back(
    ledger: tenure.AsyncLedger, asked: tenure.AsyncLedger, ask: Asking
) -> "asyncio.Future[tenure.Holding]":
    """Have a ledger asked, and answered, between the hang-up of a waiting caller and the give-back of its grant."""
    rooms = server_of(ledger).rooms
    give_back, answer = rooms._give_back, asyncio.get_running_loop().create_future()

    async def asked_meanwhile(guest: Guest) -> None:
        answer.set_result(await ask(asked))
        await give_back(guest)

    rooms._give_back = asked_meanwhile  # type: ignore[method-assign]
    return answer


@pytest.mark.sampled
@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize("where", ["at the same server", "at another server"])
@pytest.mark.parametrize("ask", ANSWERS)
async def test_what_another_answer_has_reported_is_not_given_back(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, ask: Asking, where: str
) -> None:
    [waiting] = await queue_up((ledger, "vm/a"))
    answer = ask_before_the_give_back(ledger, ledger if where == "at the same server" else other, ask)
    cancel_when_answered(ledger, waiting)
    await free(ledger)
    with pytest.raises(asyncio.CancelledError):
        await done(waiting)

    acknowledged = await answer
    assert await ledger.holdings(owner=acknowledged.owner) == [acknowledged]
    assert [each for each in await news(ledger) if each.verb == "release" and each.owner == "vm/a"] == []


async def claim_in_line(ledger: tenure.AsyncLedger) -> "asyncio.Task[tenure.ClaimStatus]":
    """Have a caller stand in line with a claim, and wait for its answer."""
    task = asyncio.create_task(ledger.claim("net", owner="vm/a", wait_s=20.0))
    await until_waiting(ledger, "vm/a")
    return task


@pytest.mark.sampled
@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize("where", ["at the same server", "at another server"])
@pytest.mark.parametrize("ask", [allocated, waited, claimed])
async def test_what_a_claim_was_granted_is_not_given_back_once_another_answer_has_reported_it(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, ask: Asking, where: str
) -> None:
    waiting = await claim_in_line(ledger)
    answer = ask_before_the_give_back(ledger, ledger if where == "at the same server" else other, ask)
    cancel_when_answered(ledger, waiting)
    await free(ledger)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 8)

    acknowledged = await answer
    assert await ledger.holdings(owner="vm/a") == [acknowledged]
    assert [each for each in await news(ledger) if each.verb == "release" and each.owner == "vm/a"] == []


@pytest.mark.usefixtures("embedded")
async def test_what_a_claim_was_granted_and_nobody_saw_is_given_back(ledger: tenure.AsyncLedger) -> None:
    waiting = await claim_in_line(ledger)
    cancel_when_answered(ledger, waiting)
    await free(ledger)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 8)

    told = [each.verb for each in await news(ledger) if each.owner == "vm/a"]
    assert told == ["wait", "grant", "release"]
    assert await ledger.holdings(owner="vm/a") == []
    assert await nothing_waits(ledger)


def gone(caller: str, answer: object) -> Guest:
    """Return a guest who was answered and has not seen it."""
    future: asyncio.Future[Granted] = asyncio.get_running_loop().create_future()
    assert isinstance(answer, Granted)
    future.set_result(answer)
    return Guest(read_claim("net", "vm/a"), future, caller)


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize("waits", [True, False])
async def test_what_one_pass_gave_to_two_is_given_back_only_if_both_wait(
    ledger: tenure.AsyncLedger, waits: bool
) -> None:
    claim = read_claim("net", "vm/a")
    await free(ledger)
    layout, server = await server_of(ledger).reread("net"), server_of(ledger)
    seats = [Seat(claim, 1_000_000, caller="a/"), Seat(claim, 1_000_000, caller="b/") if waits else Seat(claim)]
    answers = await server.lanes.attend(layout, seats)
    row, again = [answer.row for answer in answers if isinstance(answer, Granted)]
    assert row == again
    await server.rooms._give_back(gone("a/", answers[0]))
    assert len(await ledger.holdings(owner="vm/a")) == 1
    await server.rooms._give_back(gone("b/", answers[1]))

    assert len(await ledger.holdings(owner="vm/a")) == (0 if waits else 1)


@pytest.mark.usefixtures("embedded")
async def test_asking_again_later_gives_the_same_answer_and_logs_nothing(ledger: tenure.AsyncLedger) -> None:
    [waiting] = await queue_up((ledger, "vm/a"))
    await free(ledger)
    first = await done(waiting)
    newest = await ledger.last_change()

    assert [await allocated(ledger) for _ in range(3)] == [first] * 3
    assert await ledger.last_change() == newest
    assert first.row.details == (await ledger.holding("net", first.address)).row.details == {}


async def test_the_log_says_nothing_of_how_a_holding_is_kept(ledger: tenure.AsyncLedger) -> None:
    [waiting] = await queue_up((ledger, "vm/a"))
    await free(ledger)
    got = await done(waiting)

    grants = [change async for change in ledger.changes() if change.owner == got.owner and change.verb == "grant"]
    assert [dict(change.details) for change in grants] == [{}]


@pytest.mark.usefixtures("embedded")
async def test_a_withdrawal_by_request_gives_back_only_what_nobody_else_was_answered(
    ledger: tenure.AsyncLedger,
) -> None:
    for owner, number in (("vm/a", 10), ("vm/b", 11)):
        asking = ledger.asked_by("token/ops", request_id=f"req-{owner[-1]}")
        task = asyncio.create_task(asking.allocate("net", owner=owner, wait_s=20.0))
        await until_waiting(ledger, owner)
        await free(ledger, number)
        await done(task)
    await allocated(ledger)

    assert not await ledger.withdraw("net", owner="vm/a", request_id="req-a")
    assert not await ledger.withdraw("net", owner="vm/b", request_id="req-of-another")
    assert len(await ledger.holdings(owner="vm/b")) == 1
    assert not await ledger.withdraw("net", owner="vm/b", request_id="req-b")
    assert [str(each.owner) for each in await ledger.holdings("net")] == ["vm/a"]
    assert await nothing_waits(ledger)


async def test_a_request_id_that_is_none_is_refused(ledger: tenure.AsyncLedger) -> None:
    with pytest.raises(tenure.Invalid) as caught:
        await ledger.withdraw("net", owner="vm/a", request_id="")
    assert caught.value.field == "request_id"


def by(ledger: tenure.AsyncLedger, request_id: str) -> tenure.AsyncLedger:
    return ledger.asked_by("token/ops", request_id=request_id)


async def waited_for(ledger: tenure.AsyncLedger, request_id: str, **more: str) -> tenure.Holding:
    """Have a request wait at a ledger until it is granted the address 192.0.2.10."""
    task = asyncio.create_task(
        by(ledger, request_id).allocate("net", owner="vm/a", wait_s=20.0, **more)  # type: ignore[arg-type]
    )
    await until_waiting(ledger, "vm/a")
    await free(ledger)
    return await done(task)


def seat(request_id: str, *, waits: bool) -> Seat:
    claim = read_claim("net", "vm/a").asked_by(Asker("token/ops", request_id))
    return Seat(claim, 1_000_000, None, f"{request_id}/{request_id}") if waits else Seat(claim)


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize("waits", [True, False])
async def test_each_of_several_callers_in_one_pass_counts(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, waits: bool
) -> None:
    """Two who ask in one pass for what a third was granted elsewhere: the second must not undo the first's mark."""
    held = await waited_for(ledger, "r-c")
    seats = [seat("r-a", waits=waits), seat("r-b", waits=True)]
    await server_of(other).lanes.attend(await server_of(other).reread("net"), seats)
    for request_id in ("r-c", "r-b"):  # both hang up; the first of the pass has its answer
        await ledger.withdraw("net", owner="vm/a", request_id=request_id)

    assert await ledger.holdings(owner="vm/a") == [held]


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize(("asks", "stays"), [("r-1", False), ("r-2", True)])
async def test_an_answer_under_a_key_reports_too_but_to_the_same_request(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, asks: str, stays: bool
) -> None:
    held = await waited_for(ledger, "r-1", key="k-1")
    assert await by(other, asks).allocate("net", owner="vm/a", key="k-1") == held
    await other.withdraw("net", owner="vm/a", request_id="r-1")

    assert await ledger.holdings(owner="vm/a") == ([held] if stays else [])


@pytest.mark.usefixtures("embedded")
async def test_an_old_answer_under_a_key_says_nothing_of_who_holds_the_address_now(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_pool("net", "192.0.2.30-192.0.2.40")
    old = await ledger.allocate("net", owner="vm/a", key="k-1", address="192.0.2.30")
    await ledger.release("net", old.address, owner="vm/a")
    taken = await ledger.allocate("net", owner="vm/z", address="192.0.2.30")
    keyed = read_claim("net", "vm/a", key="k-1", address="192.0.2.30")
    named = read_claim("net", "vm/c", address="192.0.2.31")
    seats = [Seat(keyed, 1_000_000, None, "a/"), Seat(named), Seat(read_claim("net", "vm/a", address="192.0.2.31"))]
    await server_of(ledger).lanes.attend(await server_of(ledger).reread("net"), seats)

    assert await ledger.holdings(owner="vm/z") == [taken]
    assert await ledger.verify() == []


TIMES_AWAY = 2 if PROOF else 1
"""How often the store cannot be reached; a second passes before each new try."""


@pytest.mark.usefixtures("embedded")
async def test_what_was_never_seen_is_given_back_although_the_store_was_away_for_a_moment(
    ledger: tenure.AsyncLedger,
) -> None:
    [waiting] = await queue_up((ledger, "vm/a"))
    store, away = server_of(ledger).store, list[int]()
    transact, give_back = store.transact, server_of(ledger).rooms._give_back

    async def unreachable(work: Callable[..., Awaitable[object]]) -> object:
        if len(away) < TIMES_AWAY:
            away.append(1)
            raise tenure.StoreUnavailable("cannot be reached", outcome="none")
        return await transact(work)

    async def beside_trouble(guest: Guest) -> None:
        store.transact = unreachable  # type: ignore[method-assign,assignment]
        await give_back(guest)

    server_of(ledger).rooms._give_back = beside_trouble  # type: ignore[method-assign]
    cancel_when_answered(ledger, waiting)
    await free(ledger)
    with pytest.raises(asyncio.CancelledError):
        await done(waiting)

    assert len(away) == TIMES_AWAY
    assert await ledger.holdings(owner="vm/a") == []


@pytest.mark.usefixtures("embedded")
async def test_what_was_granted_without_an_answer_is_given_back_when_its_caller_goes(
    ledger: tenure.AsyncLedger,
) -> None:
    [waiting] = await queue_up((ledger, "vm/a"))
    store, lost = server_of(ledger).store, list[int]()
    transact = store.transact

    async def losing(work: Callable[..., Awaitable[object]]) -> object:
        if lost:
            raise tenure.StoreUnavailable("cannot be reached", outcome="none")
        before = await store.last_change()
        answer = await transact(work)
        if await store.last_change() > before:
            lost.append(1)
            raise tenure.StoreUnavailable("the answer was lost", outcome="unknown")
        return answer

    await free(ledger)
    store.transact = losing  # type: ignore[method-assign,assignment]
    await until(lambda: _is(bool(lost)))
    waiting.cancel()
    await asyncio.sleep(0)
    store.transact = transact  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await done(waiting)

    assert await ledger.holdings(owner="vm/a") == []


async def _is(so: bool) -> bool:
    return so
