"""History: who held an address, from when until when, by whose word; on every store of the ledger tier."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

import tenure
from tenure.kernel.holdings.holding_model import Entry, Ticket
from tenure.ports import LedgerStore
from tests.contract.ledger.plan import small_plan
from tests.contract.sites import Site, at

Ledger = tenure.AsyncLedger
PLACE = "192.0.2.10"


def shape(history: tenure.History) -> list[tuple[str, str]]:
    return [(tenure.owner, str(tenure.ending)) for tenure in history]


async def swept(ledger: Ledger) -> None:
    """Sweep until something was overdue: by the store's clock, which nobody here can see."""
    for _ in range(500):
        if await ledger.sweep():
            return
        await asyncio.sleep(0.02)


async def test_an_address_nobody_held_has_no_history(ledger: Ledger) -> None:
    await small_plan(ledger)

    history = await ledger.history(PLACE)

    assert (history.address, list(history), history.trimmed, history.complete_since) == (PLACE, [], False, None)
    assert list(await ledger.history("203.0.113.1")) == []


async def test_tenures_come_in_order_with_their_times_and_requests(ledger: Ledger) -> None:
    await small_plan(ledger)
    a = await ledger.allocate("net", owner="vm/a", slot="nic0", address=PLACE, request="r1")
    await ledger.release("net", PLACE, owner="vm/a", request="r2")
    b = await ledger.allocate("net", owner="vm/b", address=PLACE, request="r3")

    first, second = await ledger.history(PLACE)

    assert (first.owner, first.slot, first.since, first.ending) == ("vm/a", "nic0", a.since, tenure.Ending.RELEASED)
    assert (first.network, first.generation, first.ended_by) == ("net", a.generation, "r2")
    assert first.until is not None
    assert a.since <= first.until <= b.since
    assert (second.owner, second.since, second.until) == ("vm/b", b.since, None)
    assert (second.ending, second.state) == (tenure.Ending.STILL_HELD, tenure.State.HELD)
    assert (second.request, second.generation) == ("r3", b.generation)


async def test_other_addresses_are_not_in_it(ledger: Ledger) -> None:
    await small_plan(ledger)
    for owner, address in (("vm/a", "192.0.2.10"), ("vm/b", "192.0.2.11"), ("vm/c", "192.0.2.12")):
        await ledger.allocate("net", owner=owner, address=address)
    await ledger.release_owner("vm/a")
    await ledger.release_owner("vm/b")

    assert shape(await ledger.history("192.0.2.11")) == [("vm/b", "released")]
    assert shape(await ledger.history("192.0.2.12")) == [("vm/c", "still held")]


async def test_every_way_of_ending_tells_since_when_it_was_held(ledger: Ledger) -> None:
    await small_plan(ledger)
    begun: list[datetime] = []
    for way in range(4):
        given = await ledger.allocate("net", owner=f"vm/{way}", address=PLACE)
        begun.append(given.since)
        if way == 0:
            await ledger.release("net", PLACE, owner="vm/0")
        elif way == 1:
            await ledger.release_owner("vm/1")
        elif way == 2:
            await ledger.apply([tenure.Release(network="net", address=PLACE, owner="vm/2")])
        else:
            await ledger.remove_subnet("net", "block", cascade=True)

    history = await ledger.history(PLACE)

    assert [each.since for each in history] == begun
    assert shape(history) == [(f"vm/{way}", "released") for way in range(4)]


async def test_a_transfer_hands_the_tenure_on(ledger: Ledger) -> None:
    await small_plan(ledger)
    a = await ledger.allocate("net", owner="vm/a", address=PLACE, request="r1")
    b = await ledger.transfer("net", PLACE, owner="vm/a", to="vm/b", to_slot="nic1", request="r2")
    await ledger.release("net", PLACE, owner="vm/b", request="r3")

    first, second = await ledger.history(PLACE)

    assert (first.owner, first.since, first.ending, first.to, first.to_slot) == (
        "vm/a", a.since, tenure.Ending.TRANSFERRED, "vm/b", "nic1",
    )  # fmt: skip
    assert (first.ended_by, second.request, second.ended_by) == ("r2", "r2", "r3")
    assert first.until == second.since == b.since
    assert (second.owner, second.slot, second.generation) == ("vm/b", "nic1", b.generation)


