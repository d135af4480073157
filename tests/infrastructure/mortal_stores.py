"""A process that dies at a chosen call of its store, as if by ``kill -9``."""

import inspect
import os
from collections.abc import Callable
from typing import Any

from tenure.stores.postgres.store import PostgresStore
from tenure.stores.sqlite.store import SqliteStore

DIED = 9
"""The exit code of such a process."""

QUIET = ("close", "inside", "open", "held", "contents", "fill")
"""What is no question to the store, or answers bit by bit."""


def make_mortal(dies_at: int, *, after: bool) -> None:
    """Count the calls of every store of this process from now on, and die at one of them as if by ``kill -9``."""
    calls = 0

    def mortal(method: Callable[..., Any]) -> Callable[..., Any]:
        async def called(*words: Any, **more: Any) -> Any:
            nonlocal calls
            calls += 1
            fatal = calls == dies_at
            if fatal and not after:
                os._exit(DIED)
            answer = await method(*words, **more)
            if fatal:
                os._exit(DIED)
            return answer

        return called

    for store in (SqliteStore, PostgresStore):
        for name, method in inspect.getmembers(store, inspect.iscoroutinefunction):
            if not name.startswith("_") and name not in QUIET:
                setattr(store, name, mortal(method))
