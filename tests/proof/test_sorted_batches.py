"""Batches that overlap never wait for each other in a circle, because rows are inserted in the order of addresses."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.holdings.holding_model import Wish
from tenure.stores.postgres.driver_errors import STUCK
from tenure.stores.postgres.sql import SQL
from tenure.stores.postgres.store import PostgresStore
from tenure.stores.postgres.transaction import plain_columns
from tests.contract.providers import Ground, ledger_providers
from tests.proof.mutants import unsorted_batch

FIRST, MIDDLE, LAST = (parse_address(f"10.0.0.{number}") for number in (1, 2, 3))
ORDERS = ([FIRST, MIDDLE, LAST], [LAST, MIDDLE, FIRST])
"""Two batches of the same addresses, chosen in opposite orders."""


@pytest.fixture
async def place() -> AsyncIterator[tuple[str, Ground]]:
    [provider] = [provider for provider in ledger_providers() if provider.name == "postgres"]
    async with provider.place() as url:
        store = await provider.connect(url)
        assert isinstance(store, PostgresStore)
        ground, _ = await provider.prepare(store)
        await store.close()
        yield url, ground


async def test_overlapping_batches_never_wait_in_a_circle(place: tuple[str, Ground]) -> None:
    assert await _stuck_batches(*place) == 0


async def test_unsorted_batches_would(place: tuple[str, Ground]) -> None:
    with unsorted_batch():
        assert await _stuck_batches(*place) == 1


async def _stuck_batches(url: str, ground: Ground) -> int:
    """Grant two batches that overlap, both begun before either goes on; count those that PostgreSQL had to break off.

    A third transaction holds the address in the middle of both until both wait, so that they meet for certain.
    """
    split = urlsplit(url)
    [schema] = parse_qs(split.query)["schema"]
    dsn = url.replace(f"&schema={schema}", "").replace(f"?schema={schema}", "")
    settings = {"search_path": schema, "lock_timeout": "5s"}
    holder, *others = [await asyncpg.connect(dsn, server_settings=settings) for _ in range(3)]
    try:
        held = holder.transaction()
        await held.start()
        await _grant(holder, ground, "holder", [MIDDLE])
        batches = [
            asyncio.create_task(_grant(connection, ground, f"batch-{number}", places))
            for number, (connection, places) in enumerate(zip(others, ORDERS, strict=True))
        ]
        await _until_waiting(holder, others)
        await held.rollback()
        return sum(await asyncio.gather(*batches))
    finally:
        for connection in (holder, *others):
            await connection.close()


async def _grant(
    connection: "asyncpg.Connection[asyncpg.Record]", ground: Ground, owner: str, places: Sequence[int]
) -> bool:
    """Grant addresses in one statement; return whether it was broken off."""
    wishes = [Wish(ground.networks[0], place, place, f"{owner}-{place}") for place in places]
    try:
        await connection.fetch(SQL["grant_plain"], ground.space, ground.version, *plain_columns(wishes), None)
    except STUCK:
        return True
    return False


async def _until_waiting(
    watcher: "asyncpg.Connection[asyncpg.Record]", others: "Sequence[asyncpg.Connection[asyncpg.Record]]"
) -> None:
    """Wait until each of some connections waits for a lock."""
    pids = [each.get_server_pid() for each in others]
    query = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted AND pid = ANY($1)"
    async with asyncio.timeout(10):
        while await watcher.fetchval(query, pids) < len(pids):  # noqa: ASYNC110 - the server is asked
            await asyncio.sleep(0.01)
