"""Sweeping: what is overdue is removed by a logged transaction, and nothing else is (I10)."""

import pytest

import tenure
from tests.contract.ledger.plan import ending, small_plan
from tests.contract.ledger.timing import (
    another,
    in_line,
    let_deadlines_pass,
    let_waiters_die,
    news,
    nothing_waits,
)

pytestmark = pytest.mark.every_store


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)


async def test_a_ledger_without_anything_overdue_is_left_alone(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate("net", owner="vm/a")
    await ledger.hold("net", owner="vm/b")
    await ledger.hold("net", owner="vm/c", lasts_s=60)
    cursor = await ledger.last_change()

    assert await ledger.sweep() == []
    assert await ledger.last_change() == cursor


async def test_what_is_overdue_goes_and_the_log_says_why(ledger: tenure.AsyncLedger) -> None:
    await ledger.modify_pool("net", "pool", cooling_s=60)
    pending = await ledger.hold("net", owner="vm/a", lasts_s=60)
    cooling = await ledger.allocate("net", owner="vm/b")
    kept = await ledger.allocate("net", owner="vm/c")
    await ledger.release("net", cooling.address, owner="vm/b")
    await let_deadlines_pass(ledger)
    cursor = await ledger.last_change()
    swept = sorted(await ledger.sweep(), key=lambda each: each.address)  # both were due at one moment: in any order
    logged = sorted(await news(ledger, cursor), key=lambda each: each.owner or "")

    assert [(each.address, each.state) for each in swept] == [
        (pending.address, "pending"),
        (cooling.address, "cooling"),
    ]
    assert [(each.verb, each.owner, each.generation, ending(each)) for each in logged] == [
        ("release", "vm/a", pending.generation, {"since_us": pending.row.since_us, "because": "deadline"}),
        ("release", "vm/b", cooling.generation, {"since_us": cooling.row.since_us, "because": "cooled off"}),
    ]
    assert await ledger.holdings("net") == [kept]


async def test_sweeping_again_finds_nothing(ledger: tenure.AsyncLedger) -> None:
    await ledger.hold("net", owner="vm/a", lasts_s=60)
    await let_deadlines_pass(ledger)
    await ledger.sweep()

    assert await ledger.sweep() == []


async def test_all_spaces_are_swept(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger, network="other")
    await ledger.hold("net", owner="vm/a", lasts_s=60)
    await ledger.hold("other", owner="vm/a", lasts_s=60)
    await let_deadlines_pass(ledger)

    assert sorted(each.network for each in await ledger.sweep()) == ["net", "other"]


async def test_what_was_swept_can_be_had_at_once_by_every_server(ledger: tenure.AsyncLedger, place: str) -> None:
    other = await another(ledger, place)
    await ledger.hold("net", owner="vm/a", lasts_s=60)
    await other.allocate_many("net", owners=[f"vm/{number}" for number in range(9)])
    await let_deadlines_pass(ledger)
    await ledger.sweep()

    assert (await other.allocate("net", owner="vm/b", policy="random")).address == "192.0.2.10"
    await other.close()


async def test_more_than_a_page_is_swept(ledger: tenure.AsyncLedger) -> None:
    await many_overdue(ledger, 1200)

    assert len(await ledger.sweep()) == 1200


async def many_overdue(ledger: tenure.AsyncLedger, count: int) -> None:
    """Let more addresses of a pool be overdue than one look at the deadlines shows."""
    await ledger.add_subnet("net", "10.0.0.0/16", keep_back=[])
    await ledger.add_pool("net", f"10.0.0.0+{count}", name="wide", cooling_s=60)
    await ledger.allocate_many("net", owner="vm/many", count=count, pool="wide")
    await ledger.release_owner("vm/many")
    await let_deadlines_pass(ledger)


async def test_a_group_can_take_more_than_a_page_of_what_has_cooled_off(ledger: tenure.AsyncLedger) -> None:
    await many_overdue(ledger, 1200)

    assert len(await ledger.allocate_many("net", owner="vm/new", count=1200, pool="wide")) == 1200


async def test_dead_claims_are_swept_out_of_the_line(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate_many("net", owner="vm/a", count=10)
    await ledger.claim("net", owner="vm/dead")
    await ledger.claim("net", owner="vm/alive")
    await let_waiters_die(ledger, "vm/dead")
    cursor = await ledger.last_change()
    await ledger.sweep()

    assert await in_line(ledger) == ["vm/alive"]
    assert [(each.verb, each.owner) for each in await news(ledger, cursor)] == [("leave", "vm/dead")]


async def test_sweeping_the_last_dead_claim_ends_the_line(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate_many("net", owner="vm/a", count=10)
    await ledger.claim("net", owner="vm/dead")
    await let_waiters_die(ledger)
    await ledger.sweep()

    assert await nothing_waits(ledger)


async def test_a_dead_claim_is_not_shown(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate_many("net", owner="vm/a", count=10)
    await ledger.claim("net", owner="vm/dead")
    await let_waiters_die(ledger)

    assert await ledger.waiting() == []
