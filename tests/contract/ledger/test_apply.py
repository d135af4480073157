"""``apply``, ``release`` and ``transfer`` through the ledger: one transaction, judged by the final state."""

import pytest

import tenure
from tenure import (
    AddNetwork,
    AddPool,
    AddSubnet,
    Allocate,
    ModifySubnet,
    Release,
    RemovePool,
    RemoveSubnet,
    Reserve,
    Transfer,
)
from tests.contract.ledger.plan import addresses, small_plan, without_asker

Ledger = tenure.AsyncLedger


async def test_a_whole_plan_and_its_first_holdings_are_one_transaction(ledger: Ledger) -> None:
    answers = await ledger.apply(
        [
            AddNetwork(network="net"),
            AddSubnet(network="net", cidr="192.0.2.0/24", gateway="192.0.2.1"),
            AddPool(network="net", range="192.0.2.10-192.0.2.19"),
            Allocate(network="net", owner="vm/a"),
            Allocate(network="net", owner="vm/b", address="192.0.2.77"),
            Release(network="net", address="192.0.2.10", owner="vm/a"),
            Allocate(network="net", owner="vm/c"),
        ]
    )

    assert [answer.address if isinstance(answer, tenure.Holding) else None for answer in answers] == [
        None, None, None, "192.0.2.10", "192.0.2.77", "192.0.2.10", "192.0.2.10",
    ]  # fmt: skip
    assert [(one.address, one.owner) for one in await ledger.holdings("net")] == [
        ("192.0.2.10", "vm/c"), ("192.0.2.77", "vm/b"),
    ]  # fmt: skip


async def test_what_fails_last_undoes_what_came_first(ledger: Ledger) -> None:
    await small_plan(ledger)
    held = await ledger.allocate("net", owner="vm/a")
    before = await ledger.last_change()

    with pytest.raises(tenure.AddressInUse):
        await ledger.apply(
            [
                Reserve(network="net", range="192.0.2.15-192.0.2.19"),
                Allocate(network="net", owner="vm/b"),
                AddNetwork(network="other"),
                Allocate(network="net", owner="vm/c", address=held.address),
            ]
        )

    assert await ledger.last_change() == before
    assert await ledger.holdings("net") == [held]
    assert [network.name for network in await ledger.networks()] == ["net"]
    assert (await ledger.allocate("net", owner="vm/d")).address == "192.0.2.11"


