"""What is overdue, removed a page at a time: no transaction removes more than that, however much is due at once."""

from collections.abc import Awaitable, Callable
from functools import partial

from tenure.kernel.holdings.holding_model import Row, SpaceId
from tenure.kernel.holdings.log_entries import overdue_entry
from tenure.ports import Guard, LedgerStore, Transaction

PAGE = 1000


class MuchDue(Exception):
    """More than a page is overdue in a space: it must be removed before, in transactions of its own."""

    def __init__(self, space: SpaceId) -> None:
        super().__init__(space)
        self.space = space


async def sweep_page(tx: Transaction, space: SpaceId) -> list[Row]:
    """Remove a page of what is overdue in a space, log it, and return it."""
    await tx.guard([space], Guard.LANE)
    rows = [*await tx.overdue(space, limit=PAGE)]
    if rows:
        await tx.remove(rows)
        await tx.log([overdue_entry(row) for row in rows])
    return rows


async def sweep_pages(store: LedgerStore, space: SpaceId, pause: Callable[[int], Awaitable[None]]) -> None:
    """Remove what is overdue until less than a page is left; others get a turn between two pages."""
    while len(await store.transact(partial(sweep_page, space=space))) == PAGE:
        await pause(0)
