"""``spans``, ``effects`` and ``rows_within``: what the allocator's views are built from."""

import random

import pytest

from tenure.kernel.addressing.ranges import parse_range
from tenure.kernel.holdings.holding_model import Entry, Row, State, Wish
from tenure.ports import FAR_BEHIND, Effects, LedgerStore, Transaction
from tests.contract.sites import Site, at

pytestmark = pytest.mark.every_store


def _over(spans: object, first: int, last: int) -> list[tuple[int, int]]:
    """Keep the spans that lie over a range: a store may add the nearest one below it."""
    assert isinstance(spans, list)
    assert all(low <= last for low, _ in spans)
    return [(low, high) for low, high in spans if high >= first]


async def test_spans_tell_what_is_held_over_a_range_in_order(site: Site[LedgerStore]) -> None:
    for place in ("192.0.2.9", "192.0.2.12", "192.0.2.16/28", "192.0.2.40", "2001:db8::/64"):
        await site.held_by(place, f"vm/{place}")
    await site.held_by("192.0.2.13", "vm/there", ground=site.there)
    first, last = at("192.0.2.10"), at("192.0.2.39")

    number, spans = await site.store.spans(site.here.space, first, last)
    inside = await site.store.transact(lambda tx: tx.spans(site.here.space, first, last))

    expected = [(at("192.0.2.12"), at("192.0.2.12")), (at("192.0.2.16"), at("192.0.2.31"))]
    assert number == 6
    assert _over(spans, first, last) == expected
    assert _over(inside, first, last) == expected


async def test_spans_tell_a_prefix_that_begins_below_the_range(site: Site[LedgerStore]) -> None:
    row = await site.held_by("192.0.2.16/28", "vm/a")
    first, last = at("192.0.2.20"), at("192.0.2.60")

    _, spans = await site.store.spans(site.here.space, first, last)

    assert _over(spans, first, last) == [(row.first, row.last)]


async def test_spans_that_touch_are_told_whole(site: Site[LedgerStore]) -> None:
    places = ["192.0.2.9", "192.0.2.10", "192.0.2.12", "192.0.2.16/28", "192.0.2.32", "192.0.2.255"]
    rows = [await site.held_by(place, f"vm/{place}") for place in places]

    _, spans = await site.store.spans(site.here.space, at("192.0.2.0"), at("192.0.2.255"))

    assert _places(spans) == {place for row in rows for place in range(row.first, row.last + 1)}
    assert list(spans) == sorted(spans)


async def test_holdings_of_every_state_are_in_the_spans(site: Site[LedgerStore]) -> None:
    for number, state in enumerate(State):
        await site.held_by(f"192.0.2.{number}", f"vm/{number}", state=state)

    _, spans = await site.store.spans(site.here.space, at("192.0.2.0"), at("192.0.2.255"))

    assert _places(spans) == {at(f"192.0.2.{number}") for number in range(len(State))}


async def test_spans_and_effects_from_there_on_give_the_spans_of_now(site: Site[LedgerStore]) -> None:
    chance = random.Random(3)
    first, last = at("10.0.0.0"), at("10.0.0.255")
    rows = await _churned(site, chance, [])
    number, spans = await site.store.spans(site.here.space, first, last)

    await _churned(site, chance, rows)
    outside = await site.store.effects(site.here.space, number)
    inside = await site.store.transact(lambda tx: tx.effects(site.here.space, number))
    now_number, now = await site.store.spans(site.here.space, first, last)

    assert outside.complete
    assert outside.upto == now_number == await site.store.last_change()
    assert (list(inside.steps), inside.upto) == (list(outside.steps), outside.upto)
    assert _replayed(spans, outside) == _places(now)


async def _churned(site: Site[LedgerStore], chance: random.Random, rows: list[Row]) -> list[Row]:
    for turn in range(40):
        if rows and chance.random() < 0.4:
            await site.release(site.ticket(rows.pop(chance.randrange(len(rows)))))
        else:
            place = at("10.0.0.0") + 4 * chance.randrange(64)
            wish = Wish(site.here.networks[0], place, place + 3, f"vm/{turn}/{chance.random()}")
            [verdict] = await site.grant(wish)
            if verdict.row is not None and verdict.row.owner == wish.owner:
                rows.append(verdict.row)
        if turn % 10 == 0:
            await site.held_by(f"10.0.0.{chance.randrange(250)}", f"vm/{chance.random()}", ground=site.there)
            await site.release(site.ticket((await site.rows(ground=site.there))[0]), ground=site.there)
    return rows


def _replayed(spans: object, effects: Effects) -> set[int]:
    held = _places(spans)
    for _, takes, first, last in effects.steps:
        step = set(range(first, last + 1))
        assert (held.isdisjoint if takes else held.issuperset)(step)
        held ^= step
    return held


def _places(spans: object) -> set[int]:
    """Return the addresses that lie in spans: a store may tell spans that touch as one."""
    assert isinstance(spans, list)
    return {place for first, last in spans for place in range(first, last + 1)}


