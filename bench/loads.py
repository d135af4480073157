"""The loads: what a measured process does between start and stop. Each gets ready, then yields what is measured.

* ``engine``: callers in closed loop on ``tenure.open_async``, as shipped. ``keyed``: each with an idempotency key.
* ``book``: the same on a store of the book tier, through its desk.
* ``raw``: one row a commit into a table like ``holding``, with the statement prepared: PostgreSQL on as many
  connections as callers; SQLite from a bare loop on one connection. ``raw-queued``: SQLite, the callers over one
  writer thread.
* ``nics``: add instances of the networks door, each with a NIC of three addresses from two pools.
* ``opening``: open a ledger and allocate once.  ``stream``: read ``first, last`` of every holding into nothing.
"""

import asyncio
import dataclasses
import ipaddress
import itertools
import random
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import asyncpg

import tenure
from bench.filling import RAW_COLUMNS, first_position, lay_out, split_url, sqlite_file
from bench.jobs import Job
from tenure.integrations.ganeti.cluster import Cluster
from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions
from tenure.integrations.ganeti.instances import Instances
from tenure.integrations.ganeti.networks import NetworkOptions, Networks
from tenure.kernel.addressing.addresses import key
from tenure.kernel.plan.plan_model import Configuration
from tenure.service.apply.operations import read_claim
from tenure.service.engine.book_engine import BookEngine
from tenure.stores.sqlite.connection import connect

Run = Callable[[], Awaitable[list[float]]]
"""Works, and returns how long each call took."""

Call = Callable[[int, int], Awaitable[object]]
"""Serves one caller's turn: number of the caller, number of the turn."""

PAGE = 5000
SPREAD = 0x9E375
"""Odd, so that multiplying with it visits every address of a pool once, all over the place."""


def turns(seconds: float, count: int | None) -> Iterator[int]:
    """Number the turns that all callers share, until the time or the count is up."""
    deadline = time.perf_counter() + seconds
    for number in itertools.count() if count is None else range(count):
        if time.perf_counter() > deadline:
            return
        yield number


async def closed_loop(call: Call, job: Job) -> list[float]:
    """Let callers ask, each anew when it was answered; return how long each call took."""
    taken: list[float] = []
    shared = turns(job.seconds, job.count)
    clock = time.perf_counter

    async def caller(number: int) -> None:
        for turn in shared:
            start = clock()
            await call(number, turn)
            taken.append(clock() - start)

    await asyncio.gather(*(caller(number) for number in range(job.callers)))
    return taken


async def _everywhere(job: Job, allocate: Callable[[str, str], Awaitable[object]]) -> list[float]:
    """Run the closed loop on each network in turn."""
    taken: list[float] = []
    for network in job.plan.networks:

        def call(_: int, turn: int, network: str = network) -> Awaitable[object]:
            return allocate(network, f"{job.tag}/{network}.{turn}")

        taken += await closed_loop(call, job)
    return taken


async def _warm_up(job: Job, allocate: Callable[[str, str], Awaitable[object]]) -> None:
    """Load views and open connections: one allocation a caller and network."""
    for network in job.plan.networks:
        await asyncio.gather(*(allocate(network, f"{job.tag}/{network}.warm{n}") for n in range(job.callers)))


@asynccontextmanager
async def engine(job: Job) -> AsyncIterator[Run]:
    """Allocate through the library."""
    async with await tenure.open_async(job.url) as ledger:
        if job.store == "memory":  # nobody else could have prepared it
            await lay_out(ledger, job.plan)
        keyed = job.work == "keyed"

        def allocate(network: str, owner: str) -> Awaitable[object]:
            return ledger.allocate(network, owner=owner, key=f"key of {owner}" if keyed else None)

        await _warm_up(job, allocate)
        yield lambda: _everywhere(job, allocate)


@asynccontextmanager
async def nics(job: Job) -> AsyncIterator[Run]:
    """Add instances with three addresses each: one of any pool, one of each half of the block."""
    async with await tenure.open_async(job.url) as ledger:
        await _halve(ledger, job)
        instances = Instances(ledger)

        def add(network: str, owner: str) -> Awaitable[object]:
            wanted = [f"0:ip0=pool,ip1=low,ip2=high,network={network}"]
            return instances.add(owner.replace("/", "-"), wanted, InstanceOptions())

        await _warm_up(job, add)
        yield lambda: _everywhere(job, add)


async def _halve(ledger: tenure.AsyncLedger, job: Job) -> None:
    """Make two pools of each network's one, and a cluster of one node that the networks are connected to."""
    cluster, networks = Cluster(ledger), Networks(ledger)
    await cluster.add_group("default")
    await cluster.add_node("node1")
    low, high = (str(half) for half in ipaddress.ip_network(job.plan.pool).subnets())
    halves = (f"remove:{job.plan.pool}", f"add:{low},name=low", f"add:{high},name=high")
    for name in job.plan.networks:
        await networks.modify(name, NetworkOptions(pools=halves))
        await networks.connect(name)


