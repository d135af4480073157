"""The plan through the ledger: removing, retiring, growing, shrinking, splitting."""

import pytest

import tenure
from tenure.ports import LedgerStore
from tests.contract.ledger.plan import addresses, last, small_plan, without_asker
from tests.contract.sites import Site

Ledger = tenure.AsyncLedger


async def test_a_network_in_use_is_not_removed_and_its_holders_are_told(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.allocate("net", owner="vm/a")

    with pytest.raises(tenure.StillInUse) as told:
        await ledger.remove_network("net")
    with pytest.raises(tenure.StillInUse):
        await ledger.remove_subnet("net", "block")

    assert told.value.holders == ["vm/a (192.0.2.10)"]
    assert await addresses(ledger) == ["192.0.2.10"]


async def test_a_cascade_ends_the_holdings_with_the_network_and_logs_each(ledger: Ledger) -> None:
    await small_plan(ledger, space="site")
    await small_plan(ledger, network="other", space="site")
    await ledger.allocate_many("net", owners=["vm/a", "vm/b"])
    kept = await ledger.allocate("other", owner="vm/c")
    before = await ledger.last_change()

    await ledger.remove_network("net", cascade=True)

    told = [(change.verb, change.owner) async for change in ledger.changes(before)]
    assert sorted(told, key=str) == [("network.remove", None), ("release", "vm/a"), ("release", "vm/b")]
    assert await ledger.holdings(owner="vm/a") == []
    assert await ledger.holdings("other") == [kept]
    with pytest.raises(tenure.NotFound):
        await ledger.allocate("net", owner="vm/a")


async def test_a_cascade_over_more_than_one_page_ends_all(ledger: Ledger) -> None:
    await ledger.add_network("net", space="site")
    await ledger.add_subnet("net", "10.0.0.0/16")
    await ledger.add_pool("net", "10.0.0.0/16")
    await ledger.allocate_many("net", owners=[f"vm/{n}" for n in range(2100)])

    await ledger.remove_subnet("net", "10.0.0.0/16", cascade=True)

    assert (await ledger.network("net")).subnets == ()
    assert await ledger.holdings(owner="vm/2000") == []


async def test_a_removed_network_leaves_its_name_and_addresses_to_the_next(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.remove_network("net")
    await small_plan(ledger)

    assert (await ledger.allocate("net", owner="vm/a")).address == "192.0.2.10"


@pytest.mark.parametrize("what", ["network", "subnet", "pool"])
async def test_what_is_retired_gives_nothing_new_and_lets_go_as_usual(ledger: Ledger, what: str) -> None:
    await small_plan(ledger)
    held = await ledger.allocate("net", owner="vm/a")

    if what == "network":
        await ledger.retire_network("net")
    elif what == "subnet":
        await ledger.retire_subnet("net", "block")
    else:
        await ledger.retire_pool("net", "pool")

    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate("net", owner="vm/b")
    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate("net", owner="vm/b", policy="random")
    assert await ledger.allocate("net", owner="vm/a") == held
    released = await ledger.release("net", held.address, owner="vm/a")
    assert released is not None
    assert without_asker(released) == without_asker(held)


async def test_a_subnet_grows_around_its_holdings(ledger: Ledger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/25", name="block")
    await ledger.add_pool("net", "192.0.2.100-192.0.2.127", name="pool")
    held = await ledger.allocate("net", owner="vm/a", address="192.0.2.126")

    await ledger.modify_subnet("net", "block", cidr="192.0.2.0/24")
    await ledger.add_pool("net", "192.0.2.128-192.0.2.200", name="pool")

    assert await ledger.holdings("net") == [await ledger.holding("net", held.address)]
    assert (await ledger.holding("net", held.address)).prefix == 24
    assert (await ledger.allocate("net", owner="vm/b", address="192.0.2.200")).address == "192.0.2.200"


async def test_a_subnet_shrinks_only_where_nobody_is_left_outside(ledger: Ledger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24", name="block")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.200", name="pool")
    outside = await ledger.allocate("net", owner="vm/a", address="192.0.2.150")

    with pytest.raises(tenure.StillInUse):
        await ledger.modify_subnet("net", "block", cidr="192.0.2.0/25")
    await ledger.release("net", outside.address, owner="vm/a")
    shrunk = await ledger.modify_subnet("net", "block", cidr="192.0.2.0/25")

    assert [str(pool.range) for _, pool in shrunk.pools()] == ["192.0.2.10-192.0.2.127"]
    with pytest.raises(tenure.AddressOutsideSubnet):
        await ledger.allocate("net", owner="vm/a", address="192.0.2.150")


async def test_a_pool_that_is_cut_in_two_keeps_its_name(ledger: Ledger) -> None:
    await small_plan(ledger)

    cut = await ledger.remove_pool("net", "192.0.2.13-192.0.2.16")
    given = [(await ledger.allocate("net", owner=f"vm/{n}", pool="pool")).address for n in range(6)]

    assert [(pool.name, str(pool.range)) for _, pool in cut.pools()] == [
        ("pool", "192.0.2.10-192.0.2.12"), ("pool", "192.0.2.17-192.0.2.19"),
    ]  # fmt: skip
    assert [last(address) for address in given] == [10, 11, 12, 17, 18, 19]


async def test_a_new_pool_sees_what_is_held_already(ledger: Ledger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24")
    for n in (30, 31, 33):
        await ledger.allocate("net", owner=f"vm/{n}", address=f"192.0.2.{n}")

    await ledger.add_pool("net", "192.0.2.30-192.0.2.34")
    lowest = await ledger.allocate("net", owner="pod/a")
    other = await ledger.allocate("net", owner="pod/b", policy="random")
    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate("net", owner="pod/c")

    assert (last(lowest.address), last(other.address)) == (32, 34)


async def test_an_edit_is_seen_by_a_server_that_knew_the_old_plan(shared_site: Site[LedgerStore]) -> None:
    async with await tenure.open_async(shared_site.url) as one, await tenure.open_async(shared_site.url) as other:
        await small_plan(one)
        await one.allocate("net", owner="vm/a", policy="random")

        await other.reserve("net", "192.0.2.10-192.0.2.18")
        await other.release_owner("vm/a")
        given = await one.allocate("net", owner="vm/b", policy="random")
        with pytest.raises(tenure.PoolExhausted):
            await one.allocate("net", owner="vm/c", policy="hashed")

        assert given.address == "192.0.2.19"
        assert await one.verify() == []


async def test_subnets_and_pools_of_a_network_never_overlap(ledger: Ledger) -> None:
    await small_plan(ledger)

    with pytest.raises(tenure.Overlap):
        await ledger.add_subnet("net", "192.0.2.128/25")
    with pytest.raises(tenure.Overlap):
        await ledger.add_pool("net", "192.0.2.19-192.0.2.30")
    with pytest.raises(tenure.NotFound):
        await ledger.add_pool("net", "192.0.2.250-192.0.3.5")

    assert len((await ledger.network("net")).subnets) == 1


async def test_a_gateway_is_not_laid_on_a_held_address(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.allocate("net", owner="vm/a", address="192.0.2.77")

    with pytest.raises(tenure.AddressInUse):
        await ledger.modify_subnet("net", "block", gateway="192.0.2.77")

    assert (await ledger.holding("net", "192.0.2.77")).gateway == "192.0.2.1"


async def test_a_subnet_goes_with_its_holdings_and_what_waited_there_for_an_owner(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("net1")
    await ledger.add_subnet("net1", "192.0.2.0/24", name="old")
    await ledger.add_pool("net1", "192.0.2.10-192.0.2.20")
    await ledger.preallocate("net1", "vm/b", "192.0.2.11")
    await ledger.allocate("net1", owner="vm/a")

    with pytest.raises(tenure.StillInUse, match=r"vm/b \(192\.0\.2\.11 waits for it\)") as refusal:
        await ledger.remove_subnet("net1", "old", cascade=True)
    assert (refusal.value.network, refusal.value.addresses) == ("net1", ["192.0.2.11"])
    await ledger.apply(
        [
            tenure.RemoveSubnet(network="net1", subnet="old", cascade=True),
            tenure.AddSubnet(network="net1", cidr="198.51.100.0/24"),
            tenure.Allocate(network="net1", owner="vm/c", address="198.51.100.7"),
            tenure.RemovePreallocation(network="net1", owner="vm/b"),
        ]
    )

    assert [held.address for held in await ledger.holdings("net1")] == ["198.51.100.7"]
    assert await ledger.verify() == []
