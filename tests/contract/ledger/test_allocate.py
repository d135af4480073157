"""Allocating through the ledger: policies, repetition, reserved addresses, groups."""

import asyncio

import pytest

import tenure
from tests.contract.ledger.plan import addresses, last, small_plan

Ledger = tenure.AsyncLedger


@pytest.mark.parametrize(
    ("policy", "address"), [(None, None), ("random", None), ("hashed", None), ("sticky", None), (None, "192.0.2.77")]
)
async def test_asking_again_gives_the_same_answer_and_changes_nothing(
    ledger: Ledger, policy: str | None, address: str | None
) -> None:
    await small_plan(ledger)
    first = await ledger.allocate("net", owner="vm/a", policy=policy, address=address)
    before = await ledger.last_change()

    again = await ledger.allocate("net", owner="vm/a", policy=policy, address=address)

    assert again == first
    assert await ledger.last_change() == before


async def test_many_who_ask_the_same_at_once_get_one_address(ledger: Ledger) -> None:
    await small_plan(ledger)

    answers = await asyncio.gather(
        *(ledger.allocate("net", owner="vm/a", policy=policy) for policy in ("lowest", "random", "hashed") * 6)
    )

    assert len({answer.address for answer in answers}) == 1
    assert len(await addresses(ledger)) == 1


