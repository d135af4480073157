"""The SQLite store: WAL, full sync, one writer thread a process, any number of processes on one file.

Every write is a short transaction under SQLite's one write lock, so plain grants, lanes, releases and edits need no
guards of their own here. Commits are durable before they are answered (``synchronous=FULL``); no setting weakens it.
"""

import contextlib
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tenure.kernel.addressing.addresses import key
from tenure.kernel.errors import Invalid, StoreUnavailable
from tenure.kernel.holdings.holding_model import (
    Change,
    NetworkId,
    Paper,
    Rewrite,
    Row,
    SpaceId,
    Ticket,
    Verdict,
    Wish,
)
from tenure.kernel.plan.plan_model import Configuration
from tenure.kernel.snapshot import Section
from tenure.ports import Abilities, Effects, Size, Transaction
from tenure.stores.serial_grants import grant_rows, release_rows, rewrite_rows
from tenure.stores.sql_files import read_row
from tenure.stores.sqlite.connection import connect, failed, for_reading, migrate, try_write, write
from tenure.stores.sqlite.dump import read_contents, write_contents
from tenure.stores.sqlite.grants import Granter, Prepared
from tenure.stores.sqlite.log_archive import read_archived
from tenure.stores.sqlite.papers import read_papers
from tenure.stores.sqlite.reads import (
    read_changes,
    read_changes_at,
    read_configuration,
    read_effects,
    read_size,
    read_spans,
    rows_within,
)
from tenure.stores.sqlite.sql import SQL
from tenure.stores.sqlite.threads import Worker
from tenure.stores.sqlite.transaction import CallersSqliteTransaction, SqliteTransaction, store_clock_us

T = TypeVar("T")

PAGE = 1000

WRITER_SETTINGS = ("cache_size = -65536", "wal_autocheckpoint = 4000", "temp_store = MEMORY", "busy_timeout = 0")
"""64 MiB of pages; a journal of 16 MiB before it is worked in; begin() waits for other writers in its own way."""


