"""The line of those who wait in a space: served in order of arrival, by whoever holds the lane.

Every server serves only its own. What an older claim of another server would get is kept free for it, so a younger
one never passes it; a claim that has not said for a while that it lives is dead, and is taken out of the line by the
next one who looks. Nothing is ever granted to a claim that nobody stands behind.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tenure.kernel.errors import PoolExhausted
from tenure.kernel.holdings.actor import asked_entry, asker_of
from tenure.kernel.holdings.deadlines import DEADLINE
from tenure.kernel.holdings.holding_model import Entry, SpaceId, Waiter
from tenure.kernel.holdings.log_entries import waiting_entry
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration
from tenure.ports import Transaction
from tenure.service.allocator.claim import (
    GIVES_UP,
    Claim,
    Granted,
    Known,
    Waiting,
    claim_document,
    claim_of,
    wanted_by,
)
from tenure.service.allocator.existing_holding import Answer
from tenure.service.allocator.lane import Serving
from tenure.service.allocator.revocable_grants import revocable

ClaimKey = tuple[int, str, str]

GAINS = frozenset({"grant", "transfer", "modify"})
"""Entries after which an owner may hold something in a slot in which it held nothing before."""


class Seat(NamedTuple):
    """A claim that is to be served now; with ``lasts_us`` it waits so long, from each time it is asked for again.

    ``was`` is its place of before, so that one who was taken for dead gets it back. ``caller``:
    the name of one who may be gone before the answer, so that what it is granted can be given back. ``waits_s``: how
    much longer its caller waits for the answer, where the claim leaves the line with its caller.
    """

    claim: Claim
    lasts_us: int = 0
    was: Waiter | None = None
    caller: str | None = None
    waits_s: float | None = None


class Queue:
    """The line as one transaction sees it, without the dead."""

    def __init__(self, tx: Transaction, layout: Layout, alive: Sequence[Waiter]) -> None:
        self._tx = tx
        self._layout = layout
        self.alive = list(alive)
        self._staying: dict[int, list[int]] = {}

    @classmethod
    async def read(cls, tx: Transaction, layout: Layout, serving: Serving) -> "Queue":
        """Read the line and take the dead out of it: those past their time, and those whose network is gone."""
        alive, dead = await part_line(tx, layout.configuration)
        serving.entries.extend(waiting_entry("leave", waiter, DEADLINE) for waiter in dead)
        return cls(tx, layout, alive)

    def ghosts(self) -> list[Claim]:
        """Return the claims of all who wait, as far as others must know them."""
        return [claim_of(waiter, self._layout.name_of(waiter.network)) for waiter in self.alive]

    async def serve(self, serving: Serving, seats: Sequence[Seat]) -> list[Answer | Waiting]:
        """Serve seats together with all who wait; a seat that may wait and gets nothing is put in line."""
        waiting = {(waiter.network, waiter.owner, waiter.slot): waiter for waiter in self.alive}
        line = self._line(seats)
        ghosts = {index for index, (_, number) in enumerate(line) if number is None}
        # Ghosts pick in their turn, too, so that no younger claim gets what an older claim of another server waits for.
        served = await serving.serve([claim for claim, _ in line], ghosts)
        serving.let_go()
        # A grant of this pass is logged by itself; after an old answer the log needs a ``leave``.
        fresh = {entry.generation for entry in serving.entries if entry.verb == "grant"}
        answers: list[Answer | Waiting | None] = [None] * len(seats)
        for (claim, number), answer in zip(line, served, strict=True):
            if number is None:
                continue
            key = key_of(claim, self._layout)
            logged = isinstance(answer, Granted) and answer.row.generation in fresh
            settled = await self._settle(serving, seats[number], waiting.get(key), answer, logged=logged)
            if isinstance(settled, Waiting):
                waiting[key] = settled.waiter
            elif waiting.get(key) not in self.alive:
                waiting.pop(key, None)  # its twin must not take it out of the line again
            answers[number] = settled
        # One call for all claims that live equally long.
        for lasts_us, tickets in self._staying.items():
            await self._tx.linger(tickets, lasts_us)
        return [answer for answer in answers if answer is not None]

    def _line(self, seats: Sequence[Seat]) -> list[tuple[Claim, int | None]]:
        """Return who is to be served, in order: the line, then the others; a claim of no seat here is a ghost.

        A seat that wants something else than its claim in the line does has no place there.
        """
        # The last number entered for a claim wins: a seat that waits wins over a seat that does not, and among equals
        # the first to come wins.
        numbers = sorted(range(len(seats)), key=lambda number: (seats[number].lasts_us > 0, -number))
        places = {key_of(seats[number].claim, self._layout): number for number in numbers}
        line: list[tuple[Claim, int | None]] = []
        for waiter, ghost in zip(self.alive, self.ghosts(), strict=True):
            number = places.get((waiter.network, waiter.owner, waiter.slot))
            if number is not None and claim_document(seats[number].claim) != wanted_by(waiter):
                # A waiting seat that wants something else loses its place (``_stay``). A seat that does not wait leaves
                # the claim in line as it is: a ghost.
                if seats[number].lasts_us:
                    continue
                number = None
            line.append((ghost if number is None else _wanted(seats[number]), number))
        seated = {number for _, number in line}
        return line + [(_wanted(seat), number) for number, seat in enumerate(seats) if number not in seated]

    async def _settle(
        self, serving: Serving, seat: Seat, place: Waiter | None, answer: Answer | None, *, logged: bool
    ) -> Answer | Waiting:
        """Put a seat in line, keep it there, or take it out of it; a grant that is ``logged`` says so by itself."""
        assert answer is not None
        if isinstance(answer, PoolExhausted) and seat.lasts_us:
            return await self._stay(serving, seat, place)
        # Somebody who does not wait may ask for what another waits for: only a grant ends that one's waiting, and not
        # an old answer that his key stands for.
        old = isinstance(answer, Known) and seat.claim.key is not None
        if place is not None and (seat.lasts_us or (isinstance(answer, Granted) and not old)):
            await self._tx.leave(place.space, [place.ticket])
            self.alive.remove(place)
            if not logged:
                serving.entries.append(asked_entry(waiting_entry("leave", place), asker_of(seat.claim.details)))
        return answer

    async def _stay(self, serving: Serving, seat: Seat, place: Waiter | None) -> Waiting:
        document = claim_document(seat.claim)
        if place is not None and wanted_by(place) == document:
            place = await self._later(seat, place)
            self._staying.setdefault(seat.lasts_us, []).append(place.ticket)
            return Waiting(place, self.alive.index(place) + 1)
        key, space = key_of(seat.claim, self._layout), self._layout.configuration.space
        # Ticket 0 asks the store for a new ticket.
        wanted = Waiter(0, space, *key, 0, 0)
        if place is not None:  # it wants something else now: to the end
            await self._tx.leave(place.space, [place.ticket])
            self.alive.remove(place)
        elif seat.was is not None and seat.was.key == wanted.key:  # not where a network of the same name was before
            wanted = seat.was
        told = wanted._replace(document={**document, **await self._deadline(seat)})
        joined = await self._tx.join(told, seat.lasts_us)
        serving.entries.append(asked_entry(waiting_entry("wait", joined), asker_of(seat.claim.details)))
        self.alive.append(joined)
        # By ticket, the first field: a claim that comes back with its old ticket stands where it stood.
        self.alive.sort()
        return Waiting(joined, self.alive.index(joined) + 1)

    async def _deadline(self, seat: Seat) -> dict[str, int | None]:
        """Return when the caller of a seat gives up, by the store's clock; nothing if its claim outlives the call."""
        if seat.waits_s is None:
            return {}
        return {GIVES_UP: None if seat.waits_s == math.inf else await self._tx.now_us() + int(seat.waits_s * 1e6)}

    async def _later(self, seat: Seat, place: Waiter) -> Waiter:
        """Note on a claim in line that a caller who comes to wait with it gives up later than those before."""
        if seat.was is not None or seat.waits_s is None or GIVES_UP not in place.document:
            return place
        new, old = (await self._deadline(seat))[GIVES_UP], place.document[GIVES_UP]
        if old is None or (new is not None and new <= old):
            return place
        # The same ticket, so the same place in line; a store writes a claim only when it joins.
        await self._tx.leave(place.space, [place.ticket])
        joined = await self._tx.join(place._replace(document={**place.document, GIVES_UP: new}), seat.lasts_us)
        self.alive[self.alive.index(place)] = joined
        return joined


