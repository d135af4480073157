"""A network of a ledger as it was last read: its plan, and who holds what. It says what is not worth asking for."""

import asyncio
import time
from collections.abc import Iterable

from tenure.integrations.kubernetes.metal3.ledger_state import LedgerRow, row_of
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import CursorExpired, NotFound
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.plan.plan_model import Network
from tenure.service.ledger.async_ledger import AsyncLedger

MOST_CHANGES = 500
"""After more changes than so many, everything is read again, which costs no more."""
MOST_SINGLE = 64
"""So many addresses are read one by one."""


class _TooMany(Exception):
    """So much has changed that reading everything is cheaper."""


class NetworkMirror:
    """Cost of a refresh: one question while nothing changes, one for each address that did; O(n) the first time."""

    def __init__(self, network: str) -> None:
        self.network = network
        self.plan: Network | None = None
        self.rows: dict[int, LedgerRow] = {}
        self._reached: int | None = None
        """Up to which change of the log everything is known."""

    def enter(self, holding: Holding) -> LedgerRow:
        """Enter what the ledger answered, and return it."""
        row = self.rows[holding.row.first] = row_of(holding)
        return row

    def remove(self, position: int) -> None:
        """Enter that nobody holds an address any more."""
        self.rows.pop(position, None)

    async def refresh(self, ledger: AsyncLedger) -> bool:
        """Read what has changed; return whether anything has."""
        # Asked first: what changes while the rest is read is behind this number, and is read the next time.
        newest = await ledger.last_change()
        if self.plan is None or self._reached is None or newest < self._reached:  # or it was restored from a backup
            return await self._read_all(ledger, newest)
        touched, is_planned = set(self._overdue()), False
        if newest > self._reached:
            try:
                is_planned = await self._follow(ledger, self._reached, touched)
            except (CursorExpired, _TooMany):
                return await self._read_all(ledger, newest)
        if is_planned:
            self.plan = await ledger.network(self.network)
        await asyncio.gather(*(self._read(ledger, position) for position in touched))
        self._reached = newest
        return bool(touched) or is_planned

    def _overdue(self) -> Iterable[int]:
        """Yield what has cooled off, or was pending for too long: the log says nothing of the time that passes."""
        now_us = time.time() * 1_000_000
        return (row.position for row in self.rows.values() if row.until_us is not None and row.until_us < now_us)

    async def _follow(self, ledger: AsyncLedger, after: int, touched: set[int]) -> bool:
        """Note the addresses that changed; return whether the plan did; raise ``_TooMany`` if that takes too long."""
        is_planned, count = False, 0
        async for change in ledger.changes(after, limit=MOST_CHANGES):
            count += 1
            if change.network_name not in (None, self.network):
                continue
            if change.first is None:
                is_planned = True
            else:
                touched.add(change.first)
        if count >= MOST_CHANGES or len(touched) > MOST_SINGLE:
            raise _TooMany
        return is_planned

    async def _read(self, ledger: AsyncLedger, position: int) -> None:
        try:
            self.enter(await ledger.holding(self.network, format_address(position)))
        except NotFound:
            self.remove(position)

    async def _read_all(self, ledger: AsyncLedger, newest: int) -> bool:
        self.plan = await ledger.network(self.network)
        self.rows = {holding.row.first: row_of(holding) for holding in await ledger.holdings(self.network)}
        self._reached = newest
        return True
