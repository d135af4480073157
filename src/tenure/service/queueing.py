"""The line of those who wait in a space: served in order of arrival, by whoever holds the lane.

Every server serves only its own. What an older claim of another server would get is kept free for it, so a younger
one never passes it; a claim that has not said for a while that it lives is dead, and is taken out of the line by the
next one who looks. Nothing is ever granted to a claim that nobody stands behind.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.kernel.entries import waiting_entry
from tenure.kernel.errors import PoolExhausted, TenureError
from tenure.kernel.layout import Layout
from tenure.kernel.values import Waiter
from tenure.ports import Transaction
from tenure.service.claims import Claim, Granted, Waiting, claim_document, claim_of
from tenure.service.lane import Answer, Serving

ClaimKey = tuple[int, str, str]


class Seat(NamedTuple):
    """A claim that is to be served now; with ``lasts_us`` it waits so long, from each time it is asked for again.

    ``was`` is its place of before, so that one who was taken for dead gets it back.
    """

    claim: Claim
    lasts_us: int = 0
    was: Waiter | None = None


class Queue:
    """The line as one transaction sees it, without the dead."""

    def __init__(self, tx: Transaction, layout: Layout, alive: Sequence[Waiter]) -> None:
        self._tx = tx
        self._layout = layout
        self.alive = list(alive)

    @classmethod
    async def read(cls, tx: Transaction, layout: Layout, serving: Serving) -> "Queue":
        """Read the line and take the dead out of it: those past their time, and those whose network is gone."""
        space = layout.configuration.space
        found = await tx.waiters(space)
        now_us = await tx.now_us()
        known = {network.id for network in layout.configuration.networks.values()}
        dead = [waiter for waiter in found if waiter.until_us < now_us or waiter.network not in known]
        if dead:
            await tx.leave(space, [waiter.ticket for waiter in dead])
            serving.entries.extend(waiting_entry("leave", waiter) for waiter in dead)
        gone = {waiter.ticket for waiter in dead}
        return cls(tx, layout, [waiter for waiter in found if waiter.ticket not in gone])

    def ghosts(self) -> list[Claim]:
        """Return the claims of all who wait, as far as others must know them."""
        return [claim_of(waiter, self._layout.name_of(waiter.network)) for waiter in self.alive]

    async def serve(self, serving: Serving, seats: Sequence[Seat]) -> list[Answer | Waiting]:
        """Serve seats together with all who wait; a seat that may wait and gets nothing is put in line."""
        places = {key_of(seat.claim, self._layout): number for number, seat in enumerate(seats)}
        waiting = {(waiter.network, waiter.owner, waiter.slot): waiter for waiter in self.alive}
        line: list[tuple[Claim, int | None]] = []
        for waiter, ghost in zip(self.alive, self.ghosts(), strict=True):
            number = places.get((waiter.network, waiter.owner, waiter.slot))
            line.append((ghost if number is None else seats[number].claim, number))
        seated = {number for _, number in line}
        line += [(seat.claim, number) for number, seat in enumerate(seats) if number not in seated]
        ghosts = {index for index, (_, number) in enumerate(line) if number is None}
        served = await serving.serve([claim for claim, _ in line], ghosts)
        answers: list[Answer | Waiting | None] = [None] * len(seats)
        for (claim, number), answer in zip(line, served, strict=True):
            if number is not None:
                key = key_of(claim, self._layout)
                settled = await self._settle(serving, seats[number], waiting.get(key), answer)
                if isinstance(settled, Waiting):
                    waiting[key] = settled.waiter
                answers[number] = settled
        return [answer for answer in answers if answer is not None]

    async def _settle(
        self, serving: Serving, seat: Seat, place: Waiter | None, answer: Answer | None
    ) -> Answer | Waiting:
        """Put a seat in line, keep it there, or take it out of it."""
        assert answer is not None
        if isinstance(answer, PoolExhausted) and seat.lasts_us:
            return await self._stay(serving, seat, place)
        # Somebody who does not wait may ask for what another waits for: only a grant ends that one's waiting.
        if place is not None and (seat.lasts_us or isinstance(answer, Granted)):
            await self._tx.leave(place.space, [place.ticket])
            self.alive.remove(place)
            if isinstance(answer, TenureError):
                serving.entries.append(waiting_entry("leave", place))
        return answer

    async def _stay(self, serving: Serving, seat: Seat, place: Waiter | None) -> Waiting:
        document = claim_document(seat.claim)
        if place is not None and dict(place.document) != document:  # it wants something else now: to the end
            await self._tx.leave(place.space, [place.ticket])
            self.alive.remove(place)
            place = None
        if place is not None:
            await self._tx.linger([place.ticket], seat.lasts_us)
            return Waiting(place, self.alive.index(place) + 1)
        network, owner, slot = key_of(seat.claim, self._layout)
        space = self._layout.configuration.space
        wanted = seat.was or Waiter(0, space, network, owner, slot, 0, 0)
        joined = await self._tx.join(wanted._replace(document=document), seat.lasts_us)
        serving.entries.append(waiting_entry("wait", joined))
        self.alive.append(joined)
        self.alive.sort()
        return Waiting(joined, self.alive.index(joined) + 1)


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
