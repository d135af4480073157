"""``rewrite_unchanged``: rows are written again in one call, if they are still as they were seen; group by group."""

import asyncio
from collections.abc import Sequence

import pytest

from tenure.kernel.holding_states import confirmed
from tenure.kernel.holdings.actor import Asker, asked_entry
from tenure.kernel.holdings.holding_model import Rewrite, Row, State
from tenure.kernel.holdings.log_entries import confirm_entry
from tenure.ports import Guard, LedgerStore, Stale, Transaction
from tests.contract.sites import Site

pytestmark = pytest.mark.every_store


async def _pending(site: Site[LedgerStore], address: str, owner: str) -> Row:
    return await site.held_by(address, owner, state=State.PENDING, lasts_us=60_000_000, request="hold")


def _rewrite(row: Row, request: str | None = None) -> Rewrite:
    held = confirmed(row)
    return Rewrite(row, held, asked_entry(confirm_entry(held, request), Asker("token/ops", "r-1")))


async def test_rows_are_written_and_logged_in_the_order_they_were_named(site: Site[LedgerStore]) -> None:
    first = await _pending(site, "192.0.2.10", "vm/a")
    marked = await site.held_by("192.0.2.11", "vm/b", state=State.PENDING, details={"labels": {"ü": "ß"}, "plan": "p"})
    third = await _pending(site, "192.0.2.12", "vm/c")
    groups = [[_rewrite(third, "r"), _rewrite(first)], [_rewrite(marked)]]
    cursor = await site.store.last_change()

    answer = await site.store.rewrite_unchanged(site.here.space, site.here.version, groups)

    assert list(answer) == [True, True]
    assert await site.rows() == [confirmed(first), confirmed(marked), confirmed(third)]
    news = await site.news(cursor)
    assert [(change.seq - cursor, change.verb, change.owner, change.slot) for change in news] == [
        (1, "confirm", "vm/c", ""), (2, "confirm", "vm/a", ""), (3, "confirm", "vm/b", ""),
    ]  # fmt: skip
    assert [
        (change.first, change.last, change.generation, change.request, dict(change.details)) for change in news
    ] == [
        (row.first, row.last, row.generation, request, {"by": ["token/ops", "r-1"]})
        for row, request in ((third, "r"), (first, None), (marked, None))
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("change", ["words", "state", "deadline", "released", "granted again"])
async def test_a_group_with_a_row_that_changed_is_left_alone_and_the_others_are_not(
    site: Site[LedgerStore], change: str
) -> None:
    rows = [await _pending(site, f"192.0.2.{10 + n}", f"vm/{n}") for n in range(3)]
    groups = [[_rewrite(rows[0]), _rewrite(rows[1])], [_rewrite(rows[2])]]
    if change in ("released", "granted again"):
        await site.release(site.ticket(rows[1]))
    if change == "granted again":
        await _pending(site, "192.0.2.11", "vm/1")
    new = {
        "words": rows[1]._replace(details={"description": "other"}),
        "state": confirmed(rows[1]),
        "deadline": rows[1]._replace(until_us=1),
    }.get(change)
    if new is not None:
        await site.store.transact(lambda tx: tx.rewrite([new]))
    before, cursor = await site.rows(), await site.store.last_change()

    answer = await site.store.rewrite_unchanged(site.here.space, site.here.version, groups)

    assert list(answer) == [False, True]
    assert await site.rows() == [confirmed(row) if row == rows[2] else row for row in before]
    assert [(change.seq, change.owner) for change in await site.news(cursor)] == [(cursor + 1, "vm/2")]


@pytest.mark.parametrize("gone", ["version", "space"])
async def test_nothing_is_written_under_another_version(site: Site[LedgerStore], gone: str) -> None:
    row = await _pending(site, "192.0.2.10", "vm/a")
    if gone == "version":
        await site.store.transact(lambda tx: tx.bump(site.here.space))
    space = site.here.space if gone == "version" else 4711
    cursor = await site.store.last_change()

    with pytest.raises(Stale):
        await site.store.rewrite_unchanged(space, site.here.version, [[_rewrite(row)]])

    assert await site.rows() == [row]
    assert await site.news(cursor) == []


async def test_where_no_row_is_as_it_was_seen_the_log_stays_as_it_is(site: Site[LedgerStore]) -> None:
    row = await _pending(site, "192.0.2.10", "vm/a")
    await site.release(site.ticket(row))
    cursor = await site.store.last_change()

    answer = await site.store.rewrite_unchanged(site.here.space, site.here.version, [[_rewrite(row)]])

    assert list(answer) == [False]
    assert await site.store.last_change() == cursor


async def test_the_lane_is_waited_for_and_what_its_holder_did_is_seen(parallel_site: Site[LedgerStore]) -> None:
    site = parallel_site
    row = await _pending(site, "192.0.2.10", "vm/a")
    asked: list[asyncio.Future[Sequence[bool]]] = []

    async def other(tx: Transaction) -> None:
        await tx.guard([site.here.space], Guard.LANE)
        rewriting = site.store.rewrite_unchanged(site.here.space, site.here.version, [[_rewrite(row)]])
        asked.append(asyncio.ensure_future(rewriting))
        await asyncio.sleep(0.03)
        assert not asked[0].done()
        await tx.rewrite([row._replace(details={"description": "other"})])

    await site.store.transact(other)

    assert list(await asked[0]) == [False]
    assert [(each.state, dict(each.details)) for each in await site.rows()] == [
        (State.PENDING, {"description": "other"})
    ]


async def test_a_lane_that_is_held_for_long_is_left_to_its_holder(parallel_site: Site[LedgerStore]) -> None:
    site = parallel_site
    row = await _pending(site, "192.0.2.10", "vm/a")

    async def other(tx: Transaction) -> Sequence[bool]:
        await tx.guard([site.here.space], Guard.LANE)
        return await site.store.rewrite_unchanged(site.here.space, site.here.version, [[_rewrite(row)]])

    assert list(await site.store.transact(other)) == [False]
    assert await site.rows() == [row]
