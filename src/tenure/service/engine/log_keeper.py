"""Old changes of the log, moved into the archive page by page: once, or again and again while a server runs."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from itertools import takewhile

from tenure.kernel.errors import CursorExpired, TenureError
from tenure.kernel.holdings.archive_pages import CHANGES_A_PAGE, ArchivedPage, packed, places_of
from tenure.kernel.holdings.holding_model import Change
from tenure.ports import LedgerStore
from tenure.service.read.whole_log import log_begins

DAY_US = 86_400_000_000

ROUND_S = 60.0
"""How often a server looks for changes that are old enough."""


async def archive_older(store: LedgerStore, keep_us: int, *, least: int = 1) -> int:
    """Move changes older than that, by the store's clock, into the archive; return how many were moved.

    Pages of fewer than ``least`` changes are not made. Ends early if somebody else moves changes at the same time.
    Cost: a page of 1000 takes some 10 ms of this process, off the loop, and a transaction of 20 ms, in which SQLite
    has no other writer and PostgreSQL keeps nobody waiting: its counter is held for the commit alone. After each
    page as much time is left to others.
    """
    # By the store's clock, which wrote the times of the changes.
    before_us = await store.transact(lambda tx: tx.now_us()) - keep_us
    moved = 0
    while changes := await _oldest_changes(store, before_us, least):
        began = asyncio.get_running_loop().time()
        # Off the loop: packing takes 10 ms and more, in which no request would be served.
        page, places = await asyncio.to_thread(_prepared, changes)
        if not await store.transact(lambda tx, page=page, places=places: tx.archive(page, places)):  # type: ignore[misc]
            break
        moved += len(changes)
        # As long as the page took, so that other writers get at least half of the time.
        await asyncio.sleep(asyncio.get_running_loop().time() - began)
    return moved


async def _oldest_changes(store: LedgerStore, before_us: int, least: int) -> list[Change]:
    """Read the next page of changes that are old enough; none if there are too few."""
    try:
        changes = await store.watch(await log_begins(store), limit=CHANGES_A_PAGE)
    except CursorExpired:  # somebody else has moved them
        return []
    # Up to the first young change: a page has no gaps, also where the clock was set back.
    old = list(takewhile(lambda change: change.at_us < before_us, changes))
    return old if len(old) >= least else []


def _prepared(changes: Sequence[Change]) -> tuple[ArchivedPage, list[int]]:
    return packed(changes), places_of(changes)


class LogKeeper:
    """Keeps the log of one store as long as is wanted, while others go on. Full pages only: they compress best."""

    def __init__(self, store: LedgerStore, keep_us: int, failed: Callable[[TenureError], None]) -> None:
        self._store = store
        self._keep_us = keep_us
        self._failed = failed
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin, and go on until closed."""
        self._task = asyncio.get_running_loop().create_task(self._go_on())

    async def close(self) -> None:
        """Stop; a page that is being moved is moved, or is not."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _go_on(self) -> None:
        while True:
            try:
                await archive_older(self._store, self._keep_us, least=CHANGES_A_PAGE)
            except TenureError as error:
                self._failed(error)  # the next round will do
            await asyncio.sleep(ROUND_S)
