"""SQL is source code: every statement has a name, a cost, and a plan that keeps to it.

A plan is judged by the rows it touches, not by the names of its nodes: a bitmap scan of a whole space is no "Seq Scan"
and yet costs what one does. Each statement is tried on tables with statistics, on young ones without,
and on those that were counted while they were empty.
"""

import asyncio
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.resources import files
from typing import Any

import asyncpg
import pytest

from tenure.kernel.addressing.addresses import key, parse_address
from tenure.stores.sql_files import load_migrations, load_statements
from tenure.stores.sqlite.grants import DEFINITIONS
from tests.infrastructure.postgres import fresh_schema

HOLDINGS = 100_000
SOME = 10
"""How many rows each statement is asked about."""

MOST_ROWS = 12 * SOME
"""How many rows of the tables that grow a statement may touch for that."""

PACKAGES = ("tenure.stores.sqlite", "tenure.stores.postgres")

BASE = parse_address("10.0.0.0")
HELD = [key(BASE + 2 * (5000 + n)) for n in range(SOME)]
FREE = [key(BASE + 2 * (5000 + n) + 1) for n in range(SOME)]
OWNERS = [f"vm/{5000 + n}" for n in range(SOME)]
NEW = [f"vm/new-{n}" for n in range(SOME)]
ONES, NOTHING, EMPTY = [1] * SOME, [None] * SOME, [""] * SOME
GENERATIONS = [5001 + n for n in range(SOME)]
WISH = (ONES, FREE, FREE, NEW, EMPTY, ONES, NOTHING, NOTHING, NOTHING)
PENDING_WISH = (*WISH[:5], [0] * SOME, [60_000_000] * SOME, NOTHING, NOTHING)
TAKEN_WISH = (ONES, HELD, HELD, NEW, EMPTY, ONES, NOTHING, NOTHING, NOTHING)
KEYS = [f"key-{5000 + n}" for n in range(SOME)]
NEW_KEYS = [f"new-{n}" for n in range(SOME)]
BODIES = [b"body"] * SOME
NAMES, KINDS, TEXTS = [f"vm-{5000 + n}" for n in range(SOME)], ["instance"] * SOME, ["{}"] * SOME
ASKERS = ['["token/x", "r"]'] * SOME
ARCHIVED_AT, MARKS = 50, [4990 + n for n in range(SOME)]
"""The last number of a page of the archive, and marks of places of which each is told in one page."""

UNKEYED = (None, None, None)
"""Nothing told, and no idempotency keys."""

ENTRY = (["note"] * SOME, ONES, ONES, HELD, HELD, OWNERS, EMPTY, ONES, NOTHING, NOTHING)

PARTS = list(range(SOME))
DEADLINES = [(1 << 60) + n if n % 2 == 0 else None for n in GENERATIONS]
REWRITES = (
    PARTS, ONES, HELD, GENERATIONS, ONES, DEADLINES, NOTHING,
    ONES, NOTHING, NOTHING, ["confirm"] * SOME, NOTHING, NOTHING,
)  # fmt: skip
"""Rows as they are, each in a group of its own, that are to lose their deadlines."""

