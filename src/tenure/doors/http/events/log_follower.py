"""The log, followed once for the whole process: events, caches and counts all listen here."""

import asyncio
from collections.abc import Callable

from tenure.kernel.errors import CursorExpired, StoreUnavailable
from tenure.kernel.holdings.holding_model import Change
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.space_scan import Survey
from tenure.service.read.change_log import TAIL_PAUSE_S, Teller

Listener = Callable[[Change], None]

AFTER_OUTAGE_S = 0.5
PAGE = 500
"""Changes that are told without letting others go on in between."""

LINGERS_S = 150.0
"""How long the log is still followed after somebody wanted to know; then nobody pays for it.

Longer than monitoring lets pass between two looks: it would find everything counted afresh each time.
"""

FAR_BEHIND = 20_000
"""Changes after which it is cheaper to start afresh than to follow them one by one."""


class News:
    """Follows the log while somebody wants to know. Listeners are called in commit order, each change once.

    Whoever was told of a ``gap`` (the log was trimmed past us, or went far ahead while nobody cared, or a listener
    failed) must start afresh. Cost of a change: some 10 µs; none while nobody has asked for a while.
    """

    def __init__(self, ledger: AsyncLedger) -> None:
        self._survey = Survey(ledger)
        self._listeners: list[Listener] = []
        self._on_gap: list[Callable[[], None]] = []
        self._moved = asyncio.Condition()
        self._called = asyncio.Event()
        self._waiting = 0
        self._until = 0.0
        self._failed = False
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
        # A count and not a mark: several callers wait at a time, and the first to leave must not stop the others.
        self._waiting += 1
        self._called.set()
        try:
            async with self._moved:
                await self._moved.wait_for(lambda: self.seen > seq)
        finally:
            self._waiting -= 1
            self._linger()

    def _linger(self) -> None:
        self._until = asyncio.get_running_loop().time() + LINGERS_S

    async def _follow(self) -> None:
        teller = self._survey.teller()
        while True:
            try:
                await self._step(teller)
            except StoreUnavailable:
                # `seen` stays where it is, so the next step goes on behind the last change that listeners got.
                await asyncio.sleep(AFTER_OUTAGE_S)
            except Exception as error:  # a fault of ours must not leave everybody with what was, for ever
                _report(error)
                self._failed = True
                await asyncio.sleep(AFTER_OUTAGE_S)

    async def _step(self, teller: Teller) -> None:
        """Tell a page, or wait a moment for one; what could not be told is a gap."""
        await self._wanted()
        # A listener missed an unknown part of a page, so all listeners begin afresh.
        if self._failed:
            # `_failed` falls only after the skip: a skip that finds no store is made again.
            await self._skip(await self._survey.last_change())
            self._failed = False
        try:
            page = await teller.page(self.seen, PAGE)
        except CursorExpired as error:
            await self._skip(error.oldest)
            return
        if page:
            self._tell(page)
            await self._notify()
        else:
            await asyncio.sleep(TAIL_PAUSE_S)

    async def _wanted(self) -> None:
        """Go on only while somebody wants to know; when he comes back, what lies far behind is skipped."""
        if self._waiting or asyncio.get_running_loop().time() < self._until:
            return
        # No await lies between the look above and this, so a caller that comes now sets the event again.
        self._called.clear()
        await self._called.wait()
        newest = await self._survey.last_change()
        if newest - self.seen > FAR_BEHIND:
            await self._skip(newest)

    async def _skip(self, seq: int) -> None:
        self.seen = seq
        for gap in self._on_gap:
            try:
                gap()
            except Exception as error:  # the others must hear of it all the same
                _report(error)
        await self._notify()

    async def _notify(self) -> None:
        async with self._moved:
            self._moved.notify_all()

    def _tell(self, page: list[Change]) -> None:
        for change in page:
            for listener in self._listeners:
                listener(change)
            # After the listeners: to them `seen` is the number before this change, and Events takes its floor from it.
            self.seen = change.seq

    async def close(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _report(error: Exception) -> None:
    said = {"message": "following the log met a fault; what was counted is counted afresh", "exception": error}
    asyncio.get_running_loop().call_exception_handler(said)
