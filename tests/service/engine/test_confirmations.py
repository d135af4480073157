"""Confirmations beside other things: busy spaces, a plan that was edited, a ledger that is being closed."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

import tenure
from tenure.service.engine.engine import GRANTING, Engine
from tenure.service.ledger.engine_ledger import ledger_on, server_of
from tenure.stores.memory.store import MemoryStore
from tenure.stores.postgres.hot_connections import KEPT
from tests.contract.ledger.plan import small_plan

SOON_S = 5.0


class ParallelStore(MemoryStore):
    """A store in memory that says of itself that spaces can be written at the same time."""

    abilities = replace(MemoryStore.abilities, parallel_writes=True)


@pytest.fixture
async def ledger() -> AsyncIterator[tenure.AsyncLedger]:
    """Give a ledger with a small plan."""
    async with ledger_on(Engine(ParallelStore(), name="test", chance=random.Random(1))) as opened:
        await small_plan(opened)
        yield opened


async def _pending(ledger: tenure.AsyncLedger, count: int) -> list[tenure.Holding]:
    return [await ledger.hold("net", owner=f"vm/{number}") for number in range(count)]


def _confirm(ledger: tenure.AsyncLedger, each: tenure.Holding) -> Awaitable[tenure.Holding]:
    return ledger.confirm(each.network, each.address, owner=each.owner)


async def test_a_busy_space_holds_up_no_confirmation_of_another_space(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger, network="other", space="other")
    [busy], idle = await _pending(ledger, 1), await ledger.hold("other", owner="vm/a")
    store, free = server_of(ledger).store, asyncio.Event()
    rewrite = store.rewrite_unchanged

    async def waiting(space: int, *words: Any) -> Any:
        if space == busy.row.space:
            await free.wait()
        return await rewrite(space, *words)

    store.rewrite_unchanged = waiting  # type: ignore[method-assign, assignment]
    first = asyncio.ensure_future(_confirm(ledger, busy))
    await asyncio.sleep(0.01)

    try:
        answer = await asyncio.wait_for(_confirm(ledger, idle), SOON_S)
    finally:
        free.set()

    assert (answer.state, (await first).state) == ("held", "held")


def test_a_connection_lies_ready_for_every_batch_that_may_run() -> None:
    assert KEPT == 3 * GRANTING


async def _stale(ledger: tenure.AsyncLedger) -> Engine:
    """Let the plan be edited without the engine's knowledge."""
    engine = server_of(ledger)
    known = await engine.layout("net")
    await ledger.add_subnet("net", "198.51.100.0/24", name="second")
    engine._keep(known.configuration.space, known)
    return engine


async def test_an_edited_plan_is_read_once_for_all_confirmations_that_wait(ledger: tenure.AsyncLedger) -> None:
    held = await _pending(ledger, 10)
    engine = await _stale(ledger)
    configuration, read = engine.store.configuration, list[int]()

    async def counting(space: int) -> Any:
        read.append(space)
        await asyncio.sleep(0)
        return await configuration(space)

    engine.store.configuration = counting  # type: ignore[method-assign]

    answers = await asyncio.gather(*(_confirm(ledger, each) for each in held))

    assert {answer.state for answer in answers} == {"held"}
    assert read == [held[0].row.space]


async def test_an_edited_plan_that_cannot_be_read_fails_no_confirmation(ledger: tenure.AsyncLedger) -> None:
    [pending] = await _pending(ledger, 1)
    engine = await _stale(ledger)

    async def unreadable(space: int) -> Any:
        raise tenure.StoreUnavailable("cannot be reached", outcome="none")

    engine.store.configuration = unreadable  # type: ignore[method-assign]

    assert (await _confirm(ledger, pending)).state == "held"


ASKED: dict[str, Callable[[tenure.AsyncLedger, tenure.Holding], Awaitable[Any]]] = {
    "a confirmation": _confirm,
    "words on a holding": lambda ledger, each: ledger.modify_holding(
        "net", each.address, owner=each.owner, description="words"
    ),
}


@pytest.mark.parametrize(
    ("asked", "held_up"),
    [
        ("a confirmation", "locate"),
        ("a confirmation", "rows_at"),
        ("a confirmation", "rewrite_unchanged"),
        ("words on a holding", "locate"),
        ("words on a holding", "transact"),
    ],
)
async def test_closing_waits_for_what_is_being_applied(ledger: tenure.AsyncLedger, asked: str, held_up: str) -> None:
    [pending] = await _pending(ledger, 1)
    engine = server_of(ledger)
    engine.forget(pending.row.space)
    store: Any = engine.store
    closed, late, go_on = list[bool](), list[str](), asyncio.Event()

    def watched(name: str, verb: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def watching(*words: Any, **more: Any) -> Any:
            if name == held_up:
                await go_on.wait()
            if closed:
                late.append(name)
            return await verb(*words, **more)

        return watching

    for name in ("locate", "rows_at", "rewrite_unchanged", "transact"):
        setattr(store, name, watched(name, getattr(store, name)))
    close = store.close

    async def closing() -> None:
        closed.append(True)
        await close()

    store.close = closing
    answer = asyncio.ensure_future(ASKED[asked](ledger, pending))
    await asyncio.sleep(0.01)
    end = asyncio.ensure_future(ledger.close())
    await asyncio.sleep(0.01)
    go_on.set()

    holding = await answer
    await end

    assert (holding.state, holding.description) in {("held", ""), ("pending", "words")}
    assert late == []
    with pytest.raises(tenure.Conflict, match="this ledger is closed"):
        await _confirm(ledger, pending)