CASES: dict[str, list[tuple[Any, ...]]] = {
    "try_log": [(-1,)],
    "grant": [
        (1, 1, *WISH, *UNKEYED),
        (1, 1, *TAKEN_WISH, *UNKEYED),
        (1, 2, *WISH, *UNKEYED),
        (1, 1, *PENDING_WISH, ["{}"] * SOME, NEW_KEYS, BODIES),
        (1, 1, *WISH, None, KEYS, BODIES),
    ],
    "grant_plain": [
        (1, 1, *WISH[:5], TEXTS),
        (1, 1, *TAKEN_WISH[:5], None),
        (1, 1, ONES, FREE, FREE, OWNERS, EMPTY, None),
    ],
    "grant_unless_freed": [(1, 1, 0, *WISH, *UNKEYED), (1, 1, 0, *PENDING_WISH, None, NEW_KEYS, BODIES)],
    "insert_holdings": [(1, *WISH), (1, *TAKEN_WISH)],
    "release": [
        (1, ONES, HELD, OWNERS, GENERATIONS, NOTHING, [True] * SOME, 1, ASKERS),
        (1, ONES, HELD, NEW, NOTHING, NOTHING, [False] * SOME, None, NOTHING),
    ],
    "release_to_cool": [
        (1, ONES, HELD, OWNERS, GENERATIONS, NOTHING, [True] * SOME, 1, ASKERS, [60_000_000] * SOME),
        (1, ONES, HELD, OWNERS, NOTHING, NOTHING, [False] * SOME, None, NOTHING, [0] * SOME),
        (1, ONES, HELD, NEW, NOTHING, NOTHING, [False] * SOME, None, NOTHING, [60_000_000] * SOME),
    ],
    "rewrite_unchanged": [
        (1, 1, *REWRITES),
        (1, 2, *REWRITES),
        (1, 1, PARTS, ONES, FREE, *REWRITES[3:]),
        (1, 1, ONES, [SOME] * SOME, *REWRITES[2:]),
    ],
    "rows_at": [(1, HELD), (1, FREE)],
    "lock_rows_at": [(1, HELD)],
    "rows_for": [(ONES, OWNERS, EMPTY), (ONES, NEW, EMPTY)],
    "rows_near": [(1, HELD), (1, FREE)],
    "rows_of": [(OWNERS,), (NEW,)],
    "rows_from": [(1, HELD[0], HELD[-1], SOME), (1, FREE[0], key(BASE + (1 << 24)), SOME)],
    "rows_from_of_network": [(1, HELD[0], HELD[-1], SOME, 1), (1, FREE[0], FREE[-1], SOME, 1)],
    "rows_after": [(1, HELD[0], SOME)],
    "spans": [(1, HELD[0], HELD[-1]), (1, FREE[0], FREE[-1])],
    "delete_holdings": [(1, HELD)],
    "rewrite_holding": [(1, HELD[0], "vm/z", "", 1, 1, None, None, None, 7)],
    "changes": [(HOLDINGS - SOME, 100), (500, SOME)],
    "changes_of_space": [(HOLDINGS - SOME, 100, 1)],
    "changes_at": [(HELD, 0, SOME), (FREE, 0, SOME), (HELD, HOLDINGS - 5, SOME)],
    "effects": [(1, HOLDINGS - SOME, 50_000), (1, 5, 50_000)],
    "log": [ENTRY],
    "overdue": [(1, SOME), (2, SOME), (3, SOME)],
    "replies": [(KEYS,), (NEW_KEYS,)],
    "lock_papers": [("instance", NAMES), ("instance", NEW)],
    "share_papers": [("instance", NAMES), ("instance", NEW)],
    "papers": [("instance", "vm-5", "vm-5\U0010ffff", "", SOME), ("instance", "", "\U0010ffff", NAMES[0], SOME)],
    "insert_papers": [(KINDS, NEW, ONES, TEXTS), (KINDS, NAMES, ONES, TEXTS)],
    "put_papers": [(KINDS, NAMES, ONES, TEXTS), (KINDS, NEW, ONES, TEXTS)],
    "delete_papers": [("instance", NAMES), ("instance", NEW)],
    "insert_archive_page": [(HOLDINGS + 1, HOLDINGS + 1000, 1, 2, b"body", ONES)],
    "archive_page_after": [(0,), (HOLDINGS - 5,), (HOLDINGS,)],
    "archive_begins": [()],
    "archive_pages_at": [(MARKS, 0), (MARKS, HOLDINGS - 5), ([-7], 0)],
    "delete_archive_page": [(ARCHIVED_AT,)],
    "keep_replies": [(NEW_KEYS, BODIES, ONES, ONES, ONES, HELD, HELD, GENERATIONS, NOTHING, NOTHING)],
}
BULK = {"trim_changes", "forget_replies", "forget_oldest_replies", "delete_archive_pages", "size"}
"""Statements that drop or count a large part of a table: which way is best is the planner's business."""

THOROUGH = {"count_replies", "delete_archive_places", "delete_places_of_page"}
"""Statements that go through a whole table, and say so: for a figure now and then, and for a trim of the archive."""

