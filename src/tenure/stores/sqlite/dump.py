"""Everything in a SQLite ledger as one stream, and back: on a connection and a thread of their own.

Reading is one read transaction: writers go on meanwhile, and the stream does not see what they do. Writing is one
write transaction, durable when it is over; if it is broken off, SQLite takes it back.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.holdings.archive_pages import ArchivedPage, places_in
from tenure.kernel.snapshot import LARGE, Inventory, Kind, Section, not_empty
from tenure.stores.sql_files import READERS, WRITERS, load_statements

SQL = {name: statement.sql for name, statement in load_statements("tenure.stores.sqlite", "dump.sql").items()}

PAGE = 2000

Connect = Callable[[], sqlite3.Connection]


async def read_contents(connect: Connect) -> AsyncGenerator[Section, None]:
    """Stream everything as of one moment."""
    loop, sections = asyncio.get_running_loop(), _sections(connect)
    # sqlite3 ties a connection to the thread that made it, so every step runs on this one, closing included.
    with ThreadPoolExecutor(1, thread_name_prefix="tenure-sqlite-contents") as thread:
        try:
            while (section := await loop.run_in_executor(thread, next, sections, None)) is not None:
                yield section
        finally:
            await loop.run_in_executor(thread, sections.close)


async def write_contents(connect: Connect, sections: AsyncIterator[Section]) -> None:
    """Write everything into an empty ledger in one transaction."""
    loop, filling = asyncio.get_running_loop(), Filling(connect)
    with ThreadPoolExecutor(1, thread_name_prefix="tenure-sqlite-filling") as thread:
        try:
            await loop.run_in_executor(thread, filling.begin)
            async for section in sections:
                await loop.run_in_executor(thread, filling.write, section)
            await loop.run_in_executor(thread, filling.commit)
        finally:
            await loop.run_in_executor(thread, filling.close)


def _sections(connect: Connect) -> Generator[Section, None, None]:
    with closing(connect()) as connection:
        try:
            connection.execute("BEGIN")
            for kind in Kind:
                cursor = connection.execute(SQL[kind])
                while records := cursor.fetchmany(LARGE.get(kind, PAGE)):
                    yield Section(kind, [READERS[kind](record) for record in records])
        except sqlite3.Error as error:
            raise StoreUnavailable(f"SQLite failed: {error}", outcome="none") from error


class Filling:
    """A write transaction into an empty ledger."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._indexes: list[tuple[str, str]] = []
        self._inventory = Inventory()

    def begin(self) -> None:
        """Take the write lock; refuse a ledger that is not empty."""
        self._connection = self._connect()
        self._run("BEGIN IMMEDIATE")
        if not self._run(SQL["is_empty"]).fetchone()[0]:
            raise not_empty()
        # Rows come in another order than these indexes have. Built at the end, by sorting, they cost a fraction.
        self._indexes = self._run(SQL["indexes"]).fetchall()
        for name, _ in self._indexes:
            self._run(f"DROP INDEX {name}")

    def write(self, section: Section) -> None:
        """Write a section."""
        self._inventory.add(section)
        if section.kind is Kind.ARCHIVE_PAGES:
            self._write_pages(section.items)
        elif section.kind is not Kind.COUNTERS:
            self._run_many(SQL[f"put_{section.kind}"], map(WRITERS[section.kind], section.items))

    def _write_pages(self, pages: Sequence[ArchivedPage]) -> None:
        """Write pages of the archive, and under which marks they are found."""
        self._run_many(SQL["put_archive_pages"], pages)
        places = ((place, page.last_seq) for page in pages for place in places_in(page))
        self._run_many(SQL["put_archive_places"], places)

    def commit(self) -> None:
        """Put the counters and the indexes in place, and make it all durable."""
        counters = self._inventory.complete()
        numbers = (counters.seq, counters.oldest, counters.generation, counters.next_network)
        self._run(SQL["put_counters"], numbers)
        # The inserted spaces left the highest of their numbers here; removed spaces may have had higher ones.
        self._run(SQL["drop_space_number"])
        self._run(SQL["put_space_number"], (counters.next_space - 1,))
        for _, sql in self._indexes:
            self._run(sql)
        try:
            self._opened.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreUnavailable(f"SQLite could not commit: {error}", outcome="unknown") from error

    def close(self) -> None:
        """Let go; what is not committed is taken back."""
        if self._connection is not None:
            self._connection.close()

    @property
    def _opened(self) -> sqlite3.Connection:
        assert self._connection is not None
        return self._connection

    def _run(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._opened.execute(sql, values)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"SQLite failed: {error}", outcome="none") from error

    def _run_many(self, sql: str, records: Iterable[tuple[Any, ...]]) -> None:
        try:
            self._opened.executemany(sql, records)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"SQLite failed: {error}", outcome="none") from error
