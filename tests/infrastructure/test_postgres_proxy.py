"""The proxy between servers and PostgreSQL: it lets everything pass, and loses or parts exactly where it is told to."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import tenure
from tests.infrastructure.postgres import fresh_schema
from tests.infrastructure.postgres_proxy import PostgresProxy, postgres_proxy


@pytest.fixture
async def behind() -> AsyncIterator[tuple[PostgresProxy, tenure.AsyncLedger]]:
    """Give a proxy, and a ledger that is reached through it."""
    async with fresh_schema() as url:
        said = parse_qs(urlsplit(url).query)
        async with postgres_proxy(Path(said["host"][0]), 1) as proxy:
            place = f"postgresql://postgres@127.0.0.1:{proxy.ports[0]}/postgres?sslmode=disable"
            async with await tenure.open_async(f"{place}&schema={said['schema'][0]}") as ledger:
                await ledger.add_network("net")
                await ledger.add_subnet("net", "10.0.0.0/24")
                await ledger.add_pool("net", "10.0.0.10-10.0.0.20", policy="random")
                yield proxy, ledger


async def test_commits_pass_and_are_counted(behind: tuple[PostgresProxy, tenure.AsyncLedger]) -> None:
    proxy, ledger = behind
    before = (await proxy.counts())["commits"]

    await ledger.allocate("net", owner="vm/1")
    await ledger.holdings("net")

    assert (await proxy.counts())["commits"] == before + 1


async def test_the_answer_of_a_commit_that_names_an_owner_is_lost_behind_the_commit(
    behind: tuple[PostgresProxy, tenure.AsyncLedger],
) -> None:
    proxy, ledger = behind
    sprung = proxy.set(0, "lose", 0.0, "vm/2")

    await ledger.allocate("net", owner="vm/1")
    assert not sprung.done()
    held = await ledger.allocate("net", owner="vm/2")

    assert await sprung
    grants = [change async for change in ledger.changes(after=0) if change.verb == "grant" and change.owner == "vm/2"]
    assert [change.generation for change in grants] == [held.generation]


async def test_behind_a_commit_the_database_can_be_out_of_reach(
    behind: tuple[PostgresProxy, tenure.AsyncLedger],
) -> None:
    proxy, ledger = behind
    sprung = proxy.set(0, "part", 30.0, "vm/1")

    await ledger.allocate("net", owner="vm/1")
    await sprung

    with pytest.raises(tenure.StoreUnavailable):
        await ledger.allocate("net", owner="vm/2")
    proxy.calm()
    async with asyncio.timeout(10):
        assert await ledger.allocate("net", owner="vm/3")
