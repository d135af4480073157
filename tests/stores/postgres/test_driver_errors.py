"""What PostgreSQL's troubles mean for each caller: an outcome of its own, and nobody held up for long."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

import tenure
from tenure.kernel.holdings.holding_model import Outcome, Ticket, Wish
from tenure.ports import Failed, Guard, Transaction
from tenure.service.ledger.engine_ledger import server_of
from tenure.stores.postgres import store as postgres_store
from tenure.stores.postgres.grants import Released, grant_on
from tenure.stores.postgres.store import MIGRATION_LOCK, PostgresStore
from tenure.wiring import is_there
from tests.contract.providers import provider_named
from tests.contract.sites import Site

PoolsAndPlans = tenure.AsyncLedger


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """Give a fresh schema."""
    async with provider_named("postgres").place() as place:
        yield place


@pytest.fixture
async def ledger(url: str) -> AsyncIterator[tenure.AsyncLedger]:
    """Give a ledger with two networks, each in a space of its own, and a time-out of a second."""
    async with await tenure.open_async(f"{url}&timeout_s=1") as opened:
        for number, name in enumerate(("net", "far")):
            await opened.add_network(name)
            await opened.add_subnet(name, f"10.{number}.0.0/16")
            await opened.add_pool(name, f"10.{number}.1.0-10.{number}.250.0", policy="random")
            await opened.allocate(name, owner="vm/first")
        yield opened


@asynccontextmanager
async def outsider(url: str) -> AsyncIterator[Any]:
    """Open a session that is none of ours."""
    server, _, schema = url.rpartition("&schema=")
    connection = await asyncpg.connect(server, server_settings={"search_path": schema})
    try:
        yield connection
    finally:
        await connection.close()


END_WHAT_WAITS = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE $1::int = ANY (pg_blocking_pids(pid))
"""
WAIT_FOR_ITS_END = """
    DO $$ BEGIN
        FOR attempt IN 1..500 LOOP
            PERFORM pg_stat_clear_snapshot();
            EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = {});
            PERFORM pg_sleep(0.02);
        END LOOP;
    END $$
"""


def store_of(ledger: tenure.AsyncLedger) -> PostgresStore:
    store = server_of(ledger).store
    assert isinstance(store, PostgresStore)
    return store


