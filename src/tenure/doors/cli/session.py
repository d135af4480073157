"""One run of the command line: which store, which form of answer, and how a ledger is opened for it."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from tenure.kernel.errors import NotFound
from tenure.service.ledger import AsyncLedger
from tenure.wiring import DEFAULT_URL, open_async

STORE_VARIABLE = "TENURE_STORE"
SQLITE = "sqlite:///"

T = TypeVar("T")
Work = Callable[[AsyncLedger], Awaitable[T]]


@dataclass(slots=True)
class Session:
    """What the options that go with every command say, and which command it is."""

    store: str | None = None
    json: bool = False
    plain: bool = False
    command: str = ""

    @property
    def named_store(self) -> str | None:
        """Return the URL of the store if the user named one, by option or environment."""
        return self.store if self.store is not None else os.environ.get(STORE_VARIABLE) or None

    @property
    def url(self) -> str:
        """Return the URL of the store to work on."""
        return DEFAULT_URL if self.named_store is None else self.named_store

    @property
    def colour(self) -> bool | None:
        """Tell whether to colour: never, or (None) as the terminal decides."""
        return False if self.plain or os.environ.get("NO_COLOR") else None

    def run(self, work: Work[T], *, may_make: bool = False, try_on_new: bool = False) -> T:
        """Open the ledger, do one piece of work on it, and close it; only what begins a ledger may make its file.

        ``try_on_new``: where there is no file yet, the work is tried on a new ledger that leaves nothing behind.
        """
        if try_on_new and missing_file(self.url):
            return run_alone(_on_ledger("memory:", work))
        if not may_make:
            refuse_missing(self.url)
        return run_alone(_on_ledger(self.url, work))


def missing_file(url: str) -> bool:
    """Tell whether a URL names a SQLite file that is not there; opening it would make one."""
    return url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).exists()


def refuse_missing(url: str) -> None:
    """Refuse a SQLite file that is not there: a misspelt name would become an empty ledger."""
    if missing_file(url):
        raise NotFound("ledger", url, hint="there is no such file")


pass_session: Callable[[Callable[..., Any]], Callable[..., Any]] = click.make_pass_decorator(Session, ensure=True)


async def _on_ledger(url: str, work: Work[T]) -> T:
    async with await open_async(url) as ledger:
        return await work(ledger)


def run_alone(work: Awaitable[T]) -> T:
    """Run a coroutine to its end; when asked to stop, cancel it, so that nothing is left behind."""
    return asyncio.run(_stoppable(work))


async def _stoppable(work: Awaitable[T]) -> T:
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    try:
        loop.add_signal_handler(signal.SIGTERM, stop)
    except (RuntimeError, ValueError, NotImplementedError):
        return await work  # not the main thread: nobody sends it signals
    try:
        return await work
    except asyncio.CancelledError:
        if stopped:
            raise SystemExit(128 + signal.SIGTERM) from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