async def test_effects_are_grants_and_releases_of_the_space_and_nothing_else(site: Site[LedgerStore]) -> None:
    place = at("192.0.2.1")
    entries = [
        Entry("grant", site.here.space, 1, place, place, "vm/a"),
        Entry("transfer", site.here.space, 1, place, place, "vm/b"),
        Entry("grant", site.there.space, 1, place, place, "vm/a"),
        Entry("network.modify", site.here.space, 1),
        Entry("note"),
        Entry("release", site.here.space, 1, place, place + 1, "vm/b"),
        Entry("note"),
    ]
    await site.store.transact(lambda tx: tx.log(entries))

    all_of_them = await site.store.effects(site.here.space, 0)
    later = await site.store.effects(site.here.space, 1)
    none = await site.store.effects(site.here.space, 7)

    assert list(all_of_them.steps) == [(1, True, place, place), (6, False, place, place + 1)]
    assert list(later.steps) == [(6, False, place, place + 1)]
    assert (list(none.steps), none.upto, none.complete) == ([], 7, True)
    assert all_of_them.upto == later.upto == 7


async def test_a_cursor_too_far_behind_is_told_that_effects_are_not_complete(site: Site[LedgerStore]) -> None:
    place = at("192.0.2.1")
    many = [Entry("note")] * FAR_BEHIND + [Entry("grant", site.here.space, 1, place, place, "vm/a")]
    await site.store.transact(lambda tx: tx.log(many))

    too_far = await site.store.effects(site.here.space, 0)
    just_near = await site.store.effects(site.here.space, 1)
    inside = await site.store.transact(lambda tx: tx.effects(site.here.space, 0))

    assert (too_far.complete, list(too_far.steps), too_far.upto) == (False, [], FAR_BEHIND + 1)
    assert inside.complete is False
    assert (just_near.complete, list(just_near.steps)) == (True, [(FAR_BEHIND + 1, True, place, place)])


async def test_a_cursor_in_the_trimmed_past_is_told_that_effects_are_not_complete(site: Site[LedgerStore]) -> None:
    await site.store.transact(lambda tx: tx.log([Entry("note")] * 5))
    await site.store.transact(lambda tx: tx.trim(4))

    assert (await site.store.effects(site.here.space, 2)).complete is False
    assert (await site.store.effects(site.here.space, 3)).complete is True


WITHIN = [
    ("192.0.2.0-192.0.2.255", ["192.0.2.9", "192.0.2.16", "192.0.2.40"]),
    ("192.0.2.20-192.0.2.39", ["192.0.2.16"]),
    ("192.0.2.31-192.0.2.31", ["192.0.2.16"]),
    ("192.0.2.32-192.0.2.39", []),
    ("192.0.2.10-192.0.2.15", []),
    ("192.0.2.16-192.0.2.40", ["192.0.2.16", "192.0.2.40"]),
    ("192.0.2.41-192.0.2.255", []),
    ("0.0.0.0-192.0.2.9", ["192.0.2.9"]),
    ("2001:db8::5-2001:db8::6", ["2001:db8::"]),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("asked", "expected"), WITHIN, ids=[asked for asked, _ in WITHIN])
async def test_rows_within_are_all_that_lie_over_the_range(
    site: Site[LedgerStore], asked: str, expected: list[str]
) -> None:
    for place in ("192.0.2.40", "192.0.2.9", "192.0.2.16/28", "2001:db8::/64"):
        await site.held_by(place, f"vm/{place}")
    wanted = parse_range(asked)

    outside = await site.store.rows_within(site.here.space, wanted.first, wanted.last)
    inside = await site.store.transact(lambda tx: tx.rows_within(site.here.space, wanted.first, wanted.last))

    assert [row.first for row in outside] == [at(address) for address in expected]
    assert list(inside) == list(outside)


async def test_rows_within_keep_to_a_network_and_a_limit(site: Site[LedgerStore]) -> None:
    for number in range(6):
        await site.held_by(f"192.0.2.{number}", f"vm/{number}", network=number % 2)
    first, last = at("192.0.2.0"), at("192.0.2.255")
    network = site.here.networks[1]

    async def inside(tx: Transaction) -> list[Row]:
        return list(await tx.rows_within(site.here.space, first, last, network=network, limit=2))

    limited = await site.store.rows_within(site.here.space, first, last, limit=4)
    of_network = await site.store.rows_within(site.here.space, first, last, network=network)

    assert [row.owner for row in limited] == ["vm/0", "vm/1", "vm/2", "vm/3"]
    assert [row.owner for row in of_network] == ["vm/1", "vm/3", "vm/5"]
    assert [row.owner for row in await site.store.transact(inside)] == ["vm/1", "vm/3"]


async def test_rows_within_a_network_find_its_prefix_that_begins_below(site: Site[LedgerStore]) -> None:
    await site.held_by("192.0.2.16/28", "vm/a", network=1)
    first, last = at("192.0.2.20"), at("192.0.2.60")

    mine = await site.store.rows_within(site.here.space, first, last, network=site.here.networks[1])
    other = await site.store.rows_within(site.here.space, first, last, network=site.here.networks[0])

    assert ([row.owner for row in mine], list(other)) == (["vm/a"], [])


async def test_rows_within_an_unknown_space_are_none(site: Site[LedgerStore]) -> None:
    assert list(await site.store.rows_within(site.there.space + 1000, 0, at("255.255.255.255"))) == []