async def test_who_held_it_at_a_time(ledger: Ledger) -> None:
    await small_plan(ledger)
    a = await ledger.allocate("net", owner="vm/a", address=PLACE)
    b = await ledger.transfer("net", PLACE, owner="vm/a", to="vm/b")
    await ledger.release("net", PLACE, owner="vm/b")
    [_, second] = await ledger.history(PLACE)
    c = await ledger.allocate("net", owner="vm/c", address=PLACE)
    assert second.until is not None
    just = timedelta(microseconds=1)
    asked = [a.since - just, a.since, b.since - just, b.since, second.until - just, c.since, datetime.now(UTC)]

    found = [[each.owner for each in await ledger.history(PLACE, at=time)] for time in asked]

    assert found == [[], ["vm/a"], ["vm/a"], ["vm/b"], ["vm/b"], ["vm/c"], ["vm/c"]]


async def test_the_history_is_what_happened(ledger: Ledger) -> None:
    await small_plan(ledger)
    chance, places = random.Random(11), ["192.0.2.10", "192.0.2.11"]
    told: dict[str, list[tuple[str, str, datetime]]] = {place: [] for place in places}
    holders: dict[str, tenure.Holding] = {}
    for turn in range(60):
        place, owner = chance.choice(places), f"vm/{turn}"
        holder = holders.get(place)
        if holder is None:
            give = ledger.hold if turn % 3 == 0 else ledger.allocate
            holders[place] = await give("net", owner=owner, address=place)
        elif holder.state is tenure.State.PENDING and turn % 2:
            holders[place] = await ledger.confirm("net", place, owner=holder.owner)
        elif holder.state is tenure.State.PENDING:
            await ledger.cancel("net", place, owner=holder.owner)
            told[place].append((holder.owner, "cancelled", holders.pop(place).since))
        elif turn % 4 == 0:
            holders[place] = await ledger.transfer("net", place, owner=holder.owner, to=owner)
            told[place].append((holder.owner, "transferred", holder.since))
        else:
            await ledger.release("net", place, owner=holder.owner)
            told[place].append((holder.owner, "released", holders.pop(place).since))
    for place, holder in holders.items():
        told[place].append((holder.owner, "still held", holder.since))

    found = {place: await ledger.history(place) for place in places}

    assert {p: [(t.owner, str(t.ending), t.since) for t in history] for p, history in found.items()} == told
    assert {ending for each in told.values() for _, ending, _ in each} >= {"cancelled", "transferred", "released"}
    for history in found.values():
        assert all(a.until is not None and b.since is not None and a.until <= b.since for a, b in pairwise(history))


async def test_a_time_may_be_of_any_zone(ledger: Ledger) -> None:
    await small_plan(ledger)
    given = await ledger.allocate("net", owner="vm/a", address=PLACE)
    elsewhere = given.since.astimezone()

    assert shape(await ledger.history(PLACE, at=elsewhere)) == [("vm/a", "still held")]


async def test_an_address_inside_a_held_prefix_has_the_history_of_the_prefix(ledger: Ledger) -> None:
    await ledger.add_network("net", space="site")
    await ledger.add_subnet("net", "2001:db8::/48", unit=64, name="prefixes")
    await ledger.add_network("single", space="site")
    await ledger.add_subnet("single", "2001:db8:0:1::/64", name="addresses")
    await ledger.allocate("net", owner="vm/a", address="2001:db8:0:1::")
    await ledger.allocate("net", owner="vm/other", address="2001:db8:0:2::")
    await ledger.release_owner("vm/a")
    await ledger.release_owner("vm/other")
    await ledger.allocate("single", owner="vm/b", address="2001:db8:0:1::7")
    await ledger.release_owner("vm/b")
    await ledger.allocate("net", owner="vm/c", address="2001:db8:0:1::")

    inside = await ledger.history("2001:db8:0:1::7")

    assert shape(inside) == [("vm/a", "released"), ("vm/b", "released"), ("vm/c", "still held")]
    assert [each.address for each in inside] == ["2001:db8:0:1::", "2001:db8:0:1::7", "2001:db8:0:1::"]
    assert inside.tenures[0].last_address == "2001:db8:0:1:ffff:ffff:ffff:ffff"
    assert shape(await ledger.history("2001:db8:0:1::8")) == [("vm/a", "released"), ("vm/c", "still held")]


