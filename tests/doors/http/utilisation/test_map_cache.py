"""The indexes that maps are drawn from: what they cost, and when they are let go."""

import time
from collections.abc import Sequence
from typing import Any

import pytest

from tenure.doors.http.routing.principal import Visitor
from tenure.doors.http.utilisation import map_cache
from tenure.doors.http.utilisation.map_view import Stretch, look
from tenure.kernel.holdings.holding_model import Row
from tenure.service.ledger.space_scan import Survey
from tests.doors.http.utilisation.conftest import Counted

READER = Visitor("reader", "reader", read=True)


async def looked_at(counted: Counted, name: str) -> int:
    """Look at a network's first subnet; return how many holdings were read for that."""
    space, network = await counted.census.counted(name)
    survey, found = counted.census.survey, 0

    async def rows(*where: Any, **more: Any) -> Sequence[Row]:
        nonlocal found
        page = await Survey.rows(survey, *where, **more)
        found += len(page)
        return page

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(survey, "rows", rows)
        await look(counted.census, space, Stretch.read(network, None, None, None), 256, READER)
    return found


async def some_networks(counted: Counted, count: int) -> list[str]:
    """Make networks with a few holdings each, and look at all of them."""
    names = [f"net{number}" for number in range(count)]
    for name in names:
        await counted.ledger.add_network(name)
        await counted.ledger.add_subnet(name, "10.0.0.0/16")
        await counted.ledger.add_pool(name, "10.0.0.0/16")
        await counted.ledger.allocate_many(name, owners=[f"vm/{number}" for number in range(10)])
        await looked_at(counted, name)
    return names


def kept(counted: Counted) -> list[str]:
    """Name the networks of which an index is kept."""
    return [network.name for space, network in counted.census.networks() if space.spots]


async def test_of_many_subnets_the_last_that_were_looked_at_are_kept(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_cache, "MOST_LOOKED_AT", 2)
    names = await some_networks(counted, 4)

    assert kept(counted) == names[2:]


async def test_indexes_are_bounded_by_what_they_hold(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_cache, "MOST_KEPT", 25)
    names = await some_networks(counted, 4)

    assert kept(counted) == names[2:]
    assert await looked_at(counted, names[0]) > 0


async def test_what_nobody_looks_at_any_more_is_let_go(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_cache, "LOOKS_EVERY_S", 0.01)
    await counted.close()
    again = Counted(counted.ledger)
    await again.open()
    await some_networks(again, 1)
    before = kept(again)
    monkeypatch.setattr(map_cache, "IDLE_S", 0.0)
    deadline = time.monotonic() + 10
    while kept(again) and time.monotonic() < deadline:
        await again.census.wait_until(lambda: False, 0.05)

    assert (before, kept(again)) == (["net0"], [])
    await again.close()


async def test_a_map_that_was_looked_at_is_drawn_again_without_reading_its_holdings(counted: Counted) -> None:
    [name] = await some_networks(counted, 1)
    await counted.ledger.allocate_many(name, owners=[f"vm/more-{number}" for number in range(50)])

    assert await looked_at(counted, name) == 0
