"""``held``, ``by_owner`` and ``watch``: what is held, whose it is, what happened."""

import asyncio
from itertools import pairwise
from typing import Any

from tenure.kernel.holdings.holding_model import Change, Row, State, Ticket, Wish
from tenure.ports import Book
from tests.contract.sites import Site, at


async def test_nothing_is_held_in_a_fresh_store(site: Site[Book]) -> None:
    assert await site.rows() == []
    assert list(await site.store.by_owner(["vm/a"])) == []


async def test_holdings_come_in_order_of_address_whatever_the_order_of_grants(site: Site[Book]) -> None:
    for place in ("2001:db8::5", "192.0.2.200", "10.0.0.1", "2001:db8::1", "192.0.2.3"):
        await site.held_by(place, f"vm/{place}")

    rows = await site.rows()

    assert [row.owner.removeprefix("vm/") for row in rows] == [
        "10.0.0.1", "192.0.2.3", "192.0.2.200", "2001:db8::1", "2001:db8::5",
    ]  # fmt: skip


async def test_reading_goes_on_behind_a_prefix_that_ends_a_page(site: Site[Book]) -> None:
    rows = [await site.held_by(place, f"vm/{place}") for place in ("10.0.0.16/28", "192.0.2.0/24", "2001:db8::/32")]

    assert await asyncio.wait_for(site.rows(), 5) == rows
    assert await asyncio.wait_for(site.rows(after=rows[1].first), 5) == rows[2:]


async def test_many_holdings_come_in_pages_of_which_none_is_lost(site: Site[Book]) -> None:
    expected = []
    for base in (at("10.0.0.0"), at("2001:db8::")):
        for start in range(0, 1300, site.store.abilities.largest_batch):
            size = min(site.store.abilities.largest_batch, 1300 - start)
            places = [base + (start + n) * 3 for n in range(size)]
            await site.grant(*(Wish(site.here.networks[0], place, place, f"vm/{place}") for place in places))
            expected += places

    pages = [page async for page in site.store.held(site.here.space)]

    assert len(pages) > 1
    assert [row.first for page in pages for row in page] == expected


async def test_reading_holdings_can_begin_behind_any_address(site: Site[Book]) -> None:
    rows = [await site.held_by(f"192.0.2.{n}", f"vm/{n}") for n in (10, 20, 30)]

    assert await site.rows(after=at("192.0.2.10")) == rows[1:]
    assert await site.rows(after=at("192.0.2.15")) == rows[1:]
    assert await site.rows(after=at("192.0.2.30")) == []


async def test_an_owners_holdings_are_found_in_all_spaces_and_states(site: Site[Book]) -> None:
    mine = [
        await site.held_by("192.0.2.10", "vm/a"),
        await site.held_by("192.0.2.11", "vm/a", slot="nic1", state=State.PENDING),
        await site.held_by("192.0.2.12", "vm/a", network=1, state=State.DRAINING),
        await site.held_by("2001:db8::1", "vm/a", ground=site.there, state=State.COOLING),
    ]
    other = await site.held_by("192.0.2.20", "vm/b")
    await site.held_by("192.0.2.21", "vm/ab")

    found = await site.store.by_owner(["vm/a"])
    both = await site.store.by_owner(["vm/b", "vm/a", "vm/nobody"])

    assert sorted(found, key=_place) == sorted(mine, key=_place)
    assert sorted(both, key=_place) == sorted([*mine, other], key=_place)


def _place(row: Row) -> tuple[int, int]:
    return row.space, row.first


async def test_the_log_tells_grants_and_releases_in_the_order_they_took_effect(site: Site[Book]) -> None:
    start = _last(await site.news())
    a = await site.held_by("192.0.2.10", "vm/a", slot="nic0", request="req-1")
    b = await site.held_by("192.0.2.11", "vm/b")
    await site.release(site.ticket(a, request="req-2"))
    c = await site.held_by("192.0.2.10", "vm/c")

    news = await site.news(start)

    assert [_told(change) for change in news] == [
        ("grant", a.first, "vm/a", "nic0", a.generation, "req-1"),
        ("grant", b.first, "vm/b", "", b.generation, None),
        ("release", a.first, "vm/a", "nic0", a.generation, "req-2"),
        ("grant", c.first, "vm/c", "", c.generation, None),
    ]
    assert all((change.space, change.network) == (site.here.space, site.here.networks[0]) for change in news)
    assert all(earlier.seq < later.seq for earlier, later in pairwise(news))


