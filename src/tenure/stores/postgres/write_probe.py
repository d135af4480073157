"""The write probe: a change that is appended to the log, taken back and committed, so that nothing is left of it."""

from typing import Any

from tenure.stores.postgres.sql import SQL

NO_CHANGE = -1
"""A number that no change has: they begin at one."""


async def probe_writes(connection: Any) -> None:
    """Need room where every change does, and a commit; raise what PostgreSQL raises. Cost: five round trips, one sync.

    A standby and a read-only database refuse it, and so does one whose disk has no room for another page.
    """
    async with connection.transaction():
        # The savepoint takes the entry back, but the commit around it is still written and synced.
        inner = connection.transaction()
        await inner.start()
        await connection.execute(SQL["try_log"], NO_CHANGE)
        await inner.rollback()
