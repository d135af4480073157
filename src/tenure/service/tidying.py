"""Kept answers that have lived long enough: dropped now and then, by servers that are given idempotency keys."""

import asyncio
import contextlib

from tenure.kernel.errors import StoreUnavailable
from tenure.ports import LedgerStore

DAY_US = 86_400_000_000

TIDY_EVERY_S = 60.0

FORGET_PAGE = 5000
"""Kept answers that one transaction drops."""


class Tidier:
    """Drops old answers of one store, while others go on."""

    def __init__(self, store: LedgerStore, keys_live_us: int) -> None:
        self._store = store
        self._live_us = keys_live_us
        self._at = 0.0
        self._under_way: set[asyncio.Task[None]] = set()

    def now_and_then(self) -> None:
        """Begin, if the last time is long enough ago."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._at:
            return
        self._at = loop.time() + TIDY_EVERY_S
        task = loop.create_task(self._forget_if_it_can_be())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def forget(self) -> None:
        """Drop kept answers that have lived long enough, a page at a time."""
        while await self._store.transact(lambda tx: tx.forget_replies(self._live_us, limit=FORGET_PAGE)):
            pass

    async def finish(self) -> None:
        """Wait for what is under way."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _forget_if_it_can_be(self) -> None:
        with contextlib.suppress(StoreUnavailable):  # the next time will do
            await self.forget()
