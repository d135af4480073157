"""``verify``: every invariant checked against what the store holds, each breach named.

It reads the ledger as any user could, one space at a time, and trusts nothing that the writing side computed.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass

from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import AddressOutsideSubnet, CursorExpired, StoreUnavailable, TenureError
from tenure.kernel.holdings.archive_pages import DAMAGED
from tenure.kernel.holdings.holding_model import OWNED, Change, Row, State
from tenure.kernel.plan.invariants import judge
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration
from tenure.ports import Guard, LedgerStore, Transaction
from tenure.service.read.own_addresses import OwnAddresses, own_addresses
from tenure.service.read.whole_log import log_begins, oldest_kept, whole_log


@dataclass(frozen=True, slots=True)
class Breach:
    """An invariant that does not hold, and where."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


Places = frozenset[tuple[int, int]]
"""Spaces and positions that a finding rests on."""

Finding = tuple[Breach, Places]

NOWHERE: Places = frozenset()

PAPERS = (-1, -1)
"""The place of all papers: a finding that rests on one of them is dropped if any changed."""

MACHINES = "machines"
"""The name under which breaches are reported of the rule that two machines never have one address: those that the
ledger finds, and those that ``tenure verify`` finds in the papers of instances, nodes and NICs."""


async def verify(store: LedgerStore) -> list[Breach]:
    """Check the whole ledger; an empty list is a clean one. Memory grows with the ledger.

    Others may go on meanwhile: a finding about an address that changed since the check began is dropped, for the
    pages it rests on may be of different moments.
    """
    began = await store.last_change()
    findings: list[Finding] = []
    machines = await own_addresses(store)
    now_us = await store.now_us()
    for space, _ in await store.spaces():
        configuration = await store.configuration(space)
        if configuration is not None:
            occupied = OwnAddresses(configuration, machines, now_us)
            findings.extend([finding async for finding in _space_breaches(store, configuration, occupied)])
            findings.extend([(breach, NOWHERE) for breach in await _line_breaches(store, configuration)])
    findings.extend([finding async for finding in _log_breaches(store)])
    if not findings:
        return []
    touched = await _touched(store, began)
    return [breach for breach, places in findings if touched is not None and places.isdisjoint(touched)]


async def _touched(store: LedgerStore, after: int) -> set[tuple[int, int]] | None:
    """Return where something changed behind a number; None if the plan did, for then every address may have."""
    touched: set[tuple[int, int]] = set()
    async for page in whole_log(store, after):
        for change in page:
            if change.verb.startswith("paper."):
                touched.add(PAPERS)
            # These change neither the plan nor a holding.
            if change.verb in ("wait", "leave", "trim") or change.verb.startswith("paper."):
                continue
            if change.space is None or change.first is None:
                return None
            touched.add((change.space, change.first))
    return touched


async def _space_breaches(
    store: LedgerStore, configuration: Configuration, occupied: OwnAddresses
) -> AsyncIterator[Finding]:
    try:
        judge(configuration)
    except TenureError as error:
        yield Breach("I3", f"space {configuration.name!r}: {error}"), NOWHERE
    layout = Layout(configuration)
    previous: Row | None = None
    claims: dict[int, int] = {}
    async for page in store.held(configuration.space):
        for row in page:
            for breach in _row_breaches(layout, row, previous, claims):
                # The finding rests on this row, on the row below it, and on the earlier holding of the same claim.
                others = (place for place in (previous, row) if place is not None)
                first = claims.get(hash((row.network, row.owner, row.slot)), row.first)
                yield breach, frozenset({(row.space, first), *((other.space, other.first) for other in others)})
            for text in occupied.held_by(row, layout) if layout.has_network(row.network) else ():
                yield Breach(MACHINES, text), frozenset({PAPERS, (row.space, row.first)})
            if row.state in OWNED:
                claims.setdefault(hash((row.network, row.owner, row.slot)), row.first)
            previous = row


async def _line_breaches(store: LedgerStore, configuration: Configuration) -> list[Breach]:
    """Check that a space is marked as queued exactly while claims wait in it."""

    async def looking(tx: Transaction) -> tuple[bool, int]:
        # Line and mark are read together in the lane, because they change together.
        await tx.guard([configuration.space], Guard.LANE)
        queued = any(found.queued for found in await tx.configurations([configuration.space]))
        return queued, len(await tx.waiters(configuration.space))

    queued, waiting = await store.transact(looking)
    if queued == (waiting > 0):
        return []
    mark = "is" if queued else "is not"
    return [Breach("line", f"space {configuration.name!r} {mark} marked as queued, and {waiting} claims wait in it")]


