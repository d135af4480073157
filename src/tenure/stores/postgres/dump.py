"""Everything in a PostgreSQL ledger as one stream, and back.

Reading is one repeatable-read transaction with cursors: others go on, and the stream does not see what they do.
Writing is one transaction of COPY commands into an empty ledger that nobody else may write to meanwhile.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

import asyncpg

from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.snapshot import LARGE, Counters, Inventory, Kind, Section, not_empty
from tenure.stores.sql_files import READERS, WRITERS, load_statements

SQL = {name: statement.sql for name, statement in load_statements("tenure.stores.postgres", "dump.sql").items()}

PAGE = 2000
TROUBLE = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncio.TimeoutError,
)

Connecting = AbstractAsyncContextManager[Any]

NO_HURRY = "SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0"
"""A server's time-outs are for forgotten transactions. This one may wait as long as the other side needs."""

TABLES: dict[Kind, tuple[str, str]] = {
    Kind.SPACES: ("space", "id name version"),
    Kind.NETWORKS: ("network", "space id name document"),
    Kind.HOLDINGS: (
        "holding",
        "space network first last owner slot state generation since_us until_us request details",
    ),
    Kind.FORMERS: ("former", "network owner slot first"),
    Kind.REPLIES: ("reply", "key body at_us space network first last generation until_us answer"),
    Kind.PAPERS: ("paper", "kind name revision document"),
    Kind.ARCHIVE_PAGES: ("archive", "first_seq last_seq first_us last_us body places"),
    Kind.CHANGES: ("change", "seq at_us verb space network first last owner slot generation request details"),
}
"""Where each kind goes: the table, and its columns in the order of WRITERS."""


async def read_contents(connecting: Connecting) -> AsyncGenerator[Section, None]:
    """Stream everything as of one moment."""
    async with connecting as connection:
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                await connection.execute(NO_HURRY)
                for kind in Kind:
                    cursor = await connection.cursor(SQL[kind])
                    while records := await cursor.fetch(LARGE.get(kind, PAGE)):
                        yield Section(kind, [READERS[kind](record) for record in records])
        except TROUBLE as error:
            raise StoreUnavailable(f"PostgreSQL failed: {error}", outcome="none") from error


async def write_contents(connecting: Connecting, sections: AsyncIterator[Section]) -> None:
    """Write everything into an empty ledger in one transaction."""
    outcome: Literal["none", "unknown"] = "none"
    async with connecting as connection:
        transaction = connection.transaction()
        try:
            await transaction.start()
            try:
                await _fill(connection, sections)
            except BaseException:
                await transaction.rollback()
                raise
            # From here on a lost answer may hide a commit.
            outcome = "unknown"
            await transaction.commit()
        except TROUBLE as error:
            raise StoreUnavailable(f"PostgreSQL failed: {error}", outcome=outcome) from error


async def _fill(connection: Any, sections: AsyncIterator[Section]) -> None:
    await connection.execute(NO_HURRY)
    # Before the look: a ledger that was empty a moment ago may have been written to.
    await connection.execute(SQL["keep_others_out"])
    if not await connection.fetchval(SQL["is_empty"]):
        raise not_empty()
    inventory = Inventory()
    async for section in sections:
        inventory.add(section)
        if section.kind is not Kind.COUNTERS:
            table, columns = TABLES[section.kind]
            records = map(WRITERS[section.kind], section.items)
            await connection.copy_records_to_table(table, records=records, columns=columns.split())
    await _put_counters(connection, inventory.complete())
    await connection.execute("ANALYZE holding, change")  # until then the planner knows nothing of what came


async def _put_counters(connection: Any, counters: Counters) -> None:
    await connection.execute(SQL["put_counters"], counters.seq, counters.oldest)
    # Unlike setval this is part of the transaction, and other sessions forget the numbers that they kept in stock.
    await connection.execute(f"ALTER SEQUENCE holding_generation RESTART WITH {counters.generation + 1:d}")
    await connection.execute(f"ALTER SEQUENCE network_number RESTART WITH {counters.next_network:d}")
    await connection.execute(f"ALTER TABLE space ALTER COLUMN id RESTART WITH {counters.next_space:d}")
