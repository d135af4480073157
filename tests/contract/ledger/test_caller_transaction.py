"""The third driver: the ledger inside a transaction that its caller has open."""

import contextlib
import sqlite3
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

import tenure
from tests.contract.providers import ledger_providers

pytestmark = pytest.mark.every_store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(file: Path) -> Iterator[tenure.Ledger]:
    with tenure.open(f"sqlite:///{file}") as opened:
        opened.add_network("net")
        opened.add_subnet("net", "192.0.2.0/24")
        opened.add_pool("net", "192.0.2.10-192.0.2.20")
        yield opened
        assert opened.verify() == []


@pytest.fixture
def mine(file: Path, ledger: tenure.Ledger) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE machine (name TEXT)")
        yield connection


def test_what_the_caller_commits_is_held(ledger: tenure.Ledger, mine: sqlite3.Connection) -> None:
    mine.execute("BEGIN")
    mine.execute("INSERT INTO machine VALUES ('web-0')")
    given = ledger.inside(mine).allocate("net", owner="machine/web-0")
    mine.execute("COMMIT")

    assert ledger.holding("net", given.address).owner == "machine/web-0"


def test_what_is_held_is_no_answer_to_something_else(ledger: tenure.Ledger, mine: sqlite3.Connection) -> None:
    ledger.add_pool("net", "192.0.2.30-192.0.2.39", name="other")
    given = ledger.allocate("net", owner="machine/web-0")
    mine.execute("BEGIN")
    with pytest.raises(tenure.AlreadyExists, match=f"{given.address}.*'other'"):
        ledger.inside(mine).allocate("net", owner="machine/web-0", pool="other")
    again = ledger.inside(mine).allocate("net", owner="machine/web-0")
    mine.execute("COMMIT")

    assert again == given


def test_what_the_caller_rolls_back_never_was(ledger: tenure.Ledger, mine: sqlite3.Connection) -> None:
    before = ledger.last_change()
    mine.execute("BEGIN")
    inside = ledger.inside(mine)
    inside.allocate("net", owner="machine/web-0")
    ledger.inside(mine).allocate("net", owner="machine/web-1")
    mine.execute("ROLLBACK")

    assert ledger.last_change() == before
    assert ledger.allocate("net", owner="machine/web-2").address == "192.0.2.10"
    mine.execute("BEGIN")
    assert ledger.inside(mine).allocate("net", owner="machine/web-3").address == "192.0.2.11"
    mine.execute("COMMIT")


def test_networks_and_subnets_that_a_caller_adds_have_a_uuid(ledger: tenure.Ledger, mine: sqlite3.Connection) -> None:
    mine.execute("BEGIN")
    ledger.inside(mine).apply(
        [tenure.AddNetwork(network="mine"), tenure.AddSubnet(network="mine", cidr="198.51.100.0/24")]
    )
    mine.execute("COMMIT")

    added = ledger.network("mine")
    assert len({uuid.UUID(added.uuid), uuid.UUID(added.subnets[0].uuid)}) == 2


def test_a_call_that_fails_is_undone_alone(ledger: tenure.Ledger, mine: sqlite3.Connection) -> None:
    mine.execute("BEGIN")
    inside = ledger.inside(mine)
    inside.allocate("net", owner="machine/web-0")
    with pytest.raises(tenure.PoolExhausted):
        inside.apply([tenure.Allocate(network="net", owner=f"machine/{number}") for number in range(20)])
    mine.execute("COMMIT")

    assert [holding.owner for holding in ledger.holdings("net")] == ["machine/web-0"]


def test_a_release_inside_frees_only_at_the_commit(ledger: tenure.Ledger, mine: sqlite3.Connection) -> None:
    given = ledger.allocate("net", owner="machine/web-0")
    mine.execute("BEGIN")
    ledger.inside(mine).release("net", given.address, owner="machine/web-0")
    still = ledger.holdings("net")
    mine.execute("COMMIT")

    assert [holding.owner for holding in still] == ["machine/web-0"]
    assert ledger.holdings("net") == []


def test_without_an_open_transaction_it_is_refused(ledger: tenure.Ledger, mine: sqlite3.Connection) -> None:
    with pytest.raises(tenure.Invalid) as refused:
        ledger.inside(mine)

    assert refused.value.field == "connection"


def test_papers_inside_are_the_callers_to_commit(ledger: tenure.Ledger, mine: sqlite3.Connection) -> None:
    write = tenure.WritePaper(kind="instance", name="web-0", document={"n": 1})
    for end in ("ROLLBACK", "COMMIT"):
        mine.execute("BEGIN")
        inside = ledger.inside(mine)
        inside.apply([write, tenure.Connect(network="net", group="rack1")])
        with pytest.raises(tenure.Conflict):
            inside.apply([tenure.Expect(network="net", serial=1), write])
        inside.apply([tenure.ExpectPaper(kind="instance", name="web-0", revision=1)])
        mine.execute(end)

    assert [paper.revision for paper in ledger.papers("instance")] == [1]
    assert [each.group for each in ledger.network("net").connections] == ["rack1"]


@pytest.fixture(
    params=[provider for provider in ledger_providers() if provider.name == "postgres"],
    ids=lambda provider: provider.name,
)
async def postgres(
    request: pytest.FixtureRequest,
) -> AsyncIterator[tuple[tenure.AsyncLedger, "asyncpg.Connection[asyncpg.Record]"]]:
    async with request.param.place() as url:
        [schema] = parse_qs(urlsplit(url).query)["schema"]
        mine = await asyncpg.connect(url.replace(f"&schema={schema}", ""))
        async with await tenure.open_async(url) as ledger:
            await ledger.add_network("net")
            await ledger.add_subnet("net", "192.0.2.0/24")
            await ledger.add_pool("net", "192.0.2.10-192.0.2.20")
            yield ledger, mine
            await mine.close()
            assert await ledger.verify() == []


async def test_inside_postgres_commit_and_rollback_are_the_callers(
    postgres: tuple[tenure.AsyncLedger, "asyncpg.Connection[asyncpg.Record]"],
) -> None:
    ledger, mine = postgres
    path = await mine.fetchval("SHOW search_path")
    for end in ("ROLLBACK", "COMMIT"):
        await mine.execute("BEGIN")
        await ledger.inside(mine).allocate("net", owner="machine/web-0")
        with pytest.raises(tenure.AddressInUse):
            await ledger.inside(mine).allocate("net", owner="machine/web-1", address="192.0.2.10")
        await mine.execute(end)

    assert [holding.address for holding in await ledger.holdings("net")] == ["192.0.2.10"]
    assert (await ledger.allocate("net", owner="machine/web-2")).address == "192.0.2.11"
    assert await mine.fetchval("SHOW search_path") == path


async def test_papers_inside_postgres_are_the_callers_to_commit(
    postgres: tuple[tenure.AsyncLedger, "asyncpg.Connection[asyncpg.Record]"],
) -> None:
    ledger, mine = postgres
    write = tenure.WritePaper(kind="instance", name="web-0", document={"n": 1})
    for end in ("ROLLBACK", "COMMIT"):
        await mine.execute("BEGIN")
        await ledger.inside(mine).apply([write, tenure.Allocate(network="net", owner="machine/web-0")])
        with pytest.raises(tenure.AlreadyExists):
            await ledger.inside(mine).apply([tenure.Allocate(network="net", owner="machine/web-1"), write])
        await mine.execute(end)

    assert [paper.revision for paper in await ledger.papers("instance")] == [1]
    assert [holding.owner for holding in await ledger.holdings("net")] == ["machine/web-0"]
