"""The order of pools: *lowest* picks from pools of a lower rank first, among equals as they are written."""

from typing import Any

import pytest

import tenure

Ledger = tenure.AsyncLedger


@pytest.fixture(autouse=True)
async def plan(ledger: Ledger) -> None:
    """Lay out IPv6 before IPv4, two addresses each."""
    await ledger.add_network("net")
    await ledger.add_subnet("net", "2001:db8::/64", name="six")
    await ledger.add_subnet("net", "192.0.2.0/24", name="four")
    await ledger.add_pool("net", "2001:db8::10-2001:db8::11", name="v6")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.11", name="v4")


async def given(ledger: Ledger, count: int = 1) -> list[str]:
    """Allocate to new owners, without any limits; return the families."""
    first = len(await ledger.holdings("net"))
    return [str((await ledger.allocate("net", owner=f"vm/{first + n}")).family) for n in range(count)]


async def test_pools_of_one_rank_are_picked_from_as_they_are_written(ledger: Ledger) -> None:
    assert await given(ledger, 4) == ["ipv6", "ipv6", "ipv4", "ipv4"]


async def test_a_pool_of_a_higher_rank_is_picked_from_when_the_others_are_full(ledger: Ledger) -> None:
    await ledger.modify_pool("net", "v6", rank=1)

    assert await given(ledger, 4) == ["ipv4", "ipv4", "ipv6", "ipv6"]


async def test_a_rank_counts_from_the_next_allocation_on(ledger: Ledger) -> None:
    before = await given(ledger)
    await ledger.modify_pool("net", "v6", rank=7)
    between = await given(ledger)
    await ledger.modify_pool("net", "v6", rank=0)

    assert [*before, *between, *await given(ledger)] == ["ipv6", "ipv4", "ipv6"]


async def test_a_new_pool_may_have_a_rank_and_the_plan_shows_it(ledger: Ledger) -> None:
    await ledger.modify_pool("net", "v6", rank=2)
    await ledger.add_pool("net", "192.0.2.30", name="spare", rank=1)
    network = await ledger.network("net")

    assert [(pool.name, pool.rank) for _, pool in network.pools()] == [("v6", 2), ("v4", 0), ("spare", 1)]
    assert await given(ledger, 4) == ["ipv4", "ipv4", "ipv4", "ipv6"]
    assert await ledger.verify() == []


@pytest.mark.parametrize("wrong", [-1, 1001, "1", True, 1.5])
async def test_a_rank_that_is_none_is_refused_by_name(ledger: Ledger, wrong: Any) -> None:
    with pytest.raises(tenure.Invalid) as modified:
        await ledger.modify_pool("net", "v6", rank=wrong)
    with pytest.raises(tenure.Invalid) as added:
        await ledger.add_pool("net", "192.0.2.30", rank=wrong)

    assert (modified.value.field, added.value.field) == ("rank", "rank")


async def test_a_pool_that_is_changed_needs_a_rank_that_is_one(ledger: Ledger) -> None:
    with pytest.raises(tenure.Invalid, match="rank"):
        await ledger.modify_pool("net", "v6", rank=None)  # type: ignore[arg-type]


async def test_a_range_that_is_added_to_a_pool_is_like_its_others(ledger: Ledger) -> None:
    await ledger.modify_pool("net", "v4", rank=3, cooling_s=60, policy="random")
    await ledger.add_pool("net", "192.0.2.30", name="v4")
    network = await ledger.add_pool("net", "192.0.2.40", name="v4", rank=0, cooling_s=0)

    parts = [(pool.policy, pool.rank, pool.cooling_s) for _, pool in network.pools() if pool.name == "v4"]
    assert parts == [("random", 3, 60), ("random", 3, 60), ("random", 0, 0)]


async def test_the_first_range_of_a_pool_is_the_one_that_later_ones_are_like_also_in_one_apply(ledger: Ledger) -> None:
    await ledger.apply(
        [
            tenure.AddPool(network="net", range="192.0.2.30", name="both", rank=2),
            tenure.AddPool(network="net", range="2001:db8::30", name="both", rank=1),
            tenure.AddPool(network="net", range="192.0.2.40", name="both"),
        ]
    )
    network = await ledger.network("net")

    assert [pool.rank for _, pool in network.pools() if pool.name == "both"] == [1, 2, 1]