def _wanted(seat: Seat) -> Claim:
    return seat.claim if seat.caller is None else revocable(seat.claim, seat.caller)


async def part_line(tx: Transaction, configuration: Configuration) -> tuple[list[Waiter], list[Waiter]]:
    """Read the line and take the dead out of it; return the living and the dead, who are to be logged."""
    space = configuration.space
    found, now_us = await tx.waiters(space), await tx.now_us()
    known = {network.id for network in configuration.networks.values()}
    dead = [waiter for waiter in found if waiter.until_us < now_us or waiter.network not in known]
    if dead:
        await tx.leave(space, [waiter.ticket for waiter in dead])
    gone = {waiter.ticket for waiter in dead}
    alive = [waiter for waiter in found if waiter.ticket not in gone]
    for waiter in alive:
        # The clock was set back since: a dead claim would keep its place until the clock is right again.
        if 0 < waiter.lasts_us < waiter.until_us - now_us:
            await tx.linger([waiter.ticket], waiter.lasts_us)
    return alive, dead


async def leave_served(tx: Transaction, space: SpaceId, entries: Sequence[Entry]) -> list[Entry]:
    """Take claims out of the line whose owners came to hold something by another way than the line; return the log's.

    Such a claim is served: in the line it would keep an address free that it does not need, and pass all others as
    soon as its owner held nothing again. A run, a transfer and a draining holding that is held again are such ways. A
    grant says by itself that the owner no longer waits, and needs no entry. Cost: one reading of the line, and two
    calls if a claim is found there.
    """
    gained = {(entry.network, entry.owner, entry.slot): entry.verb for entry in entries if entry.verb in GAINS}
    waiters = [each for each in await tx.waiters(space) if (each.network, each.owner, each.slot) in gained]
    if not waiters:
        return []
    # Rows count and not entries: the same ``apply`` may have released the address again.
    rows = await tx.rows_for([(each.network, each.owner, each.slot) for each in waiters])
    served = [each for each, row in zip(waiters, rows, strict=True) if row is not None]
    await tx.leave(space, [each.ticket for each in served])
    silent = [each for each in served if gained[each.network, each.owner, each.slot] != "grant"]
    return [waiting_entry("leave", each) for each in silent]


def key_of(claim: Claim, layout: Layout) -> ClaimKey:
    """Return what may wait only once."""
    return (layout.configuration.network(claim.network).id, claim.owner, claim.slot)


async def withdraw(tx: Transaction, layout: Layout, network: str, owner: str, slot: str) -> Waiter | None:
    """Take one claim out of the line; the transaction holds the lane and logs what this returns."""
    wanted = (layout.configuration.network(network).id, owner, slot)
    for waiter in await tx.waiters(layout.configuration.space):
        if (waiter.network, waiter.owner, waiter.slot) == wanted:
            await tx.leave(waiter.space, [waiter.ticket])
            return waiter
    return None
