"""Pages of holdings with filters: how much one of them looks at, and that none loses a holding."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

import tenure
from tenure.doors.http.routing import holding_pages
from tenure.doors.http.routing.holding_pages import HoldingsQuery, list_everywhere

NETWORKS, EACH = 6, 5


@pytest.fixture
async def ledger() -> AsyncIterator[tenure.AsyncLedger]:
    """Give a ledger of some small networks in which every fifth holding is a pod's; in the last network none is."""
    async with await tenure.open_async("memory:") as opened:
        for number in range(NETWORKS):
            name = f"net{number}"
            await opened.add_network(name)
            await opened.add_subnet(name, f"10.0.{number}.0/24")
            await opened.add_pool(name, f"10.0.{number}.0/24")
            kinds = ["pod" if place == number else "vm" for place in range(EACH)]
            for place, kind in enumerate(kinds):
                await opened.allocate(name, owner=f"{kind}/{place}")
        yield opened


@pytest.mark.parametrize("most", [1, 2, 3, 7, 10, 11, 1000])
@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_a_page_of_all_networks_looks_at_so_many_holdings_and_the_next_goes_on_there(
    ledger: tenure.AsyncLedger, monkeypatch: pytest.MonkeyPatch, most: int, limit: int
) -> None:
    read_at_once, looked = 2, 0
    read = ledger.holdings

    async def counted(*where: Any, **more: Any) -> list[tenure.Holding]:
        nonlocal looked
        page = await read(*where, **more)
        looked += len(page)
        return page

    monkeypatch.setattr(ledger, "holdings", counted)
    monkeypatch.setattr(holding_pages, "LOOKED_AT_ONCE", read_at_once)
    monkeypatch.setattr(holding_pages, "MOST_LOOKED_AT", most)
    found, counts, after = [], [], None
    while True:
        looked = 0
        page = await list_everywhere(ledger, HoldingsQuery(kind="pod", limit=limit, after=after), None)
        found += [(each.network, each.owner) for each in page.items]
        counts.append(looked)
        after = page.next
        if after is None:
            break

    assert found == [(f"net{number}", f"pod/{number}") for number in range(EACH)]
    assert max(counts) < most + read_at_once
