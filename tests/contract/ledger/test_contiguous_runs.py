"""Contiguous runs: addresses that follow each other, all or none."""

import asyncio

import pytest

import tenure
from tests.contract.ledger.plan import last
from tests.contract.ledger.timing import let_deadlines_pass


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger) -> None:
    """Lay out a pool of ten addresses beside another of five."""
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24", name="block")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.19", name="first")
    await ledger.add_pool("net", "192.0.2.20-192.0.2.24", name="second")


async def run(ledger: tenure.AsyncLedger, count: int, owner: str = "vm/run", **more: str) -> list[int]:
    """Ask for a run; return the last numbers of its addresses."""
    held = await ledger.allocate_many("net", owner=owner, count=count, contiguous=True, **more)  # type: ignore[arg-type]
    return [last(each.address) for each in held]


async def take(ledger: tenure.AsyncLedger, *numbers: int) -> None:
    """Let somebody hold addresses."""
    wishes = [tenure.Allocate(network="net", owner=f"vm/{n}", address=f"192.0.2.{n}") for n in numbers]
    await ledger.apply(wishes)


async def test_a_run_is_in_a_row_and_in_the_owners_slots(ledger: tenure.AsyncLedger) -> None:
    held = await ledger.allocate_many("net", owner="vm/run", count=3, contiguous=True, labels={"a": "b"}, request="r")

    assert [(each.address, each.slot, each.state) for each in held] == [
        ("192.0.2.10", "0", "held"),
        ("192.0.2.11", "1", "held"),
        ("192.0.2.12", "2", "held"),
    ]
    assert all((each.labels, each.request) == ({"a": "b"}, "r") for each in held)
    assert await ledger.holdings("net") == held


async def test_a_slot_is_put_before_the_numbers(ledger: tenure.AsyncLedger) -> None:
    held = await ledger.allocate_many("net", owner="vm/run", count=2, contiguous=True, slot="nic")

    assert [each.slot for each in held] == ["nic0", "nic1"]


async def test_several_owners_may_share_a_run(ledger: tenure.AsyncLedger) -> None:
    held = await ledger.allocate_many("net", owners=["vm/c", "vm/a", "vm/b"], contiguous=True)

    assert [(each.owner, last(each.address)) for each in held] == [("vm/c", 10), ("vm/a", 11), ("vm/b", 12)]


async def test_a_run_goes_around_holes(ledger: tenure.AsyncLedger) -> None:
    await take(ledger, 11, 14)
    await ledger.reserve("net", "192.0.2.17")
    await ledger.preallocate("net", "vm/waiting", "192.0.2.20")

    assert await run(ledger, 3, "vm/a") == [21, 22, 23]
    assert await run(ledger, 2, "vm/b") == [12, 13]


async def test_a_run_of_one_is_the_lowest_address(ledger: tenure.AsyncLedger) -> None:
    await take(ledger, 10)

    assert await run(ledger, 1) == [11]


async def test_a_run_may_lie_across_pools_that_follow_each_other(ledger: tenure.AsyncLedger) -> None:
    await take(ledger, 17)

    assert await run(ledger, 6, "vm/a", pool="first") == [10, 11, 12, 13, 14, 15]
    assert await run(ledger, 7, "vm/b") == [18, 19, 20, 21, 22, 23, 24]


