"""What goes wrong at random: each kind of fault by name, and the storm that brings them, as the seed decides."""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable

from tests.proof.fire.bases import AWAY
from tests.proof.fire.fire_plan import COOL, HOT, LINE
from tests.proof.fire.stage import Stage

Fault = Callable[[Stage, random.Random], Awaitable[None]]

AT_ONCE = 3
EVERY_S = 1.5


def _one(stage: Stage, chance: random.Random) -> int:
    return chance.randrange(stage.servers)


async def lose_answer(stage: Stage, chance: random.Random) -> None:
    """Lose the answer of a commit, and let the server not get through for a moment."""
    server, seconds = _one(stage, chance), chance.uniform(0, 0.6)
    if await stage.proxy.trap(server, "lose", seconds, lasts=2.0):
        with stage.excused("answer_lost", server, seconds):
            pass


async def hold_answer(stage: Stage, chance: random.Random) -> None:
    """Hold the answer of a commit back."""
    server, seconds = _one(stage, chance), chance.uniform(0.05, 1.5)
    if await stage.proxy.trap(server, "hold", seconds, lasts=2.0):
        with stage.excused("answer_held_back", server, seconds):
            pass


async def part(stage: Stage, chance: random.Random) -> None:
    """Let a server's database be out of reach right behind a commit."""
    server, seconds = _one(stage, chance), chance.uniform(0.05, 1.0)
    if await stage.proxy.trap(server, "part", seconds, lasts=2.0):
        with stage.excused("parted_behind_commit", server, seconds):
            pass


async def delay(stage: Stage, chance: random.Random) -> None:
    """Delay what goes one way between a server and the database."""
    server, way, lasts = _one(stage, chance), chance.choice(("up", "down")), chance.uniform(0.3, 2.0)
    with stage.excused(f"delayed_{way}", server, 2 * lasts):
        stage.proxy.delay(server, way, chance.choice((0.02, 0.1, 0.4)), lasts)
        await asyncio.sleep(lasts)


async def cut(stage: Stage, chance: random.Random) -> None:
    """Cut connections of a server to the database."""
    server = _one(stage, chance)
    with stage.excused("cut", server):
        stage.proxy.cut(server, chance.choice((0.3, 1.0)))


async def freeze(stage: Stage, chance: random.Random) -> None:
    """Freeze a server, mostly for a moment."""
    server, seconds = _one(stage, chance), 0.5 + 11.5 * chance.random() ** 8
    with stage.excused("frozen", server):
        stage.fleet.freeze(server)
        await asyncio.sleep(seconds)
        stage.fleet.wake(server)


async def kill(stage: Stage, chance: random.Random) -> None:
    """Kill a server and start it again."""
    server = _one(stage, chance)
    with stage.excused("killed", server):
        stage.fleet.wake(server)
        await stage.fleet.replace(server)


async def hold_lock(stage: Stage, chance: random.Random) -> None:
    """Hold a lock from outside: a space's, or the log's."""
    network = chance.choice((HOT, HOT, COOL, LINE, None))
    locked, seconds = asyncio.Event(), 0.15 + 2.5 * chance.random() ** 3
    locking = asyncio.ensure_future(stage.base.lock(network, seconds, locked))
    waiting = asyncio.ensure_future(locked.wait())
    await asyncio.wait([locking, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if locked.is_set():  # before that it is held up itself
        with stage.excused("lock_of_log" if network is None else "lock_of_space", None, seconds):
            await locking
    await locking


async def terminate(stage: Stage, chance: random.Random) -> None:
    """End sessions of the servers in the database."""
    with stage.excused("session_ended", None):
        await stage.base.terminate(chance)


async def restart(stage: Stage, chance: random.Random) -> None:
    """Stop the database and start it again."""
    mode = chance.choice(("fast", "immediate"))
    with stage.excused(f"restarted_{mode}", None):
        await stage.base.restart(mode)


ANYWHERE: dict[Fault, int] = {freeze: 2, kill: 1, hold_lock: 5}
BEHIND_A_PROXY: dict[Fault, int] = {
    **ANYWHERE, lose_answer: 8, hold_answer: 6, part: 5, delay: 5, cut: 4, terminate: 4, restart: 1,
}  # fmt: skip
ALONE: frozenset[Fault] = frozenset({freeze, kill, restart})
"""What is done to one at a time: a frozen server cannot be replaced, and one process of the database is enough."""


async def storm(stage: Stage, until: float) -> None:
    """Bring faults until it is time to stop; all that was begun is ended."""
    chance = random.Random(f"{stage.seed}-storm")
    kinds = ANYWHERE if stage.base.proxy is None else BEHIND_A_PROXY
    alone, room = asyncio.Lock(), asyncio.Semaphore(AT_ONCE)
    running: set[asyncio.Task[None]] = set()

    async def bring(fault: Fault, lot: random.Random) -> None:
        gate: asyncio.Lock | asyncio.Semaphore = alone if fault in ALONE else room
        if not gate.locked():
            async with gate:
                with contextlib.suppress(*AWAY):
                    await fault(stage, lot)

    while time.monotonic() < until:
        fault = chance.choices(list(kinds), list(kinds.values()))[0]
        task = asyncio.create_task(bring(fault, random.Random(chance.random())))
        running.add(task)
        task.add_done_callback(running.discard)
        await asyncio.sleep(chance.expovariate(1 / EVERY_S))
    await asyncio.gather(*running)
