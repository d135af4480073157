"""Simulated servers and clients: plays a cast of scripted clients and judges what came of it."""

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tenure import AsyncLedger
from tenure.kernel.errors import NotFound, TenureError
from tenure.service.apply.operations import read_claim
from tenure.service.engine.engine import Engine
from tenure.service.ledger.engine_ledger import ledger_on, server_of
from tenure.stores.memory.store import MemoryStore
from tests.proof.judged import Call, Judge
from tests.proof.left import left_behind
from tests.proof.scheduling import Chooser, Scheduler, ServerDied, TimelessLoop
from tests.proof.simulated import SimulatedStore
from tests.proof.world import World

Step = tuple[str, dict[str, Any]]
"""A verb of the ledger and its arguments; ``$n`` as a generation means: of the client's n-th answer."""

Cast = Sequence[tuple[str, Sequence[Step]]]
"""Clients: the server each talks to, and what it does, one step after the other."""

Plan = Callable[[AsyncLedger], Awaitable[None]]

HOUR_US = 3_600_000_000


@dataclass(frozen=True)
class Weather:
    """What may go wrong in a run, and how often.

    ``crashes``: servers die. ``faults``: answers are lost. ``cancels``: callers who wait go away. ``shifts``: the
    store's clock moves an hour. In a ``calm`` run time passes only while everybody waits for it. ``warm`` servers have
    read the plan and their views before the run begins, so that these are stale in it.
    """

    crashes: int = 0
    faults: int = 0
    cancels: int = 0
    shifts: int = 0
    calm: bool = True
    warm: bool = True


class SimulatedServer(Engine):
    """A server whose pauses are points, too."""

    async def pause(self, attempt: int) -> None:
        """Let others go on."""
        assert isinstance(self.store, SimulatedStore)
        await self.store.world.scheduler.point(self.store.server)


def clock() -> int:
    """Tell the same time for ever: where nothing waits, time decides nothing."""
    return 1


async def staged(plan: Plan) -> MemoryStore:
    """Set the scene on a quiet store; every run plays on a copy of it."""
    store = MemoryStore(clock)
    await plan(ledger_on(Engine(store, name="stage", chance=random.Random(0))))
    return store


async def play(stage: MemoryStore, cast: Cast, chooser: Chooser, weather: Weather) -> list[str]:
    """Play one run and return what cannot be explained."""
    return await Run(stage, cast, chooser, weather).play()


