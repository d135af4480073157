"""Pending holdings: held for the time being, until they are confirmed, cancelled or removed (I10)."""

from datetime import timedelta

import pytest

import tenure
from tests.contract.ledger.plan import ending, small_plan, without_asker
from tests.contract.ledger.timing import let_deadlines_pass, news, row_at, store_of, verbs


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)


async def test_a_hold_without_a_span_is_pending_for_ever(ledger: tenure.AsyncLedger) -> None:
    held = await ledger.hold("net", owner="vm/a")
    await ledger.sweep()

    assert (held.state, held.until, held.address) == ("pending", None, "192.0.2.10")
    assert await ledger.holding("net", held.address) == held


async def test_the_deadline_is_counted_by_the_stores_clock(ledger: tenure.AsyncLedger) -> None:
    before_us = await store_of(ledger).transact(lambda tx: tx.now_us())
    held = await ledger.hold("net", owner="vm/a", lasts_s=90.5)
    after_us = await store_of(ledger).transact(lambda tx: tx.now_us())

    assert held.row.until_us == held.row.since_us + 90_500_000
    assert before_us <= held.row.since_us <= after_us
    assert held.until == held.since + timedelta(seconds=90.5)
    assert await row_at(ledger, held.address) == held.row


@pytest.mark.parametrize("policy", ["lowest", "random", "hashed", "sticky"])
async def test_every_policy_holds_with_a_deadline(ledger: tenure.AsyncLedger, policy: str) -> None:
    held = await ledger.hold("net", owner="vm/a", lasts_s=60, policy=policy)

    assert held.state == "pending"
    assert await row_at(ledger, held.address) == held.row


async def test_the_log_tells_of_a_pending_grant_and_its_deadline(ledger: tenure.AsyncLedger) -> None:
    cursor = await ledger.last_change()
    picked = await ledger.hold("net", owner="vm/a", lasts_s=60)
    named = await ledger.hold("net", owner="vm/b", address="192.0.2.15", lasts_s=60, labels={"a": "b"})
    endless = await ledger.hold("net", owner="vm/c", address="192.0.2.16")

    told = [dict(change.details) for change in await news(ledger, cursor)]
    assert told == [
        {"state": "pending", "until_us": picked.row.until_us},
        {"labels": {"a": "b"}, "state": "pending", "until_us": named.row.until_us},
        {"state": "pending"},
    ]
    assert endless.until is None


async def test_a_confirmed_holding_is_held_without_a_deadline(ledger: tenure.AsyncLedger) -> None:
    pending = await ledger.hold("net", owner="vm/a", lasts_s=60, labels={"a": "b"})
    held = await ledger.confirm("net", pending.address, owner="vm/a", request="r-1")

    assert held.row == pending.row._replace(state=tenure.State.HELD, until_us=None)
    assert await ledger.holding("net", held.address) == held
    [told] = [change for change in await news(ledger) if change.verb == "confirm"]
    assert (told.address, told.owner, told.generation, told.request) == (held.address, "vm/a", held.generation, "r-1")


async def test_confirming_twice_is_confirming_once(ledger: tenure.AsyncLedger) -> None:
    pending = await ledger.hold("net", owner="vm/a", lasts_s=60)
    first = await ledger.confirm("net", pending.address, owner="vm/a")
    cursor = await ledger.last_change()

    assert await ledger.confirm("net", pending.address, owner="vm/a") == first
    assert await ledger.last_change() == cursor


async def test_an_overdue_holding_can_be_confirmed_while_it_is_there(ledger: tenure.AsyncLedger) -> None:
    pending = await ledger.hold("net", owner="vm/a", lasts_s=60)
    await let_deadlines_pass(ledger)
    held = await ledger.confirm("net", pending.address, owner="vm/a")
    await ledger.sweep()

    assert (held.state, held.until) == ("held", None)
    assert await ledger.holding("net", pending.address) == held


async def test_a_holding_that_was_swept_cannot_be_confirmed(ledger: tenure.AsyncLedger) -> None:
    pending = await ledger.hold("net", owner="vm/a", lasts_s=60)
    await let_deadlines_pass(ledger)
    await ledger.sweep()

    with pytest.raises(tenure.NotFound, match="deadline") as told:
        await ledger.confirm("net", pending.address, owner="vm/a")
    assert told.value.field == "address"


async def test_an_old_confirm_does_not_confirm_a_later_hold(ledger: tenure.AsyncLedger) -> None:
    old = await ledger.hold("net", owner="vm/a", lasts_s=60)
    await let_deadlines_pass(ledger)
    await ledger.sweep()
    new = await ledger.hold("net", owner="vm/a", lasts_s=60)

    with pytest.raises(tenure.Conflict):
        await ledger.confirm("net", old.address, owner="vm/a", generation=old.generation)
    assert await ledger.holding("net", new.address) == new


