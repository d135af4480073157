"""Where a run measures: fresh places for the stores of the contract suite's list, all of them durable.

The suite's own PostgreSQL does not sync its files, so the benchmark has one of its own that does. Its checkpoints are
put off beyond a run's end: where one falls would otherwise decide what is measured.
"""

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import psutil
from tests.contract.providers import book_providers, provider_named
from tests.infrastructure.etcd import shared_etcd
from tests.infrastructure.postgres import PostgresServer

SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "256MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
}


class Places:
    """The places of one run; the servers that were started end with it."""

    def __init__(self) -> None:
        self.tiers = {provider.name: provider.tier for provider in book_providers()}
        self._server: PostgresServer | None = None

    async def __aenter__(self) -> "Places":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            await asyncio.to_thread(self._server.stop)
            shutil.rmtree(self._server.folder, ignore_errors=True)

    @asynccontextmanager
    async def fresh(self, store: str) -> AsyncIterator[str]:
        """Give the URL of an empty place, and clear it away afterwards."""
        if store == "postgres":
            async with self._fresh_schema() as url:
                yield url
        else:
            async with provider_named(store).place() as url:
                yield url

    @asynccontextmanager
    async def _fresh_schema(self) -> AsyncIterator[str]:
        server = await self.postgres()
        schema = f"b_{secrets.token_hex(6)}"
        try:
            yield f"{server.url}&schema={schema}"
        finally:
            connection = await asyncpg.connect(server.url)
            try:
                await connection.execute("SET client_min_messages = warning")
                await connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
            finally:
                await connection.close()

    async def postgres(self) -> PostgresServer:
        """Return the run's PostgreSQL; the first to ask starts it."""
        if self._server is None:
            folder = Path(tempfile.mkdtemp(prefix="tenure-bench-"))
            server = PostgresServer(folder, SETTINGS)
            try:
                await asyncio.to_thread(server.create)
                await asyncio.to_thread(server.start)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            self._server = server
        return self._server

    async def postgres_facts(self) -> dict[str, str]:
        """Tell what the measured PostgreSQL is, as it says itself."""
        connection = await asyncpg.connect((await self.postgres()).url)
        try:
            names = ["server_version", "synchronous_commit", *SETTINGS]
            return {name: await connection.fetchval("SELECT current_setting($1)", name) for name in names}
        finally:
            await connection.close()

    def cpu_s(self, store: str) -> float:
        """Return the CPU time of the store's own processes, where it has any that can be found."""
        if store == "postgres" and self._server is not None:
            first = psutil.Process(self._server.pid)
        elif store == "etcd":
            first = psutil.Process(shared_etcd().pid)
        else:
            return 0.0
        total = 0.0
        for process in (first, *first.children(recursive=True)):
            try:
                spent = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += spent.user + spent.system
        return total
