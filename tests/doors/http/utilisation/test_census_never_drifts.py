"""The census against a recount, after random walks, while others change everything."""

import asyncio

import pytest

import tenure
from tenure.doors.http.utilisation.map_cells_of import cut, draw
from tests.doors.http.utilisation.conftest import Counted
from tests.doors.http.utilisation.oracle import counted as as_counted
from tests.doors.http.utilisation.oracle import recount
from tests.doors.http.utilisation.random_walk import NETWORKS, Walker, build


async def assert_right(counted: Counted) -> None:
    """Compare tallies, indexes and the newest point of trends with what the store holds."""
    await counted.settle()
    assert as_counted(counted.census) == await recount(counted.ledger)
    for space, network in list(counted.census.networks()):
        for subnet in network.subnets:
            spots = await counted.census.atlas.spots(space, (network.id, subnet.uuid))
            drawn = draw(spots, cut(0, spots.terrain.units - 1, 16))
            counts = space.tallies[network.id, subnet.uuid].counts()
            for name in counts.keys() - {"units", "pooled_taken", "pooled_kept"}:
                assert sum(cell.get(name, 0) for cell in drawn) == counts[name], (network.name, name)


@pytest.mark.parametrize("seed", range(3))
async def test_a_random_walk_is_counted_right_all_along(counted: Counted, seed: int) -> None:
    await build(counted.ledger)
    walker = Walker(counted.ledger, seed)
    for _ in range(5):
        await walker.go(40)

        await assert_right(counted)


@pytest.mark.parametrize("page", [1, 7, 2000])
async def test_counting_is_right_while_changes_go_on(ledger: tenure.AsyncLedger, page: int) -> None:
    await build(ledger)
    await Walker(ledger, 99).go(150, edits=False)
    walkers = [asyncio.create_task(Walker(ledger, seed).go(60)) for seed in range(4)]
    late = Counted(ledger, page)
    await late.open()
    for network in NETWORKS:
        space, found = await late.census.counted(network)
        for subnet in found.subnets:
            await late.census.atlas.spots(space, (found.id, subnet.uuid))
    await asyncio.gather(*walkers)

    await assert_right(late)
    await late.close()


async def test_two_that_count_the_same_ledger_agree(ledger: tenure.AsyncLedger, place: str) -> None:
    await build(ledger)
    one = Counted(ledger)
    await one.open()
    async with await (tenure.open_async(place) if place != "memory:" else _same(ledger)) as other:
        two = Counted(other, page=5)
        await two.open()
        await asyncio.gather(Walker(ledger, 1).go(60), Walker(other, 2).go(60))

        await assert_right(one)
        await assert_right(two)
        await two.close()
    await one.close()


class _Shared:
    """A ledger that somebody else closes."""

    def __init__(self, ledger: tenure.AsyncLedger) -> None:
        self._ledger = ledger

    async def __aenter__(self) -> tenure.AsyncLedger:
        return self._ledger

    async def __aexit__(self, *_: object) -> None:
        return None


async def _same(ledger: tenure.AsyncLedger) -> _Shared:
    """A memory store lives in one process: there the other is the same."""
    return _Shared(ledger)
