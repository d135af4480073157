"""Batches that overlap never wait for each other in a circle, because rows are inserted in the order of addresses."""

import asyncio
import random
from collections.abc import AsyncIterator
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

CONNECTIONS = 6
BATCHES = 40
ATTEMPTS = 10
BASE = parse_address("10.0.0.1")


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
    stuck = 0
    with unsorted_batch():
        for _ in range(ATTEMPTS):  # on a busy machine the batches may run one after the other
            stuck = stuck or await _stuck_batches(*place)

    assert stuck > 0


async def _stuck_batches(url: str, ground: Ground) -> int:
    """Grant overlapping batches on several connections; count those that PostgreSQL had to break off."""
    split = urlsplit(url)
    [schema] = parse_qs(split.query)["schema"]
    dsn = url.replace(f"&schema={schema}", "").replace(f"?schema={schema}", "")
    settings = {"search_path": schema, "lock_timeout": "2s"}
    connections = [await asyncpg.connect(dsn, server_settings=settings) for _ in range(CONNECTIONS)]
    try:
        stuck = await asyncio.gather(
            *(_grant_batches(connection, ground, number) for number, connection in enumerate(connections))
        )
    finally:
        for connection in connections:
            await connection.close()
    return sum(stuck)


async def _grant_batches(connection: "asyncpg.Connection[asyncpg.Record]", ground: Ground, number: int) -> int:
    chance = random.Random(number)
    stuck = 0
    for batch in range(BATCHES):
        # Every connection meets the others on the same addresses, each in an order of its own.
        places = [BASE + batch * 200 + offset for offset in chance.sample(range(200), 100)]
        wishes = [Wish(ground.networks[0], place, place, f"pod/{number}-{batch}-{place}") for place in places]
        try:
            await connection.fetch(SQL["grant_plain"], ground.space, ground.version, *plain_columns(wishes), None)
        except STUCK:
            stuck += 1
    return stuck
