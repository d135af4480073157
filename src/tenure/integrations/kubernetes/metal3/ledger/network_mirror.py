"""A network of a ledger as it was last read: its plan, and who holds what. It says what is not worth asking for.

Networks of one space may lie over each other, and an address has one holder among them. So what the neighbours of the
network hold is read, too, where the token allows it; where it does not, the ledger refuses what they hold.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from itertools import chain

from tenure.integrations.kubernetes.metal3.ledger_state import LedgerRow, row_of
from tenure.integrations.kubernetes.metal3.objects.pool_plan import NetworkPlan, neighbours_of
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import CursorExpired, NotFound
from tenure.kernel.holdings.holding_model import Change, Holding
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.wire.http_errors import Forbidden

MOST_CHANGES = 500
"""After more changes than so many, everything is read again, which costs no more."""
MOST_SINGLE = 64
"""So many addresses are read one by one."""

Place = tuple[str, int]
"""A network, and an address in it."""


class _ReadAgain(Exception):
    """Reading everything is cheaper, or the log is not the one that was read before."""


async def read_plan(ledger: AsyncLedger, network: str) -> NetworkPlan:
    """Read a network and its neighbours; raise ``NotFound`` if there is none of this name."""
    try:
        spaces = await ledger.spaces()
    except Forbidden:
        return NetworkPlan(await ledger.network(network))
    for space in spaces:
        if (found := space.networks.get(network)) is not None:
            return NetworkPlan(found, neighbours_of(found, space.networks.values()), space.space)
    raise NotFound("network", network)


async def read_neighbours(ledger: AsyncLedger, plan: NetworkPlan) -> list[Holding]:
    """Read what the neighbours of a network hold of its addresses. O(n) of what they hold."""
    found = [await ledger.holdings(each.name) for each in plan.neighbours]
    return [holding for holding in chain.from_iterable(found) if plan.covers(holding.row.first)]


class NetworkMirror:
    """Cost of a refresh: one question while nothing changes, one for each address that did; O(n) the first time."""

    def __init__(self, network: str) -> None:
        self.network = network
        self.plan: NetworkPlan | None = None
        self.rows: dict[int, LedgerRow] = {}
        self.others: dict[int, LedgerRow] = {}
        """What neighbours of the network hold of its addresses."""
        self._reached: int | None = None
        """Up to which change of the log everything is known."""
        self._newest: Change | None = None
        """The newest change that was read: the log still has it, or it is another log."""

    @property
    def is_read(self) -> bool:
        """Whether everything was read once; then only what has changed is read."""
        return self._reached is not None

    def forget(self) -> None:
        """Read everything the next time: the ledger was away, or is another one."""
        self._reached = self._newest = None

    def enter(self, holding: Holding) -> LedgerRow:
        """Enter what the ledger answered, and return it."""
        row = row_of(holding)
        self._rows_in(row.network)[row.position] = row
        return row

    def remove(self, position: int) -> None:
        """Enter that nobody holds an address of the network any more."""
        self.rows.pop(position, None)

    def _rows_in(self, network: str) -> dict[int, LedgerRow]:
        return self.rows if network == self.network else self.others

    async def refresh(self, ledger: AsyncLedger) -> bool:
        """Read what has changed; return whether anything has."""
        # Asked first: what changes while the rest is read is behind this number, and is read the next time.
        newest = await ledger.last_change()
        if self.plan is None or self._reached is None or newest < self._reached:  # or it was restored from a backup
            return await self._read_all(ledger, newest)
        try:
            return await self._read_changed(ledger, self.plan, self._reached, newest)
        except (CursorExpired, _ReadAgain):
            return await self._read_all(ledger, newest)

    async def _read_changed(self, ledger: AsyncLedger, plan: NetworkPlan, reached: int, newest: int) -> bool:
        touched, is_planned = set(self._overdue()), False
        if newest > reached:
            is_planned = await self._follow(ledger, plan, reached, touched)
        if is_planned:
            self.plan = await read_plan(ledger, self.network)
            # A network that was made again under its name, or has other neighbours, has other rows than are known.
            if (self.plan.names, self.plan.network.id) != (plan.names, plan.network.id):
                raise _ReadAgain
        await asyncio.gather(*(self._read(ledger, *place) for place in touched))
        # Behind the reads: changes of which a read has failed are followed again.
        self._reached = newest
        return bool(touched) or is_planned

    def _overdue(self) -> Iterable[Place]:
        """Yield what has cooled off, or was pending for too long: the log says nothing of the time that passes."""
        now_us = time.time() * 1_000_000
        rows = chain(self.rows.values(), self.others.values())
        return ((row.network, row.position) for row in rows if row.until_us is not None and row.until_us < now_us)

    async def _follow(self, ledger: AsyncLedger, plan: NetworkPlan, after: int, touched: set[Place]) -> bool:
        """Note the addresses that changed; return whether the plan did; raise ``_ReadAgain`` if that takes too long."""
        is_planned, count = False, 0
        async for change in self._log(ledger, after):
            count += 1
            is_planned = is_planned or _is_edit(change, plan)
            if change.first is not None and change.network_name in plan.names:
                touched.add((change.network_name, change.first))
        if count >= MOST_CHANGES or len(touched) > MOST_SINGLE:
            raise _ReadAgain
        return is_planned

    async def _log(self, ledger: AsyncLedger, after: int) -> AsyncIterator[Change]:
        """Yield the changes behind a number; raise ``_ReadAgain`` if the log lacks a change that was read before.

        So it is with a ledger that was restored from a backup and has gone on since: its numbers are used again.
        """
        known = self._newest
        if known is not None and after - known.seq > MOST_CHANGES:  # a token that sees few changes of many
            known = None
        is_known = known is None
        # From one change earlier: the change that was read last must be in the answer.
        async for change in ledger.changes(after if known is None else known.seq - 1, limit=MOST_CHANGES + 1):
            if known is not None and not is_known:
                if (change.seq, change.at_us) != (known.seq, known.at_us):
                    raise _ReadAgain
                is_known = True
                continue
            self._newest = change
            yield change
        if not is_known:
            raise _ReadAgain

    async def _read(self, ledger: AsyncLedger, network: str, position: int) -> None:
        try:
            self.enter(await ledger.holding(network, format_address(position)))
        except NotFound:
            self._rows_in(network).pop(position, None)

    async def _read_all(self, ledger: AsyncLedger, newest: int) -> bool:
        known = await _change_at(ledger, newest)
        self.plan = await read_plan(ledger, self.network)
        self.rows = {holding.row.first: row_of(holding) for holding in await ledger.holdings(self.network)}
        others = await read_neighbours(ledger, self.plan)
        self.others = {holding.row.first: row_of(holding) for holding in others}
        # Last of all: a reading that fails or is cut short half way is begun again.
        self._reached, self._newest = newest, known
        return True


def _is_edit(change: Change, plan: NetworkPlan) -> bool:
    """Return whether a change is one of the plan; claims that wait, papers and the log itself have changes, too."""
    is_of_space = change.space is not None and plan.space in (None, change.space)
    return is_of_space and change.first is None and change.owner is None


async def _change_at(ledger: AsyncLedger, number: int) -> Change | None:
    """Return a change of the log; nothing, if it is not there any more, or is not for the token to see."""
    try:
        async for change in ledger.changes(max(number - 1, 0), limit=1):
            return change if change.seq == number else None
    except CursorExpired:
        pass
    return None
