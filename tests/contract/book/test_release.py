"""``release``: end holdings, and only those that the ticket names (I9)."""

import asyncio

from tenure.kernel.holdings.holding_model import Outcome, State, Ticket
from tenure.ports import Book
from tests.contract.sites import Site, at


async def test_the_owner_ends_its_holding_and_learns_what_it_was(site: Site[Book]) -> None:
    row = await site.held_by("192.0.2.10", "vm/a", request="req-1", details={"labels": {"a": "b"}})

    ended = await site.release(Ticket(row.network, row.first, "vm/a"))

    assert ended == [row]
    assert await site.rows() == []
    assert list(await site.store.by_owner(["vm/a"])) == []


async def test_a_released_address_and_claim_are_free_again(site: Site[Book]) -> None:
    row = await site.held_by("192.0.2.10", "vm/a")
    await site.release(site.ticket(row))

    verdicts = await site.grant(site.wish("192.0.2.10", "vm/b"), site.wish("192.0.2.11", "vm/a"))

    assert [verdict.outcome for verdict in verdicts] == [Outcome.GRANTED, Outcome.GRANTED]


async def test_what_another_owner_holds_is_left_alone_and_told(site: Site[Book]) -> None:
    row = await site.held_by("192.0.2.10", "vm/a")

    told = await site.release(Ticket(row.network, row.first, "vm/b"))

    assert told == [row]
    assert await site.rows() == [row]


async def test_what_is_held_in_another_network_is_left_alone_and_told(site: Site[Book]) -> None:
    row = await site.held_by("192.0.2.10", "vm/a", network=0)

    told = await site.release(Ticket(site.here.networks[1], row.first, "vm/a"))

    assert told == [row]
    assert await site.rows() == [row]


async def test_an_address_that_nobody_holds_is_answered_with_nothing(site: Site[Book]) -> None:
    there = await site.held_by("192.0.2.10", "vm/a", ground=site.there)

    told = await site.release(Ticket(site.here.networks[0], at("192.0.2.10"), "vm/a"))

    assert told == [None]
    assert await site.rows(ground=site.there) == [there]


async def test_releasing_twice_ends_one_holding(site: Site[Book]) -> None:
    row = await site.held_by("192.0.2.10", "vm/a")

    first = await site.release(site.ticket(row))
    second = await site.release(site.ticket(row))

    assert (first, second) == ([row], [None])


async def test_a_late_release_never_frees_a_later_grant(site: Site[Book]) -> None:
    early = await site.held_by("192.0.2.10", "vm/a")
    await site.release(site.ticket(early))
    later = await site.held_by("192.0.2.10", "vm/a")

    told = await site.release(site.ticket(early))

    assert told == [later]
    assert await site.rows() == [later]


async def test_draining_and_pending_holdings_are_released_as_held_ones(site: Site[Book]) -> None:
    rows = [
        await site.held_by("192.0.2.10", slot="a", state=State.PENDING, lasts_us=3_600_000_000),
        await site.held_by("192.0.2.11", slot="b", state=State.DRAINING),
    ]

    ended = await site.release(*map(site.ticket, rows))

    assert ended == rows
    assert await site.rows() == []


async def test_what_is_cooling_was_released_before_and_nobody_releases_it_again(site: Site[Book]) -> None:
    row = await site.held_by("192.0.2.12", state=State.COOLING, lasts_us=1)

    ended = await site.release(site.ticket(row))

    assert ended == [None]
    assert await site.rows() == [row]


async def test_a_batch_answers_each_ticket_for_itself_and_in_its_order(site: Site[Book]) -> None:
    mine = await site.held_by("192.0.2.30", "vm/a")
    other = await site.held_by("192.0.2.20", "vm/b")
    late = await site.held_by("192.0.2.10", "vm/c")
    tickets = [
        site.ticket(mine),
        Ticket(other.network, other.first, "vm/a", other.generation),
        Ticket(site.here.networks[0], at("192.0.2.5"), "vm/a"),
        Ticket(late.network, late.first, late.owner, late.generation + 1),
    ]

    told = await site.release(*tickets)

    assert told == [mine, other, None, late]
    assert await site.rows() == [late, other]


async def test_a_prefix_is_released_by_its_first_address(site: Site[Book]) -> None:
    row = await site.held_by("2001:db8:0:1::/64", "vm/a")

    inside = await site.release(Ticket(row.network, row.first + 1, "vm/a"))
    begin = await site.release(Ticket(row.network, row.first, "vm/a"))

    assert (inside, begin) == ([None], [row])


async def test_late_releases_that_race_with_new_grants_end_none_of_them(site: Site[Book]) -> None:
    early = [await site.held_by(f"192.0.2.{n}", f"vm/{n}") for n in range(8)]
    await site.release(*map(site.ticket, early))

    rows, *_ = await asyncio.gather(
        asyncio.gather(*(site.held_by(f"192.0.2.{n}", f"vm/{n}") for n in range(8))),
        *(site.release(site.ticket(row)) for row in early for _ in range(3)),
    )

    assert await site.rows() == rows
