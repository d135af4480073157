"""The archive of a PostgreSQL ledger: pages in one table, with an index over the marks of what each tells of.

Whoever moves changes holds a lock of the database that is the archive's alone, so that servers neither wait for each
other nor move the same twice. The counter is locked last, and only for the commit, as by every other transaction.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tenure.kernel.addressing.addresses import key
from tenure.kernel.errors import CursorExpired
from tenure.kernel.holdings.archive_pages import ArchivedPage, place_of, places_in, told_of, unpacked, without_older
from tenure.kernel.holdings.holding_model import Change
from tenure.stores.postgres.sql import SQL
from tenure.stores.sql_files import read_change

ARCHIVE_LOCK = 0x7E60_4E01

Read = Callable[..., Awaitable[list[Any]]]


async def put_page(connection: Any, page: ArchivedPage, places: Sequence[int]) -> bool:
    """Move a page's changes out of the log; False if they are not its oldest ones, or somebody else is at it."""
    if not await connection.fetchval(SQL["try_archive"], ARCHIVE_LOCK):
        return False
    # Read without locking the counter: only moves and trims raise `oldest`, and both hold the archive's lock.
    seq, oldest = (await connection.fetchrow(SQL["counters"]))[:2]
    if page.first_seq != oldest + 1 or page.last_seq > seq:
        return False
    await connection.fetch(SQL["insert_archive_page"], *page, places)
    await connection.fetch(SQL["trim_changes"], page.last_seq + 1)
    await connection.fetch(SQL["set_oldest"], page.last_seq)
    return True


async def drop_archived(connection: Any, before: int) -> None:
    """Drop archived changes below a number; what is left of a page in which it lies is packed anew.

    Waits for whoever moves changes: what is on its way into the archive would be missed.
    """
    await connection.fetch(SQL["hold_archive"], ARCHIVE_LOCK)
    await connection.fetch(SQL["delete_archive_pages"], before)
    for record in await connection.fetch(SQL["archive_page_after"], before - 1):
        page = ArchivedPage(*record)
        if page.first_seq < before:
            left = without_older(page, before)
            await connection.fetch(SQL["delete_archive_page"], page.last_seq)
            await connection.fetch(SQL["insert_archive_page"], *left, places_in(left))


async def read_archived(read: Read, after: int, limit: int) -> list[Change]:
    """Read what the next page has behind a number."""
    records = await read("archive_page_after", after)
    # Asked afterwards: what was trimmed before the page was read is told, never skipped.
    oldest = (await read("archive_begins"))[0][0]
    if after < oldest:
        raise CursorExpired(after, oldest)
    pages = [ArchivedPage(*record) for record in records]
    return [change for page in pages for change in unpacked(page) if change.seq > after][:limit]


async def read_archived_at(read: Read, firsts: Sequence[int], after: int, limit: int) -> list[Change]:
    """Read archived entries about addresses: the index names the pages that have any."""
    found: list[Change] = []
    for [last_seq] in await read("archive_pages_at", sorted(set(map(place_of, firsts))), after):
        if len(found) >= limit:
            break
        for record in await read("archive_page_after", last_seq - 1):
            found.extend(told_of(unpacked(ArchivedPage(*record)), firsts, after))
    return found[:limit]


async def read_changes_at(read: Read, firsts: Sequence[int], after: int, limit: int) -> list[Change]:
    """Read entries about addresses: one probe of the index for each place, and of the archive's.

    The log comes first: what is moved into the archive meanwhile is then found twice, and never missed.
    """
    keys = [key(first) for first in sorted(set(firsts))]
    logged = [read_change(record) for record in await read("changes_at", keys, after, limit)]
    archived = await read_archived_at(read, firsts, after, limit)
    found = {change.seq: change for change in (*archived, *logged)}
    return [found[seq] for seq in sorted(found)][:limit]
