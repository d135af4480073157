"""A scheduler that decides who goes on: by a seed, or by every possible choice in turn.

Simulated stores suspend at *points*. When nothing else can run, the scheduler lets one point go on. A run is the
list of its choices, so a seed or a list of numbers replays it exactly.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


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


@dataclass
class Scheduler:
    """Lets one point at a time go on; may let servers die."""

    chooser: Chooser
    crashes_left: int = 0
    dead: set[str] = field(default_factory=set)
    points: list[Point] = field(default_factory=list)
    steps: int = 0
    quiet: bool = False
    on_death: Callable[[str], None] = lambda server: None
    mortal: Callable[[], list[str]] = list

    async def point(self, server: str, ready: Callable[[], bool] = lambda: True) -> None:
        """Wait for leave to go on."""
        if server in self.dead:
            raise ServerDied
        if self.quiet:
            return
        point = Point(server, asyncio.get_running_loop().create_future(), ready)
        self.points.append(point)
        await point.future

    async def run(self, tasks: "list[asyncio.Task[None]]", *, most: int = 5000) -> None:
        """Drive until every task is done, or only the dead still wait."""
        while not all(task.done() for task in tasks):
            await _let_everything_run()
            if all(task.done() for task in tasks):
                break
            ready = [point for point in self.points if point.server not in self.dead and point.ready()]
            if not ready:
                waiting = [point for point in self.points if point.server not in self.dead]
                if waiting:
                    raise AssertionError(f"deadlock: {len(waiting)} wait and none may go on")
                break
            self.steps += 1
            if self.steps > most:
                raise AssertionError("the run does not end")
            self._step(ready)

    def _step(self, ready: list[Point]) -> None:
        victims = self.mortal() if self.crashes_left > 0 else []
        choice = self.chooser.choose(len(ready) + len(victims))
        if choice < len(ready):
            self.points.remove(ready[choice])
            ready[choice].future.set_result(None)
            return
        victim = victims[choice - len(ready)]
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