class SqliteStore:
    """A ledger in one file."""

    abilities = Abilities(ledger=True, mixed_units=True)

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer = Worker("tenure-sqlite-writer")
        self._reader = Worker("tenure-sqlite-reader")
        self._connection: sqlite3.Connection | None = None
        self._granter: Granter | None = None
        self._reading: sqlite3.Connection | None = None
        self._newest = 0
        self._read_only = False

    @property
    def newest(self) -> int:
        """The highest number of the log that was read or committed here."""
        return self._newest

    @classmethod
    async def open(cls, path: Path) -> "SqliteStore":
        """Open or make the file, and bring its schema up to date."""
        store = cls(path)
        try:
            await store._writer.do(store._open_writer)
            await store._reader.do(store._open_reader)
        except BaseException:
            await store.close()
            raise
        return store

    def _open_writer(self) -> None:
        self._read_only = for_reading(self._path) is not None
        self._connection = connection = connect(self._path)
        try:
            for setting in WRITER_SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            migrate(connection)
            self._granter = Granter(connection)
            # From 0 on, the search for a lost write would read the whole log, and miss what was trimmed long ago.
            self._note(connection.execute(SQL["counters"]).fetchone()[0])
        except sqlite3.Error as error:
            raise StoreUnavailable(failed(error), outcome="none") from error

    def _open_reader(self) -> None:
        self._reading = connect(self._path)

    def _note(self, number: int) -> None:
        """Note a number of the log that is committed."""
        self._newest = max(self._newest, number)

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a reading of one moment on the reader thread."""

        def reading() -> T:
            assert self._reading is not None
            try:
                self._reading.execute("BEGIN")
                try:
                    return work(self._reading)
                finally:
                    # An open reading would keep SQLite from working its journal in.
                    self._reading.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise StoreUnavailable(failed(error), outcome="none") from error

        return await self._reader.do(reading)

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run work under the write lock, on the writer thread."""

        def writing() -> tuple[T, int]:
            assert self._connection is not None
            assert self._granter is not None
            # The transaction moves the counters without the granter's knowledge.
            self._granter.forget()
            return write(self._connection, lambda tx: _with_newest(tx, work))

        result, newest = await self._writer.do(writing)
        self._note(newest)
        return result

    def inside(self, connection: object) -> CallersSqliteTransaction:
        """Run in a transaction the caller has open on this file; waits for the write lock as his connection does."""
        if not isinstance(connection, sqlite3.Connection) or not connection.in_transaction:
            raise Invalid("connection: a sqlite3 connection with an open transaction is needed", field="connection")
        return CallersSqliteTransaction(connection, self._committed_changes)

    def _committed_changes(self) -> int:
        """Read the committed counter on the calling thread, by a connection of its own."""
        # Not by the reader thread: a blocking caller drives this without an event loop, where nothing may wait.
        with contextlib.closing(sqlite3.connect(self._path)) as beside:
            return int(beside.execute(SQL["counters"]).fetchone()[0])

    async def grant(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        """Create holdings in one transaction: O(log n) a wish and one commit for all of them."""
        prepared = Prepared(space, version, wishes)

        def granting() -> Sequence[Verdict] | None:
            assert self._connection is not None
            assert self._granter is not None
            if self._granter.grant(prepared):
                return None
            return write(self._connection, lambda tx: grant_rows(tx, space, version, wishes))

        # The verdicts are made here and not in the writer, which is free for the next batch by then.
        otherwise = await self._writer.hand_over(granting)
        if otherwise is not None:
            return otherwise
        self._note(prepared.newest)
        return prepared.verdicts()

    async def release(
        self, space: SpaceId, tickets: Sequence[Ticket], *, version: int | None = None
    ) -> Sequence[Row | None]:
        """End holdings in one transaction."""
        return await self.transact(lambda tx: release_rows(tx, space, tickets, version))

    async def held(self, space: SpaceId, *, after: int = -1) -> AsyncIterator[Sequence[Row]]:
        """Stream holdings in pages; each page is a reading of its own."""
        cursor = b"" if after < 0 else key(after)
        while True:
            values = (space, cursor, PAGE)
            records = await self._read(lambda c, values=values: c.execute(SQL["rows_after"], values).fetchall())  # type: ignore[misc]
            if not records:
                return
            yield [read_row(record) for record in records]
            cursor = records[-1][2]

    async def by_owner(self, owners: Sequence[str]) -> Sequence[Row]:
        """Find holdings by owner."""

        def reading(connection: sqlite3.Connection) -> list[Row]:
            return [
                read_row(record) for owner in owners for record in connection.execute(SQL["rows_of_owner"], (owner,))
            ]

        return await self._read(reading)

    async def watch(self, after: int, *, limit: int = 1000, space: SpaceId | None = None) -> Sequence[Change]:
        """Read the log."""
        return await self._read(lambda connection: read_changes(connection, after, limit, space))

    async def effects(self, space: SpaceId, after: int) -> Effects:
        """Read what happened to a space's addresses."""
        effects = await self._read(lambda connection: read_effects(connection, space, after))
        self._note(effects.upto)
        return effects

    async def spans(self, space: SpaceId, first: int, last: int) -> tuple[int, Sequence[tuple[int, int]]]:
        """Read held spans as of one moment."""

        def reading(connection: sqlite3.Connection) -> tuple[int, Sequence[tuple[int, int]]]:
            seq = connection.execute(SQL["counters"]).fetchone()[0]
            return seq, read_spans(connection, space, first, last)

        seq, found = await self._read(reading)
        self._note(seq)
        return seq, found

    async def grant_unless_freed(
        self, space: SpaceId, version: int, frees: int, wishes: Sequence[Wish]
    ) -> Sequence[Verdict] | None:
        """Decline: a transaction of its own costs nothing more here."""
        return None

    async def rewrite_unchanged(
        self, space: SpaceId, version: int, groups: Sequence[Sequence[Rewrite]]
    ) -> Sequence[bool]:
        """Write rows again if they are still as they were seen: one transaction for all."""
        return await self.transact(lambda tx: rewrite_rows(tx, space, version, groups))

    async def spaces(self) -> Sequence[tuple[SpaceId, str]]:
        """List spaces."""
        return await self._read(lambda connection: connection.execute(SQL["spaces"]).fetchall())

    async def locate(self, networks: Sequence[str]) -> dict[str, SpaceId]:
        """Find networks' spaces."""

        def reading(connection: sqlite3.Connection) -> dict[str, SpaceId]:
            found = ((name, connection.execute(SQL["locate_network"], (name,)).fetchone()) for name in networks)
            return {name: record[0] for name, record in found if record is not None}

        return await self._read(reading)

    async def space_named(self, name: str) -> SpaceId | None:
        """Find a space by name."""
        record = await self._read(lambda connection: connection.execute(SQL["space_named"], (name,)).fetchone())
        return None if record is None else int(record[0])

    async def configuration(self, space: SpaceId) -> Configuration | None:
        """Read a configuration."""
        return await self._read(lambda connection: read_configuration(connection, space))

    async def changes_at(self, firsts: Sequence[int], *, after: int = 0, limit: int = 1000) -> Sequence[Change]:
        """Read entries by address."""
        return await self._read(lambda connection: read_changes_at(connection, firsts, after, limit))

    async def archived(self, after: int, *, limit: int = 1000) -> Sequence[Change]:
        """Read archived changes."""
        return await self._read(lambda connection: read_archived(connection, after, limit))

    async def size(self) -> Size:
        """Count what there is; bytes are those of the file and of its journal."""
        return await self._read(lambda connection: read_size(connection, self._path))

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Paper]:
        """Read papers of a kind, in order of name."""
        return await self._read(lambda connection: read_papers(connection, kind, prefix, after, limit))

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        found = await self._read(lambda connection: int(connection.execute(SQL["counters"]).fetchone()[0]))
        self._note(found)
        return found

    async def rows_at(self, space: SpaceId, positions: Sequence[int]) -> Sequence[Row | None]:
        """Find rows by their first address."""

        def reading(connection: sqlite3.Connection) -> list[Row | None]:
            found = (connection.execute(SQL["row_at"], (space, key(place))).fetchone() for place in positions)
            return [None if record is None else read_row(record) for record in found]

        return await self._read(reading)

    async def try_write(self) -> None:
        """Commit the schema's number as it is: one page in the journal, and a sync."""

        def writing() -> None:
            assert self._connection is not None
            try_write(self._connection)

        await self._reopen_if_writable()
        await self._writer.do(writing)

    async def _reopen_if_writable(self) -> None:
        """Open the file again if it could only be read when it was opened, and can be written by now.

        Such connections see nothing of what others write since: they were told that nothing changes.
        """
        if not self._read_only or for_reading(self._path) is not None:
            return
        # The old connections are named before the openings replace them, and each is closed by its own thread.
        for worker, connection, opening in (
            (self._writer, self._connection, self._open_writer),
            (self._reader, self._reading, self._open_reader),
        ):
            await worker.do(opening)
            if connection is not None:
                await worker.do(connection.close)

    async def now_us(self) -> int:
        """Read the clock: this machine's."""
        return store_clock_us()

    async def rows_within(
        self, space: SpaceId, first: int, last: int, *, network: NetworkId | None = None, limit: int = 1000
    ) -> Sequence[Row]:
        """Find rows over a range."""
        return await self._read(lambda connection: rows_within(connection, space, first, last, network, limit))

    async def close(self) -> None:
        """Close the file."""
        for worker, connection in ((self._writer, self._connection), (self._reader, self._reading)):
            await worker.stop(_nothing if connection is None else connection.close)

    def contents(self) -> AsyncGenerator[Section, None]:
        """Stream everything as of one moment."""
        return read_contents(lambda: connect(self._path))

    async def fill(self, sections: AsyncIterator[Section]) -> None:
        """Write everything into an empty ledger."""
        await write_contents(lambda: connect(self._path), sections)


async def _with_newest(tx: SqliteTransaction, work: Callable[[Transaction], Awaitable[T]]) -> tuple[T, int]:
    return await work(tx), tx.newest


def _nothing() -> None:
    """Do nothing: there is no connection to be closed."""
