"""Grants of one statement: all of them or nothing, and only where the ledger is as believed."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest

from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.holdings.holding_model import Outcome, State, Verdict, Wish
from tenure.ports import Book
from tenure.stores.sqlite.connection import connect
from tenure.stores.sqlite.grants import LARGEST, STATEMENTS, Granter, Prepared
from tenure.stores.sqlite.store import SqliteStore
from tests.contract.book.conftest import prepared
from tests.contract.providers import provider_named
from tests.contract.sites import Site


@asynccontextmanager
async def beside() -> AsyncIterator[tuple[Site[Book], Granter, sqlite3.Connection]]:
    """Give a ledger, and a granter on a connection of its own."""
    async with prepared(provider_named("sqlite")) as site:
        with closing(connect(Path(site.url.removeprefix("sqlite:///")))) as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            yield site, Granter(connection), connection


def keyed(site: Site[Book], address: str, number: int) -> Wish:
    """Make a wish with an idempotency key."""
    return site.wish(address, f"vm/{number}")._replace(key=f"key-{number}", body=b"said")


def granted(granter: Granter, site: Site[Book], *numbers: int, version: int | None = None) -> list[Verdict] | None:
    """Ask for addresses at once."""
    wishes = [keyed(site, f"192.0.2.{n}", n) for n in numbers]
    return all_granted(granter, site, wishes, version)


def all_granted(
    granter: Granter, site: Site[Book], wishes: list[Wish], version: int | None = None
) -> list[Verdict] | None:
    """Ask for what wishes want at once."""
    prepared = Prepared(site.here.space, version or site.here.version, wishes)
    return prepared.verdicts() if granter.grant(prepared) else None


async def test_what_is_granted_at_once_is_in_the_book_and_in_the_log() -> None:
    async with beside() as (site, granter, _):
        answers = [granted(granter, site, 1, 2, 3), granted(granter, site, 4)]

        rows = await site.rows()
        assert [verdict.row for answer in answers if answer for verdict in answer] == rows
        assert [row.generation for row in rows] == [1, 2, 3, 4]
        log = [(change.seq, change.verb, change.first, change.generation) for change in await site.news()]
        assert log == [(row.generation, "grant", row.first, row.generation) for row in rows]


async def test_deadlines_and_states_are_written_as_they_are_told() -> None:
    async with beside() as (site, granter, _):
        held, pending = site.wish("192.0.2.1", "vm/1"), site.wish("192.0.2.2", "vm/2")._replace(state=State.PENDING)
        ending = site.wish("192.0.2.3", "vm/3")._replace(state=State.PENDING, lasts_us=60_000_000)
        verdicts = all_granted(granter, site, [ending, held, pending]) or []

        rows = {row.first: row for row in await site.rows()}
        assert [verdict.row for verdict in verdicts] == [rows[wish.first] for wish in (ending, held, pending)]
        deadline = rows[ending.first].since_us + 60_000_000
        assert [rows[wish.first].until_us for wish in (ending, held, pending)] == [deadline, None, None]
        told = [dict(change.details) for change in await site.news()]
        assert told == [{"state": "pending", "until_us": deadline}, {}, {"state": "pending"}]


async def test_a_repeat_under_a_kept_key_is_answered_as_before() -> None:
    async with beside() as (site, granter, _):
        [first] = granted(granter, site, 1) or []

        assert granted(granter, site, 1) is None
        [again] = await site.grant(keyed(site, "192.0.2.9", 1))
        assert (again.outcome, again.row) == (Outcome.REPLAYED, first.row)


async def test_an_empty_key_is_a_key_on_both_ways() -> None:
    async with beside() as (site, granter, _):
        first, second = (keyed(site, f"192.0.2.{n}", 1)._replace(key="") for n in (1, 2))
        [at_once] = all_granted(granter, site, [first]) or []
        [again] = await site.grant(second)

        assert (again.outcome, again.row) == (Outcome.REPLAYED, at_once.row)


async def test_the_statement_names_the_columns_as_they_stand_in_the_view() -> None:
    async with beside() as (_, _, connection):
        view = [record[1] for record in connection.execute("PRAGMA table_info(granting)")]

        assert STATEMENTS[1].partition("(")[2].partition(")")[0].replace(",", " ").split() == view


@pytest.mark.parametrize("numbers", [(7,), (1, 7), (7, 1)])
async def test_one_that_is_taken_undoes_all(numbers: tuple[int, ...]) -> None:
    async with beside() as (site, granter, _):
        there = await site.held_by("192.0.2.7", "vm/there")

        assert granted(granter, site, *numbers) is None
        assert (await site.rows(), len(await site.news())) == ([there], 1)
        assert granted(granter, site, 1) is not None


async def test_a_wish_inside_of_a_prefix_undoes_all() -> None:
    async with beside() as (site, granter, _):
        there = await site.held_by("192.0.2.16/28", "vm/there")

        assert granted(granter, site, 1, 20) is None
        assert await site.rows() == [there]


async def test_a_ledger_that_others_moved_is_not_written_by_old_numbers() -> None:
    async with beside() as (site, granter, _):
        assert granted(granter, site, 1)
        await site.held_by("192.0.2.200", "vm/other")

        assert granted(granter, site, 2) is None
        assert granted(granter, site, 2) is not None
        assert [change.seq for change in await site.news()] == [1, 2, 3]


async def test_another_version_of_the_configuration_is_granted_nothing() -> None:
    async with beside() as (site, granter, _):
        assert granted(granter, site, 1, version=site.here.version + 1) is None
        assert await site.rows() == []


async def test_nothing_and_too_much_are_left_to_the_usual_way() -> None:
    async with beside() as (site, granter, _):
        wishes = [site.wish(f"10.0.{n // 250}.{n % 250}", f"vm/{n}") for n in range(LARGEST + 1)]

        assert all_granted(granter, site, []) is None
        assert all_granted(granter, site, wishes) is None
        most = all_granted(granter, site, wishes[:LARGEST])
        assert most is not None
        assert len(most) == len(await site.rows()) == LARGEST


@contextmanager
def locked(site: Site[Book]) -> Iterator[None]:
    """Hold the write lock as another process would."""
    with closing(connect(Path(site.url.removeprefix("sqlite:///")))) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def test_while_another_process_writes_the_usual_way_waits() -> None:
    async with beside() as (site, granter, _):
        with locked(site):
            assert granted(granter, site, 1) is None
            late = asyncio.create_task(site.held_by("192.0.2.2", "vm/late"))
            await asyncio.sleep(0.05)
            assert not late.done()

        row = await late
        assert await site.rows() == [row]


async def test_a_full_disk_grants_nothing_and_says_so() -> None:
    async with beside() as (site, granter, connection):
        assert granted(granter, site, 1)
        [pages] = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        numbers = [*range(2, 130)]

        with pytest.raises(StoreUnavailable, match="disk is full") as caught:
            granted(granter, site, *numbers)

        assert caught.value.outcome == "none"
        assert len(await site.rows()) == 1


def test_the_largest_batch_of_a_store_is_one_statement() -> None:
    assert SqliteStore.abilities.largest_batch <= LARGEST


async def test_what_cannot_be_written_is_known_to_be_undone() -> None:
    async with beside() as (site, granter, _):
        unspeakable = site.wish("192.0.2.1", "vm/1")._replace(slot=object())  # type: ignore[arg-type]

        with pytest.raises(StoreUnavailable) as caught:
            all_granted(granter, site, [unspeakable])

        assert caught.value.outcome == "none"
        assert granted(granter, site, 1) is not None


async def test_a_grant_that_comes_while_the_store_is_closed_is_refused(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "ledger.db")
    closing_it = asyncio.create_task(store.close())
    await asyncio.sleep(0)

    with pytest.raises(StoreUnavailable, match="closed"):
        await store.grant(1, 1, [])
    await closing_it
