"""``grant``: create holdings if nobody is in the way."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from tenure.kernel.holdings.holding_model import Outcome, State, Wish
from tenure.ports import Book
from tests.contract.sites import Site, at, outcomes

GRANTED, ALREADY, TAKEN, AGAIN = Outcome.GRANTED, Outcome.ALREADY, Outcome.TAKEN, Outcome.AGAIN


async def test_a_free_address_is_granted_and_held(site: Site[Book]) -> None:
    wish = site.wish("192.0.2.10", "vm/a", slot="nic0")

    [verdict] = await site.grant(wish)

    assert verdict.outcome is GRANTED
    row = verdict.row
    assert row is not None
    assert (row.space, row.network, row.first, row.last) == (site.here.space, wish.network, wish.first, wish.last)
    assert (row.owner, row.slot, row.state) == ("vm/a", "nic0", State.HELD)
    assert row.since_us > 1_600_000_000_000_000
    assert await site.rows() == [row]


async def test_an_address_that_another_holds_is_taken_and_the_holder_is_told(site: Site[Book]) -> None:
    holder = await site.held_by("192.0.2.10", "vm/a")

    [verdict] = await site.grant(site.wish("192.0.2.10", "vm/b"))

    assert (verdict.outcome, verdict.row) == (TAKEN, holder)
    assert await site.rows() == [holder]


async def test_a_claim_that_holds_already_is_answered_with_what_it_holds(site: Site[Book]) -> None:
    holder = await site.held_by("192.0.2.10", "vm/a")

    [elsewhere] = await site.grant(site.wish("192.0.2.11", "vm/a"))
    [same] = await site.grant(site.wish("192.0.2.10", "vm/a"))

    assert (elsewhere.outcome, elsewhere.row) == (ALREADY, holder)
    assert (same.outcome, same.row) == (ALREADY, holder)
    assert await site.rows() == [holder]


async def test_a_claim_that_holds_already_is_told_so_even_where_another_is_in_the_way(site: Site[Book]) -> None:
    mine = await site.held_by("192.0.2.10", "vm/a")
    await site.held_by("192.0.2.11", "vm/b")

    [verdict] = await site.grant(site.wish("192.0.2.11", "vm/a"))

    assert (verdict.outcome, verdict.row) == (ALREADY, mine)


async def test_a_stale_version_makes_every_verdict_again_and_changes_nothing(site: Site[Book]) -> None:
    stale = replace(site.here, version=site.here.version + 1)
    before = await site.news()

    verdicts = await site.grant(site.wish("192.0.2.10"), site.wish("192.0.2.11", "vm/b"), ground=stale)

    assert outcomes(verdicts) == [AGAIN, AGAIN]
    assert await site.rows() == []
    assert await site.news() == before


async def test_a_batch_answers_each_wish_for_itself_and_in_its_order(site: Site[Book]) -> None:
    mine = await site.held_by("192.0.2.10", "vm/a")
    other = await site.held_by("192.0.2.20", "vm/b")
    batch = [
        site.wish("192.0.2.30", "vm/c"),
        site.wish("192.0.2.20", "vm/d"),
        site.wish("192.0.2.5", "vm/a"),
        site.wish("192.0.2.1", "vm/e"),
    ]

    verdicts = await site.grant(*batch)

    assert outcomes(verdicts) == [GRANTED, TAKEN, ALREADY, GRANTED]
    assert [verdicts[1].row, verdicts[2].row] == [other, mine]
    assert [row.owner for row in await site.rows()] == ["vm/e", "vm/a", "vm/b", "vm/c"]


def _shuffled(wishes: list[Wish]) -> list[Wish]:
    return random.Random(7).sample(wishes, len(wishes))


@pytest.mark.parametrize("arranged", [list, lambda wishes: wishes[::-1], _shuffled], ids=["up", "down", "shuffled"])
async def test_the_order_of_a_batch_decides_nothing(
    site: Site[Book], arranged: Callable[[list[Wish]], list[Wish]]
) -> None:
    await site.grant(*(site.wish(f"192.0.2.{n}", f"vm/old-{n}") for n in range(0, 60, 3)))
    batch = [site.wish(f"192.0.2.{n}", f"vm/new-{n}") for n in range(60)]

    verdicts = {
        wish.first: verdict.outcome
        for wish, verdict in zip(arranged(batch), await site.grant(*arranged(batch)), strict=True)
    }

    assert [verdicts[wish.first] for wish in batch] == [TAKEN if n % 3 == 0 else GRANTED for n in range(60)]


async def test_two_networks_of_one_space_never_hold_one_address(site: Site[Book]) -> None:
    await site.held_by("192.0.2.10", "vm/a", network=0)

    [verdict] = await site.grant(site.wish("192.0.2.10", "vm/a", network=1))

    assert verdict.outcome is TAKEN


async def test_two_spaces_may_hold_the_same_address(site: Site[Book]) -> None:
    here = await site.held_by("192.0.2.10", "vm/a")
    there = await site.held_by("192.0.2.10", "vm/b", ground=site.there)

    assert await site.rows() == [here]
    assert await site.rows(ground=site.there) == [there]


async def test_an_owner_holds_one_address_for_each_slot_and_each_network(site: Site[Book]) -> None:
    batch = [
        site.wish("192.0.2.10", slot="nic0"),
        site.wish("192.0.2.11", slot="nic1"),
        site.wish("192.0.2.12", slot="nic0", network=1),
    ]

    first = await site.grant(*batch)
    second = await site.grant(site.wish("192.0.2.13", slot="nic1"))

    assert outcomes(first) == [GRANTED] * 3
    assert (second[0].outcome, second[0].row) == (ALREADY, first[1].row)


@pytest.mark.parametrize("state", [State.PENDING, State.HELD])
@pytest.mark.parametrize("wanted", [State.PENDING, State.HELD])
async def test_a_pending_or_held_claim_gets_nothing_more(site: Site[Book], state: State, wanted: State) -> None:
    row = await site.held_by("192.0.2.10", state=state)

    [verdict] = await site.grant(site.wish("192.0.2.11", state=wanted))

    assert (verdict.outcome, verdict.row) == (ALREADY, row)


@pytest.mark.parametrize("state", [State.DRAINING, State.COOLING])
async def test_a_parting_holding_keeps_its_address_but_not_its_claim(site: Site[Book], state: State) -> None:
    parting = await site.held_by("192.0.2.10", state=state)

    [same] = await site.grant(site.wish("192.0.2.10"))
    [other] = await site.grant(site.wish("192.0.2.11"))

    assert (same.outcome, same.row) == (TAKEN, parting)
    assert other.outcome is GRANTED


@pytest.mark.parametrize(
    ("unit", "same_unit", "next_unit"),
    [
        ("198.51.100.16/28", "198.51.100.16/28", "198.51.100.32/28"),
        ("2001:db8:0:1::/64", "2001:db8:0:1::/64", "2001:db8:0:2::/64"),
        ("2001:db8::1", "2001:db8::1", "2001:db8::2"),
        ("255.255.255.255", "255.255.255.255", "::"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "0.0.0.1"),
    ],
)
async def test_units_of_both_families_are_held_as_one(
    site: Site[Book], unit: str, same_unit: str, next_unit: str
) -> None:
    row = await site.held_by(unit, "vm/a")

    verdicts = await site.grant(site.wish(same_unit, "vm/b"), site.wish(next_unit, "vm/c"))

    wish = site.wish(unit)
    assert (row.first, row.last) == (wish.first, wish.last)
    assert outcomes(verdicts) == [TAKEN, GRANTED]
    assert verdicts[0].row == row


async def test_a_row_carries_all_that_the_wish_said(site: Site[Book]) -> None:
    details = {"labels": {"team": "shop", "ümlaut": "ß – ☃"}, "description": 'a "quoted"\nline', "plan": "p1"}
    wish = site.wish("192.0.2.10", state=State.PENDING, lasts_us=5_000_000, request="req-1", details=details)

    [verdict] = await site.grant(wish)

    row = verdict.row
    assert row is not None
    assert (row.state, row.request, row.details) == (State.PENDING, "req-1", details)
    assert row.until_us == row.since_us + 5_000_000  # by the store's clock
    assert await site.rows() == [row]
    assert list(await site.store.by_owner(["vm/a"])) == [row]


async def test_a_plain_wish_and_a_rich_one_may_share_a_batch(site: Site[Book]) -> None:
    rich = site.wish("192.0.2.10", "vm/a", details={"labels": {"a": "b"}}, request="req-1")

    verdicts = await site.grant(rich, site.wish("192.0.2.11", "vm/b"))

    assert outcomes(verdicts) == [GRANTED, GRANTED]
    assert [(row.details, row.request) for row in await site.rows()] == [({"labels": {"a": "b"}}, "req-1"), ({}, None)]


async def test_every_holding_has_a_generation_of_its_own(site: Site[Book]) -> None:
    seen = set()
    for turn in range(5):
        row = await site.held_by("192.0.2.10", f"vm/{turn}")
        seen.add(row.generation)
        await site.release(site.ticket(row))

    assert len(seen) == 5


async def test_the_largest_batch_is_granted_in_one_call(site: Site[Book]) -> None:
    size = site.store.abilities.largest_batch
    base = at("10.0.0.0")
    batch = [Wish(site.here.networks[0], base + n, base + n, f"vm/{n}") for n in range(size)]

    verdicts = await site.grant(*batch)

    assert outcomes(verdicts) == [GRANTED] * size
    assert [row.first for row in await site.rows()] == [wish.first for wish in batch]
