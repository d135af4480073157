"""A SQLite transaction: the verbs of ``ports.Transaction`` on one open connection.

It neither begins nor commits, so it serves the store's own transactions and a caller's open one alike. Nothing here
waits: the methods are coroutines only because the port's are.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tenure.kernel.addressing.addresses import key, position
from tenure.kernel.errors import AlreadyExists
from tenure.kernel.holdings.archive_pages import ArchivedPage
from tenure.kernel.holdings.holding_model import (
    Change,
    Entry,
    NetworkId,
    Outcome,
    Reply,
    Row,
    SpaceId,
    State,
    Verdict,
    Waiter,
    Wish,
)
from tenure.kernel.plan.document import network_document
from tenure.kernel.plan.plan_model import Configuration, Network
from tenure.ports import Effects, Guard, KeyTaken, NotAll
from tenure.stores.sql_files import (
    STATE_NUMBER,
    dump_details,
    optional_key,
    read_change,
    read_reply,
    read_row,
    read_waiter,
    reply_columns,
    row_columns,
)
from tenure.stores.sqlite import bulk_statements
from tenure.stores.sqlite.log_archive import drop_archived, put_page
from tenure.stores.sqlite.papers import SqlitePapers
from tenure.stores.sqlite.reads import read_configuration, read_effects, read_spans, rows_within
from tenure.stores.sqlite.sql import SQL

OWNED = (State.PENDING, State.HELD)


def store_clock_us() -> int:
    """Read the store's clock: on one machine, the machine's."""
    return time.time_ns() // 1000


@dataclass(slots=True)
class Counters:
    """The numbers of the newest change and of the newest grant."""

    seq: int
    generation: int
    moved: bool = False


class SqliteTransaction(SqlitePapers):
    """The ledger's verbs on a connection that holds the write lock (SQLite has one writer at a time)."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], int] = store_clock_us) -> None:
        super().__init__(connection)
        self._run = connection.execute
        self._clock = clock
        self._counters: Counters | None = None
        """Read when they are first needed, written by ``settle``: each costs as much as granting an address."""

    def _counted(self) -> "Counters":
        if self._counters is None:
            seq, _, generation = self._one("counters")
            self._counters = Counters(seq, generation)
        return self._counters

    def settle(self) -> None:
        """Write the counters, if they were moved. To be called before a commit, and before others read them."""
        if self._counters is not None and self._counters.moved:
            self._run(SQL["set_counters"], (self._counters.seq, self._counters.generation))
            self._counters.moved = False

    @property
    def newest(self) -> int:
        """The highest number of the log that was read or written here; 0 if none was needed."""
        return 0 if self._counters is None else self._counters.seq

    def _one(self, name: str, *values: Any) -> Any:
        return self._run(SQL[name], values).fetchone()

    def _all(self, name: str, *values: Any) -> list[Any]:
        return self._run(SQL[name], values).fetchall()

    def _row(self, name: str, *values: Any) -> Row | None:
        record = self._one(name, *values)
        return None if record is None else read_row(record)

    async def guard(self, spaces: Sequence[SpaceId], strength: Guard) -> dict[SpaceId, int]:
        """Return the versions; the write lock already keeps everybody else out."""
        found = ((space, self._one("version_of", space)) for space in spaces)
        return {space: record[0] for space, record in found if record is not None}

    async def open_lane(self, space: SpaceId, after: int) -> tuple[int | None, Effects]:
        """Hold the lane and read what happened."""
        version = (await self.guard([space], Guard.LANE)).get(space)
        return version, await self.effects(space, after)

    async def grant_all(
        self, space: SpaceId, version: int, frees: int, wishes: Sequence[Wish]
    ) -> tuple[Sequence[Row], int]:
        """Decline: here a step more costs nothing."""
        raise NotAll

    async def locate(self, networks: Sequence[str]) -> dict[str, SpaceId]:
        """Find networks' spaces."""
        found = ((name, self._one("locate_network", name)) for name in networks)
        return {name: record[0] for name, record in found if record is not None}

    async def spaces_named(self, names: Sequence[str]) -> list[SpaceId]:
        """Find spaces by name."""
        found = (self._one("space_named", name) for name in names)
        return [record[0] for record in found if record is not None]

    async def configurations(self, spaces: Sequence[SpaceId]) -> Sequence[Configuration]:
        """Read configurations."""
        found = (read_configuration(self._connection, space) for space in spaces)
        return [configuration for configuration in found if configuration is not None]

    async def add_space(self, name: str) -> SpaceId:
        """Create a space."""
        if self._one("space_named", name) is not None:
            raise AlreadyExists("space", name)
        return int(self._one("insert_space", name)[0])

    async def rename_space(self, space: SpaceId, name: str) -> bool:
        """Give a space another name."""
        return self._one("rename_space", name, space) is not None

    async def remove_space(self, space: SpaceId) -> None:
        """Remove a space and those who waited in it."""
        self._run(SQL["delete_waiters_of_space"], (space,))
        self._run(SQL["delete_space"], (space,))

    async def next_network(self) -> NetworkId:
        """Take a number."""
        return int(self._one("take_network_number")[0])

    async def put_networks(self, space: SpaceId, networks: Sequence[Network]) -> None:
        """Write networks whole."""
        # Networks may exchange names in one transaction: first every old name leaves the unique index.
        self._connection.executemany(SQL["park_network"], [(network.id,) for network in networks])
        for network in networks:
            document = json.dumps(network_document(network), separators=(",", ":"))
            try:
                self._run(SQL["put_network"], (network.id, network.name, space, document))
            except sqlite3.IntegrityError:
                raise AlreadyExists("network", network.name) from None

    async def remove_networks(self, networks: Sequence[NetworkId]) -> None:
        """Remove networks and what was remembered of their owners."""
        for network in networks:
            self._run(SQL["delete_network"], (network,))
            self._run(SQL["forget_network"], (network,))

    async def bump(self, space: SpaceId) -> None:
        """Make the version one higher."""
        self._run(SQL["bump"], (space,))

    async def insert(self, space: SpaceId, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        """Create holdings if nobody is in the way. O(log n) each."""
        counters, now_us = self._counted(), self._clock()
        rows = [wished(space, wish, number, now_us) for number, wish in enumerate(wishes, counters.generation + 1)]
        single = all(wish.first == wish.last for wish in wishes)  # of different sizes two might lie over each other
        verdicts: list[Verdict] = []
        for piece in bulk_statements.cut(rows) if single else [rows]:
            begun = len(verdicts)
            pairs = zip(wishes[begun : begun + len(piece)], piece, strict=True)
            if single and len(piece) >= bulk_statements.FEWEST:
                whole = bulk_statements.grant(self._connection, [row_columns(row) for row in piece])
                verdicts.extend(self._found(wish, row, whole=whole) for wish, row in pairs)
            else:
                verdicts.extend(self._insert_one(wish, row) for wish, row in pairs)
        # Refused wishes use up their generations, which must grow and may have gaps. Where no row was written, no row
        # has the numbers, and they stay free.
        if any(verdict.outcome is Outcome.GRANTED for verdict in verdicts):
            counters.generation += len(wishes)
            counters.moved = True
        return verdicts

    def _found(self, wish: Wish, row: Row, *, whole: bool) -> Verdict:
        """Tell what came of a wish in a batch; generations tell ours from what was there."""
        if whole:
            return Verdict(Outcome.GRANTED, row)
        there = self._row("row_at", row.space, key(row.first))
        if there is not None and there.generation == row.generation:
            return Verdict(Outcome.GRANTED, row)
        return self._refused(wish, row, self._neighbour(row.space, wish))

    def _insert_one(self, wish: Wish, row: Row) -> Verdict:
        in_the_way = self._neighbour(row.space, wish)
        if in_the_way is None and self._run(SQL["insert_holding"], row_columns(row)).rowcount == 1:
            return Verdict(Outcome.GRANTED, row)
        return self._refused(wish, row, in_the_way)

    def _refused(self, wish: Wish, row: Row, in_the_way: Row | None) -> Verdict:
        space = row.space
        mine = self._row("row_for", wish.owner, wish.network, wish.slot) if wish.state in OWNED else None
        if mine is not None:
            # Before TAKEN: the row in the way may be the owner's own, and asking again must return it.
            return Verdict(Outcome.ALREADY, mine)
        return Verdict(Outcome.TAKEN, in_the_way or self._row("row_at", space, key(wish.first)))

    def _neighbour(self, space: SpaceId, wish: Wish) -> Row | None:
        """Find a holding of another size that lies over the wish: the nearest one at or below its last address."""
        nearest = self._row("row_below", space, key(wish.last))
        return nearest if nearest is not None and nearest.last >= wish.first else None

    async def rows_at(self, space: SpaceId, positions: Sequence[int]) -> Sequence[Row | None]:
        """Find rows by their first address."""
        return [self._row("row_at", space, key(place)) for place in positions]

    async def rows_within(
        self, space: SpaceId, first: int, last: int, *, network: NetworkId | None = None, limit: int = 1000
    ) -> Sequence[Row]:
        """Find rows that lie over a range."""
        return rows_within(self._connection, space, first, last, network, limit)

    async def rows_of(self, owners: Sequence[str]) -> Sequence[Row]:
        """Find rows by owner."""
        return [read_row(record) for owner in owners for record in self._all("rows_of_owner", owner)]

    async def rows_for(self, claims: Sequence[tuple[NetworkId, str, str]]) -> Sequence[Row | None]:
        """Find the row of each claim."""
        wanted = json.dumps([(owner, network, slot) for network, owner, slot in claims])
        found = {(row.network, row.owner, row.slot): row for row in map(read_row, self._all("rows_for", wanted))}
        return [found.get((network, owner, slot)) for network, owner, slot in claims]

    async def rewrite(self, rows: Sequence[Row]) -> None:
        """Write rows anew."""
        for row in rows:
            values = (
                row.owner, row.slot, STATE_NUMBER[row.state], row.since_us, row.until_us, row.request,
                dump_details(row.details), row.generation, row.space, key(row.first),
            )  # fmt: skip
            try:
                self._run(SQL["rewrite_holding"], values)
            except sqlite3.IntegrityError:
                raise AlreadyExists("holding", f"{row.owner} {row.slot}".strip(), field="owner") from None

    async def remember(self, rows: Sequence[Row]) -> None:
        """Note where owners were."""
        for row in rows:
            self._run(SQL["remember"], (row.network, row.owner, row.slot, key(row.first)))

    async def former(self, network: NetworkId, owner: str, slot: str) -> int | None:
        """Return where an owner was."""
        record = self._one("former", network, owner, slot)
        return None if record is None else position(record[0])

    async def remove(self, rows: Sequence[Row]) -> None:
        """Remove rows."""
        self._connection.executemany(SQL["delete_holding"], [(row.space, key(row.first)) for row in rows])

    async def now_us(self) -> int:
        """Read the clock."""
        return self._clock()

    async def is_due(self, space: SpaceId) -> bool:
        """Look whether a deadline has passed."""
        return self._one("is_due", space, self._clock()) is not None

    async def overdue(self, space: SpaceId, *, limit: int = 1000) -> Sequence[Row]:
        """Find rows whose deadline has passed."""
        return [read_row(record) for record in self._all("overdue", space, self._clock(), limit)]

    async def waiters(self, space: SpaceId) -> Sequence[Waiter]:
        """Read who waits, in order."""
        return [read_waiter(record) for record in self._all("waiters", space)]

    async def join(self, waiter: Waiter, lasts_us: int) -> Waiter:
        """Put a claim in line."""
        now_us = self._clock()
        # A claim that was taken for dead comes back with its old ticket and arrival, and so to its old place in line.
        waiter = waiter._replace(since_us=waiter.since_us or now_us, until_us=now_us + lasts_us, lasts_us=lasts_us)
        document = json.dumps(dict(waiter.document), separators=(",", ":"))
        [ticket] = self._one(
            "join", waiter.ticket or None, waiter.space, waiter.network, waiter.owner, waiter.slot, waiter.since_us,
            waiter.until_us, document, lasts_us,
        )  # fmt: skip
        self._run(SQL["mark_queued"], (1, waiter.space, 1))
        return waiter._replace(ticket=ticket)

    async def linger(self, tickets: Sequence[int], lasts_us: int) -> None:
        """Let claims live on."""
        until_us = self._clock() + lasts_us
        self._connection.executemany(SQL["linger"], [(until_us, lasts_us, ticket) for ticket in tickets])

    async def leave(self, space: SpaceId, tickets: Sequence[int]) -> None:
        """Take claims out of the line."""
        self._connection.executemany(SQL["delete_waiter"], [(ticket,) for ticket in tickets])
        if self._one("somebody_waits", space) is None:
            self._run(SQL["mark_queued"], (0, space, 0))

    async def replies(self, keys: Sequence[str]) -> Sequence[Reply | None]:
        """Find kept answers."""
        found = {record[0]: read_reply(record) for record in self._all("replies", json.dumps(keys))}
        return [found.get(name) for name in keys]

    async def keep_replies(self, replies: Sequence[Reply]) -> None:
        """Keep answers."""
        now_us = self._clock()
        try:
            bulk_statements.keep(self._connection, [reply_columns(reply, now_us) for reply in replies])
        except sqlite3.IntegrityError:
            raise KeyTaken from None

    async def forget_replies(self, lived_us: int, *, limit: int = 1000) -> int:
        """Drop old answers."""
        return self._run(SQL["forget_replies"], (self._clock() - lived_us, limit)).rowcount

    async def forget_oldest_replies(self, count: int) -> int:
        """Drop the oldest answers."""
        return self._run(SQL["forget_oldest_replies"], (count,)).rowcount

    async def effects(self, space: SpaceId, after: int) -> Effects:
        """Read what happened to a space's addresses."""
        self.settle()
        return read_effects(self._connection, space, after, self._clock())

    async def spans(self, space: SpaceId, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Read held spans over a range."""
        return read_spans(self._connection, space, first, last)

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        return self._counted().seq

    async def changes(self, after: int, *, limit: int = 1000) -> Sequence[Change]:
        """Read the log behind a number."""
        return [read_change(record) for record in self._all("changes", after, limit)]

    async def log(self, entries: Sequence[Entry]) -> int:
        """Append to the log."""
        counters, now_us = self._counted(), self._clock()
        records = (
            (
                counters.seq + number, now_us, entry.verb, entry.space, entry.network, optional_key(entry.first),
                optional_key(entry.last), entry.owner, entry.slot, entry.generation, entry.request,
                dump_details(entry.details),
            )
            for number, entry in enumerate(entries, 1)
        )  # fmt: skip
        bulk_statements.append(self._connection, list(records))
        counters.seq += len(entries)
        counters.moved = True
        return counters.seq

    async def trim(self, before: int) -> None:
        """Drop old changes."""
        drop_archived(self._connection, before)
        self._run(SQL["trim_changes"], (before,))
        self._run(SQL["set_oldest"], (before - 1,))

    async def archive(self, page: ArchivedPage, places: Sequence[int]) -> bool:
        """Move the oldest changes into the archive."""
        self.settle()
        return put_page(self._connection, page, places)


def wished(space: SpaceId, wish: Wish, generation: int, now_us: int) -> Row:
    """Return the row that a wish becomes if nobody is in the way."""
    until_us = None if wish.lasts_us is None else now_us + wish.lasts_us
    return Row(
        space, wish.network, wish.first, wish.last, wish.owner, wish.slot, wish.state, generation, now_us, until_us,
        wish.request, wish.details,
    )  # fmt: skip


class CallersSqliteTransaction(SqliteTransaction):
    """The same inside a transaction that the caller has open."""

    def __init__(self, connection: sqlite3.Connection, committed: Callable[[], int]) -> None:
        super().__init__(connection)
        self._committed = committed

    async def begin_call(self) -> bool:
        """Take the write lock, then mark the place. With the lock, only this transaction can be ahead of the file."""
        self._run(SQL["take_write_lock"])
        self._run("SAVEPOINT tenure_call")
        self._counters = None  # the caller may have undone what was done here before
        return await self.last_change() > self._committed()

    async def end_call(self, *, failed: bool) -> None:
        """Keep or undo the call."""
        if failed:
            self._run("ROLLBACK TO tenure_call")
        else:
            self.settle()
        self._run("RELEASE tenure_call")
