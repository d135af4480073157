"""Counts, maps and trends in time: what is due is free there, before and after the log says that it ended."""

from collections.abc import AsyncIterator

import pytest

import tenure
from tenure.doors.http.routing.principal import Visitor
from tenure.doors.http.utilisation.map_view import Stretch, look
from tenure.doors.http.utilisation.subnet_tally import UnitUse
from tenure.doors.http.utilisation.trends import Point
from tenure.kernel.addressing.addresses import Family
from tenure.ports import LedgerStore
from tests.contract.providers import Provider
from tests.doors.http.utilisation.conftest import Counted
from tests.doors.http.utilisation.oracle import counted as as_counted
from tests.doors.http.utilisation.oracle import recount
from tests.infrastructure.store_clock import SECOND_US, StoreClock, clocked_ledger

pytestmark = pytest.mark.every_store


Timed = tuple[tenure.AsyncLedger, StoreClock]


@pytest.fixture
async def clocked(ledger_provider: Provider[LedgerStore]) -> AsyncIterator[Timed]:
    """Give a ledger on every store, whose clock the test moves, with a pool of ten that cool for two seconds."""
    async with clocked_ledger(ledger_provider) as (ledger, clock):
        await ledger.add_network("net")
        await ledger.add_subnet("net", "192.0.2.0/24")
        await ledger.add_pool("net", "192.0.2.10-192.0.2.19", cooling_s=2)
        yield ledger, clock


@pytest.fixture
def clock(clocked: Timed) -> StoreClock:
    return clocked[1]


@pytest.fixture
async def timed(clocked: Timed) -> AsyncIterator[Counted]:
    """Give a census of it."""
    given = Counted(clocked[0], page=2)
    await given.open()
    yield given
    await given.close()


async def states(timed: Counted) -> dict[str, int]:
    """Count what is held, pending, cooling and free."""
    counts = await timed.counts("net")
    return {name: counts[name] for name in ("held", "pending", "cooling", "free") if name in counts}


async def test_what_is_due_counts_as_free_as_soon_as_its_time_is_over(timed: Counted, clock: StoreClock) -> None:
    ledger = timed.ledger
    for number in range(4):
        await ledger.allocate("net", owner=f"vm/{number}")
    await ledger.hold("net", owner="vm/pending", lasts_s=3)
    await ledger.release("net", "192.0.2.11", owner="vm/1")

    assert await states(timed) == {"held": 3, "pending": 1, "cooling": 1, "free": 5}
    await clock.advance(2)
    assert await states(timed) == {"held": 3, "pending": 1, "free": 6}
    await clock.advance(1)
    assert await states(timed) == {"held": 3, "free": 7}


async def test_the_entry_that_ends_it_and_the_next_grant_count_once(timed: Counted, clock: StoreClock) -> None:
    ledger = timed.ledger
    await ledger.allocate("net", owner="vm/0")
    await ledger.release("net", "192.0.2.10", owner="vm/0")
    await clock.advance(2)
    assert await states(timed) == {"free": 10}

    assert (await ledger.allocate("net", owner="vm/1")).address == "192.0.2.10"
    assert await states(timed) == {"held": 1, "free": 9}
    await ledger.release("net", "192.0.2.10", owner="vm/1")
    assert await states(timed) == {"cooling": 1, "free": 9}
    await clock.advance(2)
    await ledger.sweep()
    assert await states(timed) == {"free": 10}


async def test_a_late_confirmation_counts_again(timed: Counted, clock: StoreClock) -> None:
    ledger = timed.ledger
    held = await ledger.hold("net", owner="vm/late", lasts_s=1)
    await clock.advance(1)
    assert await states(timed) == {"free": 10}

    await ledger.modify_holding("net", held.address, owner="vm/late", description="late")
    assert await states(timed) == {"free": 10}
    await ledger.confirm("net", held.address, owner="vm/late")
    assert await states(timed) == {"held": 1, "free": 9}


async def test_a_census_that_begins_later_and_an_edit_meanwhile_count_the_same(
    timed: Counted, clock: StoreClock
) -> None:
    ledger = timed.ledger
    for number in range(5):
        await ledger.allocate("net", owner=f"vm/{number}")
    for number in range(3):
        await ledger.release("net", f"192.0.2.1{number}", owner=f"vm/{number}")
    await clock.advance(2)
    assert await states(timed) == {"held": 2, "free": 8}

    await ledger.add_pool("net", "192.0.2.30-192.0.2.31")  # the subnet is counted afresh
    assert await states(timed) == {"held": 2, "free": 10}
    later = Counted(ledger)
    await later.open()
    await later.settle()
    assert await later.counts("net") == await timed.counts("net")
    await later.close()
    await ledger.sweep()
    await timed.settle()
    assert as_counted(timed.census) == await recount(ledger)


async def test_the_map_shows_it_free(timed: Counted, clock: StoreClock) -> None:
    ledger = timed.ledger
    await ledger.allocate("net", owner="vm/0")
    await ledger.release("net", "192.0.2.10", owner="vm/0")

    async def cell() -> tuple[int, int, object]:
        space, network = await timed.census.counted("net")
        stretch = Stretch.read(network, None, "192.0.2.10", "192.0.2.11")
        found = (await look(timed.census, space, stretch, 4, Visitor("reader", "reader", read=True))).cells[0]
        return found.cooling, found.free, found.holding

    cooling, free, holding = await cell()
    assert (cooling, free, holding is None) == (1, 0, False)
    await clock.advance(2)
    assert await cell() == (0, 1, None)


async def test_the_trend_ends_it_at_its_deadline(timed: Counted, clock: StoreClock) -> None:
    ledger = timed.ledger
    await ledger.allocate("net", owner="vm/0")
    await clock.advance(5)
    await ledger.release("net", "192.0.2.10", owner="vm/0")
    await clock.advance(5)

    async def points() -> list[Point]:
        space, network = await timed.census.counted("net")
        assert await timed.census.wait_until(lambda: timed.census.trends.read)
        now_s = clock.now_us // SECOND_US
        held, cooling = (space.total(network, Family.IPV4, use) for use in (UnitUse.HELD, UnitUse.COOLING))
        now = Point(now_s, held, cooling)
        return timed.census.trends.of(network.id, Family.IPV4).points(now, [now_s, now_s - 2, now_s - 4, now_s - 6])

    before = [(each.held, each.cooling) for each in await points()]
    await ledger.sweep()
    after = [(each.held, each.cooling) for each in await points()]

    assert sorted(before) == sorted([(0, 0), (0, 0), (0, 1), (1, 0)])
    assert after == before
