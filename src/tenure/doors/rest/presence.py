"""Work that goes on only while whoever asked for it is there."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

from tenure.doors.rest.requests import Gone, Receive
from tenure.remote.refusals import Overloaded

T = TypeVar("T")


async def while_there(receive: Receive, work: Coroutine[Any, Any, T], stopping: asyncio.Event) -> T:
    """Do work; if the connection closes or the server stops first, cancel it, and let it clean up behind itself."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(gone(receive))
    closing = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait([working, leaving, closing], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        await _ended(working)
        if leaving.done():
            raise Gone
        raise Overloaded("the server stops, and can wait no longer; nothing was changed, ask again")
    finally:
        for task in (working, leaving, closing):
            await _ended(task)


async def gone(receive: Receive) -> None:
    """Wait until whoever asked is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ended(task: "asyncio.Future[Any]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
