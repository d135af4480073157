"""What every release wrote, this code opens: the same holdings, the same plan, the same log."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

import tenure
from tenure.service.ledger.engine_ledger import server_of
from tests.infrastructure.postgres import fresh_schema
from tests.migrations.dumping import DUMPS, SCHEMA

RELEASED = sorted(DUMPS.glob("*.sql"))


@pytest.fixture(params=RELEASED, ids=lambda path: path.stem)
async def released(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """Give the URL of a ledger as a release left it."""
    dump: str = request.param.read_text("utf-8")
    if request.param.stem.endswith("-sqlite"):
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
            connection.executescript(dump)
        yield f"sqlite:///{tmp_path}/ledger.db"
        return
    async with fresh_schema() as url:
        server, _, schema = url.partition("&schema=")
        connection = await asyncpg.connect(server)
        await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        await connection.execute(dump.replace(SCHEMA, schema))
        await connection.close()
        yield url


def test_every_release_has_left_a_ledger_of_each_store() -> None:
    assert {path.stem.rpartition("-")[2] for path in RELEASED} == {"sqlite", "postgres"}


async def test_a_released_ledger_opens_sound_with_all_that_it_held(released: str) -> None:
    async with await tenure.open_async(released) as ledger:
        store = server_of(ledger).store  # to readers, what is overdue by now is free
        pages = [page for space, _ in await store.spaces() async for page in store.held(space)]
        states = {row.owner: str(row.state) for page in pages for row in page}
        network = await ledger.network("net")
        waiting = await ledger.waiting("net")
        grants = [change async for change in ledger.changes() if change.verb == "grant"]

        assert await ledger.verify() == []
        assert states["vm/kept"] == "held"
        assert (states["vm/pending"], states["vm/cooled"], states["vm/draining"]) == ("pending", "cooling", "draining")
        assert (len(network.subnets), len(network.preallocations), len(network.connections)) == (2, 1, 1)
        assert (await ledger.paper("instance", "vm")).document == {"nics": []}
        assert [str(claim.owner) for claim in waiting] in (["vm/waiting"], [])  # its patience may be over by now
        assert {change.actor for change in grants} == {"token/ops"}


async def test_a_released_ledger_goes_on(released: str) -> None:
    async with await tenure.open_async(released) as ledger:
        before = await ledger.last_change()
        again = await ledger.allocate("net", owner="vm/kept", pool="big")
        new = await ledger.allocate("net", owner="vm/new", pool="blocks")

        assert (again.labels, again.carrier) == ({"a": "b"}, "host-1")
        assert new.unit == 64
        assert [change.verb async for change in ledger.changes(after=before)].count("grant") == 1
        assert await ledger.verify() == []


async def test_the_changes_of_a_released_ledger_can_be_archived(released: str) -> None:
    async with await tenure.open_async(released) as ledger:
        [cooled] = [change async for change in ledger.changes() if change.verb == "cool"]
        assert cooled.address is not None
        before, last = await ledger.history(cooled.address), await ledger.last_change()

        assert await ledger.archive_changes(0) == last
        assert [str(tenure.owner) for tenure in before] == ["vm/cooled"]
        assert await ledger.history(cooled.address) == before
        assert await ledger.verify() == []