def _row_breaches(layout: Layout, row: Row, previous: Row | None, claims: Mapping[int, int]) -> Iterator[Breach]:
    """Look at one row. Claims seen before are kept as hashes: a million of them must fit beside everything else."""
    if previous is not None and row.first <= previous.last:
        yield Breach("I1", f"{_told(row)} overlaps {_told(previous)} in space {layout.configuration.name!r}")
    if row.state in OWNED and hash((row.network, row.owner, row.slot)) in claims:
        yield Breach("I2", f"{row.owner} {row.slot!r} holds twice; the second is {_told(row)}")
    try:
        network = layout.name_of(row.network)
        subnet = layout.subnet_at(network, row.first)
    except (KeyError, AddressOutsideSubnet):
        yield Breach("I3", f"{_told(row)} lies in no subnet of its network")
        return
    unit = subnet.unit_at(row.first)
    if (unit.first, unit.last) != (row.first, row.last):
        yield Breach("I3", f"{_told(row)} is not a unit of {subnet.cidr}")
    if row.state in (State.HELD, State.DRAINING) and row.until_us is not None:
        yield Breach("I10", f"{_told(row)} is {row.state} and yet has a deadline")
    if row.state is State.COOLING and row.until_us is None:
        yield Breach("I10", f"{_told(row)} is cooling without an end")


async def _log_breaches(store: LedgerStore) -> AsyncIterator[Finding]:
    """Check that the log and its archive have no gaps, and that replaying them gives what is held (I7)."""
    oldest, held = await _replayed(store)
    if isinstance(oldest, Breach):
        yield oldest, NOWHERE
        return
    if (doubled := await _doubled(store)) is not None:
        yield doubled, NOWHERE
    if oldest > 0:
        return  # a log of which something was dropped cannot be replayed from nothing
    for space, name in await store.spaces():
        async for page in store.held(space):
            for row in page:
                if held.get(space, {}).pop(row.first, None) != hash((row.owner, row.slot, row.generation)):
                    text = f"{_told(row)} in space {name!r} is not what the log tells"
                    yield Breach("I7", text), frozenset({(space, row.first)})
    for space, first in ((space, first) for space, rows in held.items() for first in rows):
        text = f"the log says that {format_address(first)} in space {space} is held; it is not"
        yield Breach("I7", text), frozenset({(space, first)})


Held = dict[int, dict[int, int]]
"""By space and position: a hash of owner, slot and generation, for the log of a big ledger names millions."""


async def _replayed(store: LedgerStore) -> tuple[int | Breach, Held]:
    held: Held = {}
    after = oldest = await oldest_kept(store)
    try:
        async for page in whole_log(store, after):
            for change in page:
                if change.seq != after + 1:
                    return Breach("I7", f"the log jumps from {after} to {change.seq}"), held
                after = change.seq
                _replay(held, change)
    except StoreUnavailable as error:
        # A damaged page is a finding; a store that does not answer is not.
        if error.field != DAMAGED:
            raise
        return Breach("I7", error.message), held
    return oldest, held


async def _doubled(store: LedgerStore) -> Breach | None:
    """Return a breach if the archive has what is still in the log. Changes may be moved meanwhile."""
    while True:
        begins = await log_begins(store)
        with contextlib.suppress(CursorExpired):  # dropped meanwhile
            twice = await store.archived(begins, limit=1)
            if not twice:
                return None
            # Changes may be moved between the two readings: only a beginning that stayed proves the double.
            if await log_begins(store) == begins:
                return Breach("I7", f"change {twice[0].seq} is in the archive and in the log")


def _replay(held: Held, change: Change) -> None:
    if change.space is None or change.first is None:
        return
    if change.verb in ("grant", "transfer"):
        told = hash((change.owner, change.slot, change.generation))
        held.setdefault(change.space, {})[change.first] = told
    # After ``cool`` the row stays until a ``release`` ends the cooling.
    elif change.verb == "release":
        held.get(change.space, {}).pop(change.first, None)


def _told(row: Row) -> str:
    return f"{format_address(row.first)} ({row.owner})"
