"""The desk of a book: the batched asyncio driver of the allocator over a store without transactions and log.

A book keeps holdings, not the plan: whoever opens the desk gives it the configuration, and replaces it with
``configure`` when it changes (after the store was told the new version, where it asks for one).

There is no lane on a book. What the allocator would settle there is settled by reading: the claim's line is read
anew, the policy picks from that reading, and the store is asked for that address; whoever comes too late reads
again. So *lowest* is the lowest of a fresh reading and not of the log, and costs a reading of the line, which all
who wait share. A pool is exhausted only if such a reading, begun after the claim came in, had nothing free (I8).
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tenure.kernel.errors import Conflict, CursorExpired, Invalid, NotFound, StoreUnavailable, TenureError
from tenure.kernel.holdings.holding_model import OWNED, Outcome, Row, SpaceId, Ticket, Verdict, Wish
from tenure.kernel.picking.policies import first_free
from tenure.kernel.plan.layout import Layout, LineKey
from tenure.kernel.plan.plan_model import Configuration, Policy
from tenure.kernel.plan.pool_line import RankPart
from tenure.ports import Book, Chance, Failed
from tenure.service.allocator.allocation import PATIENCE, allocate, insist
from tenure.service.allocator.claim import Claim, Granted, case_of_line, exhausted
from tenure.service.allocator.doubtful_view import DoubtfulLine, DoubtfulViews
from tenure.service.allocator.existing_holding import Answer, already, line_key
from tenure.service.engine.batcher import Batcher

T = TypeVar("T")

ROUNDS = 20
"""Readings in a row, each overtaken by others, after which the claim pauses before it goes on."""

NOBODYS = -1
"""A generation that no holding has."""

EVERYBODY = 1 << 30
"""A reading is the same for all who wait, however many."""


@dataclass(frozen=True, slots=True)
class LineReading:
    """A line as the store had it, and the first rank that had room on it; None if the line was full."""

    view: DoubtfulLine
    rank: RankPart | None

    def pick(self, policy: Policy, claim: Claim, attempt: int, chance: Chance) -> int | None:
        """Pick a number of that rank; None if the line was full, or what was free is taken by now."""
        if self.rank is None or self.rank.start == 0:
            return self.view.pick(policy, claim.owner, claim.slot, attempt, chance)
        return self.view.pick_from(self.rank, policy, claim.owner, claim.slot, attempt, chance)


class BookEngine:
    """The desk at which a process's callers queue for a book."""

    def __init__(
        self, store: Book, configurations: Sequence[Configuration], *, name: str, chance: Chance, at_once: int = 4
    ) -> None:
        self.store = store
        self.name = name
        self.chance = chance
        self._layouts: dict[SpaceId, Layout] = {}
        self._doubtful: dict[SpaceId, DoubtfulViews] = {}
        self._asked: Counter[tuple[SpaceId, int, int]] = Counter()
        largest = store.abilities.largest_batch
        self._grants: Batcher[tuple[SpaceId, int], Wish, Verdict] = Batcher(
            self._grant, largest=largest, at_once=at_once, at_once_per_key=at_once, identities=_identities
        )
        self._releases: Batcher[SpaceId, Ticket, Row | None] = Batcher(
            store.release, largest=largest, identities=lambda ticket: (ticket.first,)
        )
        self._readings: Batcher[tuple[SpaceId, int, LineKey], Layout, LineReading] = Batcher(
            self._read, largest=EVERYBODY, at_once=at_once, worth_a_call=EVERYBODY
        )
        for configuration in configurations:
            self.configure(configuration)

    def configure(self, configuration: Configuration) -> None:
        """Take a space's configuration, or a newer version of it."""
        if configuration.mixed_units and not self.store.abilities.mixed_units:
            raise Invalid(
                f"unit: subnets of space {configuration.name!r} that lie over each other hand out units of different "
                "size, which this store cannot tell apart",
                field="unit",
            )
        if any(pool.cooling_s for network in configuration.networks.values() for _, pool in network.pools()):
            raise Invalid("cooling_s: a book has no clock to let addresses cool by; use a ledger", field="cooling_s")
        known = self._layouts.get(configuration.space)
        if known is not None and known.configuration.version >= configuration.version:
            raise Conflict(f"space {configuration.name!r} is known at version {known.configuration.version} already")
        for name in configuration.networks:
            other = self.known_layout(name)
            # A claim names only its network, so a network's name must lead to one space.
            if other is not None and other.configuration.space != configuration.space:
                raise Conflict(f"network {name!r} is in space {other.configuration.name!r} already", field="network")
        self._layouts[configuration.space] = Layout(configuration)

    async def allocate(self, claim: Claim) -> Granted:
        """Serve one claim."""
        return await allocate(claim, self)

    async def release(self, space: SpaceId, ticket: Ticket) -> Row | None:
        """End one holding; a lost answer is asked for again, which changes nothing more.

        Where the ticket names no generation, what its owner holds now is looked up and meant from then on.
        """
        for attempt in range(PATIENCE):
            found = await self.store.by_owner([ticket.owner])
            here = (row for row in found if (row.space, row.first) == (space, ticket.first))
            seen = next((row for row in here if ticket.names(row)), None)
            # Without a generation a try that is repeated, or comes late, could end one holding after the other.
            generation = ticket.generation if seen is None else seen.generation
            meant = ticket._replace(generation=NOBODYS if generation is None else generation)
            row = await self._release(space, meant, seen)
            if row is None or meant.names(row) or not ticket.names(row):
                return row
            # Granted since the look, and left alone; but to the caller it would look like what he asked to end.
            await self.pause(attempt)
        raise Conflict(f"what {ticket.owner} holds there kept changing while it was released; try again")

    async def _release(self, space: SpaceId, ticket: Ticket, seen: Row | None) -> Row | None:
        """End the holding that was seen; return it, or what else is found in its place."""
        # After the look, so that it is fresh, and before the first try, whose effect is numbered above it.
        newest = self.store.newest
        lost: list[StoreUnavailable] = []
        row = await insist(lambda: self._releases.submit(space, ticket), self.pause, losses=lost)
        if row is not None and ticket.names(row):
            if (views := self._doubtful.get(space)) is not None:
                views.give_back(row.first, row.last)
            return row
        if not lost or seen is None:
            return row
        # It has gone since the look: by a try whose answer was lost, or by another's hand before any try arrived.
        return seen if await self._has_ended(space, ticket, newest, lost[-1]) else None

    async def _has_ended(self, space: SpaceId, ticket: Ticket, newest: int, lost: StoreUnavailable) -> bool:
        """Tell whether it was this request that ended a holding; only the log behind a number knows.

        Requests are told apart by the names that callers give them. Where the log cannot be read, the outcome is
        still that of the try whose answer was lost. O(changes behind the number).
        """
        ended = (ticket.first, ticket.generation)
        try:
            while page := await self.store.watch(newest, space=space):
                for change in page:
                    if change.verb == "release" and (change.first, change.generation) == ended:
                        return change.request == ticket.request
                newest = page[-1].seq
        except (StoreUnavailable, CursorExpired) as error:
            raise lost from error
        return False

    def known_layout(self, network: str) -> Layout | None:
        """Return the layout of the network's space, if it was given."""
        return next((known for known in self._layouts.values() if network in known.configuration.networks), None)

    async def layout(self, network: str, *, newer_than: int | None = None) -> Layout:
        """Return the layout of the network's space; there is none newer than what was given."""
        found = self.known_layout(network)
        if found is None:
            raise NotFound("network", network)
        return found

    def doubtful(self, layout: Layout) -> DoubtfulViews:
        """Return the desk's doubtful views of a space."""
        space = layout.configuration.space
        views = self._doubtful.get(space)
        if views is None or views.layout is not layout:
            views = self._doubtful[space] = DoubtfulViews(layout, self.name)
        return views

    async def load(self, layout: Layout, claim: Claim) -> DoubtfulLine:
        """Read who holds what on the claim's line, now; callers who come together share one reading."""
        return (await self._reading(layout, claim)).view

    async def _reading(self, layout: Layout, claim: Claim) -> LineReading:
        """Wait for a reading that begins after this call."""
        configuration = layout.configuration
        return await self._readings.submit((configuration.space, configuration.version, line_key(claim)), layout)

    async def _read(self, key: tuple[SpaceId, int, LineKey], layouts: Sequence[Layout]) -> Sequence[LineReading]:
        """Read a line once for all who wait. O(holdings on the line)."""
        space, _, name = key
        layout = layouts[0]  # they are all the same: a version is configured once
        line = layout.line(*name)
        spans = await self._spans(space, line.lowest, line.highest) if line.size else []
        view = self.doubtful(layout).open(name, line.taken(spans), loaded=True)
        # Before the marks below: a pool is full only if the store's own holdings fill it.
        lowest = first_free(view.free)
        rank = None if lowest is None else line.rank_of(lowest)
        for asked_in, first, last in self._asked:
            if asked_in == space:  # asked for by this desk and not heard about: a poor pick, but not a reason to say no
                view.take(first, last)
        return [LineReading(view, rank)] * len(layouts)

    async def _spans(self, space: SpaceId, first: int, last: int) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        async for page in self.store.held(space, after=first - 1):
            spans.extend((row.first, row.last) for row in page if row.first <= last)
            if page[-1].first > last:
                break
        return spans

    async def catch_up(self, layout: Layout) -> None:
        """Leave the doubtful views as they are: a book's log is for watchers, and reading again is cheaper."""

    async def mine(self, layout: Layout, claim: Claim) -> Answer | None:
        """Answer the claim by what its owner holds in this slot, if anything."""
        configuration = layout.configuration
        slot = (configuration.space, configuration.network(claim.network).id, claim.slot)
        rows = await self.store.by_owner([claim.owner])
        held = (row for row in rows if (row.space, row.network, row.slot) == slot and row.state in OWNED)
        row = next(held, None)
        return None if row is None else already(claim, row, layout)

    async def former(self, layout: Layout, claim: Claim) -> int | None:
        """Return nothing: a book does not note where owners were."""
        return None

    async def grant(self, layout: Layout, wish: Wish) -> Verdict:
        """Ask the store for one address, together with all that wait."""
        configuration = layout.configuration
        asked = (configuration.space, wish.first, wish.last)
        # Counted: two callers may ask for one address at the same time.
        self._asked[asked] += 1
        try:
            verdict = await self._grants.submit((configuration.space, configuration.version), wish)
        finally:
            self._asked[asked] -= 1
            if not self._asked[asked]:
                del self._asked[asked]
        return verdict

    @property
    def newest(self) -> int:
        """Nothing: a book has no log of its own."""
        return 0

    async def first_try(self, layout: Layout, claim: Claim, newest: int) -> Row | None:
        """Return nothing: a book has no log of its own to look into; asking again answers what is held."""
        return None

    async def _grant(self, key: tuple[SpaceId, int], wishes: Sequence[Wish]) -> Sequence[Verdict | Failed]:
        try:
            return await self.store.grant(*key, wishes)
        except TenureError as error:
            if len(wishes) == 1:
                return [Failed(error)]
            if not isinstance(error, Invalid):
                raise
        # One wish was more than the store can take; it must not fail the others.
        return [answer for wish in wishes for answer in await self._grant(key, [wish])]

    async def serve_in_lane(self, layout: Layout, claim: Claim) -> Granted | None:
        """Serve the claim from fresh readings; None if nothing is decided yet."""
        for attempt in range(ROUNDS):
            reading = await self._reading(layout, claim)
            if reading.rank is None:
                return await self._held_already(layout, claim)
            policy = claim.policy or reading.view.line.policy
            number = reading.pick(policy, claim, attempt, self.chance)
            if number is None:
                continue  # others of this desk took the last ones, and may yet give some back
            answer = await self._settle(layout, claim.at(layout, *reading.view.line.unit(number)))
            if answer.outcome is Outcome.AGAIN or answer.row is None:
                return None
            if answer.outcome is Outcome.GRANTED:
                return Granted(answer.row, layout)
            if answer.outcome is Outcome.ALREADY:
                return _raised(already(claim, answer.row, layout))
        return None

    async def _settle(self, layout: Layout, wish: Wish) -> Verdict:
        views = self.doubtful(layout)
        views.take(wish.first, wish.last)
        verdict = await insist(lambda: self.grant(layout, wish), self.pause)
        if verdict.outcome in (Outcome.ALREADY, Outcome.AGAIN):
            views.give_back(wish.first, wish.last)
        return verdict

    async def _held_already(self, layout: Layout, claim: Claim) -> Granted:
        """Answer a claim that met a full pool: with what it holds, or with the news."""
        mine = await self.mine(layout, claim)
        return _raised(exhausted(claim, case_of_line(layout.line(*line_key(claim)))) if mine is None else mine)

    async def pause(self, attempt: int) -> None:
        """Let others go on for a moment."""
        await asyncio.sleep(min(0.001 * (attempt + 1), 0.05))

    async def close(self) -> None:
        """Finish what was asked, then let go of the store."""
        for drain in (self._grants.drain, self._releases.drain, self._readings.drain):
            await drain()
        await self.store.close()


def _identities(wish: Wish) -> tuple[object, ...]:
    return (wish.first, wish.claim)


def _raised(answer: Granted | TenureError) -> Granted:
    if isinstance(answer, TenureError):
        raise answer
    return answer
