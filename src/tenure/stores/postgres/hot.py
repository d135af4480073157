"""Connections for the hot path: kept open, statements prepared once, nothing asked on the way in and out.

A general pool costs more than the statement it serves when a batch is small. Here a call takes a connection that
lies ready, or makes one; the batcher above bounds how many are ever in use.
"""

from collections.abc import Mapping
from typing import Any

import asyncpg

KEPT = 4


class HotConnection:
    """A connection and its prepared statements."""

    def __init__(self, connection: Any, sql: Mapping[str, str]) -> None:
        self.connection = connection
        self._sql = sql
        self._prepared: dict[str, Any] = {}

    async def fetch(self, name: str, *values: Any) -> list[Any]:
        """Run a named statement."""
        statement = self._prepared.get(name)
        if statement is None:
            statement = self._prepared[name] = await self.connection.prepare(self._sql[name])
        records: list[Any] = await statement.fetch(*values)
        return records


class HotConnections:
    """A few connections that lie ready."""

    def __init__(self, dsn: str, sql: Mapping[str, str], settings: Mapping[str, str], timeout_s: float) -> None:
        self._dsn = dsn
        self._sql = sql
        self._settings = dict(settings)
        self._timeout_s = timeout_s
        self._ready: list[HotConnection] = []

    async def take(self) -> HotConnection:
        """Take a connection that lies ready, or make one."""
        while self._ready:
            hot = self._ready.pop()
            if not hot.connection.is_closed():
                return hot
        connection = await asyncpg.connect(
            self._dsn, server_settings=self._settings, command_timeout=self._timeout_s, timeout=self._timeout_s
        )
        return HotConnection(connection, self._sql)

    def give_back(self, hot: HotConnection) -> None:
        """Lay a connection ready again; one that is broken or one too many is dropped."""
        if hot.connection.is_closed():
            return
        if len(self._ready) < KEPT:
            self._ready.append(hot)
        else:
            hot.connection.terminate()

    async def close(self) -> None:
        """Close what lies ready."""
        while self._ready:
            await self._ready.pop().connection.close(timeout=5)
