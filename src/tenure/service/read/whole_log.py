"""The log and its archive as one: every change that is kept, in order, wherever it lies by now."""

from collections.abc import AsyncIterator, Sequence

from tenure.kernel.errors import CursorExpired
from tenure.kernel.holdings.holding_model import Change
from tenure.ports import LedgerStore

PAGE = 1000


async def whole_log(store: LedgerStore, after: int) -> AsyncIterator[Sequence[Change]]:
    """Read all changes behind a number, archived ones included, in pages; CursorExpired if some were dropped.

    Changes may be moved into the archive meanwhile: none is missed, and none comes twice.
    """
    while page := await _next(store, after):
        yield page
        after = page[-1].seq


async def _next(store: LedgerStore, after: int) -> Sequence[Change]:
    try:
        return await store.watch(after, limit=PAGE)
    except CursorExpired:
        # What the log no longer has is in the archive: it was moved there before the log was asked.
        return await store.archived(after, limit=PAGE)


async def log_begins(store: LedgerStore) -> int:
    """Return the number behind which the log itself begins; 0 if nothing was dropped or archived."""
    try:
        await store.watch(0, limit=1)
    except CursorExpired as error:
        return error.oldest
    return 0


async def oldest_kept(store: LedgerStore) -> int:
    """Return the number behind which every change is kept, in the archive or in the log; 0 if nothing was dropped."""
    try:
        await store.archived(0, limit=1)
    except CursorExpired as error:
        return error.oldest
    return 0
