"""``tenure bench``: what this machine and its store can do, beside the raw limit of its disk, in one run."""

import asyncio
import secrets
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.shared_options import FiniteRange
from tenure.doors.cli.output.print_answer import answer, table_lines
from tenure.doors.cli.session import Session, pass_session, run_alone
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.wiring import open_async

BLOCK, POOL = "10.0.0.0/8", "10.0.0.0-10.255.255.254"
COLUMNS = {"WHAT": "what", "CALLERS": "callers", "PER SECOND": "per_s", "X RAW": "ratio"}


@dataclass(frozen=True, slots=True)
class Measure:
    """One measurement: how many effects a second, and how many times the raw limit that is."""

    what: str
    callers: int
    per_s: float
    ratio: float = 1.0


@command("bench")
@click.option("--seconds", type=FiniteRange(0.05, 60), default=2.0, show_default=True, help="How long each part.")
@click.option("--policy", type=click.Choice(["lowest", "random"]), default="random", show_default=True)
@pass_session
def bench(session: Session, seconds: float, policy: str) -> None:
    """Measure allocations a second at 1 and 16 callers, beside raw single-row commits to SQLite.

    Works on a scratch ledger; with --store (or TENURE_STORE) on that store, in a network that is removed again.

    For example:
      tenure bench --seconds 0.2
    """
    # Read in any case, because it refuses --server: nothing of a store can be measured through one.
    named = session.store_url
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        raw = Measure("raw commits", 1, _raw_commits(Path(folder) / "raw.db", seconds))
        scratch = f"sqlite:///{Path(folder) / 'ledger.db'}"
        url = scratch if session.named_store is None else named
        measured = run_alone(_measure(url, seconds, policy))
    rows = [raw, *(Measure("allocations", n, per_s, round(per_s / raw.per_s, 2)) for n, per_s in measured)]
    documents = [{**asdict(row), "per_s": round(row.per_s)} for row in rows]
    answer(session, documents, "\n".join(table_lines(documents, COLUMNS)))


def _raw_commits(path: Path, seconds: float) -> float:
    """Commit single rows, durably, one after the other: what a ledger without batches could do at best."""
    import sqlite3

    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE raw (first INTEGER PRIMARY KEY, owner TEXT NOT NULL)")
        began, done = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            connection.execute("INSERT INTO raw VALUES (?, ?)", (done, f"instance/{done}"))
            done += 1
        return done / (time.perf_counter() - began)
    finally:
        connection.close()


async def _measure(url: str, seconds: float, policy: str) -> list[tuple[int, float]]:
    name = f"bench-{secrets.token_hex(6)}"
    async with await open_async(url) as ledger:
        await ledger.add_network(name, description="scratch of `tenure bench`; may be removed")
        try:
            await ledger.add_subnet(name, BLOCK)
            await ledger.add_pool(name, POOL, policy=policy)
            return [(callers, await _rate(ledger, name, callers, seconds)) for callers in (1, 16)]
        finally:
            # Shielded: a second signal must not leave the scratch network in a store that others use.
            await asyncio.shield(ledger.remove_network(name, cascade=True))


async def _rate(ledger: AsyncLedger, network: str, callers: int, seconds: float) -> float:
    began = time.perf_counter()

    async def call(number: int) -> int:
        done = 0
        while time.perf_counter() - began < seconds:
            await ledger.allocate(network, owner=f"instance/{callers}-{number}-{done}")
            done += 1
        return done

    done = sum(await asyncio.gather(*(call(number) for number in range(callers))))
    return done / (time.perf_counter() - began)
