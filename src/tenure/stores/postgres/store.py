"""The PostgreSQL store: many servers on one ledger.

Safety rests on two unique indexes, the spaces' row locks and the counter row, all checked by the database; any number
of servers with any staleness can only lose a try. Nothing is held between requests, so a killed server leaves
nothing to clean. Commits are durable before they are answered (``synchronous_commit`` is switched on here).
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeVar

import asyncpg

from tenure.kernel.addresses import key
from tenure.kernel.configuration import Configuration
from tenure.kernel.contents import Section
from tenure.kernel.errors import CursorExpired, Invalid, StoreUnavailable
from tenure.kernel.values import AGAIN, Change, NetworkId, Paper, Row, SpaceId, Ticket, Verdict, Wish
from tenure.ports import Abilities, Effects, Transaction
from tenure.stores.postgres.contents import read_contents, write_contents
from tenure.stores.postgres.granting import grant_on, granted, release_on
from tenure.stores.postgres.history import read_changes_at
from tenure.stores.postgres.hot import HotConnection, HotConnections
from tenure.stores.postgres.papers import paper_range
from tenure.stores.postgres.sql import SQL
from tenure.stores.postgres.transaction import (
    CallersPostgresTransaction,
    PostgresTransaction,
    key_columns,
    read_effects,
    read_rows_within,
    told_column,
    wish_columns,
)
from tenure.stores.statements import check_version, load_migrations, read_change, read_paper, read_row, read_spans

T = TypeVar("T")

PAGE = 1000
SPANS_PAGE = 10_000
MIGRATION_LOCK = 0x7E60_4E00
RERUNS = 20
TIMEOUT_S = 60.0
BATCH_LOCK_TIMEOUT = "100ms"
"""How long a batch waits for a lock before it is repeated one by one, which cannot deadlock."""

LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.TooManyConnectionsError,
    asyncio.TimeoutError,
)
STUCK = (
    asyncpg.DeadlockDetectedError,
    asyncpg.exceptions.LockNotAvailableError,
    asyncpg.SerializationError,
    asyncpg.UniqueViolationError,
)
"""What a call that is repeated, alone or from its start, gets over; the last: an idempotency key came twice at once."""


class PostgresStore:
    """A ledger in a PostgreSQL schema."""

    abilities = Abilities(ledger=True, mixed_units=True, parallel_writes=True, quick_lane=True)

    def __init__(self, hot: HotConnections, pool: Any, schema: str) -> None:
        self._hot = hot
        self._pool = pool
        self._schema = schema

    @classmethod
    async def open(cls, dsn: str, *, schema: str = "tenure", connections: int = 6) -> "PostgresStore":
        """Connect, and bring the schema up to date."""
        _check_schema(schema)
        # Statements take arrays of any length: planning each anew would cost more than running it.
        settings = {"search_path": schema, "synchronous_commit": "on", "plan_cache_mode": "force_generic_plan"}
        try:
            await _migrate(dsn, schema)
            pool = await _pool(dsn, connections, settings)
        except (*LOST, asyncpg.PostgresError) as error:
            raise StoreUnavailable(f"cannot reach PostgreSQL: {error}", outcome="none") from error
        return cls(HotConnections(dsn, SQL, settings | {"lock_timeout": BATCH_LOCK_TIMEOUT}, TIMEOUT_S), pool, schema)

    @staticmethod
    async def has_ledger(dsn: str, schema: str) -> bool:
        """Tell whether a schema has a ledger in it; nothing is made by asking."""
        _check_schema(schema)
        try:
            connection = await asyncpg.connect(dsn, timeout=TIMEOUT_S)
            try:
                return await connection.fetchval("SELECT to_regclass($1)", f"{schema}.ledger") is not None
            finally:
                await connection.close()
        except (*LOST, asyncpg.PostgresError) as error:
            raise StoreUnavailable(f"cannot reach PostgreSQL: {error}", outcome="none") from error

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run work in a transaction; run it again where PostgreSQL broke a deadlock."""
        for _ in range(RERUNS):
            try:
                return await self._transact_once(work)
            except STUCK:
                continue
        raise StoreUnavailable("PostgreSQL kept breaking deadlocks", outcome="none")

    def inside(self, connection: object) -> CallersPostgresTransaction:
        """Run in a transaction the caller has open with asyncpg on the same database."""
        if not isinstance(connection, asyncpg.Connection) or not connection.is_in_transaction():
            raise Invalid("connection: an asyncpg connection with an open transaction is needed", field="connection")
        return CallersPostgresTransaction(connection, self._schema, self.last_change)

    async def _transact_once(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        committing = False
        async with self._connected(self._pool) as connection:
            try:
                await connection.execute("BEGIN")
                result = await work(PostgresTransaction(connection))
                committing = True
                await connection.execute("COMMIT")
                return result
            except BaseException as error:
                await _quietly(_roll_back(connection))
                if isinstance(error, LOST):
                    outcome: Literal["none", "unknown"] = "unknown" if committing else "none"
                    raise StoreUnavailable(f"PostgreSQL was lost: {error}", outcome=outcome) from error
                if isinstance(error, asyncpg.PostgresError) and not isinstance(error, STUCK):
                    raise StoreUnavailable(f"PostgreSQL refused: {error}", outcome="none") from error
                raise

    @asynccontextmanager
    async def _connected(self, pool: Any) -> AsyncIterator[Any]:
        """Take a connection; not getting one changed nothing."""
        try:
            connection = await pool.acquire()
        except (*LOST, asyncpg.PostgresError) as error:
            raise StoreUnavailable(f"cannot reach PostgreSQL: {error}", outcome="none") from error
        try:
            yield connection
        finally:
            await _quietly(pool.release(connection))

    async def _read(self, name: str, *values: Any) -> list[Any]:
        async with self._connected(self._pool) as connection:
            try:
                records: list[Any] = await connection.fetch(SQL[name], *values)
                return records
            except (*LOST, asyncpg.PostgresError) as error:
                raise StoreUnavailable(f"PostgreSQL failed: {error}", outcome="none") from error

    async def grant(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        """Create holdings: one statement, one round trip, one commit for all of them."""
        try:
            return await self._grant(space, version, wishes)
        except STUCK:
            return [(await self._grant_patiently(space, version, wish)) for wish in wishes]

    async def _grant(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> list[Verdict]:
        return await self._hot_call(lambda hot: grant_on(hot, space, version, wishes))

    async def _hot_call(self, work: Callable[[HotConnection], Awaitable[T]]) -> T:
        """Run work on a connection of the hot path; what is lost on the way has an unknown outcome."""
        try:
            hot = await self._hot.take()
        except (*LOST, asyncpg.PostgresError) as error:
            raise StoreUnavailable(f"cannot reach PostgreSQL: {error}", outcome="none") from error
        try:
            return await work(hot)
        except LOST as error:
            hot.connection.terminate()
            raise StoreUnavailable(f"PostgreSQL was lost: {error}", outcome="unknown") from error
        except asyncpg.PostgresError as error:
            if isinstance(error, (asyncpg.DivisionByZeroError, *STUCK)):
                raise
            raise StoreUnavailable(f"PostgreSQL refused: {error}", outcome="none") from error
        finally:
            self._hot.give_back(hot)

    async def grant_unless_freed(
        self, space: SpaceId, version: int, frees: int, wishes: Sequence[Wish]
    ) -> Sequence[Verdict] | None:
        """Create all holdings or none, if nothing was freed since: one statement, one round trip, one commit."""
        columns = wish_columns(wishes)
        values = (space, version, frees, *columns, told_column(wishes), *key_columns(wishes))
        try:
            records = await self._hot_call(lambda hot: hot.fetch("grant_unless_freed", *values))
        except (asyncpg.DivisionByZeroError, *STUCK):
            return None
        given = {record[0]: record for record in records}
        return [granted(space, wish, given[first]) for first, wish in zip(columns[1], wishes, strict=True)]

    async def _grant_patiently(self, space: SpaceId, version: int, wish: Wish) -> Verdict:
        """Grant one wish, waiting as long as it takes: alone it cannot be part of a deadlock for long."""
        async with self._connected(self._pool) as connection:
            for _ in range(RERUNS):
                try:
                    return (await grant_on(HotConnection(connection, SQL), space, version, [wish]))[0]
                except STUCK:
                    continue
                except LOST as error:
                    raise StoreUnavailable(f"PostgreSQL was lost: {error}", outcome="unknown") from error
                except asyncpg.PostgresError as error:
                    raise StoreUnavailable(f"PostgreSQL refused: {error}", outcome="none") from error
        return AGAIN

    async def release(
        self, space: SpaceId, tickets: Sequence[Ticket], *, version: int | None = None
    ) -> Sequence[Row | None]:
        """End holdings: one statement, one commit; those it could not end are looked at in a second."""
        answers: dict[int, Row] = {}
        left = tickets
        async with self._connected(self._pool) as connection:
            for _ in range(RERUNS):
                try:
                    ended, found = await release_on(connection, space, left, version)
                except STUCK:
                    continue
                except LOST as error:
                    raise StoreUnavailable(f"PostgreSQL was lost: {error}", outcome="unknown") from error
                except asyncpg.PostgresError as error:
                    raise StoreUnavailable(f"PostgreSQL refused: {error}", outcome="none") from error
                answers |= found | ended
                # What its owner was granted between the two statements is still to be ended.
                left = [ticket for ticket in left if ticket.first in found and ticket.names(found[ticket.first])]
                if not left:
                    return [answers.get(ticket.first) for ticket in tickets]
        raise StoreUnavailable("PostgreSQL kept breaking off the release", outcome="unknown")

    async def held(self, space: SpaceId, *, after: int = -1) -> AsyncIterator[Sequence[Row]]:
        """Stream holdings in pages; each page is a reading of its own."""
        cursor = b"" if after < 0 else key(after)
        while records := await self._read("rows_after", space, cursor, PAGE):
            yield [read_row(record) for record in records]
            cursor = records[-1][2]

    async def by_owner(self, owners: Sequence[str]) -> Sequence[Row]:
        """Find holdings by owner."""
        return [read_row(record) for record in await self._read("rows_of", list(owners))]

    async def watch(self, after: int, *, limit: int = 1000, space: SpaceId | None = None) -> Sequence[Change]:
        """Read the log."""
        if space is None:
            records = await self._read("changes", after, limit)
        else:
            records = await self._read("changes_of_space", after, limit, space)
        # Asked afterwards: what was trimmed before the changes were read is told, never skipped.
        oldest = (await self._read("counters"))[0][1]
        if after < oldest:
            raise CursorExpired(after, oldest)
        return [read_change(record) for record in records]

    async def effects(self, space: SpaceId, after: int) -> Effects:
        """Read what happened to a space's addresses."""
        async with self._connected(self._pool) as connection:
            try:
                return await read_effects(connection, space, after)
            except (*LOST, asyncpg.PostgresError) as error:
                raise StoreUnavailable(f"PostgreSQL failed: {error}", outcome="none") from error

    async def spans(self, space: SpaceId, first: int, last: int) -> tuple[int, Sequence[tuple[int, int]]]:
        """Read held spans as of one moment, streamed through a cursor so that only the answer is kept."""
        found: list[tuple[int, int]] = []
        async with self._connected(self._pool) as connection:
            try:
                async with connection.transaction(isolation="repeatable_read", readonly=True):
                    seq = await connection.fetchval(SQL["counters"])
                    cursor = await connection.cursor(SQL["spans"], space, key(first), key(last))
                    while page := await cursor.fetch(SPANS_PAGE):
                        found.extend(read_spans(page))
                    return seq, found
            except (*LOST, asyncpg.PostgresError) as error:
                raise StoreUnavailable(f"PostgreSQL failed: {error}", outcome="none") from error

    async def spaces(self) -> Sequence[tuple[SpaceId, str]]:
        """List spaces."""
        return [(record[0], record[1]) for record in await self._read("spaces")]

    async def locate(self, networks: Sequence[str]) -> dict[str, SpaceId]:
        """Find networks' spaces."""
        return {record[0]: record[1] for record in await self._read("locate_networks", list(networks))}

    async def space_named(self, name: str) -> SpaceId | None:
        """Find a space by name."""
        records = await self._read("space_named", name)
        return records[0][0] if records else None

    async def configuration(self, space: SpaceId) -> Configuration | None:
        """Read a configuration of one moment."""

        async def reading(tx: Transaction) -> Sequence[Configuration]:
            return await tx.configurations([space])

        found = await self.transact(reading)
        return found[0] if found else None

    async def changes_at(self, firsts: Sequence[int], *, after: int = 0, limit: int = 1000) -> Sequence[Change]:
        """Read entries by address."""
        return await read_changes_at(self._read, firsts, after, limit)

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Paper]:
        """Read papers of a kind, in order of name."""
        return [read_paper(record) for record in await self._read("papers", *paper_range(kind, prefix, after, limit))]

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        return int((await self._read("counters"))[0][0])

    async def rows_within(
        self, space: SpaceId, first: int, last: int, *, network: NetworkId | None = None, limit: int = 1000
    ) -> Sequence[Row]:
        """Find rows over a range."""
        async with self._connected(self._pool) as connection:
            try:
                return await read_rows_within(connection, space, first, last, network, limit)
            except (*LOST, asyncpg.PostgresError) as error:
                raise StoreUnavailable(f"PostgreSQL failed: {error}", outcome="none") from error

    async def close(self) -> None:
        """Close the connections."""
        await _quietly(self._hot.close())
        try:
            await asyncio.wait_for(self._pool.close(), 5)
        except (TimeoutError, *LOST):
            self._pool.terminate()

    def contents(self) -> AsyncGenerator[Section, None]:
        """Stream everything as of one moment."""
        return read_contents(self._connected(self._pool))

    async def fill(self, sections: AsyncIterator[Section]) -> None:
        """Write everything into an empty ledger."""
        await write_contents(self._connected(self._pool), sections)


async def _pool(dsn: str, size: int, settings: dict[str, str]) -> Any:
    # Releasing a connection would otherwise cost a round trip to reset what is never changed.
    return await asyncpg.create_pool(
        dsn, min_size=1, max_size=size, server_settings=settings, command_timeout=TIMEOUT_S, reset=_nothing
    )


async def _roll_back(connection: Any) -> None:
    """End a transaction; of a connection that was lost the pool has taken leave, and asking it anything raises."""
    if not connection.is_closed() and connection.is_in_transaction():
        await connection.execute("ROLLBACK")


async def _nothing(connection: Any) -> None:
    return None


async def _quietly(work: Awaitable[Any]) -> None:
    """Tidy up a connection that may be gone; whatever went wrong has been told already."""
    try:
        await work
    except (*LOST, asyncpg.PostgresError):
        pass


def _check_schema(schema: str) -> None:
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        raise Invalid(f"schema: {schema!r} is not a plain lower-case name", field="schema")


async def _migrate(dsn: str, schema: str) -> None:
    migrations = load_migrations("tenure.stores.postgres")
    connection = await asyncpg.connect(dsn, timeout=TIMEOUT_S)
    try:
        async with connection.transaction():
            # Servers that start together must not build the same tables at once.
            await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
            await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
            await connection.execute(f'SET LOCAL search_path = "{schema}"')
            known = await connection.fetchval("SELECT to_regclass($1)", f"{schema}.ledger")
            found = 0 if known is None else await connection.fetchval("SELECT schema_version FROM ledger")
            check_version(found, len(migrations))
            for step in migrations[found:]:
                await connection.execute(step)
            if found < len(migrations):
                await connection.execute("UPDATE ledger SET schema_version = $1", len(migrations))
    finally:
        await connection.close()
