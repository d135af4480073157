"""The PostgreSQL store: many servers on one ledger.

Safety rests on two unique indexes, the spaces' row locks and the counter row, all checked by the database; any number
of servers with any staleness can only lose a try. Nothing is held between requests, so a killed server leaves
nothing to clean. Commits are durable before they are answered (``synchronous_commit`` is switched on here).
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import asyncpg

from tenure.kernel.addressing.addresses import key
from tenure.kernel.errors import CursorExpired, Invalid, StoreUnavailable
from tenure.kernel.holdings.holding_model import (
    AGAIN,
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
from tenure.ports import Abilities, Effects, Failed, Size, Stale, Transaction
from tenure.stores.postgres.driver_errors import LOST, STUCK, TROUBLE, locked_for, unavailable
from tenure.stores.postgres.dump import read_contents, write_contents
from tenure.stores.postgres.grants import Released, grant_on, granted, release_on
from tenure.stores.postgres.hot_connections import HotConnection, HotConnections, give_name, name_of, new_name
from tenure.stores.postgres.log_archive import read_archived, read_changes_at
from tenure.stores.postgres.papers import paper_range
from tenure.stores.postgres.row_rewrites import rewrite_on
from tenure.stores.postgres.sql import SQL
from tenure.stores.postgres.transaction import (
    CallersPostgresTransaction,
    PostgresTransaction,
    key_columns,
    log_details_column,
    read_effects,
    read_rows_within,
    wish_columns,
)
from tenure.stores.sql_files import check_version, load_migrations, read_change, read_paper, read_row, read_spans

T = TypeVar("T")

PAGE = 1000
SPANS_PAGE = 10_000
MIGRATION_LOCK = 0x7E60_4E00
CONNECT_S = 60.0
ENDING_S = 0.01
RERUNS = 20
TIMEOUT_S = 10.0
"""How long a session may wait for a lock, work at a statement, or sit in an open transaction: by then PostgreSQL ends
it, so that a server that is frozen or cut off holds up the others no longer than this."""

LOCK_WAITS = 2
"""Time-outs of a lock that a call gets over: a server of ours that held it for so long has been ended by then."""

ANSWER_S = 5.0
"""How much longer than the database's own time-outs an answer is waited for, before the connection is given up."""

BATCH_LOCK_TIMEOUT = "100ms"
"""How long a batch waits for a lock before it is repeated one by one, which cannot deadlock."""

CLOSES_S = 5.0
"""How long connections that lie ready, and then those of the pool, may take to be closed in order."""

NO_CHANGE = -1
"""A number that no change has: they begin at one."""


