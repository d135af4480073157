"""Nobody jumps the line: what an older waiter is to get is not taken by groups, runs, named or plain claims."""

import asyncio
from collections.abc import AsyncIterator

import pytest

import tenure
from tests.contract.ledger.timing import another, in_line, let_waiters_die, nothing_waits, until_waiting


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger) -> None:
    """Lay out a pool of three addresses, all held, and one of one address of another name."""
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24", name="block")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.12", name="pool")
    await ledger.add_pool("net", "192.0.2.20", name="single")
    await ledger.allocate_many("net", owner="vm/full", count=4)


@pytest.fixture
async def other(ledger: tenure.AsyncLedger, place: str) -> AsyncIterator[tenure.AsyncLedger]:
    """Give a second ledger on the same store."""
    async with await another(ledger, place) as opened:
        yield opened


async def free(ledger: tenure.AsyncLedger, *numbers: int) -> None:
    """Release addresses, all at once."""
    await ledger.apply(
        [tenure.Release(network="net", address=f"192.0.2.{number}", owner="vm/full") for number in numbers]
    )


@pytest.mark.parametrize("policy", ["lowest", "random", "hashed", "sticky"])
async def test_a_plain_claim_does_not_jump_the_line(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, policy: str
) -> None:
    with pytest.raises(tenure.PoolExhausted):  # it has looked at the plan before anybody waited
        await other.allocate("net", owner="vm/young", policy=policy)
    await ledger.claim("net", owner="vm/old")
    await free(ledger, 11)

    with pytest.raises(tenure.PoolExhausted):
        await other.allocate("net", owner="vm/young", policy=policy)
    assert (await ledger.claim("net", owner="vm/old")).state == "granted"


async def test_a_named_claim_gets_what_the_line_leaves(ledger: tenure.AsyncLedger, other: tenure.AsyncLedger) -> None:
    await ledger.claim("net", owner="vm/old")
    await free(ledger, 11, 12)

    with pytest.raises(tenure.TenureError):
        await other.allocate("net", owner="vm/young", address="192.0.2.11")
    assert (await other.allocate("net", owner="vm/young", address="192.0.2.12")).owner == "vm/young"
    granted = await ledger.claim("net", owner="vm/old")
    assert granted.holding is not None
    assert granted.holding.address == "192.0.2.11"


async def test_a_group_takes_only_what_the_line_leaves(ledger: tenure.AsyncLedger, other: tenure.AsyncLedger) -> None:
    await ledger.claim("net", owner="vm/old")
    await free(ledger, 10, 11)
    cursor = await ledger.last_change()

    with pytest.raises(tenure.PoolExhausted):
        await other.allocate_many("net", owners=["vm/a", "vm/b"])
    with pytest.raises(tenure.PoolExhausted, match="in a row"):
        await other.allocate_many("net", owner="vm/c", count=2, contiguous=True)
    with pytest.raises(tenure.PoolExhausted):
        await other.apply([tenure.Allocate(network="net", owner=f"vm/{number}") for number in range(2)])
    assert await ledger.last_change() == cursor
    [got] = await other.allocate_many("net", owners=["vm/a"])
    assert got.address == "192.0.2.11"
    assert (await ledger.claim("net", owner="vm/old")).state == "granted"


async def test_a_group_never_waits(ledger: tenure.AsyncLedger) -> None:
    cursor = await ledger.last_change()
    for contiguous in (False, True):
        with pytest.raises(tenure.PoolExhausted):
            await ledger.allocate_many("net", owner="vm/a", count=2, contiguous=contiguous)

    assert await ledger.last_change() == cursor
    assert await nothing_waits(ledger)


async def test_a_claim_is_served_while_those_who_wait_elsewhere_are_not(ledger: tenure.AsyncLedger) -> None:
    await ledger.claim("net", owner="vm/old", pool="single")
    await free(ledger, 12)

    assert (await ledger.allocate("net", owner="vm/young", pool="pool")).address == "192.0.2.12"
    assert await in_line(ledger) == ["vm/old"]


