"""What many owners hold, read at once."""

import pytest

import tenure
from tenure.service.ledger.ledger_api import PAGE
from tests.contract.ledger.plan import small_plan

Ledger = tenure.AsyncLedger


@pytest.fixture(autouse=True)
async def plan(ledger: Ledger) -> None:
    """Lay out two networks in spaces of their own."""
    for network in ("net", "other"):
        await small_plan(ledger, network=network)


def told(held: list[tenure.Holding]) -> list[tuple[str, str, str, str]]:
    """Return what is told of holdings."""
    return [(each.owner, each.network, each.slot, each.address) for each in held]


async def test_holdings_come_owner_by_owner_as_they_are_named(ledger: Ledger) -> None:
    await ledger.allocate("other", owner="vm/a", slot="x")
    await ledger.allocate("net", owner="vm/b")
    await ledger.allocate("net", owner="vm/a", slot="y")
    await ledger.allocate("net", owner="vm/a", slot="x")
    await ledger.allocate("net", owner="vm/c")

    assert told(await ledger.holdings_of(["vm/b", "vm/none", "vm/a"])) == [
        ("vm/b", "net", "", "192.0.2.10"),
        ("vm/a", "net", "x", "192.0.2.12"),
        ("vm/a", "net", "y", "192.0.2.11"),
        ("vm/a", "other", "x", "192.0.2.10"),
    ]


async def test_an_owner_that_is_named_twice_is_told_once(ledger: Ledger) -> None:
    held = await ledger.allocate("net", owner="vm/a")

    assert await ledger.holdings_of(["vm/a", "vm/a"]) == [held]
    assert await ledger.holdings_of(["vm/a"]) == await ledger.holdings(owner="vm/a")


async def test_holdings_of_every_state_are_told_but_not_what_cools(ledger: Ledger) -> None:
    pending = await ledger.hold("net", owner="vm/a")
    held = await ledger.allocate("net", owner="vm/b")
    draining = await ledger.modify_holding("net", held.address, owner="vm/b", state="draining")
    cooling = await ledger.allocate("net", owner="vm/c")
    await ledger.release("net", cooling.address, owner="vm/c", lingers_s=60)

    assert await ledger.holdings_of(["vm/a", "vm/b"]) == [pending, draining]
    assert await ledger.holdings_of(["vm/c"]) == await ledger.holdings(owner="vm/c")


async def test_nobody_holds_nothing(ledger: Ledger) -> None:
    assert await ledger.holdings_of([]) == []
    assert await ledger.holdings_of(["vm/none"]) == []


async def test_an_owner_that_is_none_is_refused_by_name(ledger: Ledger) -> None:
    with pytest.raises(tenure.Invalid) as refusal:
        await ledger.holdings_of(["vm/a", "nobody"])

    assert refusal.value.field == "owner"


async def test_more_owners_than_one_question_takes_are_all_told(ledger: Ledger) -> None:
    await ledger.allocate_many("net", owners=[f"vm/{number}" for number in range(10)])
    strangers = [f"vm/stranger-{number}" for number in range(PAGE)]
    found = await ledger.holdings_of([*strangers, *(f"vm/{number}" for number in reversed(range(10)))])

    assert [each.owner for each in found] == [f"vm/{number}" for number in reversed(range(10))]