GROWING = ("holding", "change", "reply", "paper", "archive")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_statement_has_a_name_and_a_cost(package: str) -> None:
    text = (files(package) / "queries.sql").read_text("utf-8")

    statements = load_statements(package)

    assert text.count("-- :name ") == text.count("-- :cost ") == len(statements) > 20
    assert all(statement.cost.startswith("O(") for statement in statements.values())
    assert all(statement.sql and ";" not in statement.sql for statement in statements.values())


@pytest.mark.parametrize("package", PACKAGES)
def test_every_statement_is_used(package: str) -> None:
    source = "".join(
        entry.read_text("utf-8") for entry in files(package).iterdir() if entry.name.endswith(".py")
    )  # fmt: skip

    unused = [name for name in load_statements(package) if f'"{name}"' not in source and not name.startswith("guard_")]

    assert unused == []


def test_every_postgres_statement_on_a_table_that_grows_is_tried() -> None:
    statements = load_statements("tenure.stores.postgres").values()
    touching = {s.name for s in statements if any(f" {table}" in s.sql for table in GROWING)}

    assert touching == set(CASES) | BULK


WITH_STATISTICS, YOUNG, MISLED = "with statistics", "young", "misled"
"""What PostgreSQL knows of its tables: all, nothing, or that they are empty: it counted during a first import."""


async def _fill(url: str, known: str) -> None:
    server, _, schema = url.partition("&schema=")
    connection = await asyncpg.connect(server)
    try:
        await connection.execute(f'CREATE SCHEMA "{schema}"; SET search_path = "{schema}"')
        await connection.execute("".join(load_migrations("tenure.stores.postgres")))
        for table in GROWING:
            await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        async with connection.transaction():
            await _insert_rows(connection)
            if known == MISLED:
                await _count(url)
        if known == WITH_STATISTICS:
            await _count(url)
    finally:
        await connection.close()


async def _count(url: str) -> None:
    """Take the statistics of one ledger alone, by a connection of its own: others are tried at the same time."""
    server, _, schema = url.partition("&schema=")
    connection = await asyncpg.connect(server, server_settings={"search_path": schema})
    try:
        await connection.execute(f"ANALYZE {', '.join(GROWING)}")
    finally:
        await connection.close()


async def _insert_rows(connection: Any) -> None:
    await connection.execute("INSERT INTO space (name) VALUES ('site')")
    place = "'\\x04'::bytea || decode(lpad(to_hex(10 * (1 << 24) + 2 * (n - 1)), 8, '0'), 'hex')"
    rows = f"FROM generate_series(1, {HOLDINGS}) AS n"
    await connection.execute(
        "INSERT INTO holding (space, network, generation, since_us, state, first, last, owner, slot, until_us)"
        f" SELECT 1, 1, n, 1, 1, {place}, {place}, 'vm/' || (n - 1), '', CASE n % 2 WHEN 0 THEN {LATE} + n END {rows}"
    )
    await connection.execute(
        "INSERT INTO holding (space, network, generation, since_us, state, first, last, owner, slot, until_us)"
        f" SELECT 3, 3, n, 1, 3, {place}, {place}, 'vm/' || (n - 1), '', n {rows} WHERE n <= 1000"
    )
    await connection.execute(
        "INSERT INTO reply (key, body, at_us, space, network, first, last, generation)"
        f" SELECT 'key-' || n, 'body', n, 1, 1, {place}, {place}, n {rows}"
    )
    await connection.execute(
        "INSERT INTO paper (kind, name, revision, document)"
        f" SELECT CASE n % 2 WHEN 0 THEN 'instance' ELSE 'mark' END, 'vm-' || n / 2, 1, '{{}}' {rows}"
    )
    await connection.execute(
        "INSERT INTO change (seq, at_us, space, network, generation, verb, first, last, owner, slot)"
        f" SELECT n, 1, 1 + n % 2, 1, n, CASE n % 3 WHEN 0 THEN 'release' ELSE 'grant' END, {place}, {place},"
        f" 'vm/' || (n - 1), '' {rows}"
    )
    await connection.execute(
        "INSERT INTO archive (first_seq, last_seq, first_us, last_us, body, places)"
        " SELECT n - 9, n, 1, 2, 'body', ARRAY(SELECT generate_series(n - 9, n))"
        f" FROM generate_series(10, {HOLDINGS}, 10) AS n"
    )
    await connection.execute("UPDATE ledger SET seq = $1", HOLDINGS)


