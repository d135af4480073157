"""Measuring the Neutron door: rounds over all pairs, every case once a round, on sites that are kept."""

import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from bench.cases import Case, Pair
from bench.crew import Sample, summed
from bench.jobs import Result
from bench.measuring import Measured, Progress, RowsLost
from bench.neutron_cases import WORK
from bench.neutron_crew import Child
from bench.neutron_jobs import ALLOCATE, COUNT, GIVE_BACK, LEDGER, Order, Site
from bench.neutron_places import NeutronPlaces
from bench.places import Places

WARM = Order(ALLOCATE, 3)


@dataclass(frozen=True, slots=True)
class Ground:
    """A site that is made, and the processes that serve it."""

    site: Site
    crew: list[Child]


class NeutronBench:
    """Measures cases; sites and their processes live as long as it."""

    def __init__(self, places: NeutronPlaces) -> None:
        self._places = places
        self._grounds: dict[tuple[object, ...], Ground] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "NeutronBench":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def measure(self, case: Case) -> Sample:
        """Measure a case once: allocate, look whether the rows are there, and give everything back."""
        assert case.count is not None
        crew = await self.crew(case)
        before = self._places.cpu_s()
        results = tell(crew, Order(ALLOCATE, case.count, lowest=case.policy == "lowest"))
        store_s = self._places.cpu_s() - before
        sample = summed([Result.load(line) for line in results], store_s)
        _check(case, crew[0], case.held + sample.count)
        tell(crew, Order(GIVE_BACK))
        _check(case, crew[0], case.held)
        return sample

    async def crew(self, case: Case) -> list[Child]:
        """Return the processes of a case; those that are new have allocated before."""
        key = (case.store, case.work, case.pool, case.held)
        if key not in self._grounds:
            self._grounds[key] = await self._ground(case)
        ground = self._grounds[key]
        new = [self._child(ground.site) for _ in range(len(ground.crew), case.servers)]
        for child in new:
            child.subnet()
        ground.crew.extend(new)
        _warm(new)
        return ground.crew[: case.servers]

    async def _ground(self, case: Case) -> Ground:
        driver = case.work.removeprefix(WORK)
        database = await self._stack.enter_async_context(self._places.fresh(case.store))
        ledger = await self._stack.enter_async_context(self._places.ledger()) if driver == LEDGER else None
        site = Site(driver, database, case.pool, case.held, ledger)
        first = self._child(site)
        made = replace(site, subnet=first.subnet())
        _warm([first])
        return Ground(made, [first])

    def _child(self, site: Site) -> Child:
        child = Child(site)
        self._stack.callback(child.end)
        return child


def tell(crew: Sequence[Child], order: Order) -> list[str]:
    """Have all do the same at once; return their answers."""
    for child in crew:
        child.order(order)
    return [child.answer() for child in crew]


def _warm(crew: Sequence[Child]) -> None:
    """Have views loaded, connections opened and statements compiled."""
    tell(crew, WARM)
    tell(crew, Order(GIVE_BACK))


def _check(case: Case, child: Child, wanted: int) -> None:
    [found] = tell([child], Order(COUNT))
    if int(found) != wanted:
        raise RowsLost(f"{case}: {wanted} rows should be there, {found} found")


async def measure_neutron(places: Places, pairs: Sequence[Pair], rounds: int, progress: Progress) -> list[Measured]:
    """Measure all pairs, one of Neutron's databases after the other."""
    measured: list[Measured] = []
    async with NeutronPlaces(places) as neutron_places:
        for _, group in itertools.groupby(pairs, lambda pair: pair.subject.store):
            async with NeutronBench(neutron_places) as bench:
                measured += await _measure_rounds(bench, list(group), rounds, progress)
    return measured


async def _measure_rounds(
    bench: NeutronBench, pairs: Sequence[Pair], rounds: int, progress: Progress
) -> list[Measured]:
    measured = [Measured(pair) for pair in pairs]
    for number in range(1, rounds + 1):
        samples: dict[Case, Sample] = {}
        for each in measured:
            progress.step(f"round {number}/{rounds}  {each.pair.name}")
            for case in (each.pair.base, each.pair.subject):
                if case is not None and case not in samples:
                    samples[case] = await bench.measure(case)
            if each.pair.base is not None:
                each.base.append(samples[each.pair.base])
            each.subject.append(samples[each.pair.subject])
    return measured