async def test_the_plan_is_judged_by_its_final_state_only(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.add_subnet("net", "198.51.100.0/24", name="second")

    await ledger.apply(
        [
            RemovePool(network="net", pool="pool"),
            ModifySubnet(network="net", subnet="block", cidr="198.51.100.0/25", gateway=None),
            RemoveSubnet(network="net", subnet="second"),
        ]
    )

    assert [str(subnet.cidr) for subnet in (await ledger.network("net")).subnets] == ["198.51.100.0/25"]


async def test_a_final_state_that_breaks_the_plan_is_refused(ledger: Ledger) -> None:
    await small_plan(ledger)

    with pytest.raises(tenure.Overlap):
        await ledger.apply(
            [
                RemovePool(network="net", pool="pool"),
                AddSubnet(network="net", cidr="198.51.100.0/24"),
                ModifySubnet(network="net", subnet="block", cidr="198.51.100.0/25", gateway=None),
            ]
        )

    assert [str(subnet.cidr) for subnet in (await ledger.network("net")).subnets] == ["192.0.2.0/24"]


async def test_a_release_and_its_successor_swap_in_one_transaction(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.allocate_many("net", owners=[f"vm/{n}" for n in range(10)])

    await ledger.apply(
        [Release(network="net", address="192.0.2.14", owner="vm/4"), Allocate(network="net", owner="vm/new")]
    )

    assert (await ledger.holding("net", "192.0.2.14")).owner == "vm/new"


async def test_a_transfer_keeps_the_address_and_makes_a_new_generation(ledger: Ledger) -> None:
    await small_plan(ledger)
    held = await ledger.allocate("net", owner="vm/a", labels={"a": "b"})

    moved = await ledger.transfer("net", held.address, owner="vm/a", to="vm/b", to_slot="nic0", request="req-1")

    assert (moved.address, moved.owner, moved.slot, moved.labels) == (held.address, "vm/b", "nic0", {"a": "b"})
    assert moved.generation != held.generation
    assert await ledger.holdings("net") == [moved]


async def test_a_release_that_came_to_nothing_is_not_believed_by_the_next_pick(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.allocate_many("net", owners=["vm/0", "vm/1"])

    with pytest.raises(tenure.AddressInUse):
        await ledger.apply(
            [
                Release(network="net", address="192.0.2.10", owner="vm/0"),
                Allocate(network="net", owner="vm/new"),
                Allocate(network="net", owner="vm/late", address="192.0.2.11"),
            ]
        )

    assert (await ledger.allocate("net", owner="vm/2")).address == "192.0.2.12"


async def test_a_transfer_and_what_it_frees_are_one_transaction(ledger: Ledger) -> None:
    await small_plan(ledger)
    held = await ledger.allocate_many("net", owners=["vm/0", "vm/1"])

    await ledger.apply(
        [
            Release(network="net", address=held[1].address, owner="vm/1"),
            Transfer(network="net", address=held[0].address, owner="vm/0", to="vm/1"),
            Allocate(network="net", owner="vm/0"),
        ]
    )

    assert [(one.address, one.owner) for one in await ledger.holdings("net")] == [
        ("192.0.2.10", "vm/1"), ("192.0.2.11", "vm/0"),
    ]  # fmt: skip


async def test_a_transfer_that_cannot_be_changes_nothing(ledger: Ledger) -> None:
    await small_plan(ledger)
    held = [await ledger.allocate("net", owner=owner) for owner in ("vm/a", "vm/b")]
    before = await ledger.last_change()

    with pytest.raises(tenure.AlreadyExists):
        await ledger.transfer("net", held[0].address, owner="vm/a", to="vm/b")
    with pytest.raises(tenure.NotOwner):
        await ledger.transfer("net", held[0].address, owner="vm/c", to="vm/d")
    with pytest.raises(tenure.NotFound):
        await ledger.transfer("net", "192.0.2.99", owner="vm/a", to="vm/d")
    with pytest.raises(tenure.Conflict):
        await ledger.apply(
            [
                Transfer(
                    network="net", address=held[0].address, owner="vm/a", to="vm/d", generation=held[0].generation + 9
                )
            ]
        )

    assert await ledger.holdings("net") == held
    assert await ledger.last_change() == before


async def test_a_release_names_its_owner_and_generation(ledger: Ledger) -> None:
    await small_plan(ledger)
    early = await ledger.allocate("net", owner="vm/a")
    await ledger.release("net", early.address, owner="vm/a", generation=early.generation)
    later = await ledger.allocate("net", owner="vm/a")

    with pytest.raises(tenure.NotOwner):
        await ledger.release("net", later.address, owner="vm/b")
    with pytest.raises(tenure.Conflict):
        await ledger.release("net", later.address, owner="vm/a", generation=early.generation)
    with pytest.raises(tenure.Conflict):
        await ledger.apply([Release(network="net", address=later.address, owner="vm/a", generation=early.generation)])
    nobody = await ledger.release("net", "192.0.2.19", owner="vm/a")

    assert nobody is None
    assert await ledger.holdings("net") == [later]


async def test_an_owner_lets_go_of_everything_in_all_networks_at_once(ledger: Ledger) -> None:
    for network in ("a", "b"):
        await small_plan(ledger, network=network)
    mine = [await ledger.allocate(network, owner="vm/a", slot=slot) for network in "ab" for slot in ("", "nic1")]
    kept = await ledger.allocate("a", owner="vm/b")

    ended = await ledger.release_owner("vm/a", request="req-9")
    again = await ledger.release_owner("vm/a")

    assert sorted(without_asker(each) for each in ended) == sorted(without_asker(each) for each in mine)
    assert {each.request for each in ended} == {"req-9"}
    assert again == []
    assert await addresses(ledger, "a") == [kept.address]
    assert await addresses(ledger, "b") == []
    assert {change.request async for change in ledger.changes() if change.verb == "release"} == {"req-9"}


async def test_edits_of_one_network_all_answer_it_as_it_is_at_the_end(ledger: tenure.AsyncLedger) -> None:
    edits = [tenure.AddSubnet(network="many", cidr=f"10.9.{number}.0/24") for number in range(3)]
    operations = [tenure.AddNetwork(network="many"), *edits, tenure.AddNetwork(network="gone")]
    rehearsed = await ledger.rehearse(operations)
    answers = await ledger.apply([*operations, tenure.RemoveNetwork(network="gone")], key="k-many")

    found = await ledger.network("many")
    assert answers == [found, found, found, found, None, None]
    assert [len(each.subnets) for each in rehearsed[:4] if isinstance(each, tenure.Network)] == [3, 3, 3, 3]
    again = await ledger.apply([*operations, tenure.RemoveNetwork(network="gone")], key="k-many")
    assert again == answers


async def test_a_network_that_is_renamed_among_other_edits_goes_by_its_new_name(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply(
        [
            tenure.AddNetwork(network="old"),
            tenure.AddSubnet(network="old", cidr="10.8.0.0/24"),
            tenure.ModifyNetwork(network="old", name="new"),
            tenure.AddPool(network="new", range="10.8.0.0/25"),
        ]
    )

    assert [str(pool.range) for _, pool in (await ledger.network("new")).pools()] == ["10.8.0.0-10.8.0.127"]
    with pytest.raises(tenure.NotFound, match="new"):
        await ledger.apply(
            [
                tenure.ModifyNetwork(network="new", name="newer"),
                tenure.AddPool(network="new", range="10.8.0.128/25"),
            ]
        )
    assert (await ledger.network("new")).name == "new"
