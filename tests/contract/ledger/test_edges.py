"""Promises at the edges, each once broken: on every store of the ledger tier."""

import asyncio

import pytest

import tenure
from tests.contract.providers import Ledgers


async def two_networks(ledger: tenure.AsyncLedger, unit: int | None = None) -> None:
    for network, its_unit in (("a", unit), ("b", None)):
        await ledger.add_network(network, space="site")
        await ledger.add_subnet(network, "10.0.0.0/24", unit=its_unit, keep_back=[])
        await ledger.add_pool(network, "10.0.0.0/24")


async def test_a_preallocated_address_that_somebody_holds_is_told_at_once(ledger: tenure.AsyncLedger) -> None:
    await two_networks(ledger, unit=28)
    await ledger.allocate("b", owner="pod/early", address="10.0.0.20")
    await ledger.preallocate("a", "vm/x", "10.0.0.16")

    with pytest.raises(tenure.AddressInUse) as told:
        await asyncio.wait_for(ledger.allocate("a", owner="vm/x"), 20)

    assert told.value.holder == "pod/early"


async def test_a_preallocated_prefix_is_kept_free_in_the_whole_space(ledger: tenure.AsyncLedger) -> None:
    await two_networks(ledger, unit=28)
    await ledger.preallocate("a", "vm/x", "10.0.0.16")
    await ledger.allocate_many("b", owners=[f"pod/{number}" for number in range(40)])

    assert (await ledger.allocate("a", owner="vm/x")).address == "10.0.0.16"


async def test_one_address_waits_for_one_owner_of_the_space(ledger: tenure.AsyncLedger) -> None:
    await two_networks(ledger)
    await ledger.preallocate("a", "vm/a", "10.0.0.5")

    with pytest.raises(tenure.AlreadyExists):
        await ledger.preallocate("b", "vm/b", "10.0.0.5")


async def test_pages_of_prefixes_leave_none_out(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "10.0.0.0/16", unit=28, keep_back=[])
    await ledger.add_pool("net", "10.0.0.0/16")
    given = await ledger.allocate_many("net", owners=[f"vm/{number}" for number in range(230)])
    found: list[str] = []
    after: str | None = None
    while page := await ledger.holdings("net", after=after, limit=50):
        found += [holding.address for holding in page]
        after = found[-1]

    assert found == [holding.address for holding in given]


async def test_a_cascade_ends_what_lies_in_its_own_subnet_only(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "10.0.0.0/24", name="going")
    await ledger.add_subnet("net", "10.0.1.0/24", name="shrinking")
    await ledger.allocate("net", owner="vm/1", address="10.0.0.5")
    await ledger.allocate("net", owner="vm/2", address="10.0.1.200")

    with pytest.raises(tenure.StillInUse):
        await ledger.apply(
            [
                tenure.RemoveSubnet(network="net", subnet="going", cascade=True),
                tenure.ModifySubnet(network="net", subnet="shrinking", cidr="10.0.1.0/25"),
            ]
        )

    assert len(await ledger.holdings("net")) == 2


async def test_a_release_inside_a_held_prefix_names_the_prefix(ledger: tenure.AsyncLedger) -> None:
    await two_networks(ledger, unit=28)
    await ledger.allocate("a", owner="vm/x", address="10.0.0.16")

    with pytest.raises(tenure.Invalid, match=r"10\.0\.0\.16/28"):
        await ledger.release("a", "10.0.0.17", owner="vm/x")


async def test_a_transfer_asked_for_twice_is_answered_the_same(ledger: tenure.AsyncLedger) -> None:
    await two_networks(ledger)
    given = await ledger.allocate("a", owner="vm/x")
    first = await ledger.transfer("a", given.address, owner="vm/x", to="vm/y", request="r1")
    second = await ledger.transfer("a", given.address, owner="vm/x", to="vm/y", request="r1")

    assert second == first


async def test_a_cascade_makes_room_for_what_follows_in_the_same_apply(ledger: tenure.AsyncLedger) -> None:
    await two_networks(ledger)
    await ledger.allocate("a", owner="vm/x", address="10.0.0.5")
    await ledger.apply(
        [
            tenure.RemoveNetwork(network="a", cascade=True),
            tenure.AddNetwork(network="a", space="site"),
            tenure.AddSubnet(network="a", cidr="10.0.0.0/24"),
            tenure.Allocate(network="a", owner="vm/y", address="10.0.0.5"),
        ]
    )

    assert (await ledger.holding("a", "10.0.0.5")).owner == "vm/y"


async def test_two_networks_can_swap_names_by_way_of_a_third(ledger: tenure.AsyncLedger) -> None:
    await two_networks(ledger)
    await ledger.allocate("a", owner="vm/x", address="10.0.0.5")
    await ledger.apply(
        [
            tenure.ModifyNetwork(network="a", name="c"),
            tenure.ModifyNetwork(network="b", name="a"),
            tenure.ModifyNetwork(network="c", name="b"),
        ]
    )

    assert (await ledger.holding("b", "10.0.0.5")).owner == "vm/x"


async def test_exhausted_tells_how_many_were_wanted(ledger: tenure.AsyncLedger) -> None:
    await two_networks(ledger)

    with pytest.raises(tenure.PoolExhausted) as told:
        await ledger.allocate_many("a", owners=[f"vm/{number}" for number in range(300)])

    assert told.value.wanted == 300


async def test_why_asked_of_one_network_tells_who_holds_through_another(ledger: tenure.AsyncLedger) -> None:
    await two_networks(ledger)
    await ledger.allocate("a", owner="vm/x", address="10.0.0.5")

    assert "vm/x" in str(await ledger.why("10.0.0.5", network="b"))


async def test_why_tells_that_a_pool_is_retired(ledger: tenure.AsyncLedger) -> None:
    await two_networks(ledger)
    await ledger.retire_pool("b", "10.0.0.0/24")

    [finding] = (await ledger.why("10.0.0.9", network="b")).findings

    assert finding.status == "retired"


async def test_a_name_that_means_another_network_by_now_releases_nothing_of_the_old_one(
    ledger: tenure.AsyncLedger, ledgers: Ledgers, place: str
) -> None:
    shared = ledgers.abilities.shared_by_processes
    other = await tenure.open_async(place) if shared else ledger
    await ledger.add_network("net")
    await ledger.add_subnet("net", "10.0.0.0/24")
    await ledger.allocate("net", owner="vm/x", address="10.0.0.5")
    await other.modify_network("net", name="old")
    await other.add_network("net", space="another")
    await other.add_subnet("net", "10.0.0.0/24")

    assert await ledger.release("net", "10.0.0.5", owner="vm/x") is None
    assert (await ledger.holding("old", "10.0.0.5")).owner == "vm/x"
    if shared:
        await other.close()


async def test_a_ledger_that_is_closed_says_so(place: str) -> None:
    ledger = await tenure.open_async(place)
    await two_networks(ledger)
    await ledger.close()
    await ledger.close()

    with pytest.raises(tenure.TenureError):
        await ledger.allocate("a", owner="vm/x")
