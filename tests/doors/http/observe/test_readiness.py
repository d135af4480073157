"""Readiness: 503 while nothing can be written, for whatever reason, and 200 again when it can, without a word."""

import asyncio
import resource
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import asyncpg

from tenure.doors.http.observe.readiness import Readiness
from tenure.doors.http.server_state import Site
from tenure.doors.http.settings import Settings
from tenure.service.ledger.engine_ledger import server_of
from tenure.stores.sqlite.store import SqliteStore
from tests.doors.http.processes import Serving, serving, until
from tests.infrastructure.postgres import PostgresServer


def ready(server: Serving) -> int:
    return server.ask("GET", "/readyz", token=None).status


def test_no_room_for_another_page_is_told_until_there_is_room_again(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.lay_out()
        before = ready(server)
        pid, (_, most) = server.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (8192, most))  # the log has room there, the ledger has not
        until(lambda: ready(server) == 503)
        told = server.ask("GET", "/readyz", token=None).document
        seen = [server.ask("GET", path).status for path in ("/healthz", "/api/v1/networks")]
        lost = server.allocate("vm/lost").status
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        until(lambda: ready(server) == 200)
        held = server.allocate("vm/held").status
    lines = [line for line in server.lines() if "ready" in line and "/readyz" not in line]

    assert (before, told["code"], told["data"]["outcome"]) == (200, "store_unavailable", "none")
    assert (seen, lost, held) == ([200, 200], 503, 200)
    assert len(lines) == 2
    assert "disk I/O error" in lines[0]


def test_a_file_that_others_keep_locked_cannot_be_written(tmp_path: Path) -> None:
    with serving(tmp_path) as server, closing(sqlite3.connect(tmp_path / "tenure.db", isolation_level=None)) as other:
        before = ready(server)
        other.execute("BEGIN IMMEDIATE")
        until(lambda: ready(server) == 503)
        other.execute("ROLLBACK")
        until(lambda: ready(server) == 200)

    assert before == 200


async def test_a_file_that_became_read_only_is_told(tmp_path: Path) -> None:
    site = Site(Settings(store=f"sqlite:///{tmp_path / 'ledger.db'}"))
    await site.open()
    store = server_of(site.ledger).store
    assert isinstance(store, SqliteStore)
    seen = []
    for word in ("OFF", "ON", "OFF"):  # SQLite answers the same as where the medium can only be read
        await store._writer.do(partial(_set_query_only, store, word))
        seen.append(await Readiness(site.ledger, site.journal).is_ready())
    await site.close()

    assert seen == [True, False, True]


def _set_query_only(store: SqliteStore, word: str) -> None:
    assert store._connection is not None
    store._connection.execute(f"PRAGMA query_only = {word}")


async def test_a_database_that_became_read_only_is_told(tmp_path: Path, fragile_postgres: PostgresServer) -> None:
    with serving(tmp_path, store=f"{fragile_postgres.url}&schema=r") as server:
        before = await asyncio.to_thread(ready, server)
        await _set_read_only(fragile_postgres, "on")
        await asyncio.to_thread(until, lambda: ready(server) == 503)
        reading = await asyncio.to_thread(server.ask, "GET", "/api/v1/networks")
        await _set_read_only(fragile_postgres, "off")
        await asyncio.to_thread(until, lambda: ready(server) == 200)

    assert (before, reading.status) == (200, 200)


async def _set_read_only(postgres: PostgresServer, word: str) -> None:
    """Make the whole database read-only for everybody who is connected, as a failover would; or writable again."""
    own = {"default_transaction_read_only": "off"}
    connection = await asyncpg.connect(postgres.url, server_settings=own)
    try:
        await connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {word}")
        await connection.execute("SELECT pg_reload_conf()")
    finally:
        await connection.close()


async def test_a_crowd_that_asks_costs_one_write_a_second() -> None:
    site = Site(Settings(store="memory:"))
    await site.open()
    readiness = Readiness(site.ledger, site.journal)
    tries = 0

    async def counting() -> None:
        nonlocal tries
        tries += 1
        await asyncio.sleep(0.01)

    readiness._survey.try_write = counting  # type: ignore[method-assign]
    answers = await asyncio.gather(*(readiness.is_ready() for _ in range(100)))
    answers += [await readiness.is_ready() for _ in range(100)]
    await site.close()

    assert set(answers) == {True}
    assert tries == 1
