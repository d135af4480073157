"""Promises at the edges, each once broken: on every store of the ledger tier."""

import asyncio

import pytest

import tenure


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
