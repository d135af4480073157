"""The log, followed once for the whole process: events, caches and counts all listen here."""

import asyncio
import contextlib
from collections.abc import Callable

from tenure.kernel.errors import CursorExpired, StoreUnavailable
from tenure.kernel.values import Change
from tenure.service.ledger import AsyncLedger
from tenure.service.surveying import Survey

Listener = Callable[[Change], None]
AFTER_OUTAGE_S = 0.5
PAGE = 500
"""Changes that are told without letting others go on in between."""


class News:
    """Follows the log from the moment it is opened. Listeners are called in commit order, each change once.

    Whoever was told of a ``gap`` (the log was trimmed past us) must start afresh.
    """

    def __init__(self, ledger: AsyncLedger) -> None:
        self._survey = Survey(ledger)
        self._listeners: list[Listener] = []
        self._on_gap: list[Callable[[], None]] = []
        self._moved = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self.seen = 0

    async def open(self) -> None:
        """Begin at the newest change."""
        self.seen = await self._survey.last_change()
        self._task = asyncio.create_task(self._follow())

    def listen(self, listener: Listener, *, gap: Callable[[], None] | None = None) -> None:
        """Call a listener for every change from now on; it must not wait."""
        self._listeners.append(listener)
        if gap is not None:
            self._on_gap.append(gap)

    async def beyond(self, seq: int) -> None:
        """Wait until there is a change behind a number."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.seen > seq)

    async def _follow(self) -> None:
        while True:
            try:
                async for page in self._survey.tail(self.seen, limit=PAGE):
                    self._tell(page)
                    async with self._moved:
                        self._moved.notify_all()
            except CursorExpired as error:
                self.seen = error.oldest
                for gap in self._on_gap:
                    gap()
                async with self._moved:
                    self._moved.notify_all()
            except StoreUnavailable:
                await asyncio.sleep(AFTER_OUTAGE_S)

    def _tell(self, page: list[Change]) -> None:
        for change in page:
            for listener in self._listeners:
                listener(change)
            self.seen = change.seq

    async def close(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