@pytest.mark.parametrize("verb", ["confirm", "cancel"])
async def test_only_its_owner_ends_what_is_pending(ledger: tenure.AsyncLedger, verb: str) -> None:
    pending = await ledger.hold("net", owner="vm/a", lasts_s=60)

    with pytest.raises(tenure.NotOwner):
        await getattr(ledger, verb)("net", pending.address, owner="vm/b")
    with pytest.raises(tenure.Conflict):
        await getattr(ledger, verb)("net", pending.address, owner="vm/a", generation=pending.generation + 1)
    assert await ledger.holding("net", pending.address) == pending


async def test_a_cancelled_holding_is_free_at_once(ledger: tenure.AsyncLedger) -> None:
    await ledger.modify_pool("net", "pool", cooling_s=60)
    pending = await ledger.hold("net", owner="vm/a", lasts_s=60)
    cursor = await ledger.last_change()

    cancelled = await ledger.cancel("net", pending.address, owner="vm/a", request="r-2")
    assert cancelled is not None
    assert (cancelled.request, without_asker(cancelled)) == ("r-2", without_asker(pending))
    assert await ledger.cancel("net", pending.address, owner="vm/a") is None
    [told] = await news(ledger, cursor)
    assert (told.verb, told.request) == ("release", "r-2")
    assert ending(told) == {"since_us": pending.row.since_us, "because": "cancelled"}
    assert (await ledger.allocate("net", owner="vm/b")).address == pending.address


async def test_what_is_held_is_not_cancelled(ledger: tenure.AsyncLedger) -> None:
    held = await ledger.allocate("net", owner="vm/a")

    with pytest.raises(tenure.Conflict, match="release it"):
        await ledger.cancel("net", held.address, owner="vm/a")
    assert await ledger.holding("net", held.address) == held


@pytest.mark.parametrize("policy", ["lowest", "random"])
async def test_allocating_what_one_has_pending_says_what_to_do(ledger: tenure.AsyncLedger, policy: str) -> None:
    pending = await ledger.hold("net", owner="vm/a", lasts_s=60)

    with pytest.raises(tenure.AlreadyExists, match="confirm it, or cancel it"):
        await ledger.allocate("net", owner="vm/a", policy=policy)
    with pytest.raises(tenure.AlreadyExists, match="confirm it, or cancel it"):
        await ledger.allocate("net", owner="vm/a", address=pending.address)
    assert await ledger.holding("net", pending.address) == pending


async def test_holding_what_one_holds_changes_nothing(ledger: tenure.AsyncLedger) -> None:
    held = await ledger.allocate("net", owner="vm/a")
    pending = await ledger.hold("net", owner="vm/b", lasts_s=60)
    cursor = await ledger.last_change()

    assert await ledger.hold("net", owner="vm/a", lasts_s=60) == held
    assert await ledger.hold("net", owner="vm/b", lasts_s=7) == pending
    assert await ledger.last_change() == cursor


async def test_a_handed_over_pending_holding_keeps_its_deadline(ledger: tenure.AsyncLedger) -> None:
    pending = await ledger.hold("net", owner="vm/a", lasts_s=60)
    moved = await ledger.transfer("net", pending.address, owner="vm/a", to="vm/b")

    assert (moved.state, moved.until, moved.owner) == ("pending", pending.until, "vm/b")
    assert await ledger.holding("net", pending.address) == moved
    await let_deadlines_pass(ledger)
    assert [each.owner for each in await ledger.sweep()] == ["vm/b"]


async def test_a_pending_holding_can_be_released_and_never_cools(ledger: tenure.AsyncLedger) -> None:
    await ledger.modify_pool("net", "pool", cooling_s=60)
    pending = await ledger.hold("net", owner="vm/a", lasts_s=60)
    other = await ledger.hold("net", owner="vm/b")
    cursor = await ledger.last_change()

    released = await ledger.release("net", pending.address, owner="vm/a")
    assert released is not None
    assert without_asker(released) == without_asker(pending)
    assert [without_asker(each) for each in await ledger.release_owner("vm/b")] == [without_asker(other)]
    assert await verbs(ledger, cursor) == ["release", "release"]
    assert await ledger.holdings("net") == []


async def test_a_pending_holding_is_in_nobodys_way_once_it_is_overdue(ledger: tenure.AsyncLedger) -> None:
    await ledger.hold("net", owner="vm/a", lasts_s=60)
    await let_deadlines_pass(ledger)

    assert (await ledger.allocate("net", owner="vm/b")).address == "192.0.2.10"


