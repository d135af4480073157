"""A PostgreSQL transaction: the verbs of ``ports.Transaction`` on one asyncpg connection.

It neither begins nor commits, so it serves the store's own transactions and a caller's open one alike.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import asyncpg

from tenure.kernel.addressing.addresses import key, position
from tenure.kernel.errors import AlreadyExists
from tenure.kernel.holdings.archive_pages import ArchivedPage
from tenure.kernel.holdings.holding_model import (
    AGAIN,
    OWNED,
    Change,
    Entry,
    NetworkId,
    Outcome,
    Row,
    SpaceId,
    State,
    Verdict,
    Wish,
)
from tenure.kernel.holdings.log_entries import grant_details
from tenure.kernel.plan.document import network_document, read_network
from tenure.kernel.plan.plan_model import Configuration, Network
from tenure.ports import FAR_BEHIND, Effects, Guard, NotAll
from tenure.stores.postgres.log_archive import drop_archived, put_page
from tenure.stores.postgres.papers import PostgresPapers
from tenure.stores.postgres.sql import SQL
from tenure.stores.sql_files import (
    STATE_NUMBER,
    dump_details,
    optional_key,
    read_change,
    read_row,
    read_spans,
)

T = TypeVar("T")

HELD = STATE_NUMBER[State.HELD]

USUALLY = slice(5, 9)
USUAL = Wish(0, 0, 0, "")[USUALLY]
"""State, span, request and details of a wish that says nothing of them."""

GUARDS = {guard: f"guard_{guard.value}" for guard in Guard}

LIMITLESS = 1 << 62


def plain_columns(wishes: Sequence[Wish]) -> tuple[Any, ...]:
    """Turn address, owner and slot of wishes into columns.

    Single addresses need no last one, and most wishes no slot: an array costs its encoder for every element.
    """
    single = all(wish.first == wish.last for wish in wishes)
    return (
        [wish.network for wish in wishes],
        [key(wish.first) for wish in wishes],
        None if single else [key(wish.last) for wish in wishes],
        [wish.owner for wish in wishes],
        [wish.slot for wish in wishes] if any(wish.slot for wish in wishes) else None,
    )


def wish_columns(wishes: Sequence[Wish]) -> tuple[Any, ...]:
    """Turn wishes into the columns that statements take; a column of which nothing is said is NULL as a whole."""
    if all(wish[USUALLY] == USUAL for wish in wishes):
        return (*plain_columns(wishes), None, None, None, None)
    states = [STATE_NUMBER[wish.state] for wish in wishes]
    return (
        *plain_columns(wishes),
        None if all(state == HELD for state in states) else states,
        said([wish.lasts_us for wish in wishes]),
        said([wish.request for wish in wishes]),
        details_column(wishes),
    )


def details_column(wishes: Sequence[Wish]) -> list[str | None] | None:
    """Write what wishes say beyond their columns."""
    return said([dump_details(wish.details) for wish in wishes])


def said(column: list[T]) -> list[T] | None:
    """Return a column, or None if nothing is said in it: an array costs its encoder for every element."""
    return None if all(value is None for value in column) else column


def log_details_column(wishes: Sequence[Wish]) -> list[str | None] | None:
    """Write what the log has of wishes beyond their columns; the deadline, which only the store knows, it adds."""
    if all(wish.state is State.HELD and not wish.details for wish in wishes):
        return None
    return [dump_details(grant_details(wish.state, None, wish.details)) for wish in wishes]


def key_columns(wishes: Sequence[Wish]) -> tuple[list[str | None] | None, list[bytes] | None]:
    """Turn wishes' idempotency keys into columns."""
    keys = said([wish.key for wish in wishes])
    return keys, None if keys is None else [wish.body for wish in wishes]


def granted_row(space: SpaceId, wish: Wish, generation: int, since_us: int) -> Row:
    """Build the row that a granted wish became."""
    until_us = None if wish.lasts_us is None else since_us + wish.lasts_us
    return Row(
        space, wish.network, wish.first, wish.last, wish.owner, wish.slot, wish.state, generation, since_us,
        until_us, wish.request, wish.details,
    )  # fmt: skip