async def test_lowest_gives_the_first_free_address_in_the_written_order(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.add_pool("net", "192.0.2.4-192.0.2.5", name="second")

    given = [(await ledger.allocate("net", owner=f"vm/{n}")).address for n in range(12)]
    await ledger.release("net", "192.0.2.13", owner="vm/3")
    next_one = await ledger.allocate("net", owner="vm/next")

    assert given == [*(f"192.0.2.{n}" for n in range(10, 20)), "192.0.2.4", "192.0.2.5"]
    assert next_one.address == "192.0.2.13"


@pytest.mark.parametrize("policy", ["lowest", "random", "hashed", "sticky"])
async def test_a_pool_is_used_to_its_last_address_and_then_called_exhausted(ledger: Ledger, policy: str) -> None:
    await small_plan(ledger)

    answers = await asyncio.gather(
        *(ledger.allocate("net", owner=f"vm/{n}", policy=policy) for n in range(13)), return_exceptions=True
    )

    given = [answer.address for answer in answers if isinstance(answer, tenure.Holding)]
    refused = [answer for answer in answers if isinstance(answer, tenure.PoolExhausted)]
    assert sorted(map(last, given)) == list(range(10, 20))
    assert len(refused) == 3


async def test_hashed_depends_on_nothing_but_the_owner(ledger: Ledger) -> None:
    for network in ("one", "two"):
        await ledger.add_network(network)
        await ledger.add_subnet(network, "10.0.0.0/16")
        await ledger.add_pool(network, "10.0.0.0/16", policy="hashed")

    one = [(await ledger.allocate("one", owner=f"vm/{n}")).address for n in range(20)]
    two = {n: (await ledger.allocate("two", owner=f"vm/{n}")).address for n in reversed(range(20))}
    await ledger.release("one", one[7], owner="vm/7")
    again = await ledger.allocate("one", owner="vm/7")

    assert one == [two[n] for n in range(20)]
    assert again.address == one[7]
    assert len(set(one)) == 20


async def test_sticky_returns_to_the_address_the_owner_had(ledger: Ledger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "10.0.0.0/16")
    await ledger.add_pool("net", "10.0.0.0/16", policy="sticky")
    held = await ledger.allocate("net", owner="vm/a", slot="nic0", address="10.0.3.3")
    await ledger.release("net", held.address, owner="vm/a")

    other = await ledger.allocate("net", owner="vm/b", slot="nic0")
    back = await ledger.allocate("net", owner="vm/a", slot="nic0")
    await ledger.release_owner("vm/a")
    again = await ledger.allocate("net", owner="vm/a", slot="nic0")

    assert (back.address, again.address) == ("10.0.3.3", "10.0.3.3")
    assert other.address != "10.0.3.3"


async def test_sticky_takes_another_address_where_the_former_is_gone(ledger: Ledger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "10.0.0.0/24")
    await ledger.add_pool("net", "10.0.0.10-10.0.0.200", policy="sticky")
    held = await ledger.allocate("net", owner="vm/a")
    await ledger.release("net", held.address, owner="vm/a")
    await ledger.allocate("net", owner="vm/b", address=held.address)

    back = await ledger.allocate("net", owner="vm/a")

    assert back.address != held.address
    assert 10 <= last(back.address) <= 200


async def test_a_named_address_is_given_or_the_reason_is_told(ledger: Ledger) -> None:
    await small_plan(ledger)
    held = await ledger.allocate("net", owner="vm/a", address="192.0.2.77")

    with pytest.raises(tenure.AddressInUse) as in_use:
        await ledger.allocate("net", owner="vm/b", address="192.0.2.77")
    with pytest.raises(tenure.AddressOutsideSubnet):
        await ledger.allocate("net", owner="vm/b", address="198.51.100.1")
    with pytest.raises(tenure.AlreadyExists):
        await ledger.allocate("net", owner="vm/a", address="192.0.2.78")

    assert (in_use.value.address, in_use.value.holder) == ("192.0.2.77", "vm/a")
    assert await addresses(ledger) == [held.address]


REACHES = [
    ("192.0.2.30", {"allow", "force"}),
    ("192.0.2.1", {"force"}),
    ("192.0.2.0", {"force"}),
    ("192.0.2.255", {"force"}),
    ("192.0.2.40", {"force"}),
    ("192.0.2.50", {"refuse", "allow", "force"}),
]
KEPT_AS = {
    "192.0.2.30": "reserved",
    "192.0.2.1": "gateway",
    "192.0.2.0": "network",
    "192.0.2.255": "broadcast",
    "192.0.2.40": "pre-allocated",
}


@pytest.mark.sampled
@pytest.mark.parametrize("reach", ["refuse", "allow", "force"])
@pytest.mark.parametrize(("address", "given"), REACHES, ids=["reserved", "gateway", "network", "last", "waits", "free"])
async def test_a_call_reaches_as_far_as_it_says(ledger: Ledger, address: str, given: set[str], reach: str) -> None:
    await small_plan(ledger)
    await ledger.reserve("net", "192.0.2.30-192.0.2.35", reason="routers")
    await ledger.preallocate("net", "vm/other", "192.0.2.40")

    answer = (await asyncio.gather(
        ledger.allocate("net", owner="vm/a", address=address, reserved=reach), return_exceptions=True
    ))[0]  # fmt: skip

    if reach in given:
        assert isinstance(answer, tenure.Holding)
        assert answer.address == address
        # ``verify`` would name a machine at the gateway.
        await ledger.release("net", address, owner="vm/a")
    else:
        assert isinstance(answer, tenure.AddressReserved)
        assert answer.kept_as == KEPT_AS[address]
        assert await addresses(ledger) == []


async def test_a_pick_never_yields_what_is_kept_away(ledger: Ledger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/28", gateway="192.0.2.1")
    await ledger.add_pool("net", "192.0.2.0-192.0.2.15")
    await ledger.reserve("net", "192.0.2.4-192.0.2.6")
    await ledger.preallocate("net", "vm/waits", "192.0.2.9")

    given = [(await ledger.allocate("net", owner=f"vm/{n}")).address for n in range(9)]
    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate("net", owner="vm/late", policy="random")

    assert [last(address) for address in given] == [2, 3, 7, 8, 10, 11, 12, 13, 14]


async def test_a_preallocated_address_waits_for_its_owner(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.preallocate("net", "vm/b", "192.0.2.10", slot="nic0")

    other = await ledger.allocate("net", owner="vm/a")
    other_slot = await ledger.allocate("net", owner="vm/b", slot="nic1")
    waited = await ledger.allocate("net", owner="vm/b", slot="nic0", policy="random")
    await ledger.remove_preallocation("net", "vm/b", slot="nic0")
    await ledger.release("net", waited.address, owner="vm/b")
    after = await ledger.allocate("net", owner="vm/c")

    assert (other.address, other_slot.address) == ("192.0.2.11", "192.0.2.12")
    assert waited.address == "192.0.2.10"
    assert after.address == "192.0.2.10"


async def test_a_group_gets_all_or_changes_nothing(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.allocate("net", owner="vm/first")
    before = await ledger.last_change()

    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate_many("net", owners=[f"pod/{n}" for n in range(10)])
    unchanged = await ledger.last_change()
    group = await ledger.allocate_many("net", owners=[f"pod/{n}" for n in range(9)])
    again = await ledger.allocate_many("net", owners=[f"pod/{n}" for n in range(9)])

    assert unchanged == before
    assert [last(one.address) for one in group] == list(range(11, 20))
    assert again == group


async def test_a_group_over_several_networks_is_answered_in_order(ledger: Ledger) -> None:
    await small_plan(ledger, network="a", space="site")
    await small_plan(ledger, network="b")

    group = await ledger.allocate_many(["a", "b"], owners=["vm/1", "vm/2"])

    assert [(one.owner, one.network, last(one.address)) for one in group] == [
        ("vm/1", "a", 10), ("vm/1", "b", 10), ("vm/2", "a", 11), ("vm/2", "b", 11),
    ]  # fmt: skip


async def test_networks_that_lie_over_each_other_never_share_an_address(ledger: Ledger) -> None:
    await small_plan(ledger, network="a", space="site")
    await small_plan(ledger, network="b", space="site")

    answers = await asyncio.gather(
        *(ledger.allocate("ab"[n % 2], owner=f"vm/{n}", policy=("lowest", "random")[n // 2 % 2]) for n in range(12)),
        return_exceptions=True,
    )

    given = [answer.address for answer in answers if isinstance(answer, tenure.Holding)]
    assert sorted(map(last, given)) == list(range(10, 20))
    assert sum(isinstance(answer, tenure.PoolExhausted) for answer in answers) == 2


async def test_units_of_different_size_in_one_space_never_overlap(ledger: Ledger) -> None:
    await ledger.add_network("single", space="site")
    await ledger.add_subnet("single", "10.0.0.0/24", keep_back=[])
    await ledger.add_pool("single", "10.0.0.0/24")
    await ledger.add_network("blocks", space="site")
    await ledger.add_subnet("blocks", "10.0.0.0/24", unit=28)
    await ledger.add_pool("blocks", "10.0.0.0/24")
    for n in range(3):
        await ledger.allocate("single", owner=f"vm/{n}", address=f"10.0.0.{n * 40}")

    blocks = await asyncio.gather(*(ledger.allocate("blocks", owner=f"rack/{n}") for n in range(5)))
    singles = await asyncio.gather(*(ledger.allocate("single", owner=f"pod/{n}") for n in range(20)))
    with pytest.raises(tenure.AddressInUse):
        await ledger.allocate("single", owner="vm/late", address=blocks[0].last_address)
    with pytest.raises(tenure.AddressInUse):
        await ledger.allocate("blocks", owner="rack/late", address="10.0.0.0")

    assert sorted(str(block.address) for block in blocks) == sorted(f"10.0.0.{n}" for n in (16, 48, 64, 96, 112))
    assert all(block.unit == 28 for block in blocks)
    taken = {n for block in blocks for n in range(last(block.address), last(block.address) + 16)}
    assert taken.isdisjoint(last(single.address) for single in singles)


async def test_prefixes_of_ipv6_are_handed_out_as_units(ledger: Ledger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "2001:db8::/32", unit=64)
    await ledger.add_pool("net", "2001:db8:1::/48")

    given = [await ledger.allocate("net", owner=f"site/{n}") for n in range(3)]
    inside = await ledger.holding("net", "2001:db8:1:1::42")

    assert [str(one.address) for one in given] == ["2001:db8:1::", "2001:db8:1:1::", "2001:db8:1:2::"]
    assert inside == given[1]