async def test_pending_is_part_of_a_tenure_and_its_ends_are_told(ledger: Ledger) -> None:
    await small_plan(ledger)
    held = await ledger.hold("net", owner="vm/a", address=PLACE)
    await ledger.confirm("net", PLACE, owner="vm/a", request="yes")
    await ledger.release("net", PLACE, owner="vm/a")
    await ledger.hold("net", owner="vm/b", address=PLACE)
    await ledger.cancel("net", PLACE, owner="vm/b", request="no")
    waiting = await ledger.hold("net", owner="vm/c", address=PLACE, lasts_s=3600)

    first, second, third = history = await ledger.history(PLACE)

    assert shape(history) == [("vm/a", "released"), ("vm/b", "cancelled"), ("vm/c", "still held")]
    assert first.since == held.since
    assert first.confirmed is not None
    assert first.until is not None
    assert held.since <= first.confirmed <= first.until
    assert (second.confirmed, second.ended_by) == (None, "no")
    assert (third.state, third.deadline, third.confirmed) == (tenure.State.PENDING, waiting.until, None)


async def test_a_deadline_that_passed_is_told(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.hold("net", owner="vm/a", address=PLACE, lasts_s=0.001)
    await swept(ledger)

    assert shape(await ledger.history(PLACE)) == [("vm/a", "deadline passed")]


async def test_cooling_comes_after_the_tenure_and_ends_as_a_release(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.modify_pool("net", "pool", cooling_s=1)
    given = await ledger.allocate("net", owner="vm/a", address=PLACE)
    await ledger.release("net", PLACE, owner="vm/a", request="r2")

    [cooling] = await ledger.history(PLACE)
    await swept(ledger)
    [cooled] = await ledger.history(PLACE)

    assert (cooling.ending, cooling.since, cooling.ended_by) == (tenure.Ending.COOLING, given.since, "r2")
    assert cooling.until is not None
    assert cooling.deadline is not None
    assert cooling.until < cooling.deadline
    assert (cooled.ending, cooled.since, cooled.until) == (tenure.Ending.RELEASED, given.since, cooling.until)
    assert cooled.deadline is not None
    assert cooled.deadline >= cooling.deadline
    assert list(await ledger.history(PLACE, at=cooled.until)) == []


async def test_networks_are_told_apart_and_named_as_they_are_now(ledger: Ledger) -> None:
    await small_plan(ledger, network="a", space="site")
    await small_plan(ledger, network="b", space="site")
    await small_plan(ledger, network="elsewhere")
    for number, network in enumerate(["a", "b", "elsewhere", "a"]):
        await ledger.allocate(network, owner=f"vm/{number}", address=PLACE)
        await ledger.release(network, PLACE, owner=f"vm/{number}")
    await ledger.modify_network("a", name="renamed")

    everywhere = await ledger.history(PLACE)
    there = await ledger.history(PLACE, network="renamed")

    assert [(each.network, each.owner) for each in everywhere] == [
        ("renamed", "vm/0"), ("b", "vm/1"), ("elsewhere", "vm/2"), ("renamed", "vm/3"),
    ]  # fmt: skip
    assert [each.owner for each in there] == ["vm/0", "vm/3"]


async def test_a_network_that_is_gone_keeps_the_name_it_was_removed_under(ledger: Ledger) -> None:
    await small_plan(ledger, network="a", space="site")
    await small_plan(ledger, network="b", space="site")
    await small_plan(ledger, network="c")
    for network in "abc":
        await ledger.allocate(network, owner=f"vm/{network}", address=PLACE)
        await ledger.release(network, PLACE, owner=f"vm/{network}")
    await ledger.modify_network("a", name="old")
    await ledger.remove_network("old")
    await ledger.remove_network("c")

    assert [each.network for each in await ledger.history(PLACE)] == ["old", "b", "c"]


async def test_a_network_whose_name_the_log_does_not_know_is_told_by_number(shared_site: Site[LedgerStore]) -> None:
    site = shared_site
    row = await site.held_by(PLACE, "vm/a")
    await site.release(site.ticket(row))
    gone = Entry("release", site.here.space, 4711, at(PLACE), at(PLACE), "vm/gone", "", 1, None, {"since_us": 1})
    await site.store.transact(lambda tx: tx.log([gone]))

    async with await tenure.open_async(site.url) as ledger:
        known, unknown = await ledger.history(PLACE)

    assert known.network is not None
    assert (unknown.network, unknown.network_id, unknown.owner) == (None, 4711, "vm/gone")
    assert "network no. 4711" in str(unknown)


async def test_a_trimmed_log_says_from_when_on_it_is_complete(ledger: Ledger) -> None:
    await small_plan(ledger)
    for owner in ("vm/a", "vm/b"):
        await ledger.allocate("net", owner=owner, address=PLACE)
        await ledger.release("net", PLACE, owner=owner)
    ends = [change.seq async for change in ledger.changes() if change.verb == "release"]

    await ledger.trim_changes(ends[0] + 1)
    known = await ledger.history(PLACE)
    [oldest] = [change async for change in ledger.changes(ends[0], limit=1)]
    await ledger.trim_changes(await ledger.last_change() + 1)
    nothing = await ledger.history(PLACE)
    [trim] = [change async for change in ledger.changes(await ledger.last_change() - 1)]

    assert shape(known) == [("vm/b", "released")]
    assert (known.trimmed, known.complete_since) == (True, oldest.at)
    assert (list(nothing), nothing.trimmed, nothing.complete_since) == ([], True, trim.at)


async def test_a_history_of_many_pages_is_whole(site: Site[LedgerStore]) -> None:
    entries = [
        Entry("release", site.here.space, site.here.networks[0], at(PLACE), at(PLACE), f"vm/{n}", "", n, None, {})
        for n in range(2500)
    ]
    await site.store.transact(lambda tx: tx.log(entries))

    pages: list[list[int | None]] = []
    after = 0
    while page := await site.store.changes_at([at(PLACE), at(PLACE) - 1, at(PLACE)], after=after, limit=1000):
        pages.append([change.generation for change in page])
        after = page[-1].seq

    assert [len(each) for each in pages] == [1000, 1000, 500]
    assert [number for each in pages for number in each] == list(range(2500))


async def test_changes_at_leaves_out_grants_other_places_and_what_is_behind_the_cursor(
    site: Site[LedgerStore],
) -> None:
    row = await site.held_by(PLACE, "vm/a")
    other = await site.held_by("192.0.2.11", "vm/b")
    there = await site.held_by(PLACE, "vm/c", ground=site.there)
    await site.release(site.ticket(row), site.ticket(other))
    await site.store.release(site.there.space, [Ticket(there.network, there.first, there.owner)])

    found = await site.store.changes_at([at(PLACE)])
    later = await site.store.changes_at([at(PLACE)], after=found[0].seq)

    assert [(change.verb, change.owner, change.first, change.space) for change in found] == [
        ("release", "vm/a", at(PLACE), site.here.space), ("release", "vm/c", at(PLACE), site.there.space),
    ]  # fmt: skip
    assert list(later) == list(found[1:])
    assert [change.details["since_us"] for change in found] == [row.since_us, there.since_us]
    assert list(await site.store.changes_at([])) == []


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"address": "nonsense"}, "address"),
        ({"address": PLACE, "at": datetime(2026, 1, 1)}, "at"),
        ({"address": PLACE, "at": "yesterday"}, "at"),
        ({"address": PLACE, "network": ""}, "network"),
        ({"address": PLACE, "network": "unknown"}, "network"),
    ],
)
async def test_a_wrong_question_names_the_field(ledger: Ledger, arguments: dict[str, str], field: str) -> None:
    await small_plan(ledger)

    with pytest.raises(tenure.TenureError) as told:
        await ledger.history(**arguments)  # type: ignore[arg-type]

    assert told.value.field == field
