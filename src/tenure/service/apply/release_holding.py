"""One release: look at what is held, end exactly that, and know it again when the answer was lost.

A release that names only an address and an owner would end whatever that owner holds there when it arrives. Repeated
after a lost answer, it would end a holding that was granted since. So the holding is looked up first, and from then on
the release means that one generation, whatever happens.
"""

import enum
from typing import NamedTuple, Protocol

from tenure.kernel.errors import Conflict, StoreUnavailable, TenureError
from tenure.kernel.holding_states import cooling_us
from tenure.kernel.holdings.actor import Asker, asker_of
from tenure.kernel.holdings.deadlines import is_over
from tenure.kernel.holdings.holding_model import Change, NetworkId, Row, SpaceId, State, Ticket
from tenure.kernel.names import Owner
from tenure.kernel.picking.policies import notes_former
from tenure.kernel.plan.layout import Layout
from tenure.ports import LedgerStore, Stale
from tenure.service.allocator.allocation import PATIENCE, UNKNOWN_REPEATS, worse
from tenure.service.allocator.claim import Granted
from tenure.service.apply.context import check_begins_unit, check_holder

ENDS = ("release", "cool")


class ReleaseRequest(NamedTuple):
    """What a caller names: a network, the first address of what is held, its owner, and more where that is known."""

    network: str
    position: int
    owner: Owner
    generation: int | None = None
    request: str | None = None
    lingers_us: int = 0
    asker: Asker | None = None
    length: int | None = None


class ReleaseEngine(Protocol):
    """What a release asks of the server it runs on."""

    store: LedgerStore

    async def layout_around(self, network: str, position: int) -> Layout:
        """Return a layout in which the network has a subnet around a position."""
        ...

    async def reread(self, network: str) -> Layout:
        """Read the network's space from the store."""
        ...

    async def row_at(self, space: SpaceId, position: int) -> Row | None:
        """Return the holding that begins at a position now, if there is one."""
        ...

    async def release(self, layout: Layout, ticket: Ticket) -> Row | None:
        """End one holding; Stale if the layout is."""
        ...

    async def pause(self, attempt: int) -> None:
        """Let others go on for a moment."""
        ...


async def release_holding(wanted: ReleaseRequest, desk: ReleaseEngine) -> Granted | None:
    """End a holding; return what was held, or None if nobody holds the address. Two store calls, one commit."""
    layout = await desk.layout_around(wanted.network, wanted.position)
    for attempt in range(PATIENCE):
        # Before the look: whoever ends what is seen there, the end is numbered above it.
        newest = desk.store.newest
        seen = await _held(wanted, layout, desk)
        if seen is None:
            return None
        ended = seen if isinstance(seen, Layout) else await _ended(wanted, seen, newest, layout, desk)
        if isinstance(ended, Ended):
            return ended.found
        if isinstance(ended, Layout):
            layout = ended
        else:
            await desk.pause(attempt)
    raise Conflict(f"what is held in network {wanted.network!r} kept changing; try again")


async def _held(wanted: ReleaseRequest, layout: Layout, desk: ReleaseEngine) -> Row | Layout | None:
    """Return the holding that is meant, None if nobody holds the address, or a newer layout to look by.

    A refusal may rest on an old plan, so it is said only under the newest one.
    """
    try:
        check_begins_unit(layout, wanted.network, wanted.position, wanted.length)
        row = await desk.row_at(layout.configuration.space, wanted.position)
        if row is not None and row.state is not State.COOLING and not await _is_nobodys(row, wanted, desk):
            check_holder(row, _number(layout, wanted), wanted.owner, wanted.generation, wanted.network)
            return row
    # Not a refusal: a newer plan would not help.
    except StoreUnavailable:
        raise
    except TenureError:
        newest = await desk.reread(wanted.network)
        if newest.configuration.version == layout.configuration.version:
            raise
        return newest
    # By an old plan the wrong space may have been looked at, so "not held" needs the newest plan, too.
    newest = await desk.reread(wanted.network)
    return None if newest.configuration.version == layout.configuration.version else newest


