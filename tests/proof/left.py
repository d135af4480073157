"""What a simulated run left behind, when all callers are gone and the time of the dead has passed."""

import asyncio
import contextlib
import random

from tenure.kernel.errors import PoolExhausted
from tenure.service.engine.engine import Engine
from tenure.service.ledger.engine_ledger import ledger_on
from tests.proof.judged import Call
from tests.proof.scheduling import TimelessLoop
from tests.proof.world import World

LONG_S = 3 * 3600.0
"""Longer than any claim is taken for alive, also if the store's clock was moved."""


async def left_behind(world: World, calls: list[Call]) -> list[str]:
    """Find who still waits though nobody stands behind him; first at once, then after a long time."""
    faults: list[str] = []
    polled = any(call.verb == "claim" for call in calls)
    if not (world.scheduler.dead or world.lost or polled):
        faults = [f"left in line: {waiter}" for waiter in world.truth.waiting.values()]
    loop = asyncio.get_running_loop()
    assert isinstance(loop, TimelessLoop)
    loop.now += LONG_S
    await _look(world)
    faults.extend(f"in line for ever: {waiter}" for waiter in world.truth.waiting.values())
    queued = [book.configuration.name for book in world.truth.books.values() if book.configuration.queued]
    return faults + [f"marked queued for ever: {name}" for name in queued]


async def _look(world: World) -> None:
    """Ask for an address, as somebody who comes later would."""
    ledger = ledger_on(Engine(world.truth, name="late", chance=random.Random(0)))
    with contextlib.suppress(PoolExhausted):
        await ledger.allocate("net", owner="late/one")
