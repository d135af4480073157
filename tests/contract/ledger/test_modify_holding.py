"""What is written on a holding, and the states it goes through by hand."""

import pytest

import tenure


async def held(ledger: tenure.AsyncLedger) -> tenure.Holding:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.20")
    return await ledger.allocate("net", owner="vm/a", labels={"team": "shop"}, carrier="host-1")


async def test_notes_and_carrier_change_and_the_holding_stays_the_same(ledger: tenure.AsyncLedger) -> None:
    before = await held(ledger)
    await ledger.modify_holding("net", before.address, owner="vm/a", carrier="host-2", description="moved")
    after = await ledger.holding("net", before.address)

    assert (after.carrier, after.description, after.labels) == ("host-2", "moved", {"team": "shop"})
    assert (after.generation, after.owner) == (before.generation, before.owner)
    assert [change.verb async for change in ledger.changes()][-1] == "modify"


async def test_a_draining_holding_leaves_its_slot_to_a_successor_and_nobody_its_address(
    ledger: tenure.AsyncLedger,
) -> None:
    old = await held(ledger)
    await ledger.modify_holding("net", old.address, owner="vm/a", state="draining")
    new = await ledger.allocate("net", owner="vm/a")

    assert new.address != old.address
    with pytest.raises(tenure.AlreadyExists):
        await ledger.modify_holding("net", old.address, owner="vm/a", state="held")
    await ledger.release("net", new.address, owner="vm/a")
    assert (await ledger.modify_holding("net", old.address, owner="vm/a", state="held")).state == "held"


async def test_a_state_that_has_a_verb_of_its_own_is_refused(ledger: tenure.AsyncLedger) -> None:
    holding = await held(ledger)

    with pytest.raises(tenure.Invalid) as told:
        await ledger.modify_holding("net", holding.address, owner="vm/a", state="cooling")
    assert told.value.field == "state"
    with pytest.raises(tenure.Conflict):
        await ledger.modify_holding("net", holding.address, owner="vm/a", state="pending")


async def test_a_change_that_changes_nothing_is_not_logged(ledger: tenure.AsyncLedger) -> None:
    holding = await held(ledger)
    before = await ledger.last_change()
    await ledger.modify_holding("net", holding.address, owner="vm/a", carrier="host-1")

    assert await ledger.last_change() == before


async def test_only_the_holder_may_write_on_it(ledger: tenure.AsyncLedger) -> None:
    holding = await held(ledger)

    with pytest.raises(tenure.NotOwner):
        await ledger.modify_holding("net", holding.address, owner="vm/b", carrier="host-9")
    with pytest.raises(tenure.NotFound):
        await ledger.modify_holding("net", "192.0.2.15", owner="vm/a", carrier="host-9")
