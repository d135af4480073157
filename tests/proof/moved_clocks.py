"""A load under which the clock of one server is moved an hour forward and back.

On SQLite a process's clock is the store's: deadlines come early or late there, and nothing else may. On PostgreSQL the
clock of a server that is not the database's has no say at all.
"""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.proof.checking import Finding
from tests.proof.crew import Crew, begin
from tests.proof.faces import lay_plan
from tests.proof.history import History, Logged
from tests.proof.plan import Plan

COOLING = Plan([("blue", "10.0.1.0/24", "10.0.1.60-10.0.1.75", "cool", "lowest", "1")])
"""One small pool in which everything takes time."""

HOUR_S = 3600.0
LATE_S = 30.0
"""How far entries may lie from each other where all is well: what a busy machine takes, and not an hour."""


class ClockReckoning(NamedTuple):
    """What a round came to."""

    history: History
    breaches: list[str]
    findings: list[Finding]

    @property
    def off_by_an_hour(self) -> list[Logged]:
        """Find entries whose time lies far from that of the entry before."""
        timed = [entry for entry in self.history.log or () if entry.at_us]
        return [late for early, late in pairwise(timed) if abs(late.at_us - early.at_us) > LATE_S * 1_000_000]


async def clock_round(url: str, folder: Path, seed: int, *, seconds: float) -> ClockReckoning:
    """Let three clients work, one of them under a clock that moves, and reckon."""
    async with Crew(url, COOLING, folder, seed) as crew:
        await lay_plan(url, crew.plan)
        clients = [await crew.hire("time") for _ in range(2)]
        clients.append(await crew.hire("time", shifts=_moved(seconds, forward_first=seed % 2 == 0)))
        await begin(clients)
        await asyncio.sleep(seconds)
        for client in clients:
            await client.say()
        for client in clients:
            await client.finish()
        history, breaches = await crew.history()
        return ClockReckoning(history, breaches, crew.explain(history, exact=True))


def _moved(seconds: float, *, forward_first: bool) -> Sequence[Sequence[float]]:
    """Move the clock an hour to one side, to the other, and back, during the load."""
    offset_s = HOUR_S if forward_first else -HOUR_S
    return [[seconds * 0.25, offset_s], [seconds * 0.5, -offset_s], [seconds * 0.75, 0.0]]
