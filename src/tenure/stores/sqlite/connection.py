"""Connections to a SQLite ledger: how they are opened, how the write lock is taken, how a transaction ends."""

import os
import random
import sqlite3
import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.run_inline import run_inline
from tenure.stores.sql_files import check_version, load_migrations
from tenure.stores.sqlite.sql import SQL
from tenure.stores.sqlite.transaction import SqliteTransaction

T = TypeVar("T")

BUSY_S = 60.0
"""How long a writer waits for other processes before it gives up."""

SMALLEST = 512
"""Bytes of the smallest SQLite file that is not empty: one page."""


def connect(path: Path) -> sqlite3.Connection:
    """Open a connection: WAL, full sync, no implicit transactions; where nothing can be written, for reading only."""
    try:
        reading = for_reading(path)
        connection = sqlite3.connect(
            reading or path, uri=reading is not None, isolation_level=None, timeout=BUSY_S, cached_statements=256
        )
        try:
            # Before the journal mode is set, because that writes into the file.
            refuse_strangers(path, connection)
        except BaseException:
            connection.close()
            raise
        if reading is not None:
            return connection
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error as error:
        raise StoreUnavailable(f"cannot open {path}, or it is not a ledger: {error}", outcome="none") from error
    return connection


def for_reading(path: Path) -> str | None:
    """Name a ledger that can only be read, as SQLite wants it; None if it can be written, or is not there yet.

    On a read-only medium nothing changes, so nothing need be locked. Where only this user may not write, others may.
    """
    if not path.exists():
        return None
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    # The folder counts too: WAL mode needs files beside the ledger.
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return None
    return f"file:{quote(str(path.absolute()))}?mode=ro"


def seal(path: Path) -> None:
    """Make a finished file one that can be read anywhere, without a journal beside it."""
    with closing(sqlite3.connect(path)) as connection:
        # In WAL mode even a reader needs files beside the ledger, and may lack the right to make them.
        connection.execute("PRAGMA journal_mode = DELETE")


def refuse_strangers(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file that is neither empty nor a ledger, before anything in it is touched."""
    # SQLite itself takes a file shorter than its header for an empty database, and writes over it. The file must not
    # be opened to look: closing it would drop the locks that other connections of this process hold on it.
    known = not 0 < path.stat().st_size < SMALLEST
    if known:
        version, tables, ledger = connection.execute(SQL["look_around"]).fetchone()
        known = bool(ledger) if version else not tables
    if not known:
        raise StoreUnavailable(f"the file {path} is not a ledger, and not empty either", outcome="none")


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date in one transaction; refuse one from the future."""
    migrations = load_migrations("tenure.stores.sqlite")
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] == len(migrations):
            return  # nothing to do, perhaps where nothing can be done
        begin(connection)
        try:
            # Read again under the lock: another process may have migrated meanwhile.
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            check_version(found, len(migrations))
            for step in migrations[found:]:
                # One by one: executescript would commit first, and the steps must be one transaction with their number.
                for statement in step.split(";\n"):
                    connection.execute(statement)
            if found < len(migrations):
                connection.execute(f"PRAGMA user_version = {len(migrations)}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        raise StoreUnavailable(f"the SQLite file is not a ledger: {error}", outcome="none") from error


def write(connection: sqlite3.Connection, work: Callable[[SqliteTransaction], Coroutine[Any, Any, T]]) -> T:
    """Run work under the write lock and commit it."""
    begin(connection)
    try:
        tx = SqliteTransaction(connection)
        result = run_inline(work(tx))
        tx.settle()
    except BaseException as error:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise StoreUnavailable(failed(error), outcome="none") from error
        raise
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise commit_failed(connection, error) from error
    return result


def try_write(connection: sqlite3.Connection) -> None:
    """Commit a write that changes nothing; StoreUnavailable if that fails.

    It writes the schema's number: SQLite leaves out writing a row that stays as it is, but not this.
    """

    async def work(tx: SqliteTransaction) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute(f"PRAGMA user_version = {version}")

    write(connection, work)


def commit_failed(connection: sqlite3.Connection, error: sqlite3.Error) -> StoreUnavailable:
    """Undo what is left of a transaction whose commit failed, and say what is known of it.

    A full disk, and a transaction that is still open, were not committed; of the rest nobody knows.
    """
    settled = connection.in_transaction or getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    outcome: Literal["none", "unknown"] = "none" if settled else "unknown"
    return StoreUnavailable(failed(error), outcome=outcome)


def failed(error: sqlite3.Error) -> str:
    """Say what went wrong, and what to do where that is known."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return "the disk is full; make room and try again"
    # SQLite's extended codes have the plain code in their lowest byte.
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY:
        return "the ledger lies where nothing can be written; it can only be read"
    return f"SQLite failed: {error}"


def begin(connection: sqlite3.Connection) -> None:
    """Take the write lock; where nothing can be written there is none, and reading goes on without.

    SQLite's own waiting sleeps up to a tenth of a second at a time; short, uneven sleeps hand the lock over faster.
    """
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0)
            if code & 0xFF == sqlite3.SQLITE_READONLY:
                connection.execute("BEGIN")
                return
            if code not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_SNAPSHOT):
                raise StoreUnavailable(failed(error), outcome="none") from error
            if time.monotonic() > deadline:
                raise StoreUnavailable(f"the SQLite file stayed locked for {BUSY_S:.0f} s", outcome="none") from error
            time.sleep(random.uniform(0.0002, 0.002))
