"""Connections for the hot path: kept open, statements prepared once, nothing asked on the way in and out.

A general pool costs more than the statement it serves when a batch is small. Here a call takes a connection that
lies ready, or makes one; the batcher above bounds how many are ever in use.
"""

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

import asyncpg

KEPT = 12
"""Enough for the engine's batches: 4 of grants, 4 of lanes, 4 of confirmations. A connection beyond that is closed."""


class HotConnection:
    """A connection and its prepared statements; ``newest`` is the highest number of the log that came back over it."""

    def __init__(self, connection: Any, sql: Mapping[str, str], name: str) -> None:
        self.connection = connection
        self.name = name
        self.newest = 0
        self._sql = sql
        self._prepared: dict[str, Any] = {}

    async def fetch(self, name: str, *values: Any) -> list[Any]:
        """Run a named statement."""
        statement = self._prepared.get(name)
        if statement is None:
            statement = self._prepared[name] = await self.connection.prepare(self._sql[name])
        records: list[Any] = await statement.fetch(*values)
        return records


def new_name() -> str:
    """Make a name for a session."""
    return f"tenure {secrets.token_hex(8)}"


async def give_name(connection: Any) -> None:
    """Give a pooled connection a name of its own, by which its session can be ended when its answer was lost."""
    # SET takes no parameters; the name has only letters, digits and a space.
    await connection.execute(f"SET application_name = '{new_name()}'")


def name_of(connection: Any) -> str:
    """Return the name of a connection."""
    # PostgreSQL reports this setting by itself, so reading it costs no round trip.
    return str(connection.get_settings().application_name)


class HotConnections:
    """A few connections that lie ready."""

    def __init__(self, dsn: str, sql: Mapping[str, str], settings: Mapping[str, str], timeout_s: float) -> None:
        self._dsn = dsn
        self._sql = sql
        self._settings = dict(settings)
        self._timeout_s = timeout_s
        self._ready: list[HotConnection] = []
        self._is_over = False

    async def take(self) -> HotConnection:
        """Take a connection that lies ready, or make one."""
        while self._ready:
            hot = self._ready.pop()
            # A session that lay ready may have been ended meanwhile: by a restart, or by an administrator.
            if not hot.connection.is_closed():
                return hot
        name = new_name()
        connection = await asyncpg.connect(
            self._dsn, server_settings=self._settings | {"application_name": name}, command_timeout=self._timeout_s,
            timeout=self._timeout_s,
        )  # fmt: skip
        return HotConnection(connection, self._sql, name)

    def give_back(self, hot: HotConnection) -> None:
        """Lay a connection ready again; one that is broken or one too many is dropped."""
        if hot.connection.is_closed():
            return
        if len(self._ready) < KEPT and not self._is_over:
            self._ready.append(hot)
        else:
            hot.connection.terminate()

    async def close(self, timeout_s: float) -> None:
        """Close what lies ready, all at once."""
        await asyncio.gather(*(hot.connection.close(timeout=timeout_s) for hot in self._ready), return_exceptions=True)

    def terminate(self) -> None:
        """Cut off what is not closed; what is given back later, too."""
        self._is_over = True
        for hot in self._ready:
            if not hot.connection.is_closed():
                hot.connection.terminate()
        self._ready.clear()