async def test_a_run_does_not_lie_across_pools_with_a_gap_between_them(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_pool("net", "192.0.2.30-192.0.2.35")
    await take(ledger, *range(10, 24))

    with pytest.raises(tenure.PoolExhausted):
        await run(ledger, 7)
    assert await run(ledger, 6) == [30, 31, 32, 33, 34, 35]


async def test_there_is_no_run_longer_than_the_longest_gap(ledger: tenure.AsyncLedger) -> None:
    await take(ledger, 12, 15, 18, 21, 24)
    cursor = await ledger.last_change()

    with pytest.raises(tenure.PoolExhausted, match="no 3 free addresses in a row") as told:
        await run(ledger, 3)
    assert told.value.wanted == 3
    assert await ledger.last_change() == cursor
    assert await run(ledger, 2) == [10, 11]


@pytest.mark.parametrize("policy", ["random", "hashed", "sticky"])
async def test_every_policy_finds_the_only_run_there_is(ledger: tenure.AsyncLedger, policy: str) -> None:
    await take(ledger, *(n for n in range(10, 25) if n not in (12, 13, 17, 18, 19, 22)))

    assert await run(ledger, 3, policy=policy) == [17, 18, 19]


async def test_asking_again_gives_the_same_run(ledger: tenure.AsyncLedger) -> None:
    first = await run(ledger, 3)
    cursor = await ledger.last_change()

    assert await run(ledger, 3) == first
    assert await ledger.last_change() == cursor


@pytest.mark.parametrize("count", [4, 5])
async def test_part_of_a_run_is_a_conflict(ledger: tenure.AsyncLedger, count: int) -> None:
    await run(ledger, 3)
    cursor = await ledger.last_change()

    with pytest.raises(tenure.Conflict, match="0, 1, 2"):
        await run(ledger, count)
    assert await ledger.last_change() == cursor


async def test_addresses_held_out_of_a_row_are_a_conflict(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate("net", owner="vm/run", slot="0", address="192.0.2.15")
    await ledger.allocate("net", owner="vm/run", slot="1", address="192.0.2.14")

    with pytest.raises(tenure.Conflict):
        await run(ledger, 2)


async def test_pending_addresses_in_a_row_are_not_a_run_that_is_held(ledger: tenure.AsyncLedger) -> None:
    for slot in ("0", "1"):
        await ledger.hold("net", owner="vm/run", slot=slot)

    with pytest.raises(tenure.AlreadyExists, match="confirm it"):
        await run(ledger, 2)


async def test_a_run_of_every_network_or_of_none(ledger: tenure.AsyncLedger) -> None:
    for network, where in (("six", "2001:db8::/64"), ("small", "198.51.100.0/30")):
        await ledger.add_network(network)
        await ledger.add_subnet(network, where, keep_back=[])
        await ledger.add_pool(network, where)
    held = await ledger.allocate_many(["net", "six"], owners=["vm/a", "vm/b"], contiguous=True)

    assert [(each.owner, each.address) for each in held] == [
        ("vm/a", "192.0.2.10"),
        ("vm/a", "2001:db8::"),
        ("vm/b", "192.0.2.11"),
        ("vm/b", "2001:db8::1"),
    ]
    cursor = await ledger.last_change()
    with pytest.raises(tenure.PoolExhausted) as told:
        await ledger.allocate_many(["net", "small"], owner="vm/c", count=5, contiguous=True)
    assert told.value.network == "small"
    assert await ledger.last_change() == cursor


async def test_a_run_of_prefixes(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("prefixes")
    await ledger.add_subnet("prefixes", "10.0.0.0/24", unit=28, keep_back=[])
    await ledger.add_pool("prefixes", "10.0.0.0/24")
    await ledger.allocate("prefixes", owner="vm/x", address="10.0.0.32")
    held = await ledger.allocate_many("prefixes", owner="vm/run", count=3, contiguous=True)

    assert [(each.address, each.unit) for each in held] == [("10.0.0.48", 28), ("10.0.0.64", 28), ("10.0.0.80", 28)]
    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate_many("prefixes", owner="vm/more", count=11, contiguous=True)
    assert len(await ledger.allocate_many("prefixes", owner="vm/more", count=10, contiguous=True)) == 10


async def test_a_run_where_units_differ(ledger: tenure.AsyncLedger) -> None:
    for network, unit in (("singles", None), ("prefixes", 30)):
        await ledger.add_network(network, space="mixed")
        await ledger.add_subnet(network, "10.0.0.0/27", unit=unit, keep_back=[])
        await ledger.add_pool(network, "10.0.0.0/27")
    await ledger.allocate("singles", owner="vm/x", address="10.0.0.9")
    held = await ledger.allocate_many("prefixes", owner="vm/run", count=3, contiguous=True)
    many = await ledger.allocate_many("singles", owner="vm/run", count=8, contiguous=True)

    assert [each.address for each in held] == ["10.0.0.12", "10.0.0.16", "10.0.0.20"]
    assert [each.address for each in many][:2] == ["10.0.0.0", "10.0.0.1"]


async def test_a_run_takes_what_has_cooled_off(ledger: tenure.AsyncLedger) -> None:
    await ledger.modify_pool("net", "second", cooling_s=60)
    await take(ledger, *range(10, 25))
    for number in (21, 22, 23):
        await ledger.release("net", f"192.0.2.{number}", owner=f"vm/{number}")
    with pytest.raises(tenure.PoolExhausted):
        await run(ledger, 3)
    await let_deadlines_pass(ledger)

    assert await run(ledger, 3) == [21, 22, 23]


async def test_runs_that_come_at_once_do_not_lie_over_each_other(ledger: tenure.AsyncLedger) -> None:
    runs = await asyncio.gather(*(run(ledger, 3, f"vm/{number}") for number in range(5)))

    assert sorted(number for each in runs for number in each) == list(range(10, 25))
    assert all(each == list(range(each[0], each[0] + 3)) for each in runs)


async def test_a_run_is_an_operation_of_apply(ledger: tenure.AsyncLedger) -> None:
    await take(ledger, *range(12, 25))
    answers = await ledger.apply(
        [
            tenure.Release(network="net", address="192.0.2.12", owner="vm/12"),
            tenure.AllocateRun(network="net", owners=["vm/a", "vm/b", "vm/c"], slots=["", "", ""]),
        ]
    )

    assert isinstance(answers[1], list)
    assert [last(each.address) for each in answers[1]] == [10, 11, 12]
