"""Cooling: an address that was released is not handed out for a while, and never by time alone (I4, I10)."""

import asyncio

import pytest

import tenure
from tenure.kernel.holdings.holding_model import moment
from tests.contract.ledger.plan import ending, without_asker
from tests.contract.ledger.timing import let_deadlines_pass, news, row_at, store_of, verbs

COOLS = 60


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24", name="block")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.12", name="pool", cooling_s=COOLS)
    await ledger.add_pool("net", "192.0.2.20-192.0.2.22", name="warm")


async def test_a_released_address_cools_from_the_release_on(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    before_us = await store_of(ledger).transact(lambda tx: tx.now_us())
    cursor = await ledger.last_change()
    answer = await ledger.release("net", given.address, owner="vm/a", request="r-1")
    after_us = await store_of(ledger).transact(lambda tx: tx.now_us())
    row = await row_at(ledger, given.address)

    assert answer is not None
    assert (answer.request, without_asker(answer)) == ("r-1", without_asker(given))
    assert row.until_us is not None
    assert row == given.row._replace(state=tenure.State.COOLING, until_us=row.until_us)
    assert before_us <= row.until_us - COOLS * 1_000_000 <= after_us
    [told] = await news(ledger, cursor)
    assert (told.verb, told.owner, told.generation, told.request) == ("cool", "vm/a", given.generation, "r-1")
    assert ending(told) == {"since_us": given.row.since_us, "until_us": row.until_us}


async def test_releasing_again_changes_nothing_and_answers_nothing(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.release("net", given.address, owner="vm/a")
    row, cursor = await row_at(ledger, given.address), await ledger.last_change()

    assert await ledger.release("net", given.address, owner="vm/a") is None
    assert await ledger.release("net", given.address, owner="vm/a", generation=given.generation) is None
    assert await ledger.release("net", given.address, owner="vm/other") is None
    assert await ledger.apply([tenure.Release(network="net", address=given.address, owner="vm/a")]) == [None]
    assert await ledger.release_owner("vm/a") == []
    assert await row_at(ledger, given.address) == row
    assert await ledger.last_change() == cursor


async def test_releases_at_the_same_time_cool_once(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    cursor = await ledger.last_change()
    calls = (ledger.release("net", given.address, owner="vm/a") for _ in range(5))
    answers = await asyncio.gather(*calls)

    [ended] = [answer for answer in answers if answer is not None]
    assert without_asker(ended) == without_asker(given)
    assert await verbs(ledger, cursor) == ["cool"]


async def test_only_the_pool_that_says_so_cools(ledger: tenure.AsyncLedger) -> None:
    warm = await ledger.allocate("net", owner="vm/a", pool="warm")
    outside = await ledger.allocate("net", owner="vm/b", address="192.0.2.99")
    cold = await ledger.allocate("net", owner="vm/c", pool="pool")
    for holding in (warm, outside, cold):
        await ledger.release("net", holding.address, owner=holding.owner)

    assert [each.address for each in await ledger.holdings("net")] == [cold.address]


@pytest.mark.parametrize("policy", ["lowest", "random", "hashed", "sticky"])
async def test_a_pick_never_yields_what_is_cooling(ledger: tenure.AsyncLedger, policy: str) -> None:
    for number in range(3):
        given = await ledger.allocate("net", owner="vm/a", pool="pool", policy=policy)
        await ledger.release("net", given.address, owner="vm/a")
        assert len(await ledger.holdings("net")) == number + 1

    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate("net", owner="vm/a", pool="pool", policy=policy)


async def test_a_named_claim_is_told_until_when(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.release("net", given.address, owner="vm/a")
    until_us = (await row_at(ledger, given.address)).until_us
    assert until_us is not None

    for owner in ("vm/b", "vm/a"):
        with pytest.raises(tenure.AddressReserved, match="cooling until") as told:
            await ledger.allocate("net", owner=owner, address=given.address)
        assert moment(until_us).strftime("%Y-%m-%d %H:%M:%S") in told.value.reason
        assert told.value.kept_as == "cooling"


async def test_the_owners_slot_is_free_at_once(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a", slot="nic0")
    await ledger.release("net", given.address, owner="vm/a")
    again = await ledger.allocate("net", owner="vm/a", slot="nic0")

    assert again.address != given.address
    assert [each.state for each in await ledger.holdings(owner="vm/a")] == ["cooling", "held"]


@pytest.mark.parametrize("policy", ["lowest", "random", "hashed", "sticky"])
async def test_a_full_pool_serves_what_has_cooled_off(ledger: tenure.AsyncLedger, policy: str) -> None:
    given = await ledger.allocate_many("net", owner="vm/a", count=3, pool="pool")
    await ledger.release("net", given[1].address, owner="vm/a")
    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate("net", owner="vm/b", pool="pool", policy=policy)
    await let_deadlines_pass(ledger)
    cursor = await ledger.last_change()

    assert (await ledger.allocate("net", owner="vm/b", pool="pool", policy=policy)).address == given[1].address
    told = await news(ledger, cursor)
    assert [(each.verb, each.owner) for each in told] == [("release", "vm/a"), ("grant", "vm/b")]
    assert ending(told[0]) == {"since_us": given[1].row.since_us, "because": "cooled off"}


async def test_a_named_claim_gets_what_has_cooled_off(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.release("net", given.address, owner="vm/a")
    await let_deadlines_pass(ledger)

    assert (await ledger.allocate("net", owner="vm/b", address=given.address)).owner == "vm/b"


async def test_an_address_really_cools_off_in_its_time(ledger: tenure.AsyncLedger) -> None:
    await ledger.modify_pool("net", "pool", cooling_s=1)
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.release("net", given.address, owner="vm/a")

    assert await ledger.sweep() == []
    await asyncio.sleep(1.02)
    assert [each.address for each in await ledger.sweep()] == [given.address]
    assert await ledger.holdings("net") == []


async def test_releasing_an_owner_cools_all_he_had(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate_many("net", owner="vm/a", count=2, pool="pool")
    await ledger.allocate("net", owner="vm/a", slot="x", pool="warm")
    cursor = await ledger.last_change()
    released = await ledger.release_owner("vm/a", request="r-9")

    assert [each.state for each in released] == ["held"] * 3
    assert sorted(await verbs(ledger, cursor)) == ["cool", "cool", "release"]
    assert {each.request for each in await news(ledger, cursor)} == {"r-9"}
    assert [each.state for each in await ledger.holdings("net")] == ["cooling", "cooling"]


async def test_draining_cools_when_it_is_released(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.modify_holding("net", given.address, owner="vm/a", state="draining")
    released = await ledger.release("net", given.address, owner="vm/a")

    assert released is not None
    assert (released.state, (await row_at(ledger, given.address)).state) == ("draining", "cooling")


async def test_nobody_can_do_anything_to_what_is_cooling(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.release("net", given.address, owner="vm/a")
    row, cursor = await row_at(ledger, given.address), await ledger.last_change()

    for call in (
        ledger.confirm("net", given.address, owner="vm/a"),
        ledger.transfer("net", given.address, owner="vm/a", to="vm/b"),
        ledger.modify_holding("net", given.address, owner="vm/a", state="held"),
        ledger.modify_holding("net", given.address, owner="vm/a", description="mine"),
    ):
        with pytest.raises(tenure.NotFound):
            await call
    assert await ledger.cancel("net", given.address, owner="vm/a") is None
    assert (await row_at(ledger, given.address), await ledger.last_change()) == (row, cursor)


async def test_a_subnet_with_cooling_addresses_goes_only_with_cascade(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.release("net", given.address, owner="vm/a")

    with pytest.raises(tenure.StillInUse, match="cooling"):
        await ledger.remove_subnet("net", "block")
    with pytest.raises(tenure.StillInUse, match="cooling"):
        await ledger.remove_network("net")
    cursor = await ledger.last_change()
    await ledger.remove_subnet("net", "block", cascade=True)
    assert await verbs(ledger, cursor) == ["release", "subnet.remove"]
    assert await ledger.holdings(owner="vm/a") == []


async def test_a_cascade_does_not_leave_anything_cooling(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate("net", owner="vm/a")
    await ledger.remove_network("net", cascade=True)

    assert await ledger.holdings(owner="vm/a") == []


async def test_a_release_and_the_end_of_its_pool_in_one_apply(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.apply(
        [
            tenure.RemovePool(network="net", pool="pool"),
            tenure.Release(network="net", address=given.address, owner="vm/a"),
        ]
    )

    assert await ledger.holdings("net") == []


async def test_a_sticky_pool_remembers_what_cooled(ledger: tenure.AsyncLedger) -> None:
    await ledger.modify_pool("net", "pool", policy="sticky")
    given = await ledger.allocate("net", owner="vm/a", pool="pool", address=None)
    await ledger.release("net", given.address, owner="vm/a")
    meanwhile = await ledger.allocate("net", owner="vm/a", pool="pool")
    await ledger.transfer("net", meanwhile.address, owner="vm/a", to="vm/b")
    await let_deadlines_pass(ledger)
    await ledger.sweep()

    assert meanwhile.address != given.address
    assert (await ledger.allocate("net", owner="vm/a", pool="pool")).address == given.address


async def test_a_group_can_pass_over_what_cools_and_take_what_has_cooled(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate_many("net", owner="vm/a", count=3, pool="pool")
    await ledger.release("net", given[0].address, owner="vm/a")
    await let_deadlines_pass(ledger)
    await ledger.release("net", given[1].address, owner="vm/a")

    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate_many("net", owner="vm/b", count=2, pool="pool")
    assert [each.address for each in await ledger.holdings("net")] == [given[1].address, given[2].address]
    [got] = await ledger.allocate_many("net", owner="vm/b", count=1, pool="pool")
    assert got.address == given[0].address
