"""Where Neutron keeps its database while it is measured: SQLite, PostgreSQL and MariaDB, all of them durable."""

import asyncio
import importlib.util
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import psutil
from tests.infrastructure import mariadb

from bench.places import Places


def databases(tiers: Mapping[str, str]) -> list[str]:
    """List the databases that can be measured here."""
    if importlib.util.find_spec("neutron") is None:
        return []
    served = [name for name in ("sqlite", "postgres") if name in tiers]
    return served if mariadb.left_out() or mariadb.missing() else [*served, "mariadb"]


class NeutronPlaces:
    """Empty databases for Neutron and ledgers for its driver; the servers are those of the run, and MariaDB."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._mariadb: mariadb.MariadbServer | None = None

    async def __aenter__(self) -> "NeutronPlaces":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._mariadb is not None:
            await asyncio.to_thread(self._mariadb.stop)
            shutil.rmtree(self._mariadb.folder.parent, ignore_errors=True)

    @asynccontextmanager
    async def fresh(self, database: str) -> AsyncIterator[str]:
        """Give the URL, in SQLAlchemy's words, of an empty database."""
        name = f"b_{secrets.token_hex(6)}"
        if database == "sqlite":
            with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
                yield f"sqlite:///{folder}/neutron.db"
        elif database == "postgres":
            server = await self._places.postgres()
            await _execute(server.url, f"CREATE DATABASE {name}")
            try:
                yield f"postgresql+psycopg2://postgres@/{name}?host={server.folder}"
            finally:
                await _execute(server.url, f"DROP DATABASE {name} WITH (FORCE)")
        else:  # goes with its server
            served = await asyncio.to_thread(self._started_mariadb)
            with served.connect() as opened:
                opened.cursor().execute(f"CREATE DATABASE {name}")
            yield f"mysql+pymysql://root@localhost/{name}?unix_socket={served.socket}"

    @asynccontextmanager
    async def ledger(self) -> AsyncIterator[str]:
        """Give the URL of an empty ledger on PostgreSQL."""
        async with self._places.fresh("postgres") as url:
            yield url

    def _started_mariadb(self) -> mariadb.MariadbServer:
        if self._mariadb is None:
            folder = Path(tempfile.mkdtemp(prefix="tenure-bench-"))
            server = self._mariadb = mariadb.MariadbServer(folder / "mariadb")
            server.create()
            server.start()
            with server.connect() as opened:  # the tests' server does not wait for the disk; a cloud's does
                opened.cursor().execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
        return self._mariadb

    def cpu_s(self) -> float:
        """Return the CPU time of all servers so far."""
        spent = self._places.cpu_s("postgres")
        if self._mariadb is not None:
            own = psutil.Process(int((self._mariadb.folder / "pid").read_text("utf-8"))).cpu_times()
            spent += own.user + own.system
        return spent


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