@asynccontextmanager
async def book(job: Job) -> AsyncIterator[Run]:
    """Allocate on a book, whose plan is kept by its desk."""
    from tests.contract.providers import provider_named  # only here: it brings every driver with it

    provider = provider_named(job.store)
    store = await provider.connect(job.url)
    ground, _ = await provider.prepare(store)
    plan = await _configuration(job)
    networks = {name: dataclasses.replace(net, id=ground.networks[0]) for name, net in plan.networks.items()}
    configuration = dataclasses.replace(plan, space=ground.space, version=ground.version, networks=networks)
    desk = BookEngine(store, [configuration], name=job.tag, chance=random.Random())

    def allocate(network: str, owner: str) -> Awaitable[object]:
        return desk.allocate(read_claim(network, owner))

    try:
        await _warm_up(job, allocate)
        yield lambda: _everywhere(job, allocate)
    finally:
        await desk.close()


async def _configuration(job: Job) -> Configuration:
    """Have the plan made by a ledger in memory."""
    async with await tenure.open_async("memory:") as ledger:
        await lay_out(ledger, job.plan)
        [configuration] = await ledger.spaces()
        return configuration


def raw_row(job: Job, turn: int) -> tuple[object, ...]:
    """Make the row that a plain grant would write: same columns, an address anywhere in the pool, a new owner."""
    first = key(first_position(job.plan.pool) + turn * SPREAD % (1 << 20))
    owner = f"{job.tag}/{job.plan.networks[0]}.{turn}"
    return (1, 1, turn + 1, time.time_ns() // 1000, 1, first, first, owner, "")


@asynccontextmanager
async def raw(job: Job) -> AsyncIterator[Run]:
    """Insert row by row, each its own commit, without the engine."""
    chosen = _raw_postgres if job.store == "postgres" else _raw_sqlite
    async with chosen(job) as run:
        yield run


@asynccontextmanager
async def _raw_postgres(job: Job) -> AsyncIterator[Run]:
    dsn, schema = split_url(job.url)
    marks = ", ".join(f"${n}" for n in range(1, len(RAW_COLUMNS) + 1))
    insert = f"INSERT INTO raw ({', '.join(RAW_COLUMNS)}) VALUES ({marks})"
    async with AsyncExitStack() as stack:
        statements: list[Any] = []
        for _ in range(job.callers):
            connection = await asyncpg.connect(dsn, server_settings={"search_path": schema, "synchronous_commit": "on"})
            stack.push_async_callback(connection.close)
            statements.append(await connection.prepare(insert))
        yield lambda: closed_loop(lambda caller, turn: statements[caller].fetch(*raw_row(job, turn)), job)


SQLITE_INSERT = f"INSERT INTO raw ({', '.join(RAW_COLUMNS)}) VALUES ({', '.join('?' * len(RAW_COLUMNS))})"


@asynccontextmanager
async def _raw_sqlite(job: Job) -> AsyncIterator[Run]:
    connection = connect(sqlite_file(job.url))

    async def run() -> list[float]:
        taken: list[float] = []
        clock = time.perf_counter
        for turn in turns(job.seconds, job.count):
            start = clock()
            connection.execute(SQLITE_INSERT, raw_row(job, turn))
            taken.append(clock() - start)
        return taken

    yield run
    connection.close()


@asynccontextmanager
async def raw_queued(job: Job) -> AsyncIterator[Run]:
    """Insert row by row into SQLite from many callers, who share one writer thread."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as writer:
        connection: sqlite3.Connection = await loop.run_in_executor(writer, connect, sqlite_file(job.url))

        def call(_: int, turn: int) -> Awaitable[object]:
            return loop.run_in_executor(writer, connection.execute, SQLITE_INSERT, raw_row(job, turn))

        yield lambda: closed_loop(call, job)
        await loop.run_in_executor(writer, connection.close)


@asynccontextmanager
async def opening(job: Job) -> AsyncIterator[Run]:
    """Open a ledger and allocate once."""
    async with AsyncExitStack() as stack:

        async def run() -> list[float]:
            start = time.perf_counter()
            ledger = await stack.enter_async_context(await tenure.open_async(job.url))
            await ledger.allocate(job.plan.networks[0], owner=f"{job.tag}/first", policy=job.policy)
            return [time.perf_counter() - start]

        yield run


@asynccontextmanager
async def stream(job: Job) -> AsyncIterator[Run]:
    """Read the spans of all holdings through the store's driver, and drop them."""
    read = _stream_postgres if job.store == "postgres" else _stream_sqlite

    async def run() -> list[float]:
        start = time.perf_counter()
        await read(job)
        return [time.perf_counter() - start]

    yield run


async def _stream_postgres(job: Job) -> None:
    dsn, schema = split_url(job.url)
    connection = await asyncpg.connect(dsn, server_settings={"search_path": schema})
    async with connection.transaction(readonly=True):
        cursor = await connection.cursor("SELECT first, last FROM holding")
        while await cursor.fetch(PAGE):
            pass
    await connection.close()


async def _stream_sqlite(job: Job) -> None:
    connection = connect(sqlite_file(job.url))
    cursor = connection.execute("SELECT first, last FROM holding")
    while cursor.fetchmany(PAGE):
        pass
    connection.close()


LOADS: dict[str, Callable[[Job], AbstractAsyncContextManager[Run]]] = {
    "engine": engine,
    "keyed": engine,
    "nics": nics,
    "book": book,
    "raw": raw,
    "raw-queued": raw_queued,
    "opening": opening,
    "stream": stream,
}
