"""A ledger lets go of its connections also when its closing is cut short."""

import asyncio
from typing import Any

import asyncpg
import pytest

import tenure
from tenure.stores.postgres import store
from tests.infrastructure.postgres import fresh_database
from tests.stores.postgres.test_grants_release import WAITING

OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


async def until(connection: Any, query: str, count: int) -> None:
    """Wait until a query counts so many."""
    async with asyncio.timeout(30):
        while await connection.fetchval(query) != count:  # noqa: ASYNC110 - the server is asked
            await asyncio.sleep(0.02)


async def test_a_ledger_that_is_busy_leaves_no_connection_when_nobody_waits_for_its_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "CLOSES_S", 0.2)
    with fresh_database() as other_words:
        url = other_words.replace("+psycopg2", "")
        ledger = await tenure.open_async(url)
        await ledger.add_network("n")
        await ledger.add_subnet("n", "192.0.2.0/24")
        await ledger.add_pool("n", "192.0.2.10-192.0.2.99")
        await ledger.allocate("n", owner="vm/a")
        rival = await asyncpg.connect(url, server_settings={"search_path": "tenure"})
        try:
            async with rival.transaction():
                await rival.execute("UPDATE space SET frees = frees + 1")
                held_up = asyncio.create_task(ledger.allocate("n", owner="vm/b"))
                await until(rival, WAITING, 1)
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await ledger.close()
            await until(rival, OTHERS, 0)
            with pytest.raises(tenure.StoreUnavailable):
                await held_up
        finally:
            await rival.close()
