"""Processes that do steps of the story, and die at a chosen call of the store: before it, or after it."""

import asyncio
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

import tenure
from tenure.integrations.bosh.deployments_api import Deployments
from tenure.stores.postgres.store import PostgresStore
from tenure.stores.sqlite.store import SqliteStore
from tests.integrations.bosh import processes
from tests.integrations.bosh.kills.story import STEPS

DIED = 9
QUIET = ("close", "inside", "open", "held", "contents", "fill")
"""What is no question to the store, or answers bit by bit."""


def live(url: str, steps: Sequence[str], *, dies_at: int | None = None, after: bool = False) -> bool:
    """Let a process do steps of the story; in the last one it is killed at a call of the store. Tell if it lived."""
    status = processes.ended(processes.begin(_life, url, steps, dies_at, after))
    assert status in (0, DIED), f"{steps[-1]}: {status}"
    return status == 0


def _life(url: str, steps: Sequence[str], dies_at: int | None, after: bool) -> None:
    asyncio.run(_do(url, steps, dies_at, after=after))


async def _do(url: str, steps: Sequence[str], dies_at: int | None, *, after: bool) -> None:
    async with await tenure.open_async(url) as ledger:
        door = Deployments(ledger)
        for step in steps[:-1]:
            await STEPS[step](door)
        if dies_at is not None:
            _make_mortal(dies_at, after=after)
        await STEPS[steps[-1]](door)


def _make_mortal(dies_at: int, *, after: bool) -> None:
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