@dataclass
class Run:
    """One run of a cast on a copy of the stage."""

    stage: MemoryStore
    cast: Cast
    chooser: Chooser
    weather: Weather
    calls: list[Call] = field(default_factory=list)
    waiting: "dict[asyncio.Task[None], Call]" = field(default_factory=dict)
    world: World = field(init=False)
    ledgers: dict[str, AsyncLedger] = field(init=False)
    cancels_left: int = 0
    shifts_left: int = 0
    stray: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        weather = self.weather
        self.scheduler = Scheduler(self.chooser, weather.crashes, weather.calm)
        self.world = world = World(self.scheduler, copy.deepcopy(self.stage), weather.faults)
        self.cancels_left, self.shifts_left = weather.cancels, weather.shifts
        self.scheduler.on_death = world.died
        self.ledgers = {
            name: ledger_on(SimulatedServer(SimulatedStore(world, name), name=name, chance=random.Random(name)))
            for name in dict.fromkeys(server for server, _ in self.cast)
        }
        self.scheduler.mortal = lambda: [name for name in self.ledgers if name not in self.scheduler.dead]
        self.scheduler.events = self._events

    async def play(self) -> list[str]:
        """Play it, and return what cannot be explained."""
        self._begin_time()
        self.world.note_plan()
        if self.weather.warm:
            self.scheduler.quiet = True
            for ledger in self.ledgers.values():
                await _warm(ledger)
            self.scheduler.quiet = False
        try:
            await self._run([(server, self._client(server, steps)) for server, steps in self.cast])
            if self.timely:
                await self._close()
        finally:
            await self._clear()
        faults = self.stray + Judge(self.world, self.calls, self.weather.calm).judge()
        return faults + (await left_behind(self.world, self.calls) if self.timely else [])

    @property
    def timely(self) -> bool:
        """Tell whether time passes in this run."""
        return isinstance(asyncio.get_running_loop(), TimelessLoop)

    def _begin_time(self) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(loop, TimelessLoop):
            loop.now = 0.0
            loop.set_exception_handler(self._note_stray)
            self.world.truth.clock = self.world.clock_us

    def _note_stray(self, _: object, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), ServerDied | None):
            self.stray.append(f"an error that nobody was told of: {context['exception']!r}")

    async def _run(self, work: Sequence[tuple[str, Any]]) -> None:
        await self.scheduler.run([(server, asyncio.create_task(todo)) for server, todo in work])

    async def _close(self) -> None:
        """Let the living close their ledgers while nothing goes wrong any more."""
        self.scheduler.crashes_left = self.world.faults_left = self.cancels_left = self.shifts_left = 0
        alive = [name for name in self.ledgers if name not in self.scheduler.dead]
        await self._run([(name, self.ledgers[name].close()) for name in alive])

    async def _clear(self) -> None:
        """End whatever is still there."""
        await self.scheduler.bury()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _events(self) -> list[Callable[[], None]]:
        """List what may happen besides: a caller who waits goes away, the store's clock moves."""
        events: list[Callable[[], None]] = []
        if self.cancels_left > 0:
            events.extend(partial(self._cancel, task) for task, call in self.waiting.items() if self._in_line(call))
        if self.shifts_left > 0:
            events.extend(partial(self._shift, hours) for hours in (-1, 1))
        return events

    def _in_line(self, call: Call) -> bool:
        if call.server in self.scheduler.dead or call.cancelled:
            return False
        rooms = server_of(self.ledgers[call.server]).rooms._rooms.values()
        return any(guest.claim.request == call.values["request"] for room in rooms for guest in room.guests)

    def _cancel(self, task: "asyncio.Task[None]") -> None:
        self.cancels_left -= 1
        self.waiting[task].cancelled = True
        task.cancel()

    def _shift(self, hours: int) -> None:
        self.shifts_left -= 1
        self.world.shifts += 1
        self.world.skew_us += hours * HOUR_US

    async def _client(self, server: str, steps: Sequence[Step]) -> None:
        answers: list[Any] = []
        for verb, values in steps:
            filled = {name: _filled(value, answers) for name, value in values.items()}
            if verb == "sleep":
                await asyncio.sleep(filled["s"])
                answers.append(None)
            elif None not in (filled.get("address", ""), filled.get("generation", 0)):
                # What it refers to was answered.
                call = Call(server, verb, filled, self.world.truth.seq)
                self.calls.append(call)
                if not await self._call(call):
                    return
                answers.append(call.answer)

    async def _call(self, call: Call) -> bool:
        """Make one call; tell whether the client may go on."""
        task = asyncio.current_task()
        assert task is not None
        if "wait_s" in call.values:
            self.waiting[task] = call
        try:
            call.answer = await getattr(self.ledgers[call.server], call.verb)(**call.values)
        except TenureError as error:
            call.error = error
        except asyncio.CancelledError:
            if not call.cancelled:
                raise
            task.uncancel()
        except ServerDied:
            return False
        finally:
            self.waiting.pop(task, None)
        call.ended = self.world.truth.seq
        call.ended_us = self.world.truth.clock()
        return True


async def _warm(ledger: AsyncLedger) -> None:
    server = server_of(ledger)
    for network in ("net", "other"):
        try:
            layout = await server.layout(network)
        except NotFound:
            continue
        claim = read_claim(network, "warm/up")
        await server.load(layout, claim)
        exact = server.lanes.open_exact(layout, await server.lanes.read_lines(layout, [claim]))
        exact.learn(await server.store.effects(layout.configuration.space, exact.oldest()))


def _filled(value: Any, answers: list[Any]) -> Any:
    """Fill in what an earlier answer told: ``$0.address``, ``$0.generation``."""
    if not (isinstance(value, str) and value.startswith("$")):
        return value
    index, _, what = value[1:].partition(".")
    answer = answers[int(index)] if int(index) < len(answers) else None
    return getattr(answer, what, None)