class PostgresStore:
    """A ledger in a PostgreSQL schema."""

    abilities = Abilities(ledger=True, mixed_units=True, parallel_writes=True, quick_lane=True)

    def __init__(self, hot: HotConnections, pool: Any, schema: str, timeout_s: float = TIMEOUT_S) -> None:
        self._hot = hot
        self._pool = pool
        self._schema = schema
        self._timeout_s = timeout_s
        self._newest = 0
        self._lost_sessions: set[str] = set()

    @classmethod
    async def open(
        cls, dsn: str, *, schema: str = "tenure", connections: int = 6, timeout_s: float = TIMEOUT_S
    ) -> "PostgresStore":
        """Connect, and bring the schema up to date."""
        _check_schema(schema)
        settings = _settings(schema, timeout_s)
        # Longer than statement_timeout: PostgreSQL's own error proves that the statement is undone, while a time-out of
        # the client leaves the outcome unknown.
        answer_s = 1.5 * timeout_s + ANSWER_S
        try:
            await _migrate(dsn, schema, timeout_s)
            pool = await _pool(dsn, connections, settings, answer_s)
        except TROUBLE as error:
            raise StoreUnavailable(f"cannot reach PostgreSQL: {error}", outcome="none") from error
        hot = HotConnections(dsn, SQL, settings | {"lock_timeout": BATCH_LOCK_TIMEOUT}, answer_s)
        store = cls(hot, pool, schema, timeout_s)
        try:
            # Sets `newest`: from 0 on, the search for a lost grant would read the whole log.
            await store.last_change()
        except BaseException:
            pool.terminate()  # a caller that gives up here has no store that it could close
            raise
        return store

    @property
    def newest(self) -> int:
        """The highest number of the log that was read or committed here."""
        return self._newest

    @staticmethod
    async def has_ledger(dsn: str, schema: str, timeout_s: float = TIMEOUT_S) -> bool:
        """Tell whether a schema has a ledger in it; nothing is made by asking."""
        _check_schema(schema)
        try:
            connection = await _connect(dsn, _settings(schema, timeout_s))
            try:
                return await connection.fetchval("SELECT to_regclass($1)", f"{schema}.ledger") is not None
            finally:
                await connection.close()
        except TROUBLE as error:
            raise StoreUnavailable(f"cannot reach PostgreSQL: {error}", outcome="none") from error

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run work in a transaction; run it again where PostgreSQL broke a deadlock."""
        locked = 0
        for _ in range(RERUNS):
            try:
                return await self._transact_once(work)
            except asyncpg.exceptions.LockNotAvailableError as error:
                # Also one of STUCK, but each of these has waited the whole timeout_s already: few are enough.
                locked += 1
                if locked > LOCK_WAITS:
                    raise locked_for(locked * self._timeout_s) from error
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
        loop = asyncio.get_running_loop()
        async with self._connected(self._pool) as connection:
            began, name = loop.time(), name_of(connection)
            try:
                # BEGIN and COMMIT are sent by hand: an error means something else once the COMMIT is on its way.
                await connection.execute("BEGIN")
                tx = PostgresTransaction(connection)
                result = await work(tx)
                if loop.time() - began > self._timeout_s / 2:
                    # The process may have been frozen, and its session ended. Asked before the commit, that is certain.
                    await connection.execute("SELECT 1")
                committing = True
                await connection.execute("COMMIT")
                self._newest = max(self._newest, tx.newest)
                return result
            except BaseException as error:
                # The pool resets nothing, so an open transaction would wait for the next user of the connection.
                await _quietly(_roll_back(connection))
                if isinstance(error, TROUBLE) and not isinstance(error, STUCK):
                    # A session that is lost before its COMMIT is harmless: PostgreSQL undoes all of it.
                    if committing and isinstance(error, LOST):
                        self._lost_sessions.add(name)
                    raise unavailable(error, sent=committing) from error
                raise

    @asynccontextmanager
    async def _connected(self, pool: Any) -> AsyncIterator[Any]:
        """Take a connection; not getting one changed nothing."""
        try:
            connection = await pool.acquire()
        except TROUBLE as error:
            raise StoreUnavailable(f"cannot reach PostgreSQL: {error}", outcome="none") from error
        try:
            # Inside the try: where a session cannot be ended yet, the connection still goes back to the pool.
            if self._lost_sessions:
                await self._end_lost_sessions(connection)
            yield connection
        finally:
            await _quietly(pool.release(connection))

    async def _end_lost_sessions(self, connection: Any) -> None:
        """End the sessions whose answers were lost: what they were asked and have not done yet, they never do.

        Else a statement that was held up on its way could still arrive, after it was asked again elsewhere.
        """
        names = sorted(self._lost_sessions)
        try:
            async with asyncio.timeout(self._timeout_s):
                # pg_terminate_backend only sends a signal: a session counts as ended when it is listed no more.
                while await connection.fetch(SQL["end_sessions"], names):  # noqa: ASYNC110 - the database wakes nobody
                    await asyncio.sleep(ENDING_S)
        except TROUBLE as error:
            reason = f"a session of PostgreSQL whose answer was lost could not be ended: {error}"
            raise StoreUnavailable(reason, outcome="none") from error
        # Not clear(): another call may have lost a session meanwhile.
        self._lost_sessions.difference_update(names)

    async def _read(self, name: str, *values: Any) -> list[Any]:
        async with self._connected(self._pool) as connection:
            try:
                records: list[Any] = await connection.fetch(SQL[name], *values)
                return records
            except TROUBLE as error:
                raise StoreUnavailable(f"PostgreSQL failed: {error}", outcome="none") from error

    async def grant(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict | Failed]:
        """Create holdings: one statement, one round trip, one commit for all of them."""
        try:
            return await self._hot_call(lambda hot: grant_on(hot, space, version, wishes))
        except STUCK:
            return await self._grant_one_by_one(space, version, wishes)

    async def _hot_call(self, work: Callable[[HotConnection], Awaitable[T]]) -> T:
        """Run work on a connection of the hot path; what is lost on the way has an unknown outcome."""
        if self._lost_sessions:
            async with self._connected(self._pool):  # which ends them
                pass
        try:
            hot = await self._hot.take()
        except TROUBLE as error:
            raise StoreUnavailable(f"cannot reach PostgreSQL: {error}", outcome="none") from error
        try:
            return await work(hot)
        except TROUBLE as error:
            if isinstance(error, LOST):
                # The next call ends the session at the other end; give_back drops what is closed here.
                self._lost_sessions.add(hot.name)
                hot.connection.terminate()
            elif isinstance(error, (asyncpg.DivisionByZeroError, *STUCK)):
                # PostgreSQL undid the whole statement, and the caller has another way to go.
                raise
            raise unavailable(error, sent=True) from error
        finally:
            self._newest = max(self._newest, hot.newest)
            self._hot.give_back(hot)

    async def grant_unless_freed(
        self, space: SpaceId, version: int, frees: int, wishes: Sequence[Wish]
    ) -> Sequence[Verdict] | None:
        """Create all holdings or none, if nothing was freed since: one statement, one round trip, one commit."""
        columns = wish_columns(wishes)
        values = (space, version, frees, *columns, log_details_column(wishes), *key_columns(wishes))
        try:
            records = await self._hot_call(lambda hot: hot.fetch("grant_unless_freed", *values))
        except (asyncpg.DivisionByZeroError, *STUCK):
            # Nothing was done. Whether an address was freed or taken, the full lane finds out.
            return None
        given = {record[0]: record for record in records}
        return [granted(space, wish, given[first]) for first, wish in zip(columns[1], wishes, strict=True)]

    async def rewrite_unchanged(
        self, space: SpaceId, version: int, groups: Sequence[Sequence[Rewrite]]
    ) -> Sequence[bool]:
        """Write rows again if they are still as they were seen: one statement, one round trip, one commit."""
        try:
            return await self._hot_call(lambda hot: rewrite_on(hot, space, version, groups))
        except STUCK:
            # PostgreSQL undid the statement. A transaction of the pool waits longer for the lane.
            return [False] * len(groups)

    async def _grant_one_by_one(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> list[Verdict | Failed]:
        """Grant wishes one after the other. Each has an outcome of its own; once one failed, the rest is not tried."""
        answers: list[Verdict | Failed] = []
        for wish in wishes:
            try:
                answers.append(await self._grant_patiently(space, version, wish))
            except StoreUnavailable as error:
                answers.append(Failed(error))
                # The rest was never sent: its outcome is none, though that of this wish may be unknown.
                untried = Failed(StoreUnavailable(error.message, outcome="none"))
                return answers + [untried] * (len(wishes) - len(answers))
        return answers

    async def _grant_patiently(self, space: SpaceId, version: int, wish: Wish) -> Verdict | Failed:
        """Grant one wish, waiting as long as locks are waited for: alone it cannot be part of a deadlock for long."""
        locked = 0
        # A session of the pool waits timeout_s for a lock; a hot one would give up after 100 ms once more.
        async with self._connected(self._pool) as connection:
            hot = HotConnection(connection, SQL, name_of(connection))
            for _ in range(RERUNS):
                try:
                    return (await grant_on(hot, space, version, [wish]))[0]
                except asyncpg.exceptions.LockNotAvailableError as error:
                    locked += 1
                    if locked > LOCK_WAITS:
                        raise locked_for(locked * self._timeout_s) from error
                except STUCK:
                    continue
                except TROUBLE as error:
                    if isinstance(error, LOST):
                        self._lost_sessions.add(hot.name)
                        with contextlib.suppress(
                            asyncpg.InterfaceError
                        ):  # closed by the server, it left the pool by itself
                            connection.terminate()
                    raise unavailable(error, sent=True) from error
        # Stuck to the end: no statement took effect, so the wish may be asked for anew.
        return AGAIN

    async def release(
        self, space: SpaceId, tickets: Sequence[Ticket], *, version: int | None = None
    ) -> Sequence[Row | Failed | None]:
        """End holdings: one statement, one commit; those it could not end are looked at in a second."""
        answers: dict[int, Row | Failed] = {}
        left = tickets
        try:
            async with self._connected(self._pool) as connection:
                for _ in range(RERUNS):
                    released = await self._release_on(connection, space, left, version)
                    answers |= {**released.found, **released.ended}
                    # What its owner was granted between the two statements is still to be ended.
                    left = [ticket for ticket in left if released.leaves(ticket)]
                    if not left:
                        break
        except (StoreUnavailable, Stale) as error:
            # Once a statement has answered, its answers stand, and the error is that of the remaining tickets alone.
            if not answers:
                raise
            answers |= {ticket.first: Failed(error) for ticket in left}
        return [answers.get(ticket.first) for ticket in tickets]

    async def _release_on(
        self, connection: Any, space: SpaceId, tickets: Sequence[Ticket], version: int | None
    ) -> Released:
        """End holdings in one statement, again where PostgreSQL broke it off."""
        locked, name = 0, name_of(connection)
        for _ in range(RERUNS):
            try:
                return await release_on(connection, space, tickets, version)
            except asyncpg.exceptions.LockNotAvailableError as error:
                locked += 1
                if locked > LOCK_WAITS:
                    raise locked_for(locked * self._timeout_s) from error
            except STUCK:
                continue
            except TROUBLE as error:
                if isinstance(error, LOST):
                    self._lost_sessions.add(name)
                raise unavailable(error, sent=True) from error
        raise StoreUnavailable("PostgreSQL kept breaking off the release", outcome="none")

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
                effects = await read_effects(connection, space, after)
            except TROUBLE as error:
                raise StoreUnavailable(f"PostgreSQL failed: {error}", outcome="none") from error
        self._newest = max(self._newest, effects.upto)
        return effects

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
                    self._newest = max(self._newest, seq)
                    return seq, found
            except TROUBLE as error:
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

    async def archived(self, after: int, *, limit: int = 1000) -> Sequence[Change]:
        """Read archived changes."""
        return await read_archived(self._read, after, limit)

    async def size(self) -> Size:
        """Count what there is; bytes are those of all tables and indexes of the schema."""
        seq, oldest, begins, replies, taken = (await self._read("size"))[0]
        return Size(seq, seq - oldest, oldest - begins, replies, taken)

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Paper]:
        """Read papers of a kind, in order of name."""
        return [read_paper(record) for record in await self._read("papers", *paper_range(kind, prefix, after, limit))]

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        found = int((await self._read("counters"))[0][0])
        self._newest = max(self._newest, found)
        return found

    async def rows_at(self, space: SpaceId, positions: Sequence[int]) -> Sequence[Row | None]:
        """Find rows by their first address."""
        records = await self._read("rows_at", space, sorted(key(place) for place in positions))
        found = {row.first: row for row in map(read_row, records)}
        return [found.get(place) for place in positions]

    async def try_write(self) -> None:
        """Append to the log, take that back and commit."""
        async with self._connected(self._pool) as connection:
            try:
                await _probe_writes(connection)
            except (*LOST, asyncpg.PostgresError) as error:
                raise StoreUnavailable(f"PostgreSQL takes no writes: {error}", outcome="none") from error

    async def now_us(self) -> int:
        """Read the database's clock."""
        return int((await self._read("now_us"))[0][0])

    async def rows_within(
        self, space: SpaceId, first: int, last: int, *, network: NetworkId | None = None, limit: int = 1000
    ) -> Sequence[Row]:
        """Find rows over a range."""
        async with self._connected(self._pool) as connection:
            try:
                return await read_rows_within(connection, space, first, last, network, limit)
            except TROUBLE as error:
                raise StoreUnavailable(f"PostgreSQL failed: {error}", outcome="none") from error

    async def close(self) -> None:
        """Close the connections; those that do not close in time, or at once if this is cancelled, are cut off."""
        try:
            await _quietly(self._hot.close(CLOSES_S))
            # The pool waits for connections in use: one that never comes back must not keep the process from its end.
            with suppress(TimeoutError, *LOST):
                await asyncio.wait_for(self._pool.close(), CLOSES_S)
        finally:
            self._hot.terminate()
            self._pool.terminate()

    def contents(self) -> AsyncGenerator[Section, None]:
        """Stream everything as of one moment."""
        return read_contents(self._connected(self._pool))

    async def fill(self, sections: AsyncIterator[Section]) -> None:
        """Write everything into an empty ledger."""
        await write_contents(self._connected(self._pool), sections)


