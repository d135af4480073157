"""Plain grants in one statement, which takes the write lock, writes and commits by itself.

Between two statements another thread may take the interpreter, and a busy one keeps it until it has nothing to do: a
batch of six statements waited six times. Here Python says beforehand all that is to be written, numbers and time
included, and a trigger writes it if the ledger is as Python believes. If it is not, nothing is written, and the
transaction of ``plain.grant_rows`` finds out why.
"""

import sqlite3
from collections.abc import Sequence
from importlib.resources import files

from tenure.kernel.entries import grant_details
from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.replying import kept_asker
from tenure.kernel.values import Outcome, Row, SpaceId, Verdict, Wish
from tenure.stores.sqlite.batches import Record, flat, many
from tenure.stores.sqlite.connecting import failed
from tenure.stores.sqlite.sql import SQL
from tenure.stores.sqlite.transaction import store_clock_us, wished
from tenure.stores.statements import dump_details, row_columns

DEFINITIONS = (files("tenure.stores.sqlite") / "granting.sql").read_text("utf-8")

LARGEST = 1024
"""The most grants in one statement: SQLite takes 32,766 values."""

STATEMENTS = {1 << power: many("grant_at_once", 1 << power) for power in range(LARGEST.bit_length())}
"""By number of rows: powers of two, so that SQLite has them ready; rows that are too many say nothing."""

COLUMNS = STATEMENTS[1].count("?")

NO_ROW = (None,) * COLUMNS

NOT_AS_BELIEVED = (sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY)
IN_THE_COMMIT = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM)
"""What may happen when all is written, so that nobody knows whether it was committed."""


class Granter:
    """Grants on one connection, in its thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.executescript(DEFINITIONS)
        self._connection = connection
        self._believed: tuple[int, int] | None = None
        """The numbers of the newest change and of the newest grant; another process may have gone on."""

    def forget(self) -> None:
        """Believe nothing: the ledger is changed by other means."""
        self._believed = None

    def grant(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict] | None:
        """Grant all wishes and commit; None, and nothing was done, if they cannot all be granted like this.

        Cost: O(log n) a wish, some 10 µs of them with the interpreter; one commit.
        """
        if not 0 < len(wishes) <= LARGEST:
            return None
        seq, generation = self._believed or self._read_numbers()
        self._believed = None
        now_us = store_clock_us()
        rows = [wished(space, wish, number, now_us) for number, wish in enumerate(wishes, generation + 1)]
        numbered = zip(range(seq + 1, seq + 1 + len(rows)), wishes, rows, strict=True)
        if not self._insert([_columns(version, *each) for each in numbered]):
            return None
        self._believed = (seq + len(rows), generation + len(rows))
        return [Verdict(Outcome.GRANTED, row) for row in rows]

    def _insert(self, records: list[Record]) -> bool:
        size = 1 << (len(records) - 1).bit_length()
        records.extend([NO_ROW] * (size - len(records)))
        try:
            self._connection.execute(STATEMENTS[size], flat(records))
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in NOT_AS_BELIEVED:
                return False
            raise StoreUnavailable(failed(error), outcome="unknown" if code in IN_THE_COMMIT else "none") from error
        return True

    def _read_numbers(self) -> tuple[int, int]:
        try:
            seq, _, generation = self._connection.execute(SQL["counters"]).fetchone()
        except sqlite3.Error as error:
            raise StoreUnavailable(failed(error), outcome="none") from error
        return seq, generation


def _columns(version: int, seq: int, wish: Wish, row: Row) -> Record:
    columns = row_columns(row)
    entry = grant_details(row.state, row.until_us, row.details)
    told = columns[-1] if entry is row.details else dump_details(entry)
    answer = None if wish.key is None else kept_asker(wish)
    return (version, seq, *columns, told, wish.key, wish.body, answer)
