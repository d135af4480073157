"""The log: in the same transaction as what it tells, numbered in commit order, without gaps (I7)."""

import asyncio
import random

import pytest

from tenure.kernel.errors import CursorExpired
from tenure.kernel.holdings.holding_model import Change, Entry, Outcome
from tenure.ports import LedgerStore, Transaction
from tests.contract.crowd import Errand, send_crowd
from tests.contract.sites import Site, at

pytestmark = pytest.mark.every_store


class Interrupted(Exception):
    """Stands for anything that may go wrong in the middle."""


def _note(*words: str) -> list[Entry]:
    return [Entry("note", details={"word": word}) for word in words]


async def _write(site: Site[LedgerStore], *words: str) -> int:
    return await site.store.transact(lambda tx: tx.log(_note(*words)))


async def test_entries_are_numbered_one_after_the_other(site: Site[LedgerStore]) -> None:
    first = await _write(site, "a", "b", "c")
    second = await _write(site, "d")

    assert (first, second) == (3, 4)
    assert [(change.seq, change.details["word"]) for change in await site.news()] == [
        (1, "a"), (2, "b"), (3, "c"), (4, "d"),
    ]  # fmt: skip
    assert await site.store.last_change() == 4


async def test_an_entry_is_read_back_as_it_was_written(site: Site[LedgerStore]) -> None:
    place = at("2001:db8::1")
    details = {"labels": {"ü": "ß"}, "n": 1, "deep": [1, {"x": None}]}
    entry = Entry("odd.verb", site.here.space, 7, place, place + 9, "vm/a", "nic0", 123456789012, "req-1", details)

    await site.store.transact(lambda tx: tx.log([entry, Entry("bare")]))

    full, bare = await site.news()
    assert full[2:12] == tuple(entry)
    assert bare[2:12] == tuple(Entry("bare"))
    assert full.at_us > 1_600_000_000_000_000


async def test_a_transaction_that_came_to_nothing_leaves_no_gap(site: Site[LedgerStore]) -> None:
    await _write(site, "a")

    async def work(tx: Transaction) -> None:
        await tx.log(_note("x", "y"))
        raise Interrupted

    with pytest.raises(Interrupted):
        await site.store.transact(work)
    await _write(site, "b")

    assert [(change.seq, change.details["word"]) for change in await site.news()] == [(1, "a"), (2, "b")]


async def test_numbers_have_no_gaps_when_many_tasks_write(site: Site[LedgerStore]) -> None:
    async def busy(worker: int) -> None:
        for turn in range(8):
            row = await site.held_by(f"10.0.{worker}.{turn}", f"vm/{worker}", slot=str(turn))
            await _write(site, *(f"{worker}/{turn}" for _ in range(turn % 3)))
            await site.grant(site.wish(f"10.0.{worker}.{turn}", "vm/late"))
            if turn % 2:
                await site.release(site.ticket(row))

    await asyncio.gather(*(busy(worker) for worker in range(8)))

    news = await site.news()
    assert [change.seq for change in news] == list(range(1, 8 * (8 + 7 + 4) + 1))
    assert await site.store.last_change() == len(news)


async def test_numbers_have_no_gaps_and_a_reader_misses_nothing_when_processes_write(
    shared_site: Site[LedgerStore],
) -> None:
    site = shared_site
    errands = [
        Errand(
            site.provider.name,
            site.url,
            site.here,
            [[(at(f"10.{worker}.{turn}.{n}"), f"vm/{worker}/{turn}/{n}", "") for n in range(3)] for turn in range(60)],
        )
        for worker in range(3)
    ]
    followed: list[Change] = []
    crowd = asyncio.create_task(send_crowd(errands))

    while not (crowd.done() and await site.store.last_change() == len(followed)):
        followed.extend(await site.store.watch(len(followed), limit=50))
        await asyncio.sleep(0.001)

    assert {outcome for heard in await crowd for _, outcome in heard} == {Outcome.GRANTED}
    assert [change.seq for change in followed] == list(range(1, 3 * 60 * 3 + 1))
    for worker in range(3):
        turns = [int(str(c.owner).split("/")[2]) for c in followed if str(c.owner).startswith(f"vm/{worker}/")]
        assert turns == sorted(turns)


async def test_a_reader_sees_the_order_in_which_addresses_changed_hands(site: Site[LedgerStore]) -> None:
    done = asyncio.Event()
    followed: list[Change] = []

    async def pass_around(worker: int) -> None:
        chance = random.Random(worker)
        for turn in range(25):
            [verdict] = await site.grant(site.wish(f"192.0.2.{chance.randrange(4)}", f"vm/{worker}", slot=str(turn)))
            if verdict.outcome is Outcome.GRANTED and verdict.row is not None:
                await site.release(site.ticket(verdict.row))

    async def follow() -> None:
        while not (done.is_set() and await site.store.last_change() == len(followed)):
            followed.extend(await site.store.watch(len(followed), limit=5))
            await asyncio.sleep(0)

    reader = asyncio.create_task(follow())
    await asyncio.gather(*(pass_around(worker) for worker in range(6)))
    done.set()
    await reader

    holders: dict[int | None, int | None] = {}
    for number, change in enumerate(followed, 1):
        assert change.seq == number
        if change.verb == "grant":
            assert change.first not in holders
            holders[change.first] = change.generation
        else:
            assert holders.pop(change.first) == change.generation
    assert holders == {}


async def test_trimming_drops_the_past_and_says_so_to_readers_who_need_it(site: Site[LedgerStore]) -> None:
    await _write(site, *"abcdef")

    await site.store.transact(lambda tx: tx.trim(4))

    assert [change.details["word"] for change in await site.store.watch(3)] == ["d", "e", "f"]
    assert [change.details["word"] for change in await site.store.watch(4)] == ["e", "f"]
    for after in (0, 2):
        with pytest.raises(CursorExpired) as told:
            await site.store.watch(after)
        assert (told.value.after, told.value.oldest) == (after, 3)
        with pytest.raises(CursorExpired):
            await site.store.watch(after, space=site.here.space)


async def test_trimming_never_brings_the_past_back_and_numbers_go_on(site: Site[LedgerStore]) -> None:
    await _write(site, *"abcd")

    await site.store.transact(lambda tx: tx.trim(4))
    await site.store.transact(lambda tx: tx.trim(2))
    last = await _write(site, "e")

    assert last == 5
    assert [change.seq for change in await site.store.watch(3)] == [4, 5]
    with pytest.raises(CursorExpired):
        await site.store.watch(2)


async def test_a_reader_whom_trimming_overtakes_is_told_and_never_skips(site: Site[LedgerStore]) -> None:
    async def write_and_trim() -> None:
        for turn in range(60):
            last = await _write(site, *(str(turn) for _ in range(4)))
            await site.store.transact(lambda tx, last=last: tx.trim(last - 1))  # type: ignore[misc]

    writer = asyncio.create_task(write_and_trim())
    after = 0
    while not writer.done():
        try:
            page = await site.store.watch(after, limit=2)
        except CursorExpired as error:
            after = error.oldest
            continue
        assert [change.seq for change in page] == list(range(after + 1, after + 1 + len(page)))
        after = page[-1].seq if page else after
        await asyncio.sleep(0)
    await writer

    assert await site.store.last_change() == 240
