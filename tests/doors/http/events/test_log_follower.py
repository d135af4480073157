"""The log, followed for all: a fault of one listener is told, and ends nothing."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import tenure
from tenure.doors.http.events import log_follower
from tenure.doors.http.events.log_follower import LINGERS_S, News
from tenure.doors.http.server_state import Site
from tenure.doors.http.settings import Settings
from tenure.doors.http.utilisation.census import Census
from tenure.kernel.holdings.holding_model import Change
from tests.contract.ledger.plan import small_plan


@pytest.fixture
async def ledger() -> AsyncIterator[tenure.AsyncLedger]:
    async with await tenure.open_async("memory:") as opened:
        await small_plan(opened)
        yield opened


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Give what is told of faults, and let nobody wait long after one."""
    monkeypatch.setattr(log_follower, "AFTER_OUTAGE_S", 0.01)
    told: list[dict[str, Any]] = []
    asyncio.get_event_loop().set_exception_handler(lambda _, said: told.append(said))
    return told


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[tenure.AsyncLedger]:
    """Give the ledgers that are closed."""
    close, told = tenure.AsyncLedger.close, list[tenure.AsyncLedger]()

    async def closing(ledger: tenure.AsyncLedger) -> None:
        told.append(ledger)
        await close(ledger)

    monkeypatch.setattr(tenure.AsyncLedger, "close", closing)
    return told


class Listener:
    """Hears of changes and gaps; fails at the first of either that it is told to."""

    def __init__(self, *, change: bool = False, gap: bool = False) -> None:
        self.fails = {"change": change, "gap": gap}
        self.heard: list[str] = []

    def _hear(self, what: str) -> None:
        if self.fails[what]:
            self.fails[what] = False
            raise KeyError(what)
        self.heard.append(what)

    def change(self, _: Change) -> None:
        """Hear of a change."""
        self._hear("change")

    def gap(self) -> None:
        """Hear of a gap."""
        self._hear("gap")


async def test_a_listener_that_fails_is_told_of_and_the_log_is_followed_on(
    ledger: tenure.AsyncLedger, faults: list[dict[str, Any]]
) -> None:
    news, bad, good = News(ledger), Listener(change=True, gap=True), Listener()
    for each in (bad, good):
        news.listen(each.change, gap=each.gap)
    await news.open()
    for number in (1, 2):
        await ledger.allocate("net", owner=f"vm/{number}")
        async with asyncio.timeout(5):
            await news.beyond(await ledger.last_change() - 1)
    await news.close()

    assert [type(said["exception"]) for said in faults] == [KeyError, KeyError]
    assert (bad.heard, good.heard) == (["change"], ["gap", "change"])


async def test_closing_closes_the_ledger_whatever_becomes_of_the_rest(
    monkeypatch: pytest.MonkeyPatch, closed: list[tenure.AsyncLedger]
) -> None:
    close = News.close

    async def fail(news: News) -> None:
        await close(news)
        raise KeyError("fault")

    monkeypatch.setattr(News, "close", fail)
    site = Site(Settings(store="memory:"))
    await site.open()
    with pytest.raises(KeyError):
        await site.close()

    assert len(closed) == 1


async def test_a_site_that_opens_half_way_closes_what_it_opened(
    monkeypatch: pytest.MonkeyPatch, closed: list[tenure.AsyncLedger]
) -> None:
    async def fail(_: Census) -> None:
        raise tenure.StoreUnavailable("away", outcome="none")

    monkeypatch.setattr(Census, "open", fail)
    site = Site(Settings(store="memory:"))
    with pytest.raises(tenure.StoreUnavailable):
        await site.open()

    assert len(closed) == 1


def test_the_log_is_followed_longer_than_monitoring_lets_pass_between_two_looks() -> None:
    assert LINGERS_S > 2 * 60
