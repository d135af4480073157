"""The schema is the sum of its migrations; old ledgers are brought up to date, new ones are refused."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import tenure
from tenure.kernel.addressing.addresses import key, parse_address
from tenure.stores.sql_files import load_migrations
from tests.infrastructure.postgres import fresh_schema

SQLITE, POSTGRES = "tenure.stores.sqlite", "tenure.stores.postgres"
HELD_AT = key(parse_address("192.0.2.10"))
DOCUMENT = (
    '{"uuid":"u","kind":"manual","mac_prefix":null,"tags":[],"subnets":[{"cidr":"192.0.2.0/24","uuid":"s","name":null,'
    '"gateway":null,"dns":[],"dhcp":false,"zones":[],"unit":32,"keep_back":[],"pools":[{"range":'
    '"192.0.2.10-192.0.2.20","name":null,"policy":"sticky","cooling_s":0,"retired":false,"labels":{},"description":""}],'
    '"reserved":[],"retired":false,"labels":{},"description":""}],"preallocations":[],"retired":false,"labels":{},'
    '"description":""}'
)


def _schema(package: str) -> str:
    return (files(package) / "schema.sql").read_text("utf-8")


def _sqlite_catalog(script: str) -> list[Any]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script)
        names = connection.execute("SELECT type, name, tbl_name FROM sqlite_schema ORDER BY type, name").fetchall()
        tables = [name for kind, name, _ in names if kind == "table"]
        indexes = [name for kind, name, _ in names if kind == "index"]
        return [
            names,
            [connection.execute(f"PRAGMA table_xinfo({name})").fetchall() for name in tables],
            [sorted(connection.execute(f"PRAGMA foreign_key_list({name})").fetchall()) for name in tables],
            [connection.execute(f"PRAGMA index_xinfo({name})").fetchall() for name in indexes],
            connection.execute("SELECT name, wr, strict FROM pragma_table_list ORDER BY name").fetchall(),
            connection.execute("SELECT * FROM ledger").fetchall(),
        ]


def test_the_sqlite_schema_is_the_sum_of_its_migrations() -> None:
    assert _sqlite_catalog(_schema(SQLITE)) == _sqlite_catalog("".join(load_migrations(SQLITE)))


CATALOG = {
    "relations": "SELECT relname, relkind, reloptions FROM pg_class WHERE relnamespace = $1::regnamespace ORDER BY 1",
    "columns": """
        SELECT relname, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity::text, collname,
               pg_get_expr(adbin, adrelid)
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        LEFT JOIN pg_collation ON pg_collation.oid = attcollation
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE relnamespace = $1::regnamespace AND attnum > 0 AND relkind = 'r' AND NOT attisdropped ORDER BY 1, 2""",
    "indexes": "SELECT indexname, replace(indexdef, $1, '') FROM pg_indexes WHERE schemaname = $1 ORDER BY 1",
    "constraints": """
        SELECT conname, replace(pg_get_constraintdef(oid), $1, '') FROM pg_constraint
        WHERE connamespace = $1::regnamespace ORDER BY 1""",
    "sequences": """
        SELECT sequencename, increment_by, cache_size, cycle FROM pg_sequences WHERE schemaname = $1 ORDER BY 1""",
}


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[tuple[Any, str]]:
    """Connect by hand to the schema of a URL, which need not exist yet."""
    server, _, schema = url.partition("&schema=")
    connection = await asyncpg.connect(server)
    try:
        await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"; SET search_path = "{schema}"')
        yield connection, schema
    finally:
        await connection.close()


async def _postgres_catalog(script: str) -> dict[str, Any]:
    async with fresh_schema() as url, _connected(url) as (connection, schema):
        await connection.execute(script)
        found = {name: [tuple(row) for row in await connection.fetch(sql, schema)] for name, sql in CATALOG.items()}
        found["ledger"] = [tuple(row) for row in await connection.fetch("SELECT * FROM ledger")]
        return found


async def test_the_postgres_schema_is_the_sum_of_its_migrations() -> None:
    expected = await _postgres_catalog("".join(load_migrations(POSTGRES)))

    assert await _postgres_catalog(_schema(POSTGRES)) == expected
    assert len(expected["columns"]) > 30


async def _old_sqlite(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(load_migrations(SQLITE)[0])
        connection.execute("INSERT INTO space (id, name) VALUES (7, 'net')")
        connection.execute("INSERT INTO network (id, name, space, document) VALUES (3, 'net', 7, ?)", (DOCUMENT,))
        connection.execute(
            "INSERT INTO holding (space, network, first, last, owner, slot, state, generation, since_us)"
            " VALUES (7, 3, ?, ?, 'vm/a', '', 1, 1, 1)",
            (HELD_AT, HELD_AT),
        )
        connection.execute("UPDATE ledger SET seq = 9, oldest = 9, generation = 1, next_network = 4")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    return f"sqlite:///{path}"


async def _old_postgres(url: str) -> str:
    async with _connected(url) as (connection, _):
        await connection.execute(load_migrations(POSTGRES)[0])
        await connection.execute("INSERT INTO space (id, name) OVERRIDING SYSTEM VALUE VALUES (7, 'net')")
        await connection.execute("INSERT INTO network (id, name, space, document) VALUES (3, 'net', 7, $1)", DOCUMENT)
        await connection.execute(
            "INSERT INTO holding (space, network, first, last, owner, slot, state, generation, since_us)"
            " VALUES (7, 3, $1, $1, 'vm/a', '', 1, 1, 1)",
            HELD_AT,
        )
        await connection.execute("SELECT setval('holding_generation', 100), setval('network_number', 100)")
        await connection.execute("UPDATE ledger SET schema_version = 1, seq = 9, oldest = 9")
    return url


@pytest.fixture(params=["sqlite", "postgres"])
async def old_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """Give a ledger as the first version of the schema left it."""
    if request.param == "sqlite":
        yield await _old_sqlite(tmp_path / "old.db")
        return
    async with fresh_schema() as url:
        yield await _old_postgres(url)


async def test_a_ledger_of_version_one_is_brought_up_to_date_and_keeps_its_holdings(old_ledger: str) -> None:
    async with await tenure.open_async(old_ledger) as ledger:
        held = await ledger.holding("net", "192.0.2.10")
        await ledger.release("net", "192.0.2.10", owner="vm/a")
        back = await ledger.allocate("net", owner="vm/a", policy="sticky")
        read = await ledger.network("net")
        await ledger.apply(
            [
                tenure.Connect(network="net", group="rack1", link="br0"),
                tenure.WritePaper(kind="instance", name="web-0", document={"n": 1}),
            ]
        )
        breaches = await ledger.verify()
    async with await tenure.open_async(old_ledger) as again:
        kept = await again.holdings("net")
        connected, papers = await again.network("net"), await again.papers("instance")

    assert (held.owner, held.network, held.prefix) == ("vm/a", "net", 24)
    assert back.address == "192.0.2.10"
    assert kept == [back]
    assert (read.serial, read.connections, read.created_us) == (1, (), 0)
    assert (connected.serial, connected.connections) == (2, (tenure.Connection("rack1", "bridged", "br0"),))
    assert papers == [tenure.Paper("instance", "web-0", 1, {"n": 1})]
    assert breaches == []


@pytest.fixture(params=["sqlite", "postgres"])
async def future_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """Give a ledger that a newer Tenure has written."""
    if request.param == "sqlite":
        with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
            connection.executescript("".join(load_migrations(SQLITE)))
            connection.execute("PRAGMA user_version = 99")
        yield f"sqlite:///{tmp_path / 'new.db'}"
        return
    async with fresh_schema() as url:
        async with _connected(url) as (connection, _):
            await connection.execute("".join(load_migrations(POSTGRES)))
            await connection.execute("UPDATE ledger SET schema_version = 99")
        yield url


async def test_a_ledger_of_a_newer_tenure_is_refused_with_a_clear_word(future_ledger: str) -> None:
    with pytest.raises(tenure.StoreUnavailable, match=r"schema version 99.*install a newer Tenure") as told:
        await tenure.open_async(future_ledger)

    assert told.value.outcome == "none"


def _strangers() -> Iterator[tuple[str, bytes]]:
    yield "text", b"this is no database at all, but long enough to be looked at" * 100
    yield "short text", b"x"
    yield "a torn header", b"SQLite form"


@pytest.mark.parametrize("content", [content for _, content in _strangers()], ids=[name for name, _ in _strangers()])
async def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)

    with pytest.raises(tenure.StoreUnavailable, match="not a ledger") as told:
        await tenure.open_async(f"sqlite:///{path}")

    assert told.value.outcome == "none"
    assert path.read_bytes() == content


@pytest.mark.parametrize("version", [0, 1, 2, 99])
@pytest.mark.parametrize("table", ["holding", "notes"])
async def test_another_programs_sqlite_file_is_refused_and_left_alone(tmp_path: Path, table: str, version: int) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"CREATE TABLE {table} (mine TEXT); PRAGMA user_version = {version};")
        connection.execute(f"INSERT INTO {table} VALUES ('precious')")
        connection.commit()
    before = path.read_bytes()

    with pytest.raises(tenure.StoreUnavailable, match="not a ledger") as told:
        await tenure.open_async(f"sqlite:///{path}")

    assert told.value.outcome == "none"
    assert path.read_bytes() == before


async def test_a_folder_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(tenure.StoreUnavailable, match="cannot open") as told:
        await tenure.open_async(f"sqlite:///{tmp_path}/nowhere/ledger.db")

    assert told.value.outcome == "none"


async def test_servers_that_start_together_build_one_schema() -> None:
    async with fresh_schema() as url:
        ledgers = await asyncio.gather(*(tenure.open_async(url) for _ in range(4)))
        await ledgers[0].add_network("net")

        names = [[network.name for network in await ledger.networks()] for ledger in ledgers]
        for ledger in ledgers:
            await ledger.close()

    assert names == [["net"]] * 4