async def explain_refused(connection: Any, space: SpaceId, wishes: Sequence[Wish]) -> list[Verdict]:
    """Find out why wishes were not granted. Read after the fact, so it sees what was in flight then.

    Neither the owner's row nor one in the way: the wish is undecided (AGAIN).
    """
    claims = [wish.claim for wish in wishes]
    columns = [list(column) for column in zip(*claims, strict=True)]
    mine = {
        (row.network, row.owner, row.slot): row
        for row in map(read_row, await connection.fetch(SQL["rows_for"], *columns))
    }
    near = [
        read_row(record) for record in await connection.fetch(SQL["rows_near"], space, [key(w.last) for w in wishes])
    ]
    verdicts: list[Verdict] = []
    for wish in wishes:
        row = mine.get(wish.claim) if wish.state in OWNED else None
        if row is not None:
            # Before TAKEN: the row in the way may be the owner's own, and asking again must return it.
            verdicts.append(Verdict(Outcome.ALREADY, row))
            continue
        in_the_way = next((other for other in near if other.first <= wish.last and other.last >= wish.first), None)
        verdicts.append(AGAIN if in_the_way is None else Verdict(Outcome.TAKEN, in_the_way))
    return verdicts


class PostgresTransaction(PostgresPapers):
    """The ledger's verbs on a connection with an open transaction (READ COMMITTED)."""

    newest = 0
    """The highest number that was appended to the log here."""

    async def guard(self, spaces: Sequence[SpaceId], strength: Guard) -> dict[SpaceId, int]:
        """Lock the spaces' rows in order."""
        return {record[0]: record[1] for record in await self._all(GUARDS[strength], list(spaces))}

    async def open_lane(self, space: SpaceId, after: int) -> tuple[int | None, Effects]:
        """Hold the lane and read what happened, in one round trip."""
        records = await self._all("open_lane", space, after, FAR_BEHIND)
        if not records:
            return None, Effects(after, [], complete=False)
        version, frees, upto, oldest, due = records[0][:5]
        return version, _effects(after, upto, oldest, frees, due, [record[5:] for record in records])

    async def grant_all(
        self, space: SpaceId, version: int, frees: int, wishes: Sequence[Wish]
    ) -> tuple[Sequence[Row], int]:
        """Create and log all of the holdings, in one round trip."""
        columns = wish_columns(wishes)
        values = (space, version, frees, *columns, log_details_column(wishes), *key_columns(wishes))
        try:
            records = await self._all("grant_unless_freed", *values)
        except (asyncpg.DivisionByZeroError, asyncpg.UniqueViolationError):
            # Division by zero: the statement undoes itself where it cannot grant all. Unique violation: another request
            # kept its answer under the same key first.
            raise NotAll from None
        granted = {record[0]: record for record in records}
        pairs = zip(columns[1], wishes, strict=True)
        rows = [granted_row(space, wish, granted[first][1], granted[first][2]) for first, wish in pairs]
        return rows, records[0][3]

    async def locate(self, networks: Sequence[str]) -> dict[str, SpaceId]:
        """Find networks' spaces."""
        return {record[0]: record[1] for record in await self._all("locate_networks", list(networks))}

    async def spaces_named(self, names: Sequence[str]) -> list[SpaceId]:
        """Find spaces by name."""
        found = [await self._value("space_named", name) for name in names]
        return [space for space in found if space is not None]

    async def configurations(self, spaces: Sequence[SpaceId]) -> Sequence[Configuration]:
        """Read configurations."""
        return await read_configurations(self._connection, spaces)

    async def add_space(self, name: str) -> SpaceId:
        """Create a space."""
        number = await self._value("insert_space", name)
        if number is None:
            raise AlreadyExists("space", name)
        return int(number)

    async def rename_space(self, space: SpaceId, name: str) -> bool:
        """Give a space another name."""
        return await self._value("rename_space", space, name) is not None

    async def remove_space(self, space: SpaceId) -> None:
        """Remove a space and those who waited in it."""
        await self._all("delete_waiters_of_space", space)
        await self._all("delete_space", space)

    async def next_network(self) -> NetworkId:
        """Take a number."""
        return int(await self._value("take_network_number"))

    async def put_networks(self, space: SpaceId, networks: Sequence[Network]) -> None:
        """Write networks whole."""
        # Networks may exchange names in one transaction: first every old name leaves the unique index.
        await self._all("park_networks", [network.id for network in networks])
        for network in networks:
            document = json.dumps(network_document(network), separators=(",", ":"))
            try:
                await self._all("put_network", network.id, network.name, space, document)
            except asyncpg.UniqueViolationError:
                raise AlreadyExists("network", network.name) from None

    async def remove_networks(self, networks: Sequence[NetworkId]) -> None:
        """Remove networks and what was remembered of their owners."""
        await self._all("delete_networks", list(networks))
        await self._all("forget_networks", list(networks))

    async def bump(self, space: SpaceId) -> None:
        """Make the version one higher."""
        await self._all("bump", space)

    async def insert(self, space: SpaceId, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        """Create holdings if nobody is in the way. One statement for all that are granted."""
        records = await self._all("insert_holdings", space, *wish_columns(wishes))
        granted = {(position(record[0]), record[1], record[2]): (record[3], record[4]) for record in records}
        refused = [wish for wish in wishes if (wish.first, wish.owner, wish.slot) not in granted]
        reasons = iter(await explain_refused(self._connection, space, refused) if refused else [])
        return [
            Verdict(Outcome.GRANTED, granted_row(space, wish, *granted[wish.first, wish.owner, wish.slot]))
            if (wish.first, wish.owner, wish.slot) in granted
            else next(reasons)
            for wish in wishes
        ]

    async def rows_at(self, space: SpaceId, positions: Sequence[int]) -> Sequence[Row | None]:
        """Find and lock rows by their first address."""
        records = await self._all("lock_rows_at", space, sorted(key(place) for place in positions))
        found = {row.first: row for row in map(read_row, records)}
        return [found.get(place) for place in positions]

    async def rows_within(
        self, space: SpaceId, first: int, last: int, *, network: NetworkId | None = None, limit: int = 1000
    ) -> Sequence[Row]:
        """Find rows over a range."""
        return await read_rows_within(self._connection, space, first, last, network, limit)

    async def rows_of(self, owners: Sequence[str]) -> Sequence[Row]:
        """Find rows by owner."""
        return [read_row(record) for record in await self._all("rows_of", list(owners))]

    async def rows_for(self, claims: Sequence[tuple[NetworkId, str, str]]) -> Sequence[Row | None]:
        """Find the row of each claim."""
        networks, owners, slots = ([claim[place] for claim in claims] for place in range(3))
        rows = map(read_row, await self._all("rows_for", networks, owners, slots))
        found = {(row.network, row.owner, row.slot): row for row in rows}
        return [found.get(claim) for claim in claims]

    async def rewrite(self, rows: Sequence[Row]) -> None:
        """Write rows anew."""
        for row in rows:
            values = (
                row.space, key(row.first), row.owner, row.slot, STATE_NUMBER[row.state], row.since_us, row.until_us,
                row.request, dump_details(row.details), row.generation,
            )  # fmt: skip
            try:
                await self._all("rewrite_holding", *values)
            except asyncpg.UniqueViolationError:
                raise AlreadyExists("holding", f"{row.owner} {row.slot}".strip(), field="owner") from None

    async def remember(self, rows: Sequence[Row]) -> None:
        """Note where owners were."""
        for row in rows:
            await self._all("remember", row.network, row.owner, row.slot, key(row.first))

    async def former(self, network: NetworkId, owner: str, slot: str) -> int | None:
        """Return where an owner was."""
        found = await self._value("former", network, owner, slot)
        return None if found is None else position(found)

    async def remove(self, rows: Sequence[Row]) -> None:
        """Remove rows."""
        # In the order of every other transaction: two that remove the same rows must not wait for each other.
        for space in sorted({row.space for row in rows}):
            firsts = sorted(key(row.first) for row in rows if row.space == space)
            await self._all("delete_holdings", space, firsts)
            # The quick lanes of other servers see by this count that their views are old.
            await self._all("count_free", space)

    async def effects(self, space: SpaceId, after: int) -> Effects:
        """Read what happened to a space's addresses."""
        return await read_effects(self._connection, space, after)

    async def spans(self, space: SpaceId, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Read held spans over a range."""
        return read_spans(await self._all("spans", space, key(first), key(last)))

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        return int(await self._value("counters"))

    async def changes(self, after: int, *, limit: int = 1000) -> Sequence[Change]:
        """Read the log behind a number."""
        return [read_change(record) for record in await self._all("changes", after, limit)]

    async def log(self, entries: Sequence[Entry]) -> int:
        """Append to the log; from here on the counter is locked."""
        columns = (
            [entry.verb for entry in entries],
            [entry.space for entry in entries],
            [entry.network for entry in entries],
            [optional_key(entry.first) for entry in entries],
            [optional_key(entry.last) for entry in entries],
            [entry.owner for entry in entries],
            [entry.slot for entry in entries],
            [entry.generation for entry in entries],
            [entry.request for entry in entries],
            [dump_details(entry.details) for entry in entries],
        )
        self.newest = int(await self._value("log", *columns))
        return self.newest

    async def trim(self, before: int) -> None:
        """Drop old changes."""
        # The archive's lock first, the counter row last: a transaction that holds the counter must wait for nothing.
        await drop_archived(self._connection, before)
        await self._all("trim_changes", before)
        await self._all("set_oldest", before - 1)

    async def archive(self, page: ArchivedPage, places: Sequence[int]) -> bool:
        """Move the oldest changes into the archive; the counter is locked last."""
        return await put_page(self._connection, page, places)


class CallersPostgresTransaction(PostgresTransaction):
    """The same inside a transaction that the caller has open; his search path is his again after each call."""

    def __init__(self, connection: Any, schema: str, committed: Callable[[], Awaitable[int]]) -> None:
        super().__init__(connection)
        self._schema = schema
        self._committed = committed
        self._callers_path = ""

    async def begin_call(self) -> bool:
        """Mark the place and look at the ledger's schema.

        A transaction that has logged holds the counter: only then can it be ahead of what is committed.
        """
        await self._connection.execute("SAVEPOINT tenure_call")
        # A setting of the transaction lasts until the caller ends it, so end_call must put the path back.
        self._callers_path = await self._connection.fetchval("SELECT current_setting('search_path')")
        await self._connection.execute("SELECT set_config('search_path', $1, true)", self._schema)
        return await self.last_change() > await self._committed()

    async def end_call(self, *, failed: bool) -> None:
        """Keep or undo the call."""
        if failed:
            await self._connection.execute("ROLLBACK TO SAVEPOINT tenure_call")
        await self._connection.execute("SELECT set_config('search_path', $1, true)", self._callers_path)
        await self._connection.execute("RELEASE SAVEPOINT tenure_call")


async def read_configurations(connection: Any, spaces: Sequence[SpaceId]) -> list[Configuration]:
    """Read spaces' configurations.

    Versions first: an edit between the two statements then gives new networks under an old version, which the guard
    of every grant refuses. The other way round an old plan would pass for the new one.
    """
    found = await connection.fetch(SQL["spaces_by_id"], list(spaces))
    networks: dict[SpaceId, dict[str, Network]] = {}
    for space, number, name, text in await connection.fetch(SQL["networks_of_spaces"], list(spaces)):
        networks.setdefault(space, {})[name] = read_network(number, name, json.loads(text))
    return [
        Configuration(space, name, version, networks.get(space, {}), queued) for space, name, version, queued in found
    ]


async def read_effects(connection: Any, space: SpaceId, after: int) -> Effects:
    """Read what happened to a space's addresses behind a cursor: one statement, so one moment."""
    records = await connection.fetch(SQL["effects"], space, after, FAR_BEHIND)
    upto, oldest, frees, due = records[0][:4]
    return _effects(after, upto, oldest, frees or 0, due, [record[4:] for record in records])


def _effects(after: int, upto: int, oldest: int, frees: int, due: bool, steps: Sequence[Any]) -> Effects:
    if after < oldest or upto - after > FAR_BEHIND:
        return Effects(upto, [], complete=False, due=due)
    read = [(seq, takes, position(first), position(last)) for seq, takes, first, last in steps if seq is not None]
    return Effects(upto, read, frees=frees, due=due)


async def read_rows_within(
    connection: Any, space: SpaceId, first: int, last: int, network: NetworkId | None, limit: int
) -> list[Row]:
    """Read rows that lie over a range."""
    bounds = (space, key(first), key(last), min(limit, LIMITLESS))
    if network is None:
        records = await connection.fetch(SQL["rows_from"], *bounds)
    else:
        records = await connection.fetch(SQL["rows_from_of_network"], *bounds, network)
    return [read_row(record) for record in records]
