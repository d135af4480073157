"""The archive: old changes leave the log and are still told; none is lost, none is there twice (I7)."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

import tenure
from tenure.kernel.errors import CursorExpired
from tenure.kernel.holdings.archive_pages import ArchivedPage, packed, places_of
from tenure.kernel.holdings.holding_model import Change, Entry, Reply
from tenure.kernel.snapshot import Kind, Section
from tenure.ports import LedgerStore, Transaction
from tenure.service.engine.log_keeper import archive_older
from tenure.service.read.verify import verify
from tenure.service.read.whole_log import whole_log
from tests.contract.ledger.test_snapshot import again, everything
from tests.contract.providers import Provider, ledger_providers
from tests.contract.sites import Site, at

pytestmark = pytest.mark.every_store

PLACE = "192.0.2.10"


class Interrupted(Exception):
    """Stands for anything that may go wrong in the middle."""


def _entries(count: int) -> list[Entry]:
    """Make up entries about two addresses, every third a grant, which the log does not have by address."""
    verbs = ("grant", "release", "cool")
    places = (at(PLACE), at("2001:db8::"))
    return [
        Entry(verbs[n % 3], 1, 7, places[n % 2], places[n % 2] + n % 2, f"vm/{n}", "", 100 - n, None, {"n": n})
        for n in range(count)
    ]


async def _write(store: LedgerStore, count: int) -> list[Change]:
    before = await store.last_change()
    await store.transact(lambda tx: tx.log(_entries(count)))
    return list(await store.watch(before))


async def _move(store: LedgerStore, changes: Sequence[Change]) -> bool:
    page, places = packed(changes), places_of(changes)
    return await store.transact(lambda tx: tx.archive(page, places))


async def _whole(store: LedgerStore, after: int = 0) -> list[Change]:
    return [change async for page in whole_log(store, after) for change in page]


async def test_what_is_moved_leaves_the_log_and_is_read_as_it_was(site: Site[LedgerStore]) -> None:
    changes = await _write(site.store, 9)

    assert await _move(site.store, changes[:4])
    assert await _move(site.store, changes[4:6])

    assert list(await site.store.archived(0, limit=3)) == changes[:3]
    assert list(await site.store.archived(3)) == changes[3:4]
    assert list(await site.store.archived(4)) == changes[4:6]
    assert list(await site.store.archived(6)) == []
    assert list(await site.store.watch(6)) == changes[6:]
    assert await _whole(site.store) == changes
    for after in (0, 5):
        with pytest.raises(CursorExpired) as told:
            await site.store.watch(after)
        assert (told.value.after, told.value.oldest) == (after, 6)


async def test_every_entry_comes_back_from_the_archive_as_it_was_written(site: Site[LedgerStore]) -> None:
    place = at("2001:db8::1")
    details = {"labels": {"ü": "ß"}, "n": 1, "deep": [1, {"x": None}], "odd": "\x00\udc80"[:1]}
    entry = Entry("odd.verb", site.here.space, 7, place, place + 9, "vm/a", "nic0", 123456789012, "req-1", details)
    await site.store.transact(lambda tx: tx.log([Entry("bare"), entry, Entry("bare", generation=0), Entry("bare")]))
    changes = await site.news()

    assert await _move(site.store, changes)

    assert list(await site.store.archived(0)) == changes


async def test_only_the_oldest_changes_can_be_moved_and_only_once(site: Site[LedgerStore]) -> None:
    changes = await _write(site.store, 9)
    later = [change._replace(seq=change.seq + 9) for change in changes]

    assert not await _move(site.store, changes[1:4])
    assert not await _move(site.store, [*changes, *later])
    assert await _move(site.store, changes[:4])
    assert not await _move(site.store, changes[:4])
    assert not await _move(site.store, changes[:6])

    assert await _whole(site.store) == changes


async def test_a_move_that_came_to_nothing_leaves_the_log_as_it_was(site: Site[LedgerStore]) -> None:
    changes = await _write(site.store, 6)

    async def work(tx: Transaction) -> None:
        assert await tx.archive(packed(changes[:4]), places_of(changes[:4]))
        raise Interrupted

    with pytest.raises(Interrupted):
        await site.store.transact(work)

    assert list(await site.store.watch(0)) == changes
    assert list(await site.store.archived(0)) == []


@pytest.mark.parametrize("cut", [0, 5, 30])
async def test_entries_about_addresses_are_found_wherever_they_lie(site: Site[LedgerStore], cut: int) -> None:
    changes = await _write(site.store, 30)
    for start in range(0, cut, 5):
        assert await _move(site.store, changes[start : start + 5])

    told = [change for change in changes if change.verb != "grant"]
    four, six = at(PLACE), at("2001:db8::")
    for after, limit in ((0, 1000), (0, 3), (4, 4), (5, 1000), (13, 5), (30, 9)):
        for firsts in ([four], [four, six, at("10.0.0.1")], [at("10.0.0.1")]):
            expected = [each for each in told if each.first in firsts and each.seq > after][:limit]
            assert list(await site.store.changes_at(firsts, after=after, limit=limit)) == expected


@pytest.mark.sampled
@pytest.mark.parametrize("before", [1, 3, 5, 6, 9, 10, 12, 16])
async def test_trimming_drops_archived_changes_too(site: Site[LedgerStore], before: int) -> None:
    changes = await _write(site.store, 15)
    for start in (0, 5):
        assert await _move(site.store, changes[start : start + 5])

    await site.store.transact(lambda tx: tx.trim(before))

    kept = [change for change in changes if change.seq >= before]
    assert await _whole(site.store, before - 1) == kept
    about = await site.store.changes_at([at(PLACE), at("2001:db8::")])
    assert list(about) == [change for change in kept if change.verb != "grant"]
    if before > 1:
        with pytest.raises(CursorExpired) as told:
            await site.store.archived(0)
        assert told.value.oldest == before - 1


async def test_a_trim_that_came_to_nothing_brings_the_archive_back(site: Site[LedgerStore]) -> None:
    changes = await _write(site.store, 15)
    assert await _move(site.store, changes[:5])
    assert await _move(site.store, changes[5:10])

    async def work(tx: Transaction) -> None:
        await tx.trim(8)
        raise Interrupted

    with pytest.raises(Interrupted):
        await site.store.transact(work)

    assert await _whole(site.store) == changes


async def test_the_size_tells_what_is_where(site: Site[LedgerStore]) -> None:
    changes = await _write(site.store, 9)
    await site.store.transact(
        lambda tx: tx.keep_replies([Reply("a", b"x", answer="[]"), Reply("b", b"x", answer="[]")])
    )
    empty = await site.store.size()
    assert await _move(site.store, changes[:6])
    await site.store.transact(lambda tx: tx.trim(3))

    size = await site.store.size()

    assert (empty.newest, empty.changes, empty.archived, empty.replies) == (9, 9, 0, 2)
    assert (size.newest, size.changes, size.archived, size.replies) == (9, 3, 4, 2)
    assert (size.bytes is not None) == site.provider.abilities.survives_restart
    assert size.bytes is None or size.bytes > 10_000


async def test_the_oldest_answers_are_forgotten_first(site: Site[LedgerStore]) -> None:
    kept = [Reply(f"key-{n}", b"x", 1_000_000 + (n * 7) % 10, answer="[]") for n in range(10)]
    await site.store.transact(lambda tx: tx.keep_replies(kept))

    dropped = await site.store.transact(lambda tx: tx.forget_oldest_replies(4))
    left = await site.store.transact(lambda tx: tx.replies([reply.key for reply in kept]))
    rest = await site.store.transact(lambda tx: tx.forget_oldest_replies(40))

    assert (dropped, rest) == (4, 6)
    assert [reply is None for reply in left] == [reply.at_us < 1_000_004 for reply in kept]


@pytest.fixture
async def store(ledger_provider: Provider[LedgerStore]) -> AsyncIterator[LedgerStore]:
    """Give an empty store of every kind."""
    async with ledger_provider.open() as opened:
        yield opened


@pytest.mark.parametrize("provider", ledger_providers(), ids=lambda provider: f"from {provider.name}")
async def test_the_archive_is_part_of_the_contents(store: LedgerStore, provider: Provider[LedgerStore]) -> None:
    async with provider.open() as origin:
        changes = await _write(origin, 40)
        for start in range(0, 36, 2):
            assert await _move(origin, changes[start : start + 2])

        await store.fill(origin.contents())

        assert await everything(store) == await everything(origin)
    assert len((await everything(store))[Kind.ARCHIVE_PAGES]) == 18
    assert await _whole(store) == changes
    assert len(await store.changes_at([at(PLACE)])) == sum(1 for n in range(0, 40, 2) if n % 3)


async def _faulty(origin: LedgerStore, fault: str) -> AsyncIterator[Section]:
    """Pass on a ledger's contents with one page of its archive gone, or damaged."""
    async for section in origin.contents():
        items = list(section.items)
        if fault == "gone" and section.kind is Kind.COUNTERS:
            items = [items[0]._replace(archive_pages=items[0].archive_pages - 1)]
        if section.kind is Kind.ARCHIVE_PAGES:
            page: ArchivedPage = items[1]
            items[1:2] = [] if fault == "gone" else [page._replace(last_us=page.last_us + 1)]
        yield Section(section.kind, items)


