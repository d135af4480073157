"""Measuring: rounds over all pairs, base and subject in turn, so that a noisy machine disturbs both alike."""

import secrets
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from bench.cases import P99_SHARE, Case, Pair, Promise
from bench.crew import Sample, run_crew
from bench.filling import count_rows, make_ground
from bench.jobs import Job
from bench.places import Places

ENGINES = ("engine", "keyed")
COUNTED = {"engine": "holding", "keyed": "holding", "raw": "raw", "raw-queued": "raw"}
"""Where the rows of a work are found afterwards."""

BURST_CAP_S = 120.0


class RowsLost(Exception):
    """The store has not what it acknowledged, or more."""


@dataclass(slots=True)
class Measured:
    """A pair and its samples, round by round."""

    pair: Pair
    base: list[Sample] = field(default_factory=list)
    subject: list[Sample] = field(default_factory=list)

    def value(self, promise: Promise) -> float:
        """Return what a promise is about: a median, or the median of the rounds' ratios.

        What a round measures stands close together in time, so a machine that slows down for a while spoils a few
        ratios and not the promise.
        """
        return float(statistics.median(self.values(promise)))

    def values(self, promise: Promise) -> list[float]:
        """Return what a promise is about, round by round."""
        if promise.measure == P99_SHARE:
            return [p99_share(subject, base) for subject, base in zip(self.subject, self.base, strict=True)]
        mine = [float(getattr(sample, promise.measure)) for sample in self.subject]
        if not promise.relative:
            return mine
        base = [float(getattr(sample, promise.measure)) for sample in self.base]
        return [subject / other for subject, other in zip(mine, base, strict=True)]


def p99_share(burst: Sample, base: Sample) -> float:
    """Return how long the slowest of a burst wait, in times of what as many take at the rate of the base (KD15)."""
    return burst.p99_ms / 1e3 * base.rate / burst.count


def median(samples: Sequence[object], measure: str) -> float:
    """Return the median of one measure."""
    return float(statistics.median(getattr(sample, measure) for sample in samples))


class Bench:
    """Measures cases in places; grounds that are kept live as long as it."""

    def __init__(self, places: Places, seconds: float) -> None:
        self._places = places
        self._seconds = seconds
        self._kept: dict[tuple[object, ...], str] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Bench":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def measure(self, case: Case) -> Sample:
        """Measure a case once. SQLite's raw limit is the better of its two forms."""
        works = ["raw", "raw-queued"] if (case.store, case.work) == ("sqlite", "raw") else [case.work]
        samples = []
        for work in works:
            async with self._ground(case) as url:
                samples.append(await self._measure_on(url, case, work))
        return max(samples, key=lambda sample: sample.rate)

    async def _measure_on(self, url: str, case: Case, work: str) -> Sample:
        table = COUNTED.get(work) if case.store in ("postgres", "sqlite") else None
        before = await count_rows(case.store, url, table) if table else 0
        sample = run_crew(self._jobs(url, case, work), lambda: self._places.cpu_s(case.store))
        if table:
            warm = case.servers * case.networks * case.callers if work in ENGINES else 0
            found = await count_rows(case.store, url, table) - before
            if found != sample.count + warm:
                raise RowsLost(f"{case}: {sample.count + warm} rows acknowledged, {found} found")
        return sample

    def _jobs(self, url: str, case: Case, work: str) -> list[Job]:
        seconds = self._seconds if case.count is None else BURST_CAP_S
        policy = case.policy if work == "opening" else None
        return [
            Job(work, case.store, url, case.plan, policy, case.callers, seconds, case.count, f"b{secrets.token_hex(4)}")
            for _ in range(case.servers)
        ]

    @asynccontextmanager
    async def _ground(self, case: Case) -> AsyncIterator[str]:
        """Give a ground that is made as the case wants it: a fresh one, or the one that is kept."""
        if not case.kept:
            async with self._places.fresh(case.store) as url:
                await self._prepare(case, url)
                yield url
            return
        # Openings change next to nothing, so all of a store share a ground; loads have another.
        key = (case.store, case.pool, case.held, case.work in ENGINES)
        if key not in self._kept:
            url = await self._stack.enter_async_context(self._places.fresh(case.store))
            await self._prepare(case, url)
            self._kept[key] = url
        yield self._kept[key]

    async def _prepare(self, case: Case, url: str) -> None:
        if case.store != "memory" and self._places.tiers[case.store] == "ledger":
            await make_ground(case.store, url, case.plan, case.held)


async def measure_pairs(bench: Bench, pairs: Sequence[Pair], rounds: int, progress: "Progress") -> list[Measured]:
    """Measure all pairs in rounds."""
    measured = [Measured(pair) for pair in pairs]
    for number in range(1, rounds + 1):
        for each in measured:
            progress.step(f"round {number}/{rounds}  {each.pair.name}")
            if each.pair.base is not None:
                each.base.append(await bench.measure(each.pair.base))
            each.subject.append(await bench.measure(each.pair.subject))
    return measured


class Progress:
    """One line on standard error that tells how far the run is."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0
        self._start = time.monotonic()
        self._width = 0
        self._alive = sys.stderr.isatty()

    def step(self, text: str) -> None:
        """Begin the next step."""
        spent = time.monotonic() - self._start
        line = f"[{100 * self._done // max(self._steps, 1):3} %  {spent:4.0f} s]  {text}"
        self._done += 1
        if self._alive:
            sys.stderr.write(f"\r{line.ljust(self._width)}")
            self._width = len(line)
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Clear the line away."""
        if self._alive:
            sys.stderr.write(f"\r{' ' * self._width}\r")
