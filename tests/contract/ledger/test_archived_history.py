"""A ledger whose old changes are archived, and whose keys are bounded: what its users notice, and what they do not."""

import pytest

import tenure
from tenure.wiring import open_metered
from tests.contract.ledger.plan import small_plan

PLACE = "192.0.2.10"


async def test_history_tells_the_same_before_and_after(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)
    await small_plan(ledger, network="gone")
    for number in range(4):
        await ledger.allocate("net", owner=f"vm/{number}", address=PLACE, request=f"r{number}")
        await ledger.release("net", PLACE, owner=f"vm/{number}")
    await ledger.allocate("gone", owner="vm/x", address=PLACE)
    await ledger.release("gone", PLACE, owner="vm/x")
    await ledger.remove_network("gone", cascade=True)
    await ledger.allocate("net", owner="vm/now", address=PLACE)
    last = await ledger.last_change()
    before = await ledger.history(PLACE)
    times = [tenure.since for tenure in before if tenure.since is not None]
    held = [await ledger.history(PLACE, at=time) for time in times]
    explained = await ledger.why(PLACE)

    moved = await ledger.archive_changes(0)

    assert (len(before), moved) == (6, last)
    assert {tenure.network for tenure in before} == {"net", "gone"}
    assert await ledger.history(PLACE) == before
    assert [await ledger.history(PLACE, at=time) for time in times] == held
    assert str(await ledger.why(PLACE)) == str(explained)
    assert not before.trimmed
    assert await ledger.last_change() == last


async def test_the_log_is_read_from_behind_the_archive_only(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)
    await ledger.archive_changes(0)
    last = await ledger.last_change()
    await ledger.allocate("net", owner="vm/new")

    assert [change.seq async for change in ledger.changes(last)] == [last + 1]
    for after in (0, last - 1):
        with pytest.raises(tenure.CursorExpired) as told:
            _ = [change async for change in ledger.changes(after)]
        assert told.value.oldest == last
    with pytest.raises(tenure.CursorExpired):
        await anext(ledger.tail(0))


async def test_nothing_younger_than_so_many_days_is_moved(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)

    assert await ledger.archive_changes(1) == 0
    assert await ledger.archive_changes(0.5) == 0
    assert [change.seq async for change in ledger.changes(0, limit=1)] == [1]


@pytest.mark.parametrize("days", [-1, 1e9, float("nan"), "7", True, None])
async def test_what_is_no_number_of_days_is_refused(ledger: tenure.AsyncLedger, days: object) -> None:
    with pytest.raises(tenure.Invalid, match="keep_days") as told:
        await ledger.archive_changes(days)  # type: ignore[arg-type]

    assert told.value.field == "keep_days"


async def test_history_says_since_when_it_is_complete_when_the_archive_was_trimmed(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)
    for number in range(4):
        await ledger.allocate("net", owner=f"vm/{number}", address=PLACE)
        await ledger.release("net", PLACE, owner=f"vm/{number}")
    changes = [change async for change in ledger.changes()]
    ends = [change for change in changes if change.verb == "release"]
    await ledger.archive_changes(0)

    await ledger.trim_changes(ends[2].seq)
    history = await ledger.history(PLACE)

    assert [str(tenure.owner) for tenure in history] == ["vm/2", "vm/3"]
    assert (history.trimmed, history.complete_since) == (True, ends[2].at)


@pytest.mark.usefixtures("embedded")
async def test_too_many_keys_are_bounded_and_a_forgotten_one_may_be_used_again(place: str) -> None:
    async with await open_metered(place, None, most_keys=3) as ledger:
        await small_plan(ledger)
        given = [await ledger.allocate("net", owner=f"vm/{n}", key=f"key-{n}") for n in range(5)]
        for held in given:
            await ledger.release("net", held.address, owner=str(held.owner))
        await ledger.sweep()

        kept = await ledger.allocate("net", owner="vm/4", key="key-4")
        again = await ledger.allocate("net", owner="vm/other", key="key-0")

        assert kept == given[4]
        assert str(again.owner) == "vm/other"
        with pytest.raises(tenure.KeyReused):
            await ledger.allocate("net", owner="vm/other", key="key-2")
