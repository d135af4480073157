"""Kept answers that have lived long enough, or are too many: dropped now and then, by servers that are given keys."""

import asyncio
import contextlib

from tenure.kernel.errors import StoreUnavailable
from tenure.ports import LedgerStore, Size
from tenure.service.read.ledger_size import SizeGauge

DAY_US = 86_400_000_000

TIDY_EVERY_S = 60.0

MOST_KEYS = 10_000_000
"""Kept answers, unless somebody says otherwise: a day of a hundred keyed requests a second, some 2 GB."""

FORGET_PAGE = 5000
"""Kept answers that one transaction drops."""


class Tidier:
    """Drops old answers of one store, while others go on.

    No request counts answers: that is done now and then (``SizeGauge``), and meanwhile there may be more than wanted.
    """

    def __init__(self, store: LedgerStore, keys_live_us: int, size: SizeGauge, most_keys: int = MOST_KEYS) -> None:
        self._store = store
        self._live_us = keys_live_us
        self._size = size
        self._most = most_keys
        self._bounded: Size | None = None
        self._at = 0.0
        self._under_way: set[asyncio.Task[None]] = set()

    def now_and_then(self) -> None:
        """Begin, if the last time is long enough ago."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._at:
            return
        # Set before the work begins: callers meanwhile begin no second round.
        self._at = loop.time() + TIDY_EVERY_S
        task = loop.create_task(self._forget_if_it_can_be())
        # Kept here, because the loop has only weak references to tasks.
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def forget(self) -> None:
        """Drop kept answers that have lived long enough or are too many, counted now, a page at a time."""
        await self._forget_old()
        await self._bound(await self._size.anew())

    async def _forget_old(self) -> None:
        while await self._store.transact(lambda tx: tx.forget_replies(self._live_us, limit=FORGET_PAGE)):
            pass

    async def _bound(self, size: Size) -> None:
        """Drop the oldest answers where there are too many, a page at a time; once for each time they are counted."""
        # One reading of the size serves for a while: what it counted too many is dropped only once.
        over = 0 if size is self._bounded else size.replies - self._most
        self._bounded = size
        while over > 0:
            count = min(over, FORGET_PAGE)
            await self._store.transact(lambda tx, count=count: tx.forget_oldest_replies(count))  # type: ignore[misc]
            over -= count

    async def finish(self) -> None:
        """Wait for what is under way."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _forget_if_it_can_be(self) -> None:
        with contextlib.suppress(StoreUnavailable):  # the next time will do
            await self._forget_old()
            await self._bound(await self._size.current())
