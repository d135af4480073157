"""Many ledgers behind one HTTP server in this process: a street, with a house for each that is open to everybody.

The server is a real one on a real socket, on a thread of its own; it is started when the first house is wanted.
"""

import asyncio
import atexit
import functools
import itertools
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import uvicorn

from tenure.doors.http.app import Application
from tenure.doors.http.observe.log_writer import Sink
from tenure.doors.http.observe.request_log import Journal
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.routing.dispatcher import Match
from tenure.doors.http.routing.principal import Visitor
from tenure.doors.http.routing.read_request import Receive, Scope, Send
from tenure.doors.http.server_state import Site
from tenure.doors.http.settings import Settings

T = TypeVar("T")

EVERYBODY = Visitor("everybody", "everybody", read=True, admin=True)


class OpenDoor:
    """A desk that lets everybody do everything: tokens would be papers and changes in a ledger that is to be empty."""

    def known(self, headers: dict[bytes, bytes], match: Match) -> None:
        """Know nobody beforehand."""

    async def admit(self, scope: Scope, headers: dict[bytes, bytes], match: Match) -> Visitor:
        """Let anybody in."""
        return EVERYBODY

    async def still_good(self, visitor: Visitor) -> bool:
        """Let him stay."""
        return True

    def forget_names(self) -> None:
        """Know nobody's networks by name."""


class Street:
    """One server for many ledgers; the first word of the path says which."""

    def __init__(self) -> None:
        self._houses: dict[str, Application] = {}
        self._sites: dict[str, Site] = {}
        self._numbers = itertools.count(1)
        self._nowhere = Sink(os.open(os.devnull, os.O_WRONLY))
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        config = uvicorn.Config(self, host="127.0.0.1", port=0, log_level="warning", access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="street", daemon=True)
        self._thread.start()
        self._ready.wait()
        atexit.register(self.stop)

    def _serve(self) -> None:
        async def serve() -> None:
            serving = asyncio.ensure_future(self._server.serve())
            while not self._server.started and not serving.done():  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.005)
            self._ready.set()
            await serving

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(serve())

    def stop(self) -> None:
        """Stop the server; what is still open is closed under its callers."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()

    @property
    def port(self) -> int:
        """Return where it listens."""
        number: int = self._server.servers[0].sockets[0].getsockname()[1]
        return number

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the house that the path names answer."""
        _, name, rest = scope["raw_path"].split(b"/", 2)
        path = b"/" + rest
        await self._houses[name.decode()]({**scope, "raw_path": path, "path": path.decode()}, receive, send)

    async def _on_street(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    @asynccontextmanager
    async def house(self, store: str, *, guarded: bool = False) -> AsyncIterator[str]:
        """Serve a store; give its URL. A guarded one lets in who has a token of that ledger."""
        name = await self._on_street(self._built(store, guarded))
        try:
            yield f"http://127.0.0.1:{self.port}/{name}"
        finally:
            await self._on_street(self._left(name))

    @contextmanager
    def quiet_house(self, store: str, *, guarded: bool = False) -> Iterator[str]:
        """Serve a store to somebody who blocks; a guarded one lets in who has a token of that ledger."""
        name = asyncio.run_coroutine_threadsafe(self._built(store, guarded), self._loop).result()
        try:
            yield f"http://127.0.0.1:{self.port}/{name}"
        finally:
            asyncio.run_coroutine_threadsafe(self._left(name), self._loop).result()

    async def _built(self, store: str, guarded: bool = False) -> str:
        name, site = f"house{next(self._numbers)}", Site(Settings(store=store))
        site.journal = Journal(site.settings, site.meter, self._nowhere)
        await site.open()
        if not guarded:
            site.access = OpenDoor()  # type: ignore[assignment]
        self._houses[name] = Application(site, ENDPOINTS)
        self._sites[name] = site
        return name

    async def _left(self, name: str) -> None:
        site = self._sites.pop(name)
        site.stopping.set()
        await site.close()
        del self._houses[name]


@functools.cache
def street() -> Street:
    """Return the street of this process."""
    return Street()