async def test_who_was_granted_before_the_database_went_away_is_answered_so(
    ledger: tenure.AsyncLedger, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(ledger)
    patiently, unlocked = store._grant_patiently, asyncio.Event()
    served = list[str]()

    async def then_gone(space: int, version: int, wish: Wish) -> Any:
        if served:
            raise tenure.StoreUnavailable("the database is away", outcome="none")
        served.append(wish.owner)
        unlocked.set()
        return await patiently(space, version, wish)

    monkeypatch.setattr(store, "_grant_patiently", then_gone)
    async with outsider(url) as holder:
        transaction = holder.transaction()
        await transaction.start()
        await holder.fetchval("SELECT id FROM space WHERE name = 'net' FOR UPDATE")
        asked = [asyncio.create_task(ledger.allocate("net", owner=f"vm/{n}")) for n in range(12)]
        await unlocked.wait()
        await transaction.rollback()
        answers = await asyncio.gather(*asked, return_exceptions=True)

    holders = {str(each.owner) for each in answers if isinstance(each, tenure.Holding)}
    errors = [each for each in answers if isinstance(each, tenure.StoreUnavailable)]
    assert holders == set(served)
    assert {each.outcome for each in errors} == {"none"}
    assert len(errors) == 11
    assert [h for n in range(12) for h in await ledger.holdings(owner=f"vm/{n}") if str(h.owner) not in holders] == []


async def test_a_session_that_is_ended_while_a_wish_alone_waits_for_a_lock_is_a_loss_like_any_other(
    ledger: tenure.AsyncLedger, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(ledger)
    patiently, alone = store._grant_patiently, asyncio.Event()

    async def noted(space: int, version: int, wish: Wish) -> Any:
        alone.set()
        return await patiently(space, version, wish)

    monkeypatch.setattr(store, "_grant_patiently", noted)
    async with outsider(url) as holder, outsider(url) as other:
        transaction = holder.transaction()
        await transaction.start()
        await holder.fetchval("SELECT id FROM space WHERE name = 'net' FOR UPDATE")
        asked = asyncio.create_task(ledger.allocate("net", owner="vm/a"))
        await alone.wait()
        while not await other.fetchval(END_WHAT_WAITS, holder.get_server_pid()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # until the wish waits
        await transaction.rollback()
        held = await asked

    assert [holding.address for holding in await ledger.holdings(owner="vm/a")] == [held.address]


async def test_of_wishes_one_by_one_the_lost_one_is_unknown_and_the_rest_is_not_tried(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = provider_named("postgres")
    store = await provider.connect(url)
    assert isinstance(store, PostgresStore)
    tried = list[str]()

    async def losing(hot: Any, space: int, version: int, wishes: Any) -> Any:
        if len(wishes) > 1:
            raise asyncpg.exceptions.LockNotAvailableError("the batch waits too long")
        answers = await grant_on(hot, space, version, wishes)
        tried.append(wishes[0].owner)
        if len(tried) == 2:
            raise ConnectionResetError("lost behind the commit")
        return answers

    try:
        here, there = await provider.prepare(store)
        site = Site(provider, url, store, here, there)
        monkeypatch.setattr(postgres_store, "grant_on", losing)
        wishes = [site.wish(f"10.0.0.{number}", f"vm/{number}") for number in range(1, 5)]
        first, *failed = await store.grant(here.space, here.version, wishes)

        assert not isinstance(first, Failed)
        assert (first.outcome, tried) == (Outcome.GRANTED, ["vm/1", "vm/2"])
        assert [getattr(each.error, "outcome", None) for each in failed if isinstance(each, Failed)] == [
            "unknown", "none", "none",
        ]  # fmt: skip
        assert [row.owner for row in await site.rows()] == ["vm/1", "vm/2"]
    finally:
        await store.close()


async def test_what_a_release_ended_is_answered_so_when_the_rest_cannot_be_looked_at(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = provider_named("postgres")
    store = await provider.connect(url)
    assert isinstance(store, PostgresStore)
    try:
        here, there = await provider.prepare(store)
        site = Site(provider, url, store, here, there)
        held = await site.held_by("10.0.0.5")
        free = Ticket(held.network, held.first + 1, "vm/b", 77)
        fetch = asyncpg.Connection.fetch

        async def unreadable(connection: Any, query: str, *values: Any, **more: Any) -> Any:
            if "asked.first" in query:
                raise asyncpg.exceptions.OutOfMemoryError("no memory for this")
            return await fetch(connection, query, *values, **more)

        monkeypatch.setattr(asyncpg.Connection, "fetch", unreadable)
        ended, unknown = await store.release(here.space, [site.ticket(held), free])
        monkeypatch.undo()

        assert ended == held
        assert isinstance(unknown, Failed)
        assert getattr(unknown.error, "outcome", None) == "none"
        assert await site.rows() == []
    finally:
        await store.close()


async def test_a_release_whose_second_statement_is_lost_says_so_of_the_rest_only(
    ledger: tenure.AsyncLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(ledger)
    first = await ledger.allocate("net", owner="vm/a")
    second = await ledger.allocate("net", owner="vm/b")
    tickets = [Ticket(each.row.network, each.row.first, each.owner) for each in (first, second)]
    release_on, calls = store._release_on, list[int]()

    async def losing(connection: Any, space: int, wanted: Any, version: int | None) -> Released:
        calls.append(len(wanted))
        if len(calls) > 1:
            raise tenure.StoreUnavailable("lost", outcome="unknown")
        done = await release_on(connection, space, wanted[:1], version)
        return Released(done.ended, {second.row.first: second.row})

    monkeypatch.setattr(store, "_release_on", losing)
    answers = await store.release(first.row.space, tickets)

    assert answers[0] == first.row
    assert isinstance(answers[1], Failed)
    assert getattr(answers[1].error, "outcome", None) == "unknown"


Standing = Callable[[Transaction, int], Awaitable[object]]


async def in_the_lane(tx: Transaction, space: int) -> object:
    return await tx.guard([space], Guard.LANE)


async def with_the_counter(tx: Transaction, space: int) -> object:
    from tenure.kernel.holdings.holding_model import Entry

    return await tx.log([Entry("note", space)])


@pytest.mark.parametrize("stand", [in_the_lane, with_the_counter])
async def test_a_server_that_stands_still_is_ended_and_knows_it(
    ledger: tenure.AsyncLedger, url: str, stand: Standing
) -> None:
    frozen = await tenure.open_async(f"{url}&timeout_s=1")
    begun, woken = asyncio.Event(), asyncio.Event()
    space = (await server_of(ledger).layout("net")).configuration.space

    async def standing(tx: Transaction) -> None:
        await stand(tx, space)
        begun.set()
        await woken.wait()

    task = asyncio.create_task(server_of(frozen).store.transact(standing))
    await begun.wait()
    async with asyncio.timeout(20):  # for ever, and a minute for each call, without the time-outs
        ours = await ledger.allocate("net", owner="vm/a", policy="lowest")
        others = await ledger.allocate("far", owner="vm/a")
    woken.set()
    with pytest.raises(tenure.StoreUnavailable) as caught:
        await task
    await frozen.close()

    assert caught.value.outcome == "none"
    assert (ours.owner, others.owner) == ("vm/a", "vm/a")
    assert [each.verb async for each in ledger.changes() if each.verb == "note"] == []


async def test_a_lock_that_a_stranger_keeps_is_said_and_nothing_is_done(ledger: tenure.AsyncLedger, url: str) -> None:
    async with outsider(url) as holder, holder.transaction():
        await holder.fetchval("SELECT id FROM space WHERE name = 'net' FOR UPDATE")
        tries = [ledger.allocate("net", owner="vm/a", policy=policy) for policy in ("lowest", "random")]
        for told in await asyncio.gather(*tries, return_exceptions=True):
            assert isinstance(told, tenure.StoreUnavailable)
            assert "held a lock in PostgreSQL for 3 s" in str(told)
            assert told.outcome == "none"
        assert (await ledger.allocate("far", owner="vm/a")).owner == "vm/a"

    assert await ledger.holdings("net", owner="vm/a") == []


async def test_a_migration_lock_that_a_stranger_keeps_is_said_when_a_server_opens(url: str) -> None:
    async with outsider(url) as holder, holder.transaction():
        await holder.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
        async with asyncio.timeout(10):  # three times the time-out, and slow machines; for ever without it
            with pytest.raises(tenure.StoreUnavailable, match="held a lock in PostgreSQL for 3 s") as caught:
                await tenure.open_async(f"{url}&timeout_s=1")

    assert caught.value.outcome == "none"
    async with await tenure.open_async(f"{url}&timeout_s=1") as ledger:
        assert await ledger.networks() == []


async def test_a_server_that_stands_still_while_it_opens_is_ended(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fetchval, begun, woken = asyncpg.Connection.fetchval, asyncio.Event(), asyncio.Event()

    async def standing(connection: Any, query: str, *values: Any, **more: Any) -> Any:
        if "to_regclass" in query and not begun.is_set():
            begun.set()
            await woken.wait()
        return await fetchval(connection, query, *values, **more)

    monkeypatch.setattr(asyncpg.Connection, "fetchval", standing)
    task = asyncio.create_task(tenure.open_async(f"{url}&timeout_s=1"))
    await begun.wait()
    async with asyncio.timeout(20), await tenure.open_async(f"{url}&timeout_s=1") as ledger:
        assert await ledger.networks() == []
    woken.set()
    with pytest.raises(tenure.StoreUnavailable) as caught:
        await task

    assert caught.value.outcome == "none"


async def test_a_caller_that_gives_up_while_a_ledger_opens_leaves_no_session(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions: asyncio.Queue[int] = asyncio.Queue()

    async def standing(store: PostgresStore) -> int:
        async with store._connected(store._pool) as connection:
            sessions.put_nowait(connection.get_server_pid())
        await asyncio.Event().wait()
        return 0

    monkeypatch.setattr(PostgresStore, "last_change", standing)
    task = asyncio.create_task(tenure.open_async(url))
    session = await sessions.get()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    async with outsider(url) as watcher:
        await watcher.execute(WAIT_FOR_ITS_END.format(session))
        assert not await watcher.fetchval("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", session)


async def test_asking_whether_there_is_a_ledger_has_the_time_outs_too(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetchval, found = asyncpg.Connection.fetchval, dict[str, str]()

    async def looking(connection: Any, query: str, *values: Any, **more: Any) -> Any:
        for name in ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout", "application_name"):
            found[name] = await fetchval(connection, f"SHOW {name}")
        return await fetchval(connection, query, *values, **more)

    monkeypatch.setattr(asyncpg.Connection, "fetchval", looking)
    there = await is_there(f"{url}&timeout_s=2")

    assert there
    assert found.pop("application_name").startswith("tenure ")
    assert list(found.values()) == ["2s", "2s", "3s"]


async def test_every_session_has_the_time_outs_of_the_settings(url: str) -> None:
    names = ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout", "synchronous_commit")
    async with await tenure.open_async(url) as ledger:
        store = store_of(ledger)
        async with store._connected(store._pool) as pooled:
            assert [await pooled.fetchval(f"SHOW {name}") for name in names] == ["10s", "10s", "15s", "on"]
        hot = await store._hot.take()
        assert [await hot.connection.fetchval(f"SHOW {name}") for name in names] == ["10s", "100ms", "15s", "on"]
        store._hot.give_back(hot)


@pytest.mark.parametrize("text", ["0", "nan", "soon", "-1", "1e9", ""])
async def test_a_time_out_that_is_none_is_refused(url: str, text: str) -> None:
    with pytest.raises(tenure.Invalid) as caught:
        await tenure.open_async(f"{url}&timeout_s={text or ' '}")
    assert caught.value.field == "timeout_s"


async def test_a_session_whose_answer_was_lost_is_ended_before_anything_else_is_asked(
    ledger: tenure.AsyncLedger, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that was held up on its way would otherwise take effect after it was asked again."""
    store = store_of(ledger)
    hot = await store._hot.take()
    store._hot.give_back(hot)
    kept, hot.connection = hot.connection, Unreachable()
    monkeypatch.setattr(hot, "fetch", _lost)
    async with outsider(url) as looking:
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
        assert await looking.fetchval(count, hot.name) == 1
        got = await ledger.allocate("net", owner="vm/a")
        assert await looking.fetchval(count, hot.name) == 0

    assert await ledger.holdings(owner="vm/a") == [got]
    kept.terminate()


class Unreachable:
    """A connection whose other end keeps its session: what was sent may still be on its way."""

    def __init__(self) -> None:
        self._closed = False

    def terminate(self) -> None:
        """Close this end."""
        self._closed = True

    def is_closed(self) -> bool:
        """Return whether this end is closed."""
        return self._closed


async def _lost(name: str, *values: Any) -> Any:
    raise ConnectionResetError("reset by peer")


async def test_a_session_that_cannot_be_ended_yet_is_no_loss_of_a_connection(
    ledger: tenure.AsyncLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(ledger)
    fetch = asyncpg.Connection.fetch

    async def unwilling(connection: Any, query: str, *values: Any, **more: Any) -> Any:
        if "pg_terminate_backend" in query:
            raise asyncpg.exceptions.InternalServerError("not now")
        return await fetch(connection, query, *values, **more)

    monkeypatch.setattr(asyncpg.Connection, "fetch", unwilling)
    store._lost_sessions.add("tenure nobody")
    for _ in range(8):  # more often than there are connections
        with pytest.raises(tenure.StoreUnavailable, match="not now") as caught:
            await ledger.allocate("net", owner="vm/a")
        assert caught.value.outcome == "none"
    monkeypatch.undo()

    async with asyncio.timeout(10):
        assert (await ledger.allocate("net", owner="vm/a")).owner == "vm/a"
    assert store._lost_sessions == set()
