"""Plain grants in one statement, which takes the write lock, writes and commits by itself.

Between two statements another thread may take the interpreter, and a busy one keeps it until it has nothing to do: a
batch of six statements waited six times. Here Python says beforehand all that is to be written, numbers and time
included, and a trigger writes it if the ledger is as Python believes. If it is not, nothing is written, and the
transaction of ``serial_grants.grant_rows`` finds out why.
"""

import sqlite3
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from tenure.kernel.addressing.addresses import key
from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.holdings.holding_model import Outcome, SpaceId, State, Verdict, Wish
from tenure.kernel.holdings.idempotency import kept_asker
from tenure.kernel.holdings.log_entries import grant_details
from tenure.stores.sql_files import STATE_NUMBER, dump_details
from tenure.stores.sqlite.bulk_statements import Record, many
from tenure.stores.sqlite.connection import failed
from tenure.stores.sqlite.sql import SQL
from tenure.stores.sqlite.transaction import store_clock_us, wished

DEFINITIONS = (files("tenure.stores.sqlite") / "grants.sql").read_text("utf-8")

LARGEST = 1024
"""The most grants in one statement: SQLite takes 32,766 values."""

STATEMENTS = {1 << power: many("grant_at_once", 1 << power) for power in range(LARGEST.bit_length())}
"""By number of rows: powers of two, so that SQLite has them ready; rows that are too many say nothing."""

COLUMNS = STATEMENTS[1].count("?")
NAMES = STATEMENTS[1].partition("(")[2].partition(")")[0].replace(",", " ").split()
SEQ, GENERATION, SINCE, UNTIL, LOG_DETAILS = map(
    NAMES.index, ("seq", "generation", "since_us", "until_us", "log_details")
)
"""Where in a row stands what the writer puts in: numbers, times, and what the log tells of a deadline."""

LOOKS = NAMES.index("looks")
"""Where the first row of a statement says that it looks for what is due; the others need not look again."""

NO_ROW = (None,) * COLUMNS

# The trigger aborts by a constraint error. For a busy lock the usual transaction waits, and it words a read-only file.
NOT_AS_BELIEVED = (sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY)
IN_THE_COMMIT = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM)
"""What may happen when all is written, so that nobody knows whether it was committed."""


class Prepared:
    """Grants as the statement takes them. All that takes long is done before the writer is asked: he is waited for."""

    def __init__(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> None:
        """Write down what is known: some 2 µs a wish."""
        self.size = 1 << (len(wishes) - 1).bit_length()
        self._space = space
        self._wishes = wishes
        self._values = [value for wish in wishes for value in _columns(space, version, wish)]
        self._values.extend(NO_ROW * (self.size - len(wishes)))
        self._values[LOOKS] = 1
        self._deadlines = [place for place, wish in enumerate(wishes) if wish.lasts_us is not None]
        self._generation = self._now_us = 0
        self.newest = 0
        """The number of the last grant in the log."""

    def __len__(self) -> int:
        return len(self._wishes)

    def numbered(self, seq: int, generation: int, now_us: int) -> list[Any]:
        """Write down what follows from the numbers of the newest change and the newest grant, and from the time."""
        # By slices: the event loop stands still until the writer has begun to write, so this must be quick.
        count, end, values = len(self), len(self) * COLUMNS, self._values
        values[SEQ:end:COLUMNS] = range(seq + 1, seq + 1 + count)
        values[GENERATION:end:COLUMNS] = range(generation + 1, generation + 1 + count)
        values[SINCE:end:COLUMNS] = [now_us] * count
        for place in self._deadlines:
            row = wished(self._space, self._wishes[place], 0, now_us)
            values[place * COLUMNS + UNTIL] = row.until_us
            values[place * COLUMNS + LOG_DETAILS] = dump_details(grant_details(row.state, row.until_us, row.details))
        self._generation, self._now_us, self.newest = generation, now_us, seq + count
        return values

    def verdicts(self) -> list[Verdict]:
        """Tell what was granted, by the numbers that were written down last."""
        numbered = enumerate(self._wishes, self._generation + 1)
        rows = [wished(self._space, wish, generation, self._now_us) for generation, wish in numbered]
        return [Verdict(Outcome.GRANTED, row) for row in rows]


class Granter:
    """Grants on one connection, in its thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        # The view and the trigger are temporary: they belong to this connection, and the file needs no migration.
        connection.executescript(DEFINITIONS)
        self._connection = connection
        self._believed: tuple[int, int] | None = None
        """The numbers of the newest change and of the newest grant; another process may have gone on."""

    def forget(self) -> None:
        """Believe nothing: the ledger is changed by other means."""
        self._believed = None

    def grant(self, prepared: Prepared) -> bool:
        """Grant all wishes and commit; False, and nothing was done, if they cannot all be granted like this.

        Cost: O(log n) a wish, one of its microseconds with the interpreter; one commit.
        """
        if not 0 < len(prepared) <= LARGEST:
            return False
        seq, generation = self._believed or self._read_numbers()
        # Whatever goes wrong from here on, the numbers are read again.
        self._believed = None
        if not self._insert(STATEMENTS[prepared.size], prepared.numbered(seq, generation, store_clock_us())):
            return False
        self._believed = (seq + len(prepared), generation + len(prepared))
        return True

    def _insert(self, statement: str, values: list[Any]) -> bool:
        try:
            self._connection.execute(statement, values)
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


def _columns(space: SpaceId, version: int, wish: Wish) -> Record:
    """Write a wish as the statement takes it; None stands where numbers and times will."""
    first, details = key(wish.first), dump_details(wish.details)
    last = first if wish.first == wish.last else key(wish.last)
    logged = details if wish.state is State.HELD else dump_details(grant_details(wish.state, None, wish.details))
    answer = None if wish.key is None else kept_asker(wish)
    return (
        version, None, space, wish.network, first, last, wish.owner, wish.slot, STATE_NUMBER[wish.state], None, None,
        None, wish.request, details, logged, wish.key, wish.body, answer, None,
    )  # fmt: skip
