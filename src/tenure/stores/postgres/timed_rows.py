"""The part of a transaction that deals with time: deadlines, the line of those who wait, kept answers."""

import json
from collections.abc import Sequence
from typing import Any

import asyncpg

from tenure.kernel.holdings.holding_model import Reply, Row, SpaceId, Waiter
from tenure.ports import KeyTaken
from tenure.stores.postgres.sql import SQL
from tenure.stores.sql_files import read_reply, read_row, read_waiter, reply_columns


class PostgresTimes:
    """What a transaction does by the store's clock."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def _all(self, name: str, *values: Any) -> list[Any]:
        records: list[Any] = await self._connection.fetch(SQL[name], *values)
        return records

    async def _value(self, name: str, *values: Any) -> Any:
        return await self._connection.fetchval(SQL[name], *values)

    async def now_us(self) -> int:
        """Read the clock."""
        return int(await self._value("now_us"))

    async def is_due(self, space: SpaceId) -> bool:
        """Look whether a deadline has passed."""
        return bool(await self._value("is_due", space))

    async def overdue(self, space: SpaceId, *, limit: int = 1000) -> Sequence[Row]:
        """Find and lock rows whose deadline has passed."""
        return [read_row(record) for record in await self._all("overdue", space, limit)]

    async def waiters(self, space: SpaceId) -> Sequence[Waiter]:
        """Read who waits, in order."""
        return [read_waiter(record) for record in await self._all("waiters", space)]

    async def join(self, waiter: Waiter, lasts_us: int) -> Waiter:
        """Put a claim in line."""
        document = json.dumps(dict(waiter.document), separators=(",", ":"))
        # A claim that was taken for dead comes back with its old ticket, and so to its old place in line.
        where = (waiter.ticket or None, waiter.space, waiter.network, waiter.owner, waiter.slot)
        [record] = await self._all("join", *where, waiter.since_us or None, lasts_us, document)
        await self._all("mark_queued", waiter.space, True)
        return read_waiter(record)

    async def linger(self, tickets: Sequence[int], lasts_us: int) -> None:
        """Let claims live on."""
        await self._all("linger", list(tickets), lasts_us)

    async def leave(self, space: SpaceId, tickets: Sequence[int]) -> None:
        """Take claims out of the line."""
        await self._all("delete_waiters", list(tickets))
        # The mark keeps every grant of the space in the lane: the last claim that leaves must take it off.
        if not await self._all("somebody_waits", space):
            await self._all("mark_queued", space, False)

    async def replies(self, keys: Sequence[str]) -> Sequence[Reply | None]:
        """Find kept answers."""
        found = {reply.key: reply for reply in await read_replies(self._connection, keys)}
        return [found.get(name) for name in keys]

    async def keep_replies(self, replies: Sequence[Reply]) -> None:
        """Keep answers."""
        # 0 stands for the database's clock: a server's clock never dates what the ledger keeps.
        rows = [reply_columns(reply, 0) for reply in replies]
        columns = [list(column) for column in zip(*rows, strict=True)]
        try:
            await self._all("keep_replies", *columns)
        except asyncpg.UniqueViolationError:
            raise KeyTaken from None

    async def forget_replies(self, lived_us: int, *, limit: int = 1000) -> int:
        """Drop old answers."""
        return int(await self._value("forget_replies", lived_us, limit))

    async def forget_oldest_replies(self, count: int) -> int:
        """Drop the oldest answers."""
        return int(await self._value("forget_oldest_replies", count))


async def read_replies(connection: Any, keys: Sequence[str]) -> list[Reply]:
    """Read kept answers."""
    return [read_reply(record) for record in await connection.fetch(SQL["replies"], list(keys))]