@pytest.fixture(scope="module", params=[WITH_STATISTICS, YOUNG, MISLED])
def full_ledger(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the URL of a ledger with many holdings, and as many changes."""
    with asyncio.Runner() as runner:
        place = fresh_schema()
        url = runner.run(_enter(place))
        try:
            runner.run(_fill(url, request.param))
            yield url
        finally:
            runner.run(place.__aexit__(None, None, None))


async def _enter(place: Any) -> str:
    url: str = await place.__aenter__()
    return url


async def _plan(url: str, sql: str, values: Sequence[Any]) -> dict[str, Any]:
    """Run a statement as the store does (a generic plan), look at what it did, and take it back."""
    server, _, schema = url.partition("&schema=")
    settings = {"search_path": schema, "plan_cache_mode": "force_generic_plan"}
    connection = await asyncpg.connect(server, server_settings=settings)
    try:
        async with connection.transaction():
            await connection.execute(f"PREPARE tried AS {sql}")
            words = f"({', '.join(map(_literal, values))})" if values else ""
            text = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE tried {words}")
            await connection.execute("ROLLBACK; BEGIN")
    finally:
        await connection.close()
    plan: dict[str, Any] = json.loads(text)[0]["Plan"]
    return plan


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(_literal, value))}]" if any(v is not None for v in value) else _nulls(value)
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'::bytea"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def _nulls(values: list[None]) -> str:
    return f"'{{{', '.join('NULL' for _ in values)}}}'"


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from _nodes(below)


def _touched(plan: dict[str, Any]) -> float:
    """Count the rows of growing tables that a plan looked at."""
    total = 0.0
    for node in _nodes(plan):
        if node.get("Relation Name") in GROWING or "Index Name" in node:
            removed = sum(count for name, count in node.items() if name.startswith("Rows Removed by"))
            total += node["Actual Loops"] * (node["Actual Rows"] + removed)
    return total


LATE = 1 << 60
"""A deadline that never passes: where one has, nothing is granted."""

TRIED = [(name, number) for name, cases in CASES.items() for number in range(len(cases))]


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "number"), TRIED, ids=[f"{name}-{number}" for name, number in TRIED])
async def test_a_postgres_statement_touches_no_more_rows_than_it_must(full_ledger: str, name: str, number: int) -> None:
    sql = load_statements("tenure.stores.postgres")[name].sql

    plan = await _plan(full_ledger, sql, CASES[name][number])

    scans = [node for node in _nodes(plan) if node["Node Type"] == "Seq Scan" and node["Actual Loops"]]
    assert not [node for node in scans if node["Relation Name"] in GROWING]
    assert _touched(plan) <= MOST_ROWS


async def test_pages_that_tell_of_a_place_are_found_by_their_index(full_ledger: str) -> None:
    server, _, schema = full_ledger.partition("&schema=")
    connection = await asyncpg.connect(server, server_settings={"search_path": schema})
    counted = (
        "SELECT pg_stat_get_xact_numscans('archive'::regclass), pg_stat_get_xact_numscans('archive_place'::regclass)"
    )
    try:
        async with connection.transaction():
            found = await connection.fetch("SELECT last_seq FROM archive_pages_v1($1) ORDER BY 1", MARKS)
            by_table, by_index = await connection.fetchrow(counted)
    finally:
        await connection.close()

    assert [record[0] for record in found] == [4990, 5000]
    assert (by_table, by_index > 0) == (0, True)


@pytest.mark.parametrize("name", list(load_statements("tenure.stores.sqlite")))
def test_a_sqlite_statement_never_scans_or_sorts_a_table_that_grows(name: str) -> None:
    sql = load_statements("tenure.stores.sqlite")[name].sql
    values = [None] * (1 if "?1" in sql else sql.count("?"))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("".join(load_migrations("tenure.stores.sqlite")))
        connection.executescript(DEFINITIONS)

        steps = [record[3] for record in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]

    scans = [step for step in steps for table in GROWING if step.startswith(f"SCAN {table}")]
    assert not scans or name in THOROUGH
    assert not [step for step in steps if "TEMP B-TREE" in step]
    assert not [step for step in steps if "AUTOMATIC" in step]
