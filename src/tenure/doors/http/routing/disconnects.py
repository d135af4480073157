"""Work that goes on only while whoever asked for it is there."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

from tenure.doors.http.routing.read_request import Gone, Receive
from tenure.kernel.errors import StoreUnavailable

T = TypeVar("T")

SETTLES_S = 1.0
"""How long a stop waits for whoever waits: longer than a commit takes."""


async def while_there(receive: Receive, work: Coroutine[Any, Any, T], stopping: asyncio.Event) -> T:
    """Do work; if the connection closes or the server stops first, cancel it, and let it clean up behind itself."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(gone(receive))
    closing = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait([working, leaving, closing], return_when=asyncio.FIRST_COMPLETED)
        if closing.done() and not leaving.done():  # what is being granted just now can still be told
            await asyncio.wait([working, leaving], timeout=SETTLES_S, return_when=asyncio.FIRST_COMPLETED)
        # Looked at before the other two: an answer that is there is given, even where the server stops as well.
        if working.done():
            return working.result()
        await _ended(working)
        if leaving.done():
            raise Gone
        # What was granted in this very moment may stay: under a key it does, and giving it back can fail.
        raise StoreUnavailable("the server stops, and can wait no longer", outcome="unknown")
    finally:
        # Also when this task itself is cancelled: none of the three may outlive the request.
        for task in (working, leaving, closing):
            await _ended(task)


async def gone(receive: Receive) -> None:
    """Wait until whoever asked is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ended(task: "asyncio.Future[Any]") -> None:
    task.cancel()
    # The task's own error was raised already, or is that of work which no caller waits for any more.
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