async def test_verify_finds_a_page_that_is_gone(store: LedgerStore, ledger_provider: Provider[LedgerStore]) -> None:
    async with ledger_provider.open() as origin:
        changes = await _write(origin, 20)
        for start in range(0, 15, 5):
            assert await _move(origin, changes[start : start + 5])
        assert [breach for breach in await verify(origin) if "jumps" in breach.text] == []

        await store.fill(_faulty(origin, "gone"))

    assert [str(breach) for breach in await verify(store)] == ["I7: the log jumps from 5 to 11"]


async def test_verify_finds_changes_that_are_archived_and_still_in_the_log(
    store: LedgerStore, ledger_provider: Provider[LedgerStore]
) -> None:
    async with ledger_provider.open() as origin:
        changes = await _write(origin, 20)
        contents = [section async for section in origin.contents()]
    counters = contents[0].items[0]._replace(oldest=5, changes=15, archive_pages=2)
    pages = [packed(changes[:5]), packed(changes[5:10])]
    contents = [
        Section(Kind.COUNTERS, [counters]), Section(Kind.ARCHIVE_PAGES, pages), Section(Kind.CHANGES, changes[5:])
    ]  # fmt: skip

    await store.fill(again(*contents))

    found = [str(breach) for breach in await verify(store)]
    assert "I7: change 6 is in the archive and in the log" in found


