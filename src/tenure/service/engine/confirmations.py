"""Confirmations of plain pending holdings: one look and one write, each shared with confirmations of other callers.

A transaction for the same costs a store behind a network seven round trips, and a commit for each caller. Here the rows
are looked at first, and written on condition that they are still so. Whatever is not plain is left to the transaction,
which also says why a confirmation is refused: a refusal may rest on an old plan or an old row.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from tenure.kernel.addressing.addresses import parse_unit
from tenure.kernel.errors import StoreUnavailable, TenureError
from tenure.kernel.holding_states import confirmed
from tenure.kernel.holdings.actor import Asker, asked_entry
from tenure.kernel.holdings.holding_model import Rewrite, Row, SpaceId
from tenure.kernel.holdings.log_entries import confirm_entry
from tenure.kernel.names import Owner, check_generation, check_name, check_request
from tenure.kernel.plan.layout import Layout
from tenure.ports import LedgerStore, Stale
from tenure.service.allocator.claim import Granted
from tenure.service.allocator.revocable_grants import callers_of
from tenure.service.apply.context import check_begins_unit, check_holder
from tenure.service.apply.operations import Confirm, Operation, Shown
from tenure.service.engine.batcher import Batcher
from tenure.service.engine.lost_try import Tried
from tenure.service.read.presenter import show

MOST = 100
"""Confirmations of one call that are tried this way, and calls that share one write."""

Group = tuple[Rewrite, ...]


class ConfirmEngine(Protocol):
    """What confirmations ask of the server they run on."""

    store: LedgerStore

    async def layout(self, network: str, *, newer_than: int | None = None) -> Layout:
        """Return the layout of the network's space; it may be old, but not as old as a version that proved stale."""
        ...

    async def row_at(self, space: SpaceId, position: int) -> Row | None:
        """Return the holding that begins at a position now, if there is one."""
        ...


class Confirmations:
    """Confirms holdings for all callers of a process."""

    def __init__(self, desk: ConfirmEngine, *, at_once: int) -> None:
        """``at_once``: how many spaces are written at a time."""
        self._desk = desk
        self._writes: Batcher[tuple[SpaceId, int], Group, bool] = Batcher(
            self._write,
            largest=MOST,
            at_once=at_once,
            identities=lambda group: tuple(each.seen.first for each in group),
        )

    async def confirm(
        self, operations: Sequence[Operation], asker: Asker | None, tried: Tried[list[Shown]]
    ) -> list[Shown] | None:
        """Confirm holdings of one space, all or none; None if nothing was done, and a transaction must decide.

        What it is about to do is noted in ``tried``, for the try that follows a lost answer.
        """
        confirms = [operation for operation in operations if isinstance(operation, Confirm)]
        if not 0 < len(confirms) == len(operations) <= MOST:
            return None
        try:
            found = await self._found(confirms, asker)
        except StoreUnavailable:
            raise
        except TenureError:
            return None
        return None if found is None else await self._written(*found, tried)

    async def _found(self, confirms: Sequence[Confirm], asker: Asker | None) -> tuple[Layout, Group] | None:
        """Look at the rows; return what is to be written, or None if that is for a transaction to say."""
        layouts = [await self._desk.layout(check_name(each.network, field="network")) for each in confirms]
        layout, places = layouts[0], [parse_unit(each.address)[0] for each in confirms]
        # Claims in line are looked after by the transaction.
        if any(each is not layout for each in layouts) or layout.configuration.queued or len(set(places)) < len(places):
            return None
        rows = await asyncio.gather(*(self._desk.row_at(layout.configuration.space, place) for place in places))
        rewrites = [_rewrite(each, row, layout, asker) for each, row in zip(confirms, rows, strict=True)]
        group = tuple(each for each in rewrites if each is not None)
        return (layout, group) if len(group) == len(confirms) else None

    async def _written(self, layout: Layout, group: Group, tried: Tried[list[Shown]]) -> list[Shown] | None:
        answers = [show(Granted(each.row, layout)) for each in group]
        # The number is read before the try: whatever is written is numbered above it.
        tried.note_sent([each.entry for each in group], self._desk.store.newest, answers)
        space, version, written = layout.configuration.space, layout.configuration.version, False
        try:
            written = await self._writes.submit((space, version), group)
        except Stale:
            # For the next confirmation; the transaction that decides this one reads the plan by itself.
            with suppress(TenureError):
                await self._desk.layout(layout.name_of(group[0].seen.network), newer_than=version)
        if not written:
            tried.forget()
        return answers if written else None

    async def _write(self, key: tuple[SpaceId, int], groups: Sequence[Group]) -> Sequence[bool]:
        return await self._desk.store.rewrite_unchanged(*key, groups)

    async def drain(self) -> None:
        """Wait until everything that was begun has its answer."""
        await self._writes.drain()


def _rewrite(operation: Confirm, row: Row | None, layout: Layout, asker: Asker | None) -> Rewrite | None:
    """Return what a confirmation writes; None if it would write nothing, or there is more to it."""
    place, length = parse_unit(operation.address)
    check_begins_unit(layout, operation.network, place, length)
    # A grant that can still be taken back must be reported in the lane first.
    if row is None or callers_of(row):
        return None
    number = layout.configuration.network(operation.network).id
    check_holder(row, number, Owner(operation.owner), check_generation(operation.generation), operation.network)
    held = confirmed(row)
    if held == row:
        return None
    return Rewrite(row, held, asked_entry(confirm_entry(held, check_request(operation.request)), asker))