async def _is_nobodys(row: Row, wanted: ReleaseRequest, desk: ReleaseEngine) -> bool:
    """Return whether a row of another owner is overdue: to everybody else the address is free."""
    return row.owner != wanted.owner and row.until_us is not None and is_over(row, await desk.store.now_us())


class Ender(enum.Enum):
    """Which request ended a holding; two of one owner that have neither names nor ids are taken for the same.

    What was handed over goes on under another owner, so no release has ended it.
    """

    THIS_REQUEST = enum.auto()
    ANOTHER_REQUEST = enum.auto()
    TRANSFER = enum.auto()


class Ended(NamedTuple):
    """How a release came out: with what was held, or None if another request ended that."""

    found: Granted | None


async def _ended(
    wanted: ReleaseRequest, seen: Row, newest: int, layout: Layout, desk: ReleaseEngine
) -> Ended | Layout | None:
    """End the holding that was seen, asking again where an answer was lost.

    Returns None if it has gone by other hands, and a newer layout if it must be looked for by that.
    """
    lost: StoreUnavailable | None = None
    tries = 0
    while True:
        try:
            row = await desk.release(layout, _ticket(wanted, seen, layout))
            break
        except Stale:
            # A try whose answer was lost may have ended the holding before the plan changed; the log decides.
            if lost is None or await _ender(wanted, seen, newest, desk, lost) in (None, Ender.TRANSFER):
                return await desk.reread(wanted.network)
            row = None
            break
        except StoreUnavailable as error:
            lost, tries = worse(lost, error), tries + 1
            if lost.outcome != "unknown" or tries > UNKNOWN_REPEATS:
                raise lost from error
            await desk.pause(tries)
    if row is not None and row.generation == seen.generation:
        return Ended(Granted(row, layout))
    if lost is None:
        return None
    # It is gone since it was first asked for; which request ended it, the log says.
    ender = await _ender(wanted, seen, newest, desk, lost)
    if ender is None:
        raise lost  # the entry was trimmed
    if ender is Ender.TRANSFER:
        return None
    return Ended(None if ender is Ender.ANOTHER_REQUEST else Granted(seen, layout))


async def _ender(
    wanted: ReleaseRequest, seen: Row, newest: int, desk: ReleaseEngine, lost: StoreUnavailable
) -> "Ender | None":
    """Return what the log says behind a number: which request ended a holding, or None if none did.

    Where the log cannot be read, the outcome is still that of the try whose answer was lost.
    """
    try:
        return await _read_ender(wanted, seen, newest, desk)
    except StoreUnavailable as error:
        raise lost from error


async def _read_ender(wanted: ReleaseRequest, seen: Row, newest: int, desk: ReleaseEngine) -> "Ender | None":
    while page := await desk.store.changes_at([seen.first], after=newest):
        for change in page:
            if change.generation == seen.generation and change.verb in ENDS:
                # What this request writes into the log has its own name and asker, or none where it has none.
                own = (change.request, asker_of(change.details)) == (wanted.request, wanted.asker)
                return Ender.THIS_REQUEST if own else Ender.ANOTHER_REQUEST
            if _hands_over(change, seen):
                return Ender.TRANSFER
        newest = page[-1].seq
    return None


def _hands_over(change: Change, seen: Row) -> bool:
    """Return whether a change handed over the holding that was seen: what comes of it has a higher generation."""
    later = change.generation is not None and change.generation > seen.generation
    return change.verb == "transfer" and later and change.details.get("from") == seen.owner


def _ticket(wanted: ReleaseRequest, seen: Row, layout: Layout) -> Ticket:
    # As of a held one: what was pending when it was looked at may be confirmed by now. The store, which sees the
    # state, applies the rule to it.
    held_us = cooling_us(State.HELD, layout.pool_cooling_us(wanted.network, wanted.position), wanted.lingers_us)
    return Ticket(
        _number(layout, wanted), wanted.position, wanted.owner, seen.generation, wanted.request,
        notes_former(layout.policies(wanted.network)), held_us, wanted.asker,
    )  # fmt: skip


def _number(layout: Layout, wanted: ReleaseRequest) -> NetworkId:
    return layout.configuration.network(wanted.network).id
