"""The clock of one server is moved an hour forward and back under load: no invariant breaks (I10).

On SQLite a process's clock is the store's: deadlines come early or late there, and nothing else may. On PostgreSQL the
clock of a server that is not the database's has no say at all.
"""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tests.proof.crew import Crew, begin
from tests.proof.faces import lay_plan
from tests.proof.history import History, Logged
from tests.proof.plan import Plan
from tests.proof.test_fill import a_place
from tests.scale import runs

COOLING = Plan([("blue", "10.0.1.0/24", "10.0.1.60-10.0.1.75", "cool", "lowest", "1")])
"""One small pool in which everything takes time."""

HOUR_S = 3600.0
ROUNDS = runs(1, 10)
SECONDS = 4.0
LATE_S = 30.0
"""How far a deadline may lie from what was asked for, where all is well: what a busy machine takes, and not an hour."""


def moved(forward_first: bool) -> list[list[float]]:
    """Move the clock an hour to one side, to the other, and back, during the load."""
    sign = 1 if forward_first else -1
    quarters = [SECONDS / 4 * quarter for quarter in (1, 2, 3)]
    return [[after, offset] for after, offset in zip(quarters, (sign * HOUR_S, -sign * HOUR_S, 0.0), strict=True)]


async def load(url: str, folder: Path, seed: int) -> tuple[list[str], History, Crew]:
    """Let three clients work, one of them under a clock that moves."""
    async with Crew(url, COOLING, folder, seed) as crew:
        await lay_plan(url, crew.plan)
        clients = [await crew.hire("time") for _ in range(2)]
        clients.append(await crew.hire("time", shifts=moved(seed % 2 == 0)))
        await begin(clients)
        await asyncio.sleep(SECONDS)
        for client in clients:
            await client.say()
        for client in clients:
            await client.finish()
        history, breaches = await crew.history()
    return breaches, history, crew


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_a_clock_that_is_moved_breaks_no_invariant(store: str, seed: int, tmp_path: Path) -> None:
    async with a_place(store, tmp_path) as url:
        breaches, history, crew = await load(url, tmp_path, seed)

    assert breaches == []
    assert crew.explain(history, exact=True) == []
    assert history.log is not None
    done = {entry.verb for entry in history.log} | {entry.because for entry in history.log}
    assert {"grant", "confirm", "cool", "wait", "deadline", "cancelled", "cooled off"} <= done
    # The moved clock was in use where it is the store's, and nowhere else.
    assert (off_by_an_hour(history.log) == []) == (store == "postgres")


def off_by_an_hour(log: Sequence[Logged]) -> list[Logged]:
    """Find entries whose time lies far from that of the entry before."""
    timed = [entry for entry in log if entry.at_us]
    return [late for early, late in pairwise(timed) if abs(late.at_us - early.at_us) > LATE_S * 1_000_000]
