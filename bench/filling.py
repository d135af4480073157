"""Grounds for measuring: ledgers laid out, filled behind the engine's back, and raw tables beside them.

A filled ledger has the rows that so many random grants would have left, in the order of chance, and the counter of
generations stands behind them. Its log does not tell of them: nothing that is measured reads that far back.
"""

import ipaddress
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

import tenure
from bench.jobs import Plan
from tenure.kernel.addressing.addresses import key, parse_address
from tenure.kernel.holdings.holding_model import State
from tenure.stores.sql_files import STATE_NUMBER
from tenure.stores.sqlite.connection import connect
from tenure.wiring import open_store

RAW_COLUMNS = ("space", "network", "generation", "since_us", "state", "first", "last", "owner", "slot")
"""The columns that a plain grant writes."""

SEED = 20240229


def split_url(url: str) -> tuple[str, str]:
    """Split a PostgreSQL store's URL into what the driver takes and the schema."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    schema = options.pop("schema")
    return urlunsplit(parts._replace(query=urlencode(options))), schema


def sqlite_file(url: str) -> Path:
    """Return the file that a SQLite store's URL names."""
    return Path(url.removeprefix("sqlite:///"))


def first_position(pool: str) -> int:
    """Return the position at which a pool begins."""
    return parse_address(ipaddress.ip_network(pool).network_address)


def usable(pool: str) -> int:
    """Count a pool's addresses without the two ends, which subnets keep back."""
    return ipaddress.ip_network(pool).num_addresses - 2


async def lay_out(ledger: tenure.AsyncLedger, plan: Plan) -> None:
    """Add the plan's networks, each with one subnet and a pool over all of it."""
    for name in plan.networks:
        await ledger.add_network(name)
        await ledger.add_subnet(name, plan.pool)
        await ledger.add_pool(name, plan.pool, policy=plan.policy)


async def make_ground(store: str, url: str, plan: Plan, held: int) -> None:
    """Lay out a ledger, put a raw table beside it, and fill each network."""
    async with await tenure.open_async(url) as ledger:
        await lay_out(ledger, plan)
    await fill(store, url, plan, held)


async def fill(store: str, url: str, plan: Plan, held: int) -> None:
    """Put a raw table beside a ledger that is laid out, and fill each network of the plan."""
    if store == "postgres":
        await _finish_postgres(url, plan, held)
    elif store == "sqlite":
        await _finish_sqlite(url, plan, held)


def scattered(pool: str, held: int, seed: int) -> Iterator[int]:
    """Yield so many different positions of a pool, in the order of chance, the same in every run."""
    room = usable(pool)
    if held > room * 0.999:
        raise ValueError(f"{pool} cannot hold {held} and have room left")
    stride = max(1, room >> 62)  # a range longer than 2**63 has no length in Python
    start = first_position(pool) + 1
    for number in random.Random(seed).sample(range(room // stride), held):
        yield start + number * stride


async def _rows(url: str, plan: Plan, held: int) -> list[Iterator[tuple[Any, ...]]]:
    """Make the rows of each network."""
    store = await open_store(url)
    try:
        spaces = await store.locate(plan.networks)
        made = []
        for number, (name, space) in enumerate(sorted(spaces.items())):
            configuration = await store.configuration(space)
            assert configuration is not None
            network = configuration.network(name).id
            made.append(_network_rows(plan.pool, space, network, held, number))
        return made
    finally:
        await store.close()


def _network_rows(pool: str, space: int, network: int, held: int, number: int) -> Iterator[tuple[Any, ...]]:
    state, now = STATE_NUMBER[State.HELD], time.time_ns() // 1000
    for turn, place in enumerate(scattered(pool, held, SEED + number), number * held + 1):
        first = key(place)
        yield (space, network, turn, now, state, first, first, f"former/{network}.{turn}", "")


async def _finish_postgres(url: str, plan: Plan, held: int) -> None:
    dsn, schema = split_url(url)
    rows = await _rows(url, plan, held) if held else []
    connection = await asyncpg.connect(dsn, server_settings={"search_path": schema})
    try:
        await connection.execute("CREATE TABLE raw (LIKE holding INCLUDING ALL)")
        for records in rows:
            await connection.copy_records_to_table(
                "holding", records=records, columns=RAW_COLUMNS, schema_name=schema, timeout=600
            )
        if held:
            await connection.execute("SELECT setval('holding_generation', $1)", held * len(rows))
            # Otherwise the server would do this when it likes, which is while something is measured.
            await connection.execute("VACUUM ANALYZE holding")
    finally:
        await connection.close()


async def _finish_sqlite(url: str, plan: Plan, held: int) -> None:
    rows = await _rows(url, plan, held) if held else []
    connection = connect(sqlite_file(url))
    try:
        found = connection.execute("SELECT sql FROM sqlite_master WHERE tbl_name = 'holding' AND sql IS NOT NULL")
        for (statement,) in found.fetchall():
            connection.execute(statement.replace("holding", "raw"))
        connection.execute("BEGIN IMMEDIATE")
        marks = ", ".join("?" * len(RAW_COLUMNS))
        for records in rows:
            connection.executemany(f"INSERT INTO holding ({', '.join(RAW_COLUMNS)}) VALUES ({marks})", records)
        connection.execute("UPDATE ledger SET generation = ?", (held * len(rows),))
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


async def count_rows(store: str, url: str, table: str) -> int:
    """Count the rows that are there."""
    if store == "sqlite":
        opened = connect(sqlite_file(url))
        try:
            return int(opened.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        finally:
            opened.close()
    dsn, schema = split_url(url)
    connection = await asyncpg.connect(dsn, server_settings={"search_path": schema})
    try:
        return int(await connection.fetchval(f"SELECT count(*) FROM {table}"))
    finally:
        await connection.close()