@pytest.mark.parametrize("policy", ["lowest", "random"])
async def test_a_full_pool_gives_what_is_overdue(ledger: tenure.AsyncLedger, policy: str) -> None:
    await ledger.hold("net", owner="vm/late", lasts_s=60, address="192.0.2.13")
    await ledger.allocate_many("net", owners=[f"vm/{number}" for number in range(9)])
    await let_deadlines_pass(ledger)
    cursor = await ledger.last_change()

    assert (await ledger.allocate("net", owner="vm/new", policy=policy)).address == "192.0.2.13"
    assert [(each.verb, each.owner) for each in await news(ledger, cursor)] == [
        ("release", "vm/late"),
        ("grant", "vm/new"),
    ]


async def test_a_named_claim_gets_what_is_overdue_and_not_what_is_not(ledger: tenure.AsyncLedger) -> None:
    await ledger.hold("net", owner="vm/late", lasts_s=60, address="192.0.2.13")

    with pytest.raises(tenure.AddressInUse):
        await ledger.allocate("net", owner="vm/new", address="192.0.2.13")
    await let_deadlines_pass(ledger)
    assert (await ledger.allocate("net", owner="vm/new", address="192.0.2.13")).owner == "vm/new"


async def test_draining_frees_the_slot_and_held_takes_it_back(ledger: tenure.AsyncLedger) -> None:
    old = await ledger.allocate("net", owner="vm/a")
    draining = await ledger.modify_holding("net", old.address, owner="vm/a", state="draining")
    new = await ledger.hold("net", owner="vm/a", lasts_s=60)

    with pytest.raises(tenure.AlreadyExists):
        await ledger.modify_holding("net", old.address, owner="vm/a", state="held")
    await ledger.cancel("net", new.address, owner="vm/a")
    back = await ledger.modify_holding("net", old.address, owner="vm/a", state="held")
    assert (draining.state, new.address != old.address, back.row) == ("draining", True, old.row)


async def test_what_is_pending_or_draining_is_not_moved_where_it_may_not_go(ledger: tenure.AsyncLedger) -> None:
    pending = await ledger.hold("net", owner="vm/a", lasts_s=60)
    draining = await ledger.allocate("net", owner="vm/b")
    await ledger.modify_holding("net", draining.address, owner="vm/b", state="draining")

    with pytest.raises(tenure.Conflict):
        await ledger.modify_holding("net", pending.address, owner="vm/a", state="draining")
    with pytest.raises(tenure.Conflict):
        await ledger.cancel("net", draining.address, owner="vm/b")
    assert (await ledger.confirm("net", draining.address, owner="vm/b")).state == "draining"


async def test_confirm_and_cancel_are_operations_of_apply(ledger: tenure.AsyncLedger) -> None:
    a = await ledger.hold("net", owner="vm/a", lasts_s=60)
    b = await ledger.hold("net", owner="vm/b", lasts_s=60)
    answers = await ledger.apply(
        [
            tenure.Confirm(network="net", address=a.address, owner="vm/a"),
            tenure.Cancel(network="net", address=b.address, owner="vm/b"),
            tenure.Allocate(network="net", owner="vm/c", pending=True, lasts_s=60),
        ]
    )

    assert [(each.owner, each.state) for each in answers if isinstance(each, tenure.Holding)] == [
        ("vm/a", "held"),
        ("vm/b", "pending"),
        ("vm/c", "pending"),
    ]
    assert [(each.owner, each.state) for each in await ledger.holdings("net")] == [
        ("vm/a", "held"),
        ("vm/c", "pending"),
    ]


async def test_an_apply_that_fails_confirms_nothing(ledger: tenure.AsyncLedger) -> None:
    a = await ledger.hold("net", owner="vm/a", lasts_s=60)

    with pytest.raises(tenure.NotFound):
        await ledger.apply(
            [
                tenure.Confirm(network="net", address=a.address, owner="vm/a"),
                tenure.Confirm(network="net", address="192.0.2.19", owner="vm/a"),
            ]
        )
    assert await ledger.holding("net", a.address) == a


async def test_what_is_pending_becomes_held_by_being_confirmed_only(ledger: tenure.AsyncLedger) -> None:
    pending = await ledger.hold("net", owner="vm/a", lasts_s=60)

    with pytest.raises(tenure.Invalid, match="confirm") as refused:
        await ledger.modify_holding("net", pending.address, owner="vm/a", state="held")
    assert refused.value.field == "state"
    assert (await ledger.holding("net", pending.address)).row == pending.row
    assert await ledger.verify() == []
