"""Rows that still stand: what everybody who reads shows, lists and counts."""

from collections.abc import Sequence

from tenure.kernel.holdings.deadlines import is_over
from tenure.kernel.holdings.holding_model import Row
from tenure.ports import LedgerStore


async def current_rows(store: LedgerStore, rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows without those whose time is over by the store's clock; it is read only where one has a deadline."""
    if all(row.until_us is None for row in rows):
        return rows
    now_us = await store.now_us()
    return [row for row in rows if not is_over(row, now_us)]
