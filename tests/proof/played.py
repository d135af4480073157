"""Simulated servers and clients: plays a cast of scripted clients and judges what came of it."""

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tenure import AsyncLedger
from tenure.kernel.errors import NotFound, TenureError
from tenure.service.claims import read_claim
from tenure.service.server import Server
from tenure.stores.memory.store import MemoryStore
from tests.proof.judged import Call, Judge
from tests.proof.scheduling import Chooser, Scheduler, ServerDied
from tests.proof.simulated import SimulatedStore, World

Step = tuple[str, dict[str, Any]]
"""A verb of the ledger and its arguments; ``$n`` as a generation means: of the client's n-th answer."""

Cast = Sequence[tuple[str, Sequence[Step]]]
"""Clients: the server each talks to, and what it does, one step after the other."""

Plan = Callable[[AsyncLedger], Awaitable[None]]


class SimulatedServer(Server):
    """A server whose pauses are points, too."""

    async def pause(self, attempt: int) -> None:
        """Let others go on."""
        assert isinstance(self.store, SimulatedStore)
        await self.store.world.scheduler.point(self.store.server)


def clock() -> int:
    """Tell the same time for ever: time never decides anything here."""
    return 1


async def staged(plan: Plan) -> MemoryStore:
    """Set the scene on a quiet store; every run plays on a copy of it."""
    store = MemoryStore(clock)
    await plan(AsyncLedger(Server(store, name="stage", chance=random.Random(0))))
    return store


async def play(
    stage: MemoryStore, cast: Cast, chooser: Chooser, *, crashes: int = 0, faults: int = 0, warm: bool = True
) -> list[str]:
    """Play one run and return what cannot be explained.

    ``warm`` servers have read the plan and their views before the run begins, so that these are stale in it.
    """
    scheduler = Scheduler(chooser, crashes)
    world = World(scheduler, copy.deepcopy(stage), faults)
    world.note_plan()
    scheduler.on_death = world.died
    ledgers = {
        name: AsyncLedger(SimulatedServer(SimulatedStore(world, name), name=name, chance=random.Random(name)))
        for name in dict.fromkeys(server for server, _ in cast)
    }
    if warm:
        scheduler.quiet = True
        for ledger in ledgers.values():
            await _warm(ledger)
        scheduler.quiet = False
    scheduler.mortal = lambda: [name for name in ledgers if name not in scheduler.dead]
    calls: list[Call] = []
    tasks = [asyncio.create_task(_client(world, server, ledgers[server], steps, calls)) for server, steps in cast]
    try:
        await scheduler.run(tasks)
    finally:
        await scheduler.bury()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return Judge(world, calls).judge()


async def _warm(ledger: AsyncLedger) -> None:
    server = ledger._server
    for network in ("net", "other"):
        try:
            layout = await server.layout(network)
        except NotFound:
            continue
        claim = read_claim(network, "warm/up")
        await server.load(layout, claim)
        exact = server.lanes.open_exact(layout, await server.lanes.read_lines(layout, [claim]))
        exact.learn(await server.store.effects(layout.configuration.space, exact.oldest()))


async def _client(world: World, server: str, ledger: AsyncLedger, steps: Sequence[Step], calls: list[Call]) -> None:
    answers: list[Any] = []
    for verb, values in steps:
        filled = {name: _filled(value, answers) for name, value in values.items()}
        if None in (filled.get("address", ""), filled.get("generation", 0)):
            continue  # what it refers to was never answered
        call = Call(server, verb, filled, world.truth.seq)
        calls.append(call)
        try:
            call.answer = await getattr(ledger, verb)(**filled)
        except TenureError as error:
            call.error = error
        except ServerDied:
            return
        call.ended = world.truth.seq
        answers.append(call.answer)


def _filled(value: Any, answers: list[Any]) -> Any:
    """Fill in what an earlier answer told: ``$0.address``, ``$0.generation``."""
    if not (isinstance(value, str) and value.startswith("$")):
        return value
    index, _, what = value[1:].partition(".")
    answer = answers[int(index)] if int(index) < len(answers) else None
    return getattr(answer, what, None)
