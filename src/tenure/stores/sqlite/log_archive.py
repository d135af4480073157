"""The archive of a SQLite ledger: pages in one table, and in another which of them tell of an address."""

import json
import sqlite3
from collections.abc import Sequence

from tenure.kernel.errors import CursorExpired
from tenure.kernel.holdings.archive_pages import ArchivedPage, place_of, places_in, told_of, unpacked, without_older
from tenure.kernel.holdings.holding_model import Change
from tenure.stores.sqlite.sql import SQL


def put_page(connection: sqlite3.Connection, page: ArchivedPage, places: Sequence[int]) -> bool:
    """Move a page's changes out of the log; False if they are not its oldest ones. Under the write lock: some 20 ms."""
    seq, oldest, _ = connection.execute(SQL["counters"]).fetchone()
    if page.first_seq != oldest + 1 or page.last_seq > seq:
        return False
    _insert(connection, page, places)
    connection.execute(SQL["trim_changes"], (page.last_seq + 1,))
    connection.execute(SQL["set_oldest"], (page.last_seq,))
    return True


def _insert(connection: sqlite3.Connection, page: ArchivedPage, places: Sequence[int]) -> None:
    connection.execute(SQL["insert_archive_page"], page)
    connection.executemany(SQL["insert_archive_place"], [(place, page.last_seq) for place in places])


def drop_archived(connection: sqlite3.Connection, before: int) -> None:
    """Drop archived changes below a number; what is left of a page in which it lies is packed anew."""
    connection.execute(SQL["delete_archive_pages"], (before,))
    connection.execute(SQL["delete_archive_places"], (before,))
    page = _page_after(connection, before - 1)
    if page is not None and page.first_seq < before:
        left = without_older(page, before)
        connection.execute(SQL["delete_archive_page"], (page.last_seq,))
        connection.execute(SQL["delete_places_of_page"], (page.last_seq,))
        _insert(connection, left, places_in(left))


def _page_after(connection: sqlite3.Connection, after: int) -> ArchivedPage | None:
    record = connection.execute(SQL["archive_page_after"], (after,)).fetchone()
    return None if record is None else ArchivedPage(*record)


def read_oldest(connection: sqlite3.Connection) -> int:
    """Return the number behind which changes are kept, archived or not."""
    return int(connection.execute(SQL["archive_begins"]).fetchone()[0])


def read_archived(connection: sqlite3.Connection, after: int, limit: int) -> list[Change]:
    """Read what the next page has behind a number."""
    # The store reads in one transaction, so asking first is safe: nothing can be trimmed before the page is read.
    oldest = read_oldest(connection)
    if after < oldest:
        raise CursorExpired(after, oldest)
    page = _page_after(connection, after)
    return [] if page is None else [change for change in unpacked(page) if change.seq > after][:limit]


def read_archived_at(connection: sqlite3.Connection, firsts: Sequence[int], after: int, limit: int) -> list[Change]:
    """Read archived entries about addresses: one probe of the places for each, then the pages that have any."""
    marks = json.dumps(sorted(set(map(place_of, firsts))))
    pages = sorted({number for (number,) in connection.execute(SQL["archive_pages_at"], (marks, after))})
    found: list[Change] = []
    for last_seq in pages:
        if len(found) >= limit:
            break
        page = _page_after(connection, last_seq - 1)
        found.extend([] if page is None else told_of(unpacked(page), firsts, after))
    return found[:limit]
