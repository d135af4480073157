"""One run of the command line: which store or server, which form of answer, and how a ledger is opened for it."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from tenure.client.server_urls import names_servers
from tenure.kernel.errors import Invalid, NotFound
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.wiring import DEFAULT_URL, open_async

STORE_VARIABLE = "TENURE_STORE"
SERVER_VARIABLE = "TENURE_SERVER"
TOKEN_VARIABLE = "TENURE_TOKEN"  # noqa: S105 - the name of a variable
SQLITE = "sqlite:///"
WITHIN_S = 3
"""How long a command tries to reach a server, unless the server's URL says otherwise."""

T = TypeVar("T")
Work = Callable[[AsyncLedger], Awaitable[T]]


@dataclass(slots=True)
class Session:
    """What the options that go with every command say, and which command it is."""

    store: str | None = None
    server: str | None = None
    token_file: Path | None = None
    json: bool = False
    plain: bool = False
    command: str = ""

    @property
    def named_store(self) -> str | None:
        """Return the URL of the store if the user named one, by option or environment."""
        # An empty variable counts as none, here and below: scripts unset a variable that way.
        return self.store if self.store is not None else os.environ.get(STORE_VARIABLE) or None

    @property
    def named_server(self) -> str | None:
        """Return the URL of the server if the user named one; a store on the command line comes before a variable."""
        if self.server is not None or self.store is not None:
            return self.server
        return os.environ.get(SERVER_VARIABLE) or None

    @property
    def url(self) -> str:
        """Return the URL to work on: that of a server, of a store, or of the store that needs no name."""
        for named in (self.named_server, self.named_store):
            if named is not None:
                return named
        return DEFAULT_URL

    @property
    def store_url(self) -> str:
        """Return the URL of a store, for work that no server does."""
        if self.named_server is not None:
            raise Invalid(
                f"{self.command} works on the store itself, which a server does not hand out; name it with --store",
                field="server",
            )
        return self.url

    async def open(self) -> AsyncLedger:
        """Open the ledger to work on."""
        server = self.named_server
        if server is None:
            return await open_async(self.url)
        if not names_servers(server):
            raise Invalid("server: a URL such as http://localhost:8123 is needed", field="server")
        return await open_async(_hurried(server), token=self._token())

    def _token(self) -> str | None:
        """Read the token; it is never said on the command line, where everybody on the machine could see it."""
        if self.token_file is not None:
            return self.token_file.read_text("utf-8").strip()
        return os.environ.get(TOKEN_VARIABLE) or None

    @property
    def colour(self) -> bool | None:
        """Tell whether to colour: never, or (None) as the terminal decides."""
        return False if self.plain or os.environ.get("NO_COLOR") else None

    def run(self, work: Work[T], *, may_make: bool = False, try_on_new: bool = False) -> T:
        """Open the ledger, do one piece of work on it, and close it; only what begins a ledger may make its file.

        ``try_on_new``: where there is no file yet, the work is tried on a new ledger that leaves nothing behind.
        """
        if try_on_new and missing_file(self.url):
            return run_alone(_on_ledger(open_async("memory:"), work))
        if not may_make:
            refuse_missing(self.url)
        return run_alone(_on_ledger(self.open(), work))


def missing_file(url: str) -> bool:
    """Tell whether a URL names a SQLite file that is not there; opening it would make one."""
    return url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).exists()


def refuse_missing(url: str) -> None:
    """Refuse a SQLite file that is not there: a misspelt name would become an empty ledger."""
    if missing_file(url):
        raise NotFound("ledger", url, hint="there is no such file")


pass_session: Callable[[Callable[..., Any]], Callable[..., Any]] = click.make_pass_decorator(Session, ensure=True)


async def _on_ledger(opening: Awaitable[AsyncLedger], work: Work[T]) -> T:
    async with await opening as ledger:
        return await work(ledger)


def _hurried(server: str) -> str:
    """Return a server's URL that gives up soon: somebody sits there and waits."""
    if "within_s=" in server:
        return server
    return f"{server}{'&' if '?' in server else '?'}within_s={WITHIN_S}"


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
        # asyncio.run turns Ctrl-C into a cancellation, but SIGTERM would end the process and leave its claims in line.
        loop.add_signal_handler(signal.SIGTERM, stop)
    except (RuntimeError, ValueError, NotImplementedError):
        return await work  # not the main thread: nobody sends it signals
    try:
        return await work
    except asyncio.CancelledError:
        # A cancellation by Ctrl-C passes on as it is: asyncio.run makes a KeyboardInterrupt of it.
        if stopped:
            raise SystemExit(128 + signal.SIGTERM) from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
