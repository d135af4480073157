"""What ``apply`` does to holdings: allocations, runs, releases, confirmations, transfers, words on them."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from tenure.kernel.addressing.addresses import format_address, parse_unit
from tenure.kernel.errors import AlreadyExists, Conflict, NotFound, nobody_holds
from tenure.kernel.holding_states import confirmed, moved, rewritten
from tenure.kernel.holdings.actor import asked, ended_row
from tenure.kernel.holdings.deadlines import is_over
from tenure.kernel.holdings.holding_model import Outcome, Row, SpaceId, State, Wish
from tenure.kernel.holdings.log_entries import confirm_entry, cool_entry, modify_entry, transfer_entry
from tenure.kernel.names import Owner, check_lingering, check_request, check_slot
from tenure.kernel.plan.edit_fields import LabelChange
from tenure.service.allocator.claim import Claim, Granted
from tenure.service.allocator.contiguous_runs import serve_run
from tenure.service.allocator.lane import Restart, Serving, all_or_none
from tenure.service.allocator.waiting_line import Queue, Seat
from tenure.service.apply.context import Ground
from tenure.service.apply.operations import (
    Allocate,
    AllocateRun,
    Cancel,
    Confirm,
    EndCooling,
    ModifyHolding,
    OfHolding,
    Release,
    ReleaseOwner,
    Transfer,
)

H = TypeVar("H", bound=OfHolding)

OWNERS_AT_ONCE = 1000
"""Owners whose holdings are asked for in one question."""


async def allocate(ground: Ground, operations: Sequence[Allocate]) -> list[Granted]:
    """Serve allocations that stand next to each other, all or none."""
    claims = [operation.claim().asked_by(ground.asker) for operation in operations]
    by_space: dict[SpaceId, list[tuple[int, Claim]]] = {}
    for index, claim in enumerate(claims):
        by_space.setdefault(ground.space_of(claim.network), []).append((index, claim))
    results: dict[int, Granted] = {}
    for space, here in by_space.items():
        serving, queue = await _open(ground, space)
        wanted = [claim for _, claim in here]
        if queue is None:
            answers = all_or_none(wanted, await serving.serve(wanted))
        else:
            served = await queue.serve(serving, [Seat(claim) for claim in wanted])
            # None of these seats may wait, so no answer is ``Waiting``.
            answers = all_or_none(wanted, [answer for answer in served if isinstance(answer, Granted | Exception)])
        ground.entries.extend(serving.entries)
        results.update(zip((index for index, _ in here), answers, strict=True))
    return [results[index] for index in range(len(claims))]


async def allocate_run(ground: Ground, operation: AllocateRun) -> list[Granted]:
    """Serve claims with addresses that follow each other, all or none."""
    claims = [claim.asked_by(ground.asker) for claim in operation.claims()]
    space = ground.space_of(operation.network)
    serving, queue = await _open(ground, space)
    views = await ground.views(space)
    # Claims in line come first: what they would get is kept free while the run is picked.
    if queue is not None:
        ghosts = queue.ghosts()
        await serving.serve(ghosts, range(len(ghosts)))
    answers = await serve_run(ground.tx, views, serving, claims, ground.chance)
    serving.let_go()
    ground.entries.extend(serving.entries)
    return answers


async def _open(ground: Ground, space: SpaceId) -> tuple[Serving, Queue | None]:
    """Begin to serve in a space; with the line of those who wait there, if there is one."""
    views = await ground.views(space)
    serving = Serving(ground.tx, views, ground.chance, bounded=ground.bounded)
    waits = views.layout.configuration.queued
    return serving, await Queue.read(ground.tx, views.layout, serving) if waits else None


async def release(ground: Ground, operations: Sequence[Release]) -> list[Granted | None]:
    """End holdings that stand next to each other: found by one question a space, and ended by one call a request."""
    answers: list[Granted | None] = []
    for group in _at_different_places(operations):
        await ground.look_ahead(group)
        for (request, lingers_us), alike in groupby(group, _ending):
            found = [await _found(ground, each) for each in alike]
            answers.extend(None if row is None else _as_ended(ground, row, request) for row in found)
            await ground.end([row for row in found if row is not None], request, lingers_us=lingers_us)
    return answers


def _as_ended(ground: Ground, row: Row, request: str | None) -> Granted:
    return Granted(ended_row(row, request, ground.asker), ground.layout(row.space))


async def _found(ground: Ground, operation: OfHolding) -> Row | None:
    return await ground.find(operation.network, operation.address, Owner(operation.owner), operation.generation)


def _ending(operation: Release) -> tuple[str | None, int]:
    """Return what is written on the end of a holding, and for how long its address cools at least."""
    return check_request(operation.request), check_lingering(operation.lingers_s)


def _at_different_places(operations: Sequence[H]) -> Iterator[list[H]]:
    """Cut operations into groups in which no address is named twice: what is named again is looked at afresh."""
    group: list[H] = []
    places: set[tuple[str, int]] = set()
    for operation in operations:
        place = (operation.network, parse_unit(operation.address)[0])
        if place in places:
            yield group
            group, places = [], set()
        group.append(operation)
        places.add(place)
    if group:
        yield group


async def end_cooling(ground: Ground, operation: EndCooling) -> Granted | None:
    """Let an address cool no longer that its last owner released; where its pool cools, for that time from now."""
    owner, request = Owner(operation.owner), check_request(operation.request)
    row = await ground.find_cooling(operation.network, operation.address, owner, operation.generation)
    if row is None:
        return None
    pool_us = ground.cooling_us(row)
    if not pool_us:
        await ground.cool_no_longer([row], request)
    else:
        until_us = await ground.now_us() + pool_us
        # This operation only shortens a cooling: with the pool's time from now it must end earlier than before.
        if row.until_us is None or until_us >= row.until_us:
            return None
        row = row._replace(until_us=until_us)
        await ground.tx.rewrite([row])
        ground.entries.append(cool_entry(row, request))
    return _as_ended(ground, row, request)


async def release_owners(ground: Ground, operations: Sequence[ReleaseOwner]) -> list[list[Granted]]:
    """End all holdings of owners, one question and one ending for all that stand together under one request."""
    answers: list[list[Granted]] = []
    for request, alike in groupby(operations, lambda operation: check_request(operation.request)):
        owners = [Owner(each.owner) for each in alike]
        held: dict[str, list[Row]] = {owner: [] for owner in owners}
        for start in range(0, len(held), OWNERS_AT_ONCE):
            for row in await ground.tx.rows_of(list(held)[start : start + OWNERS_AT_ONCE]):
                if row.state is not State.COOLING:
                    held[row.owner].append(row)
        rows = [row for those in held.values() for row in those]
        if any(row.space not in ground.now for row in rows):
            raise Restart  # one came to hold something in a space that this transaction does not
        await ground.end(rows, request)
        # An owner that is named again has nothing left.
        answers.extend([_as_ended(ground, row, request) for row in held.pop(owner, [])] for owner in owners)
    return answers


async def confirm(ground: Ground, operation: Confirm) -> Granted:
    """Make a pending holding a held one. It can be had exactly while the row is there, whatever the time (I10)."""
    row = await ground.find(operation.network, operation.address, Owner(operation.owner), operation.generation)
    if row is None:
        raise _nobody(operation.network, operation.address, "its deadline may have passed; allocate again")
    held = confirmed(row)
    if held != row:
        await ground.tx.rewrite([held])
        ground.entries.append(confirm_entry(held, check_request(operation.request)))
    return Granted(held, ground.layout(row.space))


async def cancel(ground: Ground, operation: Cancel) -> Granted | None:
    """End a pending holding; a held one is released, not cancelled."""
    row = await ground.find(operation.network, operation.address, Owner(operation.owner), operation.generation)
    if row is None:
        return None
    if row.state is not State.PENDING:
        raise Conflict(f"{format_address(row.first)} is {row.state}, not pending; release it", field="address")
    request = check_request(operation.request)
    await ground.end([row], request, "cancelled")
    return _as_ended(ground, row, request)


async def modify(ground: Ground, operations: Sequence[ModifyHolding]) -> list[Granted]:
    """Write on holdings, or move them from held to draining and back; those that stand together are found together."""
    answers: list[Granted] = []
    for group in _at_different_places(operations):
        await ground.look_ahead(group)
        answers.extend([await _modify(ground, operation) for operation in group])
    return answers


async def _modify(ground: Ground, operation: ModifyHolding) -> Granted:
    owner, request = Owner(operation.owner), check_request(operation.request)
    row = await ground.find(operation.network, operation.address, owner, operation.generation)
    if row is None:
        raise _nobody(operation.network, operation.address)
    wanted = {name: getattr(operation, name) for name in ("description", "carrier", "plan")}
    details = rewritten(row.details, LabelChange.of(operation), wanted)
    new = row._replace(state=moved(row, operation.state), details=details)
    # A change that changes nothing is not logged.
    if new != row:
        await ground.tx.rewrite([new])
        ground.entries.append(modify_entry(new, request))
    return Granted(new, ground.layout(row.space))


async def transfer(ground: Ground, operations: Sequence[Transfer]) -> list[Granted]:
    """Hand holdings over. Those that stand next to each other change hands together, so two owners may swap.

    A holding that is named again is handed on afterwards.
    """
    answers: list[Granted] = []
    for group in _at_different_places(operations):
        await ground.look_ahead(group)
        answers.extend(await _transfer_together(ground, group))
    return answers


async def _transfer_together(ground: Ground, operations: Sequence[Transfer]) -> list[Granted]:
    found = [await _to_hand_over(ground, operation) for operation in operations]
    moving = [
        (row, operation) for row, operation in zip(found, operations, strict=True) if not _is_done(row, operation)
    ]
    # All rows go before any comes: two owners that swap would be in each other's way.
    await ground.tx.remove([row for row, _ in moving])
    new = {(row.space, row.first): await _hand_over(ground, row, operation) for row, operation in moving}
    rows = [new.get((row.space, row.first), row) for row in found]
    return [Granted(row, ground.layout(row.space)) for row in rows]


async def _to_hand_over(ground: Ground, operation: Transfer) -> Row:
    to, slot = Owner(operation.to), check_slot(operation.to_slot)
    owner = Owner(operation.owner)
    row = await ground.find(operation.network, operation.address, owner, operation.generation, (to, slot))
    if row is None or is_over(row, await ground.now_us()):  # what is overdue is nobody's to hand on
        raise _nobody(operation.network, operation.address)
    return row


def _is_done(row: Row, operation: Transfer) -> bool:
    """Tell whether the holding has been handed over before: asked again, the answer is the same (I6)."""
    return (row.owner, row.slot) == (Owner(operation.to), check_slot(operation.to_slot))


async def _hand_over(ground: Ground, row: Row, operation: Transfer) -> Row:
    to, slot, request = Owner(operation.to), check_slot(operation.to_slot), check_request(operation.request)
    details = asked(row.details, ground.asker)
    wish = Wish(row.network, row.first, row.last, to, slot, row.state, None, request, details)
    [verdict] = await ground.tx.insert(row.space, [wish])
    if verdict.outcome is Outcome.ALREADY and verdict.row is not None:
        hint = f"{to} holds {format_address(verdict.row.first)} there"
        raise AlreadyExists("holding", f"{to} in {operation.network}", hint=hint, field="to")
    if verdict.outcome is not Outcome.GRANTED or verdict.row is None:
        raise Restart
    new = verdict.row
    # A wish can only name a span from now; the old deadline goes on.
    if row.until_us is not None:
        new = new._replace(until_us=row.until_us)
        await ground.tx.rewrite([new])
    ground.entries.append(transfer_entry(new, row))
    return new


def _nobody(network: str, address: object, hint: str = "") -> NotFound:
    return nobody_holds(address, network, hint=hint)
