"""Counts of every kind of unit, by hand, on every store."""

import tenure
from tenure.service.apply.operations import EndCooling
from tests.doors.http.utilisation.conftest import Counted
from tests.doors.http.utilisation.oracle import counted as as_counted
from tests.doors.http.utilisation.oracle import recount


async def test_an_empty_subnet_has_what_its_pools_have_free(counted: Counted) -> None:
    await counted.ledger.add_network("net1")
    await counted.ledger.add_subnet("net1", "192.0.2.0/28", gateway="192.0.2.1")
    await counted.ledger.add_pool("net1", "192.0.2.4-192.0.2.11")

    assert await counted.counts("net1") == {"units": 16, "pooled": 8, "free": 8, "kept_back": 3, "outside": 5}


async def test_every_state_is_counted_by_itself(counted: Counted) -> None:
    ledger = counted.ledger
    await ledger.add_network("net1")
    await ledger.add_subnet("net1", "192.0.2.0/24")
    await ledger.add_pool("net1", "192.0.2.10-192.0.2.19", cooling_s=3600)
    held = await ledger.allocate("net1", owner="vm/held")
    gone = await ledger.allocate("net1", owner="vm/gone")
    drained = await ledger.allocate("net1", owner="vm/drained")
    await ledger.hold("net1", owner="vm/pending")
    await ledger.modify_holding("net1", drained.address, owner="vm/drained", state="draining")
    await ledger.release("net1", gone.address, owner="vm/gone")
    await ledger.transfer("net1", held.address, owner="vm/held", to="vm/other")

    counts = await counted.counts("net1")

    assert {name: counts[name] for name in ("held", "pending", "draining", "cooling", "free")} == {
        "held": 1,
        "pending": 1,
        "draining": 1,
        "cooling": 1,
        "free": 6,
    }


async def test_what_a_release_ends_is_known_though_the_log_does_not_tell(counted: Counted) -> None:
    ledger = counted.ledger
    await ledger.add_network("net1")
    await ledger.add_subnet("net1", "192.0.2.0/24")
    await ledger.add_pool("net1", "192.0.2.10-192.0.2.19", cooling_s=3600)
    pending = await ledger.hold("net1", owner="vm/1")
    draining = await ledger.allocate("net1", owner="vm/2")
    confirmed = await ledger.hold("net1", owner="vm/3")
    await ledger.modify_holding("net1", draining.address, owner="vm/2", state="draining")
    await ledger.confirm("net1", confirmed.address, owner="vm/3")
    await counted.settle()
    for holding in (pending, draining, confirmed):
        await ledger.release("net1", holding.address, owner=holding.owner, lingers_s=7200)
    await ledger.apply([EndCooling(network="net1", address=draining.address, owner="vm/2")])

    await counted.settle()
    assert as_counted(counted.census) == await recount(ledger)
    assert (await counted.counts("net1"))["cooling"] == 2


async def test_reserved_kept_back_and_preallocated_units_are_not_free(counted: Counted) -> None:
    ledger = counted.ledger
    await ledger.add_network("net1")
    await ledger.add_subnet("net1", "192.0.2.0/28", gateway="192.0.2.5")
    await ledger.add_pool("net1", "192.0.2.0-192.0.2.15")
    await ledger.reserve("net1", "192.0.2.4-192.0.2.7")
    await ledger.preallocate("net1", owner="vm/1", address="192.0.2.9")
    await ledger.allocate("net1", owner="vm/2", address="192.0.2.6", reserved="allow")

    assert await counted.counts("net1") == {
        "units": 16,
        "pooled": 16,
        "pooled_taken": 1,
        "pooled_kept": 6,
        "held": 1,
        "reserved": 2,
        "kept_back": 3,
        "preallocated": 1,
        "free": 9,
    }


async def test_retired_pools_have_nothing_free(counted: Counted) -> None:
    ledger = counted.ledger
    await ledger.add_network("net1")
    await ledger.add_subnet("net1", "192.0.2.0/28", keep_back=[])
    await ledger.add_pool("net1", "192.0.2.0-192.0.2.3", name="old")
    await ledger.add_pool("net1", "192.0.2.4-192.0.2.7", name="new")
    await ledger.allocate("net1", owner="vm/1", pool="old")
    await ledger.modify_pool("net1", "old", retired=True)

    one = await counted.counts("net1")
    await ledger.modify_network("net1", retired=True)
    both = await counted.counts("net1")

    assert one == {"units": 16, "pooled": 8, "pooled_taken": 1, "held": 1, "retired": 3, "free": 4, "outside": 8}
    assert both == {"units": 16, "pooled": 8, "pooled_taken": 1, "held": 1, "retired": 7, "outside": 8}


async def test_prefixes_are_counted_as_units(counted: Counted) -> None:
    ledger = counted.ledger
    await ledger.add_network("net1")
    await ledger.add_subnet("net1", "2001:db8::/48", unit=64, gateway="2001:db8:0:3::1")
    await ledger.add_pool("net1", "2001:db8:0:1::-2001:db8:0:f:ffff:ffff:ffff:ffff")
    await ledger.allocate("net1", owner="vm/1")
    await ledger.reserve("net1", "2001:db8:0:5::7")

    assert await counted.counts("net1") == {
        "units": 65536,
        "pooled": 15,
        "pooled_taken": 1,
        "pooled_kept": 2,
        "held": 1,
        "kept_back": 1,
        "reserved": 1,
        "free": 12,
        "outside": 65521,
    }


