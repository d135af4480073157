"""A scheduler that decides who goes on: by a seed, or by every possible choice in turn.

Simulated stores suspend at *points*. When nothing else can run, the scheduler lets one point go on, lets time pass, or
lets something happen. A run is the list of its choices, so a seed or a list of numbers replays it exactly.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial


class Chooser:
    """Where choices come from."""

    def choose(self, options: int) -> int:
        """Return a number below ``options``."""
        raise NotImplementedError


class Seeded(Chooser):
    """Choices by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def choose(self, options: int) -> int:
        """Choose at random."""
        return self._random.randrange(options)


class Scripted(Chooser):
    """Choices from a list, then always the first; remembers how many there were to choose from."""

    def __init__(self, script: list[int]) -> None:
        self.script = script
        self.trail: list[tuple[int, int]] = []

    def choose(self, options: int) -> int:
        """Take the next choice of the script."""
        index = len(self.trail)
        choice = self.script[index] if index < len(self.script) else 0
        self.trail.append((choice, options))
        return choice


def every_run(most: int) -> Iterator[Scripted]:
    """Yield a chooser for every run there is, depth first, up to ``most`` of them."""
    script: list[int] = []
    for _ in range(most):
        chooser = Scripted(script)
        yield chooser
        trail = chooser.trail
        while trail and trail[-1][0] + 1 >= trail[-1][1]:
            trail.pop()
        if not trail:
            return
        script = [choice for choice, _ in trail[:-1]] + [trail[-1][0] + 1]


class ServerDied(Exception):
    """Raised into what a dead server still had to do, so that it does nothing more."""


@dataclass
class Point:
    """Somebody waiting for leave to go on."""

    server: str
    future: "asyncio.Future[None]"
    ready: Callable[[], bool]


class TimelessLoop(asyncio.SelectorEventLoop):
    """An event loop whose time stands still until the scheduler lets it pass."""

    now = 0.0

    def time(self) -> float:
        """Tell the simulated time."""
        return self.now

    def next_timer(self) -> float | None:
        """Tell when the next timer is due."""
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return min((timer.when() for timer in timers if not timer.cancelled()), default=None)


JUMPS_S = (0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 12.0)
"""How far time may go beyond the next timer; the longest makes the living look dead."""

Tasks = Sequence[tuple[str, "asyncio.Task[None]"]]
"""What is to be driven to its end, and the server it depends on."""


@dataclass
class Scheduler:
    """Lets one point at a time go on; may let servers die, time pass, and other things happen."""

    chooser: Chooser
    crashes_left: int = 0
    calm: bool = True
    dead: set[str] = field(default_factory=set)
    points: list[Point] = field(default_factory=list)
    steps: int = 0
    quiet: bool = False
    on_death: Callable[[str], None] = lambda server: None
    mortal: Callable[[], list[str]] = list
    events: Callable[[], list[Callable[[], None]]] = list

    async def point(self, server: str, ready: Callable[[], bool] = lambda: True) -> None:
        """Wait for leave to go on."""
        if server in self.dead:
            raise ServerDied
        if self.quiet:
            return
        point = Point(server, asyncio.get_running_loop().create_future(), ready)
        self.points.append(point)
        await point.future

    async def run(self, tasks: Tasks, *, most: int = 5000) -> None:
        """Drive until every task is done, or only the dead still wait."""
        while True:
            await _let_everything_run()
            if all(task.done() or server in self.dead for server, task in tasks):
                return
            self.steps += 1
            if self.steps > most:
                raise AssertionError("the run does not end")
            moves = self._moves()
            if not moves:
                raise AssertionError(f"deadlock: {len(self.points)} wait and none may go on")
            moves[self.chooser.choose(len(moves))]()

    def _moves(self) -> list[Callable[[], None]]:
        """List what may happen next. In a calm run time passes only while everybody waits for it."""
        self.points = [point for point in self.points if not point.future.done()]
        ready = [point for point in self.points if point.server not in self.dead and point.ready()]
        moves: list[Callable[[], None]] = [partial(point.future.set_result, None) for point in ready]
        if (moves and not self.calm) or not moves:
            moves.extend(self._passing_time())
        if moves and self.crashes_left > 0:
            moves.extend(partial(self._die, victim) for victim in self.mortal())
        return [*moves, *self.events()] if moves else []

    def _passing_time(self) -> Iterator[Callable[[], None]]:
        loop = asyncio.get_running_loop()
        if isinstance(loop, TimelessLoop) and (due := loop.next_timer()) is not None:
            yield partial(self._pass_time, loop, due)

    def _pass_time(self, loop: TimelessLoop, due: float) -> None:
        jump = 0.0 if self.calm else JUMPS_S[self.chooser.choose(len(JUMPS_S))]
        loop.now = max(loop.now, due) + jump

    def _die(self, victim: str) -> None:
        self.crashes_left -= 1
        self.dead.add(victim)
        self.on_death(victim)

    async def bury(self) -> None:
        """End what the dead left waiting, without letting them do anything."""
        for point in self.points:
            if not point.future.done():
                point.future.set_exception(ServerDied())
        self.points.clear()
        await _let_everything_run()


async def _let_everything_run() -> None:
    """Run the loop until nothing but this coroutine has anything to do."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(0)
        if not loop._ready:  # type: ignore[attr-defined]  # the one way to see that a loop is idle
            return