def _settings(schema: str, timeout_s: float) -> dict[str, str]:
    """Return what every session is set to."""
    timeout, longer = (f"{round(seconds * 1000)}ms" for seconds in (timeout_s, 1.5 * timeout_s))
    return {
        "search_path": schema,
        "synchronous_commit": "on",
        # Statements take arrays of any length: planning each anew would cost more than running it.
        "plan_cache_mode": "force_generic_plan",
        "idle_in_transaction_session_timeout": timeout,
        "lock_timeout": timeout,
        "statement_timeout": longer,  # a statement may wait for a lock, and then has its work to do
    }


async def _pool(dsn: str, size: int, settings: dict[str, str], answer_s: float) -> Any:
    # Releasing a connection would otherwise cost a round trip to reset what is never changed.
    return await asyncpg.create_pool(
        dsn, min_size=1, max_size=size, server_settings=settings, command_timeout=answer_s, timeout=answer_s,
        reset=_nothing, init=give_name,
    )  # fmt: skip


async def _probe_writes(connection: Any) -> None:
    """Need room where every change does, and a commit; raise what PostgreSQL raises. Cost: five round trips, one sync.

    A standby and a read-only database refuse it, and so does one whose disk has no room for another page.
    """
    async with connection.transaction():
        # The savepoint takes the entry back, but the commit around it is still written and synced.
        inner = connection.transaction()
        await inner.start()
        await connection.execute(SQL["try_log"], NO_CHANGE)
        await inner.rollback()