async def test_a_64_costs_what_its_holdings_cost(counted: Counted) -> None:
    ledger = counted.ledger
    await ledger.add_network("net1")
    await ledger.add_subnet("net1", "2001:db8::/64", keep_back=[])
    await ledger.add_pool("net1", "2001:db8::/64", policy="random")
    await ledger.allocate_many("net1", owners=[f"vm/{number}" for number in range(20)])

    assert await counted.counts("net1") == {
        "units": 1 << 64, "pooled": 1 << 64, "pooled_taken": 20, "held": 20, "free": (1 << 64) - 20,
    }  # fmt: skip


async def test_a_holding_of_another_network_in_the_space_makes_a_unit_not_free(counted: Counted) -> None:
    ledger = counted.ledger
    for name in ("one", "two"):
        await ledger.add_network(name, space="site")
        await ledger.add_subnet(name, "192.0.2.0/28", keep_back=[])
        await ledger.add_pool(name, "192.0.2.0/28")
    await ledger.allocate("one", owner="vm/1")

    one, two = await counted.counts("one"), await counted.counts("two")

    assert (one["held"], one["free"]) == (1, 15)
    assert (two["elsewhere"], two["free"], "held" in two) == (1, 15, False)


async def test_units_of_different_size_that_lie_over_each_other_are_counted_right(counted: Counted) -> None:
    ledger = counted.ledger
    await ledger.add_network("singles", space="site")
    await ledger.add_subnet("singles", "192.0.2.0/25", keep_back=[])
    await ledger.add_pool("singles", "192.0.2.0/25")
    await ledger.add_network("blocks", space="site")
    await ledger.add_subnet("blocks", "192.0.2.0/24", unit=28, keep_back=[])
    await ledger.add_pool("blocks", "192.0.2.0/24")
    await ledger.allocate("singles", owner="vm/1", address="192.0.2.17")
    second = await ledger.allocate("singles", owner="vm/2", address="192.0.2.18")
    await ledger.allocate("blocks", owner="rack/1", address="192.0.2.32")
    await counted.settle()
    await ledger.release("singles", second.address, owner="vm/2")

    singles, blocks = await counted.counts("singles"), await counted.counts("blocks")

    assert (singles["held"], singles["elsewhere"], singles["free"]) == (1, 16, 111)
    assert (blocks["held"], blocks["elsewhere"], blocks["free"]) == (1, 1, 14)


async def test_an_edit_counts_only_what_it_concerns_afresh(counted: Counted) -> None:
    ledger = counted.ledger
    await ledger.add_network("net1")
    for third in (1, 2):
        await ledger.add_subnet("net1", f"10.0.{third}.0/24", name=f"s{third}")
        await ledger.add_pool("net1", f"10.0.{third}.10-10.0.{third}.99")
    await ledger.allocate_many("net1", owners=[f"vm/{number}" for number in range(5)])
    space, network = await counted.census.counted("net1")
    before = {subnet.name: space.tallies[network.id, subnet.uuid] for subnet in network.subnets}
    await ledger.reserve("net1", "10.0.1.50-10.0.1.59")

    space, network = await counted.census.counted("net1")
    after = {subnet.name: space.tallies[network.id, subnet.uuid] for subnet in network.subnets}

    assert after["s2"] is before["s2"]
    assert after["s1"] is not before["s1"]
    assert as_counted(counted.census) == await recount(ledger)


async def test_a_network_that_is_removed_with_all_it_holds_is_gone(counted: Counted) -> None:
    ledger = counted.ledger
    for name in ("one", "two"):
        await ledger.add_network(name, space="site")
        await ledger.add_subnet(name, "192.0.2.0/28")
        await ledger.add_pool(name, "192.0.2.2-192.0.2.14")
    await ledger.allocate_many("one", owners=["vm/1", "vm/2"])
    await counted.settle()
    await ledger.remove_network("one", cascade=True)
    await ledger.modify_network("two", name="three")

    await counted.settle()
    assert as_counted(counted.census) == await recount(ledger)
    assert [network.name for _, network in counted.census.networks()] == ["three"]


async def test_a_gap_in_the_log_has_everything_counted_afresh(counted: Counted) -> None:
    ledger = counted.ledger
    await ledger.add_network("net1")
    await ledger.add_subnet("net1", "192.0.2.0/24")
    await ledger.add_pool("net1", "192.0.2.10-192.0.2.99")
    await counted.settle()
    await counted.news.close()
    await ledger.allocate_many("net1", owners=[f"vm/{number}" for number in range(9)])
    await ledger.trim_changes(await ledger.last_change() + 1)
    await _follow_again(counted)

    await counted.settle()
    assert (await counted.counts("net1"))["held"] == 9


async def _follow_again(counted: Counted) -> None:
    """Go on from where the log was left, as after an outage; it no longer reaches back so far."""
    seen = counted.news.seen
    await counted.news.open()
    counted.news.seen = seen


async def test_changes_through_another_process_are_counted(counted: Counted, place: str) -> None:
    if place == "memory:":
        return  # one process only, by its nature
    async with await tenure.open_async(place) as other:
        await other.add_network("net1")
        await other.add_subnet("net1", "192.0.2.0/24", keep_back=[])
        await other.add_pool("net1", "192.0.2.0/24")
        await other.allocate_many("net1", owners=[f"vm/{number}" for number in range(7)])

        assert (await counted.counts("net1"))["held"] == 7