async def test_what_was_kept_for_one_who_died_goes_to_the_next(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    await ledger.claim("net", owner="vm/old")
    await free(ledger, 11)
    for where in (ledger, other):  # both have kept it free
        with pytest.raises(tenure.PoolExhausted):
            await where.allocate("net", owner="vm/young")
    await let_waiters_die(ledger)

    assert (await ledger.allocate("net", owner="vm/young")).address == "192.0.2.11"
    assert await nothing_waits(ledger)
    await ledger.release_owner("vm/young")
    assert (await other.allocate("net", owner="vm/other")).address == "192.0.2.11"


async def test_what_was_kept_for_one_who_withdrew_can_be_had_by_a_group(ledger: tenure.AsyncLedger) -> None:
    await ledger.claim("net", owner="vm/old")
    await free(ledger, 10, 11)
    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate_many("net", owner="vm/run", count=2, contiguous=True)
    await ledger.withdraw("net", owner="vm/old")

    run = await ledger.allocate_many("net", owner="vm/run", count=2, contiguous=True)
    assert [each.address for each in run] == ["192.0.2.10", "192.0.2.11"]


async def test_a_plain_claim_of_one_who_waits_is_served_in_his_place(ledger: tenure.AsyncLedger) -> None:
    waiting = asyncio.create_task(ledger.allocate("net", owner="vm/old", wait_s=20))
    await until_waiting(ledger, "vm/old")
    await ledger.claim("net", owner="vm/young")
    await free(ledger, 11)
    got = await ledger.allocate("net", owner="vm/old")

    assert await asyncio.wait_for(waiting, 8) == got
    assert await in_line(ledger) == ["vm/young"]


async def test_another_wish_of_one_who_waits_does_not_lose_him_his_place(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    await ledger.claim("net", owner="vm/old", pool="pool")
    await ledger.claim("net", owner="vm/young", pool="pool")
    await free(ledger, 11)
    elsewhere = other.allocate("net", owner="vm/old", pool="single")
    jumping = other.allocate("net", owner="vm/jumper", pool="pool")
    answers = await asyncio.gather(elsewhere, jumping, return_exceptions=True)

    assert [type(answer) for answer in answers] == [tenure.PoolExhausted] * 2
    assert (await ledger.claim("net", owner="vm/old", pool="pool")).state == "granted"


async def test_polling_keeps_the_place_until_the_address_comes(ledger: tenure.AsyncLedger) -> None:
    first = await ledger.claim("net", owner="vm/a", labels={"a": "b"})
    second = await ledger.claim("net", owner="vm/b", patience_s=30)
    again = [(await ledger.claim("net", owner=owner, labels={"a": "b"})).place for owner in ("vm/b", "vm/a")]
    await free(ledger, 11)
    early = await ledger.claim("net", owner="vm/b")
    granted = await ledger.claim("net", owner="vm/a", labels={"a": "b"})

    assert (first.state, first.place, second.place, again) == ("waiting", 1, 2, [2, 1])
    assert (early.state, early.holding) == ("waiting", None)
    assert granted.holding is not None
    assert (granted.state, granted.place, granted.holding.labels) == ("granted", None, {"a": "b"})
    assert (await ledger.claim("net", owner="vm/a")).holding == granted.holding
    assert (await ledger.claim("net", owner="vm/b")).place == 1


async def test_a_claim_that_wants_something_else_goes_to_the_end(ledger: tenure.AsyncLedger) -> None:
    await ledger.claim("net", owner="vm/a")
    await ledger.claim("net", owner="vm/b")

    assert (await ledger.claim("net", owner="vm/a", pool="single")).place == 2
    assert await in_line(ledger) == ["vm/b", "vm/a"]


async def test_a_withdrawn_claim_is_gone_and_its_holding_is_not(ledger: tenure.AsyncLedger) -> None:
    await ledger.claim("net", owner="vm/a")
    await ledger.claim("net", owner="vm/a", slot="nic1")

    assert await ledger.withdraw("net", owner="vm/a") is True
    assert await ledger.withdraw("net", owner="vm/a") is False
    assert await ledger.withdraw("net", owner="vm/full", slot="0") is False
    assert [claim.slot for claim in await ledger.waiting()] == ["nic1"]
    assert await ledger.withdraw("net", owner="vm/a", slot="nic1") is True
    assert await nothing_waits(ledger)
    assert len(await ledger.holdings(owner="vm/full")) == 4


async def test_a_claim_that_is_not_polled_dies_in_its_time(ledger: tenure.AsyncLedger) -> None:
    await ledger.claim("net", owner="vm/dead", patience_s=0.05)
    await free(ledger, 11)
    await asyncio.sleep(0.06)

    assert (await ledger.allocate("net", owner="vm/young")).address == "192.0.2.11"
    assert await nothing_waits(ledger)


async def test_the_line_and_an_edit_in_one_apply(ledger: tenure.AsyncLedger) -> None:
    await ledger.claim("net", owner="vm/old")
    answers = await ledger.apply(
        [
            tenure.AddPool(network="net", range="192.0.2.40-192.0.2.41"),
            tenure.Allocate(network="net", owner="vm/young"),
        ]
    )

    assert isinstance(answers[1], tenure.Holding)
    assert answers[1].address == "192.0.2.41"
    granted = await ledger.claim("net", owner="vm/old")
    assert granted.holding is not None
    assert granted.holding.address == "192.0.2.40"
