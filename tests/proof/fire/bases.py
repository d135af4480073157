"""The databases under fire: where servers find them, and what can be done to them from outside."""

import asyncio
import contextlib
import random
import secrets
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg

from tests.infrastructure.postgres import PostgresServer
from tests.infrastructure.postgres_proxy import PostgresProxy, postgres_proxy

AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, sqlite3.Error, asyncio.TimeoutError)
"""What a database that is just being mistreated answers with."""

ANSWERS_WITHIN_S = 30.0


class Base:
    """A ledger's database."""

    proxy: PostgresProxy | None = None

    def __init__(self, direct: str, stores: list[str]) -> None:
        self.direct = direct
        self.stores = stores
        """Where each server finds it."""

    async def newest(self) -> int:
        """Read the number of the log's newest entry."""
        raise NotImplementedError

    async def lock(self, network: str | None, seconds: float, locked: asyncio.Event | None = None) -> None:
        """Hold a lock from outside: of a network's space or, without one, of the whole log."""
        raise NotImplementedError

    async def terminate(self, chance: random.Random) -> None:
        """End some of the servers' sessions, if the database has such."""
        raise NotImplementedError

    async def restart(self, mode: str) -> None:
        """Stop the database and start it again, if it is a process."""
        raise NotImplementedError


class SqliteBase(Base):
    """A file."""

    def __init__(self, path: Path, servers: int) -> None:
        super().__init__(f"sqlite:///{path}", [f"sqlite:///{path}"] * servers)
        self._path = path

    async def newest(self) -> int:
        """Read the number of the log's newest entry."""
        return await asyncio.to_thread(self._newest)

    def _newest(self) -> int:
        with contextlib.closing(sqlite3.connect(self._path, timeout=1)) as connection:
            return int(connection.execute("SELECT coalesce(max(seq), 0) FROM change").fetchone()[0])

    async def lock(self, network: str | None, seconds: float, locked: asyncio.Event | None = None) -> None:
        """Hold the file's write lock."""
        connection = await asyncio.to_thread(self._locked)
        try:
            if locked is not None:
                locked.set()
            await asyncio.sleep(seconds)
        finally:
            connection.rollback()
            connection.close()

    def _locked(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=30, isolation_level=None, check_same_thread=False)
        connection.execute("BEGIN IMMEDIATE")
        return connection


class PostgresBase(Base):
    """A schema of a private PostgreSQL, which servers reach through a proxy."""

    def __init__(self, server: PostgresServer, proxy: PostgresProxy, schema: str) -> None:
        through = [f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable" for port in proxy.ports]
        super().__init__(f"{server.url}&schema={schema}", [f"{each}&schema={schema}" for each in through])
        self.proxy: PostgresProxy = proxy
        self._server = server
        self._schema = schema
        self._looking: Any = None

    async def newest(self) -> int:
        """Read the number of the log's newest entry."""
        if self._looking is None or self._looking.is_closed():
            self._looking = await self._connected()
        return int(await self._looking.fetchval(f"SELECT seq FROM {self._schema}.ledger"))

    async def _connected(self) -> Any:
        return await asyncpg.connect(self._server.url, timeout=ANSWERS_WITHIN_S, command_timeout=ANSWERS_WITHIN_S)

    async def lock(self, network: str | None, seconds: float, locked: asyncio.Event | None = None) -> None:
        """Lock the row of a network's space, or the counter of the log; another fault may end the lock early."""
        try:
            await self._hold_lock(network, seconds, locked)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            pass  # the database was restarted, or this very session was ended
        finally:
            if locked is not None:
                locked.set()

    async def _hold_lock(self, network: str | None, seconds: float, locked: asyncio.Event | None) -> None:
        connection = await self._connected()
        try:
            async with connection.transaction():
                if network is None:
                    await connection.execute(f"SELECT FROM {self._schema}.ledger FOR UPDATE")
                else:
                    await connection.execute(f"SELECT FROM {self._schema}.space WHERE name = $1 FOR UPDATE", network)
                if locked is not None:
                    locked.set()
                await asyncio.sleep(seconds)
        finally:
            connection.terminate()

    async def terminate(self, chance: random.Random) -> None:
        """End some of the servers' sessions."""
        connection = await self._connected()
        try:
            found = await connection.fetch(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            pids = sorted(record[0] for record in found)
            for pid in chance.sample(pids, min(len(pids), chance.randrange(1, 5))):
                await connection.execute("SELECT pg_terminate_backend($1)", pid)
        finally:
            connection.terminate()

    async def restart(self, mode: str) -> None:
        """Stop the postmaster and start it again."""
        await asyncio.to_thread(self._server.stop, mode)
        await asyncio.to_thread(self._server.start)

    async def close(self) -> None:
        """Let go of it."""
        if self._looking is not None:
            self._looking.terminate()


@asynccontextmanager
async def sqlite_base(folder: Path, servers: int) -> AsyncIterator[Base]:
    """Give an empty file."""
    yield SqliteBase(folder / "ledger.db", servers)


@asynccontextmanager
async def postgres_base(server: PostgresServer, servers: int) -> AsyncIterator[Base]:
    """Give an empty schema of a running server."""
    async with postgres_proxy(server.folder, servers) as proxy:
        base = PostgresBase(server, proxy, f"t_{secrets.token_hex(6)}")
        try:
            yield base
        finally:
            await base.close()
