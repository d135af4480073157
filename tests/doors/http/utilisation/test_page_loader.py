"""A reading in which changes come at the worst moments, one by one."""

from collections.abc import Awaitable, Callable

import pytest

import tenure
from tenure.doors.http.utilisation.page_loader import Feed, HoldingChange
from tenure.doors.http.utilisation.subnet_tally import Tally, UnitUse
from tenure.doors.http.utilisation.subnet_terrain import terrain_of
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.kernel.plan.blocked_ranges import Barriers
from tenure.kernel.plan.plan_model import Configuration
from tenure.service.ledger.space_scan import Survey


async def build(ledger: tenure.AsyncLedger) -> Configuration:
    """Make racks that hold a /28 each, and two /30 apart from each other inside one of them."""
    await ledger.add_network("racks", space="site")
    await ledger.add_subnet("racks", "192.0.2.0/24", unit=28, keep_back=[])
    await ledger.add_pool("racks", "192.0.2.0/24")
    await ledger.add_network("tiny", space="site")
    for last in (16, 24, 128):
        await ledger.add_subnet("tiny", f"192.0.2.{last}/30", keep_back=[])
        await ledger.add_pool("tiny", f"192.0.2.{last}/30")
    [site] = await ledger.spaces()
    return site


def tallies(site: Configuration) -> list[Tally]:
    """Return empty tallies of the two that lie in one rack."""
    tiny, barriers = site.network("tiny"), Barriers(site)
    return [Tally(tiny.id, terrain_of(tiny, subnet, barriers)) for subnet in tiny.subnets[:2]]


def counts(books: list[Tally]) -> list[tuple[int, int]]:
    """Return how many units of each are held elsewhere, and free."""
    return [(book.total(UnitUse.ELSEWHERE), book.counts()["free"]) for book in books]


def ended(holding: Holding) -> HoldingChange:
    """Say that a holding ended."""
    return HoldingChange(holding.row.network, holding.row.first, holding.row.last, State.HELD, None)


class Unheard:
    """A space that takes no note of what a feed meets; nobody's time is over in it."""

    def is_over(self, first: int) -> bool:
        return False

    def meet(self, step: HoldingChange) -> None:
        pass


class Moments:
    """Does something each time a page was read, before it is taken in."""

    def __init__(self) -> None:
        self.works: list[Callable[[], Awaitable[None]]] = []

    async def __call__(self, seq: int) -> None:
        """Do what is next."""
        if self.works:
            await self.works.pop(0)()


async def nothing() -> None:
    """Let a page pass."""


async def test_a_holding_larger_than_two_blocks_counts_in_each_once(ledger: tenure.AsyncLedger) -> None:
    site = await build(ledger)
    await ledger.allocate("racks", owner="rack/1", address="192.0.2.16")
    books = tallies(site)

    await Feed(site.space, books, Survey(ledger), Moments(), Unheard()).run()

    assert counts(books) == [(4, 0), (4, 0)]


@pytest.mark.parametrize("page", [0, 1])
async def test_a_large_holding_that_ends_between_two_pages_ends_in_both_blocks(
    ledger: tenure.AsyncLedger, page: int
) -> None:
    site = await build(ledger)
    rack = await ledger.allocate("racks", owner="rack/1", address="192.0.2.16")
    books, moments = tallies(site), Moments()
    feed = Feed(site.space, books, Survey(ledger), moments, Unheard())

    async def end() -> None:
        await ledger.release("racks", rack.address, owner="rack/1")
        feed.follow(ended(rack))

    moments.works = [*[nothing] * page, end]

    await feed.run()

    assert counts(books) == [(0, 4), (0, 4)]


@pytest.mark.parametrize("shown", [False, True])
async def test_a_change_that_a_page_shows_or_not_counts_once(ledger: tenure.AsyncLedger, shown: bool) -> None:
    site = await build(ledger)
    books, moments = tallies(site), Moments()
    feed = Feed(site.space, books, Survey(ledger), moments, Unheard())
    tiny = await ledger.allocate("tiny", owner="vm/1", address="192.0.2.24") if shown else None

    async def granted() -> None:
        """Tell of the grant only now: the page was read before (or after) it."""
        held = tiny or await ledger.allocate("tiny", owner="vm/1", address="192.0.2.24")
        feed.follow(HoldingChange(held.row.network, held.row.first, held.row.last, None, State.HELD))

    moments.works = [nothing, granted]

    await feed.run()

    assert [book.total(UnitUse.HELD) for book in books] == [0, 1]


async def test_a_change_below_the_frontier_counts_at_once(ledger: tenure.AsyncLedger) -> None:
    site = await build(ledger)
    held = await ledger.allocate("tiny", owner="vm/1", address="192.0.2.16")
    books, moments = tallies(site), Moments()
    feed = Feed(site.space, books, Survey(ledger), moments, Unheard())

    async def drained_and_taken_back() -> None:
        """Change what is counted already."""
        row = held.row
        feed.follow(HoldingChange(row.network, row.first, row.last, State.HELD, State.DRAINING))
        feed.follow(HoldingChange(row.network, row.first, row.last, State.DRAINING, State.HELD))

    moments.works = [nothing, drained_and_taken_back]

    await feed.run()

    assert [(book.total(UnitUse.HELD), book.total(UnitUse.DRAINING)) for book in books] == [(1, 0), (0, 0)]
