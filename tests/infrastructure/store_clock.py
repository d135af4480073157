"""A store's clock that stands still until a test moves it, forward or back: on memory, SQLite and PostgreSQL.

PostgreSQL's own clock cannot be moved. There the sessions of the ledger find another ``clock_timestamp`` before the
database's own, which reads the time from a table.
"""

import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import asyncpg

import tenure
from tenure.ports import LedgerStore
from tenure.service.engine.engine import Engine
from tenure.service.ledger.engine_ledger import ledger_on
from tenure.stores.memory.store import MemoryStore
from tenure.stores.postgres import store as postgres_store
from tenure.stores.sqlite import transaction as sqlite_transaction
from tests.contract.providers import Provider

SECOND_US = 1_000_000

MAKE = """
    CREATE TABLE moved_clock (now_us bigint NOT NULL);
    INSERT INTO moved_clock VALUES (0);
    CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
        $$SELECT timestamptz 'epoch' + now_us * interval '1 microsecond' FROM moved_clock$$;
"""
DROP = "DROP FUNCTION clock_timestamp(); DROP TABLE moved_clock"


class StoreClock:
    """What the time is by the store."""

    def __init__(self) -> None:
        self.now_us = 1_000_000 * SECOND_US
        self._session: Any = None

    def __call__(self) -> int:
        return self.now_us

    async def advance(self, seconds: float) -> None:
        """Move it; a negative number sets it back."""
        self.now_us += round(seconds * SECOND_US)
        await self._write()

    @asynccontextmanager
    async def kept_in(self, session: Any) -> AsyncIterator[None]:
        """Keep the time in a table as well, where a database reads it."""
        await session.execute(MAKE)
        self._session = session
        await self._write()
        try:
            yield
        finally:
            self._session = None
            await session.execute(DROP)

    async def _write(self) -> None:
        if self._session is not None:
            await self._session.execute("UPDATE moved_clock SET now_us = $1", self.now_us)


@asynccontextmanager
async def clocked_ledger(provider: Provider[LedgerStore]) -> AsyncIterator[tuple[tenure.AsyncLedger, StoreClock]]:
    """Give a fresh, empty ledger on a kind of store, and the store's clock."""
    clock = StoreClock()
    async with provider.place() as url, _under(provider.name, url, clock):
        store = MemoryStore(clock) if provider.name == "memory" else await provider.connect(url)
        async with ledger_on(Engine(store, name="clocked", chance=random.Random(1))) as ledger:
            yield ledger, clock


def _under(name: str, url: str, clock: StoreClock) -> AbstractAsyncContextManager[None]:
    return {"memory": _nothing, "sqlite": _sqlite, "postgres": _postgres}[name](url, clock)


@asynccontextmanager
async def _nothing(url: str, clock: StoreClock) -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def _sqlite(url: str, clock: StoreClock) -> AsyncIterator[None]:
    moved = SimpleNamespace(time_ns=lambda: clock.now_us * 1000)
    with mock.patch.object(sqlite_transaction, "time", moved):
        yield


@asynccontextmanager
async def _postgres(url: str, clock: StoreClock) -> AsyncIterator[None]:
    server, _, schema = url.rpartition("&schema=")
    path, settings = {"search_path": f"{schema}, pg_catalog"}, postgres_store._settings
    session = await asyncpg.connect(server, server_settings=path)
    try:
        async with clock.kept_in(session):
            with mock.patch.object(postgres_store, "_settings", lambda *given: settings(*given) | path):
                yield
    finally:
        await session.close()
