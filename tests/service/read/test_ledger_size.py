"""The size of a ledger: read now and then, shared by all who ask, and compared with what it was."""

import asyncio

import pytest

from tenure.kernel.errors import StoreUnavailable
from tenure.ports import Size
from tenure.service.read import ledger_size
from tenure.service.read.ledger_size import Growth, SizeGauge
from tenure.stores.memory.store import MemoryStore


class CountedStore(MemoryStore):
    """A store that says what it is told to, and counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.takes_s = 0.0
        self.away = False
        self.told = Size(10, 10, 0, 0, 1000)

    async def size(self) -> Size:
        """Tell the size."""
        self.asked += 1
        CLOCK[0] += self.takes_s
        await asyncio.sleep(0)
        if self.away:
            raise StoreUnavailable("away", outcome="none")
        return self.told


CLOCK = [0.0]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let the test move the time that the gauge goes by."""
    CLOCK[0] = 1000.0
    monkeypatch.setattr(ledger_size, "_now_s", lambda: CLOCK[0])
    return CLOCK


async def test_those_who_ask_together_share_a_reading_and_it_serves_a_while(clock: list[float]) -> None:
    store = CountedStore()
    gauge = SizeGauge(store)

    read = await asyncio.gather(*(gauge.current() for _ in range(5)))
    clock[0] += 59
    again = await gauge.current()
    assert (store.asked, again is read[0]) == (1, True)
    clock[0] += 2
    await gauge.current()

    assert store.asked == 2


async def test_what_takes_long_to_read_is_read_more_seldom(clock: list[float]) -> None:
    store = CountedStore()
    store.takes_s = 0.5
    gauge = SizeGauge(store)

    await gauge.current()
    clock[0] += 499
    await gauge.current()
    assert store.asked == 1
    clock[0] += 2
    await gauge.current()

    assert store.asked == 2


async def test_growth_is_told_from_the_second_reading_on_for_a_day(clock: list[float]) -> None:
    store = CountedStore()
    gauge = SizeGauge(store)
    await gauge.current()
    first = gauge.growth()
    clock[0] += 3600
    store.told = Size(110, 110, 0, 0, 3000)
    await gauge.current()

    assert first is None
    assert gauge.growth() == Growth(3600.0, 2400.0, 48_000.0)


async def test_growth_looks_back_a_day_and_no_further(clock: list[float]) -> None:
    store = CountedStore()
    gauge = SizeGauge(store)
    for hour in range(48):
        store.told = Size(hour * (1000 if hour < 20 else 10), 0, 0, 0, None)
        await gauge.current()
        clock[0] += 3600

    growth = gauge.growth()

    assert growth is not None
    assert (growth.over_s, growth.changes_per_day, growth.bytes_per_day) == (24 * 3600, 240.0, None)


async def test_a_reading_that_failed_leaves_the_last_one(clock: list[float]) -> None:
    store = CountedStore()
    gauge = SizeGauge(store)
    read = await gauge.current()
    store.away = True
    clock[0] += 100

    with pytest.raises(StoreUnavailable):
        await gauge.current()

    assert gauge.last is read
    store.away = False
    assert await gauge.anew() is read
    assert store.asked == 3