def _told(change: Change) -> tuple[Any, ...]:
    return (change.verb, change.first, change.owner, change.slot, change.generation, change.request)


def _last(news: list[Change]) -> int:
    return news[-1].seq if news else 0


async def test_the_log_of_a_grant_tells_what_the_row_carries(site: Site[Book]) -> None:
    start = _last(await site.news())
    row = await site.held_by("2001:db8::/64", state=State.PENDING, lasts_us=7, details={"labels": {"a": "b"}})

    [change] = await site.news(start)

    assert (change.address, change.last) == ("2001:db8::", at("2001:db8::ffff:ffff:ffff:ffff"))
    assert change.details == {"labels": {"a": "b"}, "state": "pending", "until_us": row.until_us}


async def test_what_was_refused_is_not_in_the_log(site: Site[Book]) -> None:
    row = await site.held_by("192.0.2.10", "vm/a")
    start = _last(await site.news())

    await site.grant(site.wish("192.0.2.10", "vm/b"), site.wish("192.0.2.12", "vm/a"))
    await site.release(Ticket(row.network, row.first, "vm/b"))

    assert await site.news(start) == []


async def test_the_log_is_read_in_pieces_and_by_space(site: Site[Book]) -> None:
    start = _last(await site.news())
    for n in range(6):
        await site.held_by(f"192.0.2.{n}", f"vm/{n}", ground=(site.here, site.there)[n % 2])

    news = await site.news(start)
    first = await site.store.watch(start, limit=2)
    rest = await site.store.watch(first[-1].seq, limit=100)
    there = await site.store.watch(start, limit=2, space=site.there.space)

    assert [*first, *rest] == news
    assert [change.owner for change in there] == ["vm/1", "vm/3"]
    assert list(await site.store.watch(news[-1].seq)) == []


async def test_what_begins_now_is_numbered_above_the_newest_number_that_was_seen(site: Site[Book]) -> None:
    row = await site.held_by("192.0.2.10", "vm/a")

    for turn in range(3):
        newest = site.store.newest
        await site.release(site.ticket(row, request=f"req-{turn}"))
        row = await site.held_by("192.0.2.10", "vm/a")

        assert [change.verb for change in await site.store.watch(newest)][-2:] == ["release", "grant"]
    assert site.store.newest >= _last(await site.news())


async def test_a_reader_who_follows_the_log_under_load_misses_nothing(site: Site[Book]) -> None:
    followed: list[Change] = []
    start = _last(await site.news())
    done = asyncio.Event()

    async def follow() -> None:
        while True:
            ending = done.is_set()
            page = await site.store.watch(followed[-1].seq if followed else start, limit=7)
            followed.extend(page)
            if ending and not page:
                return
            await asyncio.sleep(0)

    async def hold_and_let_go(worker: int) -> None:
        for turn in range(10):
            row = await site.held_by(f"192.0.2.{worker * 10 + turn}", f"vm/{worker}", slot=str(turn))
            if turn % 2:
                await site.release(site.ticket(row))
            await asyncio.sleep(0)

    reader = asyncio.create_task(follow())
    await asyncio.gather(*(hold_and_let_go(worker) for worker in range(8)))
    done.set()
    await reader

    assert len(followed) == 8 * (10 + 5)
    assert followed == await site.news(start)
    assert _replayed(followed) == {row.first: row.generation for row in await site.rows()}


def _replayed(news: list[Change]) -> dict[int | None, int | None]:
    held: dict[int | None, int | None] = {}
    for change in news:
        if change.verb == "grant":
            assert change.first not in held
            held[change.first] = change.generation
        else:
            assert held.pop(change.first) == change.generation
    return held