async def test_verify_and_readers_are_told_of_a_damaged_page_and_a_copy_keeps_it(
    store: LedgerStore, ledger_provider: Provider[LedgerStore]
) -> None:
    async with ledger_provider.open() as origin:
        changes = await _write(origin, 20)
        for start in range(0, 15, 5):
            assert await _move(origin, changes[start : start + 5])

        await store.fill(_faulty(origin, "damaged"))

    [breach] = await verify(store)
    assert (breach.invariant, "changes 6 to 10 cannot be read" in breach.text) == ("I7", True)
    assert len((await everything(store))[Kind.ARCHIVE_PAGES]) == 3
    assert list(await store.archived(0)) == changes[:5]
    with pytest.raises(tenure.StoreUnavailable, match="damaged"):
        await store.archived(5)


async def test_only_what_is_old_enough_is_moved_and_only_by_full_pages_if_so_wanted(site: Site[LedgerStore]) -> None:
    changes = await _write(site.store, 30)

    assert await archive_older(site.store, 3_600_000_000) == 0
    assert await archive_older(site.store, 0, least=31) == 0
    assert await archive_older(site.store, 0, least=30) == 30
    assert await archive_older(site.store, 0) == 0

    assert await _whole(site.store) == changes


async def test_pages_are_moved_while_others_write_and_a_reader_misses_nothing(site: Site[LedgerStore]) -> None:
    seen: list[Change] = []
    writing = True

    async def write(worker: int) -> None:
        for turn in range(15):
            row = await site.held_by(f"10.0.{worker}.{turn}", f"vm/{worker}", slot=str(turn))
            await site.release(site.ticket(row))

    async def archive() -> None:
        while writing:
            await archive_older(site.store, 0)
            await asyncio.sleep(0)

    async def read() -> None:
        while writing or len(seen) < await site.store.last_change():
            seen.extend(await _whole(site.store, len(seen)))
            await asyncio.sleep(0)

    others = [asyncio.create_task(work) for work in (archive(), archive(), read())]
    await asyncio.gather(*(write(worker) for worker in range(4)))
    writing = False
    await asyncio.gather(*others)

    assert [change.seq for change in seen] == list(range(1, 4 * 15 * 2 + 1))
    assert await _whole(site.store) == seen


async def test_whoever_comes_while_a_page_is_moved_neither_waits_nor_moves_it(parallel_site: Site[LedgerStore]) -> None:
    store = parallel_site.store
    changes = await _write(store, 9)
    moving, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(tx: Transaction) -> bool:
        moved = await tx.archive(packed(changes[:4]), places_of(changes[:4]))
        moving.set()
        await go_on.wait()
        return moved

    first = asyncio.create_task(store.transact(slowly))
    await moving.wait()
    async with asyncio.timeout(20):
        second = await archive_older(store, 0)
    go_on.set()

    assert (await first, second) == (True, 0)
    assert await _whole(store) == changes
    assert await archive_older(store, 0) == 5


async def test_several_servers_move_each_change_once(shared_site: Site[LedgerStore]) -> None:
    site = shared_site
    changes = await _write(site.store, 50)
    others = [await site.provider.connect(site.url) for _ in range(3)]
    try:
        moved = await asyncio.gather(*(archive_older(store, 0) for store in (site.store, *others)))
        assert await _whole(others[0]) == changes
    finally:
        for other in others:
            await other.close()

    assert sum(moved) == 50
