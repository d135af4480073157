"""``python -m bench.drivers``: asyncpg against psycopg 3, on the statement that grants a batch.

The choice of the PostgreSQL driver is by measure, and this is the measure. psycopg is needed by nothing else:
``pip install 'psycopg[binary]'`` first. The client's time is that of the whole batch, making its columns included.
"""

import argparse
import asyncio
import importlib
import importlib.util
import json
import re
import secrets
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

import tenure
from bench.cases import WIDE
from bench.filling import first_position, lay_out, split_url
from bench.jobs import Plan
from bench.loads import SPREAD
from bench.places import Places
from bench.report import aligned, machine
from tenure.kernel.addressing.addresses import key
from tenure.stores.postgres.sql import SQL

PLAN = Plan(WIDE, "random", ("net0",))
SIZES = (16, 256)
SETTINGS = {"synchronous_commit": "on", "plan_cache_mode": "force_generic_plan"}
"""As the store sets them."""

Grant = Callable[[tuple[Any, ...]], Awaitable[list[Any]]]
"""Runs the statement with its values and returns the rows."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One measurement of one driver."""

    rows_per_s: float
    client_us: float
    store_us: float


@asynccontextmanager
async def with_asyncpg(dsn: str, schema: str) -> AsyncIterator[Grant]:
    """Grant through asyncpg, as the store does."""
    connection = await asyncpg.connect(dsn, server_settings={**SETTINGS, "search_path": schema})
    statement = await connection.prepare(SQL["grant_plain"])

    async def grant(values: tuple[Any, ...]) -> list[Any]:
        records: list[Any] = await statement.fetch(*values)
        return records

    yield grant
    await connection.close()


@asynccontextmanager
async def with_psycopg(dsn: str, schema: str) -> AsyncIterator[Grant]:
    """Grant through psycopg 3: binary both ways, prepared at the first use, positional parameters as they stand."""
    psycopg: Any = importlib.import_module("psycopg")
    options = " ".join(f"-c {name}={value}" for name, value in {**SETTINGS, "search_path": schema}.items())
    connection = await psycopg.AsyncConnection.connect(
        dsn, autocommit=True, options=options, prepare_threshold=0, cursor_factory=psycopg.AsyncRawCursor
    )
    # Python's whole numbers have no width of their own here: the arrays' types are said in the statement already.
    text = re.sub(r"\$([12])\b(?!\d)", r"$\1::bigint", SQL["grant_plain"])

    async def grant(values: tuple[Any, ...]) -> list[Any]:
        cursor = connection.cursor(binary=True)
        await cursor.execute(text, values, binary=True)
        records: list[Any] = await cursor.fetchall()
        return records

    yield grant
    await connection.close()


DRIVERS = {"asyncpg": with_asyncpg, "psycopg": with_psycopg}


def batch(network: int, tag: str, number: int, size: int) -> tuple[list[Any] | None, ...]:
    """Make the columns of a batch of wishes, as the store would: sorted, every address and owner new, no details."""
    base = first_position(WIDE)
    firsts = sorted(key(base + turn * SPREAD % (1 << 20)) for turn in range(number * size, (number + 1) * size))
    owners = [f"{tag}/net0.{number * size + place}" for place in range(size)]
    return [network] * size, firsts, firsts, owners, [""] * size, None


async def measure(places: Places, driver: str, size: int, seconds: float) -> Figures:
    """Grant batch after batch on one connection into a fresh ledger."""
    async with places.fresh("postgres") as url:
        async with await tenure.open_async(url) as ledger:
            await lay_out(ledger, PLAN)
            [space] = await ledger.spaces()
        head = (space.space, space.version)
        network = space.network("net0").id
        tag = f"b{secrets.token_hex(4)}"
        async with DRIVERS[driver](*split_url(url)) as grant:
            for number in range(3):
                await _granted(grant, (*head, *batch(network, tag, number, size)), size)
            store, cpu, start, done = places.cpu_s("postgres"), time.process_time(), time.perf_counter(), 0
            while time.perf_counter() - start < seconds:
                await _granted(grant, (*head, *batch(network, tag, done + 3, size)), size)
                done += 1
            spent = time.perf_counter() - start
            rows = done * size
            cpu, store = time.process_time() - cpu, places.cpu_s("postgres") - store
            return Figures(rows / spent, cpu / rows * 1e6, store / rows * 1e6)


async def _granted(grant: Grant, values: tuple[Any, ...], size: int) -> None:
    found = await grant(values)
    if len(found) != size:
        raise RuntimeError(f"{len(found)} of {size} rows were granted")


async def run(rounds: int, seconds: float) -> dict[tuple[int, str], list[Figures]]:
    """Measure both drivers in turn."""
    measured: dict[tuple[int, str], list[Figures]] = {}
    async with Places() as places:
        await places.postgres()
        for number in range(1, rounds + 1):
            for size in SIZES:
                for driver in DRIVERS:
                    print(f"round {number}/{rounds}  {driver}, {size} rows a batch", file=sys.stderr)
                    measured.setdefault((size, driver), []).append(await measure(places, driver, size, seconds))
    return measured


def medians(samples: Sequence[Figures]) -> Figures:
    """Return the median of every figure."""
    return Figures(
        statistics.median(sample.rows_per_s for sample in samples),
        statistics.median(sample.client_us for sample in samples),
        statistics.median(sample.store_us for sample in samples),
    )


def main(words: Sequence[str] | None = None) -> int:
    """Compare the drivers."""
    parser = argparse.ArgumentParser(prog="python -m bench.drivers", description="Compare the drivers for PostgreSQL.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    chosen = parser.parse_args(words)
    if importlib.util.find_spec("psycopg") is None:
        parser.error("psycopg is not installed: pip install 'psycopg[binary]'")
    measured = asyncio.run(run(chosen.rounds, chosen.seconds))
    rows = [["driver", "rows a batch", "rows/s", "client µs a row", "PostgreSQL µs a row"]]
    for (size, driver), samples in measured.items():
        told = medians(samples)
        rows.append([driver, str(size), f"{told.rows_per_s:,.0f}", f"{told.client_us:.2f}", f"{told.store_us:.2f}"])
    print(json.dumps(machine()))
    print("\n".join(aligned(rows, left=1)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
