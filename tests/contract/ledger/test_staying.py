"""Claims whose answer waits: who gets nothing in that time keeps his place, who is cancelled leaves it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

import tenure
from tests.contract.ledger.timing import nothing_waits, until_waiting, verbs

pytestmark = pytest.mark.every_store

Ledger = tenure.AsyncLedger


@pytest.fixture(autouse=True)
async def plan(ledger: Ledger) -> None:
    """Lay out a pool of two addresses, both held."""
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24", name="block")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.11", name="pool")
    await ledger.allocate_many("net", owner="vm/full", count=2)


def begin(ledger: Ledger, owner: str, wait_s: float) -> "asyncio.Task[tenure.ClaimStatus]":
    return asyncio.create_task(ledger.claim("net", owner=owner, wait_s=wait_s))


async def test_an_answer_that_waits_comes_with_the_grant(ledger: Ledger) -> None:
    claim = begin(ledger, "vm/a", 20)
    await until_waiting(ledger, "vm/a")
    await ledger.release("net", "192.0.2.10", owner="vm/full")
    status = await asyncio.wait_for(claim, 8)

    assert (status.state, status.holding and status.holding.address) == ("granted", "192.0.2.10")
    assert await nothing_waits(ledger)


async def test_who_gets_nothing_in_time_keeps_his_place_and_is_told_it(ledger: Ledger) -> None:
    first = begin(ledger, "vm/a", 0.3)
    await until_waiting(ledger, "vm/a")
    assert await ledger.claim("net", owner="vm/b") == tenure.ClaimStatus("waiting", place=2)
    cursor = await ledger.last_change()

    assert await first == tenure.ClaimStatus("waiting", place=1)
    assert await ledger.claim("net", owner="vm/a", wait_s=0.1) == tenure.ClaimStatus("waiting", place=1)
    assert [claim.owner for claim in await ledger.waiting()] == ["vm/a", "vm/b"]
    assert await verbs(ledger, cursor) == []


async def test_who_is_cancelled_leaves_the_line(ledger: Ledger) -> None:
    claim = begin(ledger, "vm/a", 20)
    await until_waiting(ledger, "vm/a")
    claim.cancel()
    with pytest.raises(asyncio.CancelledError):
        await claim
    await until_waiting(ledger)

    assert await ledger.holdings(owner="vm/a") == []
    assert await nothing_waits(ledger)


async def test_a_claim_may_be_for_the_time_being(ledger: Ledger) -> None:
    waiting = await ledger.claim("net", owner="vm/a", pending=True, lasts_s=60)
    await ledger.release("net", "192.0.2.10", owner="vm/full")
    granted = await ledger.claim("net", owner="vm/a", pending=True, lasts_s=60)

    assert waiting.state == "waiting"
    assert granted.holding is not None
    assert (granted.holding.state, granted.holding.until is None) == ("pending", False)
    with pytest.raises(tenure.Invalid, match=r"^lasts_s: "):
        await ledger.claim("net", owner="vm/b", lasts_s=60)


async def test_the_wait_for_an_answer_is_a_number_of_seconds(ledger: Ledger) -> None:
    with pytest.raises(tenure.Invalid, match=r"^wait_s: "):
        await ledger.claim("net", owner="vm/a", wait_s=-1)
    assert await ledger.waiting() == []


async def handed_over(ledger: Ledger) -> None:
    """Hand an address to an owner that waits, and back again."""
    await ledger.transfer("net", "192.0.2.10", owner="vm/full", to="vm/a")
    assert await waiting(ledger) == ["vm/b"]
    await ledger.release("net", "192.0.2.10", owner="vm/a")


async def held_again(ledger: Ledger) -> None:
    """Let an owner that waits for a successor keep what it has after all."""
    await ledger.modify_holding("net", "192.0.2.20", owner="vm/a", state="held")
    assert await waiting(ledger) == ["vm/b"]
    await ledger.release("net", "192.0.2.20", owner="vm/a")
    await ledger.release("net", "192.0.2.10", owner="vm/full")


async def given_a_run(ledger: Ledger) -> None:
    """Give an owner that waits a run, which does not go by the line."""
    await ledger.add_pool("net", "192.0.2.30-192.0.2.31", name="more")
    await ledger.allocate_many("net", owners=["vm/a"], contiguous=True, pool="more")
    assert await waiting(ledger) == ["vm/b"]
    await ledger.release_owner("vm/a")
    await ledger.retire_pool("net", "more")
    await ledger.release("net", "192.0.2.10", owner="vm/full")


async def waiting(ledger: Ledger) -> list[str]:
    """List the owners that wait, in order."""
    return [claim.owner for claim in await ledger.waiting()]


@pytest.mark.sampled
@pytest.mark.parametrize("come_to_hold", [handed_over, held_again, given_a_run], ids=lambda way: way.__name__)
async def test_an_owner_that_came_to_hold_something_by_another_way_waits_no_more(
    ledger: Ledger, come_to_hold: Callable[[Ledger], Awaitable[None]]
) -> None:
    """Its place in the line neither keeps an address from the others nor lets it pass them later."""
    await ledger.allocate("net", owner="vm/a", address="192.0.2.20")
    await ledger.modify_holding("net", "192.0.2.20", owner="vm/a", state="draining")
    assert await ledger.claim("net", owner="vm/a", pool="pool") == tenure.ClaimStatus("waiting", place=1)
    assert await ledger.claim("net", owner="vm/b", pool="pool") == tenure.ClaimStatus("waiting", place=2)
    await come_to_hold(ledger)

    late = await ledger.claim("net", owner="vm/a", pool="pool")
    next_one = await ledger.claim("net", owner="vm/b", pool="pool")
    assert (late.state, late.place) == ("waiting", 2)
    assert (next_one.holding and next_one.holding.address) == "192.0.2.10"
