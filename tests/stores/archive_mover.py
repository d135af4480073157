"""Moves changes into the archive, and dies at a step of it: ``python -m tests.stores.archive_mover URL STEP``.

Steps are the statements that reach the database, from the first one that names the archive. It is killed before the
statement, or (PostgreSQL) once it was sent: its answer is not waited for. Prints ``survived`` if there was no such
step.
"""

import asyncio
import os
import signal
import sys
from typing import Any

import asyncpg

from tenure.ports import LedgerStore
from tenure.service.engine.log_keeper import archive_older
from tenure.wiring import open_store


class Steps:
    """Counts steps, and kills the process at one of them."""

    def __init__(self, fatal: int) -> None:
        self._fatal = fatal
        self._taken = 0

    def take(self, statement: str) -> None:
        """Count a step; the fatal one is not survived."""
        self._taken += bool(self._taken) or "archive" in statement
        if self._taken == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


async def watch_sqlite(store: Any, steps: Steps) -> None:
    """Count every statement of the writer's connection as it begins."""
    await store._writer.do(lambda: store._connection.set_trace_callback(steps.take))


def watch_postgres(steps: Steps) -> None:
    """Count every statement before it is sent, and after."""

    def watched(name: str) -> None:
        ask = getattr(asyncpg.Connection, name)

        async def asked(self: Any, *words: Any, **more: Any) -> Any:
            steps.take(words[0])
            answer = asyncio.ensure_future(ask(self, *words, **more))
            await asyncio.sleep(0)
            steps.take(words[0])
            return await answer

        setattr(asyncpg.Connection, name, asked)

    for name in ("execute", "fetch", "fetchrow", "fetchval"):
        watched(name)


async def main(url: str, fatal: int) -> None:
    """Move everything."""
    store: LedgerStore = await open_store(url)
    steps = Steps(fatal)
    if url.startswith("sqlite"):
        await watch_sqlite(store, steps)
    else:
        watch_postgres(steps)
    await archive_older(store, 0)
    print("survived", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