async def _roll_back(connection: Any) -> None:
    """End a transaction; of a connection that was lost the pool has taken leave, and asking it anything raises."""
    if not connection.is_closed() and connection.is_in_transaction():
        await connection.execute("ROLLBACK")


async def _nothing(connection: Any) -> None:
    return None


async def _quietly(work: Awaitable[Any]) -> None:
    """Tidy up a connection that may be gone; whatever went wrong has been told already."""
    with suppress(*TROUBLE):
        await work


def _check_schema(schema: str) -> None:
    # The name is written into statements and into search_path, where no parameter can stand.
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        raise Invalid(f"schema: {schema!r} is not a plain lower-case name", field="schema")


async def _connect(dsn: str, settings: dict[str, str]) -> Any:
    """Connect for the time of opening, outside of the pool, with the time-outs and a name like every session's."""
    named = settings | {"application_name": new_name()}
    return await asyncpg.connect(dsn, timeout=CONNECT_S, server_settings=named)


async def _migrate(dsn: str, schema: str, timeout_s: float) -> None:
    """Bring the schema up to date; a lock that a stranger keeps is waited for as often as elsewhere."""
    for locked in range(1, LOCK_WAITS + 2):
        try:
            await _migrate_once(dsn, schema, timeout_s)
            return
        except asyncpg.exceptions.LockNotAvailableError as error:
            if locked > LOCK_WAITS:
                raise locked_for(locked * timeout_s) from error


async def _migrate_once(dsn: str, schema: str, timeout_s: float) -> None:
    migrations = load_migrations("tenure.stores.postgres")
    # A step works as long as the tables need. A server that is frozen meanwhile is idle afterwards, and ended.
    connection = await _connect(dsn, _settings(schema, timeout_s) | {"statement_timeout": "0"})
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
