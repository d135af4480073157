"""The log as server-sent events: recent changes kept ready for all streams, older ones read page by page.

A stream pulls at its reader's pace: nothing queues up for who reads slowly, and each change is sent once, in order.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from tenure.doors.http.events.log_follower import News
from tenure.doors.http.routing.disconnects import gone
from tenure.doors.http.routing.log_filter import Filter
from tenure.doors.http.routing.read_request import Receive, Send
from tenure.doors.http.routing.send_response import encode
from tenure.kernel.errors import CursorExpired, StoreUnavailable
from tenure.kernel.holdings.holding_model import Change
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.wire import encode as wire_encode
from tenure.wire.problems import problem_of

KEPT = 4096
"""Changes that are kept ready."""

PAGE = 500
PING_S = 15.0
CHECK_S = 3.0
"""How often a stream asks whether its reader may still read."""

AFTER_OUTAGE_S = 0.5
RETRY_MS = 1000

Welcome = Callable[[], Awaitable[bool]]
"""Tells whether whoever reads may still do so."""


class StreamedChange:
    """A change, and how a stream writes it; written once, whoever reads it."""

    __slots__ = ("_data", "change")

    def __init__(self, change: Change) -> None:
        self.change = change
        self._data: bytes | None = None

    @property
    def data(self) -> bytes:
        """Return the change as an event."""
        if self._data is None:
            self._data = _event("change", wire_encode.change(self.change), self.change.seq)
        return self._data


class Events:
    """The newest changes of the log, as far back as they are kept ready."""

    def __init__(self, news: News) -> None:
        self._news = news
        self._entries: deque[StreamedChange] = deque()
        self._floor: int | None = None
        news.listen(self._take, gap=self._forget)

    def _take(self, change: Change) -> None:
        if self._floor is None:
            # The first change since a start or a gap: what lies before it is in the log only.
            self._floor = self._news.seen
        self._entries.append(StreamedChange(change))
        if len(self._entries) > KEPT:
            self._floor = self._entries.popleft().change.seq

    def _forget(self) -> None:
        self._entries.clear()
        self._floor = None

    async def behind(self, after: int, ledger: AsyncLedger) -> list[StreamedChange]:
        """Return the changes behind a number, a page at most: from memory, or from the log itself."""
        if after >= self._news.seen:
            return []
        if self._floor is None or after < self._floor:
            return [StreamedChange(change) async for change in ledger.changes(after, limit=PAGE)]
        found: list[StreamedChange] = []
        for entry in reversed(self._entries):
            if entry.change.seq <= after:
                break
            found.append(entry)
        # `found` is newest first; this is its oldest page, in the order of the log.
        return found[: -PAGE - 1 : -1]

    async def beyond(self, seq: int) -> None:
        """Wait until there is a change behind a number."""
        await self._news.beyond(seq)


class Stream:
    """One reader's stream, from the change he saw last."""

    def __init__(self, events: Events, ledger: AsyncLedger, fits: Filter, after: int) -> None:
        self._events = events
        self._ledger = ledger
        self._fits = fits
        self._after = after
        self._sent_at = self._checked_at = asyncio.get_running_loop().time()

    async def run(self, receive: Receive, send: Send, welcome: Welcome, stopping: asyncio.Event) -> None:
        """Stream until the reader leaves, may no longer read, or the server stops."""
        ends = [asyncio.ensure_future(work) for work in (gone(receive), stopping.wait())]
        pump = asyncio.ensure_future(self._pump(send, welcome))
        try:
            await asyncio.wait([pump, *ends], return_when=asyncio.FIRST_COMPLETED)
            # The answer has begun, so the error cannot become a problem document; the caller logs it.
            if pump.done() and (error := pump.exception()) is not None:
                raise error
            # A reader that has left gets no last line.
            if not ends[0].done():
                await self._finish(pump, send)
        finally:
            for task in (pump, *ends):
                task.cancel()
            await asyncio.gather(pump, *ends, return_exceptions=True)

    async def _finish(self, pump: "asyncio.Future[None]", send: Send) -> None:
        """End politely; a reader who does not read is not waited for."""
        pump.cancel()
        await asyncio.wait([pump])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await send({"type": "http.response.body", "body": b": the stream ends\n\n"})

    async def _pump(self, send: Send, welcome: Welcome) -> None:
        # The number goes first: a browser that is cut off before the first change then asks on from here.
        await self._say(send, f"retry: {RETRY_MS}\nid: {self._after}\n\n".encode())
        while True:
            try:
                if not await self._page(send):
                    await self._pause(send)
                if not await self._may_go_on(welcome):
                    return
            except CursorExpired as error:
                await self._say(send, _event("expired", problem_of(error)))
                return
            # The stream goes on behind the last change that was sent, so the reader need not connect again.
            except StoreUnavailable:
                await asyncio.sleep(AFTER_OUTAGE_S)

    async def _page(self, send: Send) -> bool:
        entries = await self._events.behind(self._after, self._ledger)
        if not entries:
            return False
        wanted = entries if self._fits.takes_all else [entry for entry in entries if self._fits(entry.change)]
        # Behind all that was looked at, also where nothing fits: else a filter would have it read again and again.
        self._after = entries[-1].change.seq
        if wanted:
            await self._say(send, b"".join([entry.data for entry in wanted]))
        return True

    async def _pause(self, send: Send) -> None:
        """Wait for news; when there are none for long, show that the stream is alive, and where it stands."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CHECK_S):
                await self._events.beyond(self._after)
        if asyncio.get_running_loop().time() - self._sent_at >= PING_S:
            await self._say(send, f": ping\nid: {self._after}\n\n".encode())

    async def _may_go_on(self, welcome: Welcome) -> bool:
        """Ask every now and then: a token may be revoked while its stream runs."""
        now = asyncio.get_running_loop().time()
        if now - self._checked_at < CHECK_S:
            return True
        self._checked_at = now
        return await welcome()

    async def _say(self, send: Send, data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": True})
        self._sent_at = asyncio.get_running_loop().time()


def _event(name: str, document: Any, seq: int | None = None) -> bytes:
    """Write an event; JSON has no line breaks in it."""
    number = b"" if seq is None else b"id: %d\n" % seq
    return b"%bevent: %b\ndata: %b\n\n" % (number, name.encode(), encode(document))
