"""A server's lanes: claims that need the exact state, served in batches, one lane a space at a time.

Three ways, cheapest first. *Quick*: one store call, where nobody else has touched the space since this server last
looked. *Full*: a transaction that holds the lane, reads what happened, and grants everything in one call. *Careful*:
the same step by step, where something was in the way, or somebody waits.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from tenure.kernel.errors import NotFound, StoreUnavailable, TenureError
from tenure.kernel.holdings.holding_model import Row, SpaceId
from tenure.kernel.holdings.log_entries import grant_entry
from tenure.kernel.plan.layout import Layout, LineKey
from tenure.ports import Chance, Guard, KeyTaken, LedgerStore, NotAll, Transaction
from tenure.service.allocator.allocation import UNKNOWN_REPEATS, insist, worse
from tenure.service.allocator.claim import Claim, Granted, Waiting
from tenure.service.allocator.exact_view import ExactViews, renewable, renewed
from tenure.service.allocator.existing_holding import Answer, line_key
from tenure.service.allocator.lane import Restart, Serving, quick_picks
from tenure.service.allocator.overdue_pages import MuchDue, sweep_pages
from tenure.service.allocator.waiting_line import ClaimKey, Queue, Seat, key_of
from tenure.service.engine.lost_try import Tried, granted_since

RESTARTS = 20
"""Times a lane is begun again because something it should have known had changed."""

Attended = Answer | Waiting | None
"""What becomes of a seat; None if the layout is stale."""

Reading = tuple[LineKey, Sequence[tuple[int, int]], int]
"""A line, who is in the way on it, and the number of the log as of which that was so."""


class Lanes:
    """Exact views of spaces, and the lanes that use them."""

    def __init__(
        self,
        store: LedgerStore,
        chance: Chance,
        pause: Callable[[int], Awaitable[None]],
        swept: Callable[[SpaceId, Sequence[tuple[int, int]]], None],
    ) -> None:
        """``swept`` is called with the spans that a lane removed for good, because their time was over."""
        self.exact: dict[SpaceId, ExactViews] = {}
        self._swept = swept
        self._store = store
        self._chance = chance
        self._pause = pause
        self._locks: dict[SpaceId, asyncio.Lock] = {}

    async def serve(self, space: SpaceId, asked: Sequence[tuple[Layout, Seat]]) -> Sequence[Attended]:
        """Run one lane for claims of one space; those of a stale layout are sent back."""
        # Older layouts of the batch are stale for certain.
        newest = max((layout for layout, _ in asked), key=_version)
        seats = [seat for layout, seat in asked if _version(layout) == _version(newest)]
        served = iter(await self.attend(newest, seats))
        return [next(served) if _version(layout) == _version(newest) else None for layout, _ in asked]

    async def attend(self, layout: Layout, seats: Sequence[Seat]) -> Sequence[Attended]:
        """Run one lane for seats under one layout."""
        async with self.alone_in([layout.configuration.space]):
            lost: StoreUnavailable | None = None
            # Read before the try: whatever the quick lane does is numbered above it.
            newest = self._store.newest
            try:
                if self._is_quick(layout, seats) and (quick := await self._quick_lane(layout, seats)):
                    return quick
            except StoreUnavailable as error:
                if error.outcome != "unknown":
                    raise
                lost = error
            if lost is None:
                return await self._full_lane(layout, seats)
            return await self._after_loss(layout, seats, lost, newest)

    async def _after_loss(
        self, layout: Layout, seats: Sequence[Seat], lost: StoreUnavailable, newest: int
    ) -> Sequence[Attended]:
        """Serve seats whose quick grant may have taken effect: first those that the log has an answer for."""
        space, network = layout.configuration.space, layout.configuration.network
        # Under a key the kept answer decides, which the full lane looks up.
        claims = [(network(seat.claim.network).id, seat.claim) for seat in seats if seat.claim.key is None]

        async def look(tx: Transaction) -> dict[ClaimKey, Row]:
            await tx.guard([space], Guard.LANE)
            return await granted_since(tx, newest, claims)

        try:
            found = await insist(lambda: self._store.transact(look), self._pause)
        except StoreUnavailable as error:
            # Without a look into the log the outcome of the first try stays unknown.
            raise lost from error
        rows = [None if seat.claim.key is not None else found.get(key_of(seat.claim, layout)) for seat in seats]
        left = [seat for seat, row in zip(seats, rows, strict=True) if row is None]
        served = iter(await self._full_lane(layout, left, lost) if left else [])
        return [next(served) if row is None else Granted(row, layout) for row in rows]

    def _is_quick(self, layout: Layout, seats: Sequence[Seat]) -> bool:
        """Return whether seats may be served in one statement: nobody waits, so no grant need be marked."""
        waits = layout.configuration.queued or any(seat.caller is not None for seat in seats)
        return self._store.abilities.quick_lane and not waits

    async def _quick_lane(self, layout: Layout, seats: Sequence[Seat]) -> Sequence[Answer] | None:
        """Serve claims in one store call, if nobody else is about and every pick can be had; else None."""
        exact = self.exact.get(layout.configuration.space)
        # Where others are about, the condition of the single call would most likely fail.
        if exact is None or not exact.calm or exact.layout.configuration.version != layout.configuration.version:
            return None
        wishes = quick_picks(exact, [seat.claim for seat in seats], self._chance)
        granted = False
        try:
            if wishes:
                space, version = layout.configuration.space, layout.configuration.version
                verdicts = await self._store.grant_unless_freed(space, version, exact.frees, wishes)
                if verdicts is not None:
                    granted = True
                    return [Granted(verdict.row, layout) for verdict in verdicts if verdict.row is not None]
        finally:
            # Also where the answer was lost: the full lane learns from the log what became of the picks.
            exact.keep() if granted else exact.lift()
            # After a miss only a full lane can say that the space is calm again.
            exact.calm = granted
        return None

    async def _full_lane(
        self, layout: Layout, seats: Sequence[Seat], lost: StoreUnavailable | None = None
    ) -> Sequence[Attended]:
        careful = not self._is_quick(layout, seats)
        tried: Tried[Sequence[Attended]] = Tried()
        for attempt in range(RESTARTS):
            try:
                # Before the transaction: a long reading must not keep others out of the lane.
                readings = await self.read_lines(layout, [seat.claim for seat in seats])
                work = partial(self._lane_work, layout, seats, readings, careful, tried)
                answers = await self._store.transact(work)
                self.settle([layout.configuration.space], kept=True)
                return answers
            # The next attempt lifts what this attempt laid over the views.
            except (Restart, KeyTaken):
                continue
            except MuchDue as much:
                self.settle([much.space], kept=False)
                await sweep_pages(self._store, much.space, self._pause)
            except NotAll:
                careful = True
            except TenureError as error:
                self.settle([layout.configuration.space], kept=False)
                if not isinstance(error, StoreUnavailable):
                    raise
                # Repeating is safe: the next try finds in the log what this one did.
                lost = worse(lost, error)
                if lost.outcome != "unknown" or attempt >= UNKNOWN_REPEATS:
                    raise lost from error
                await self._pause(attempt)
        return [None] * len(seats)

    def settle(self, spaces: Sequence[SpaceId], *, kept: bool) -> None:
        """Keep or take off what a transaction laid over exact views, now that its end is known."""
        for space in spaces:
            if (exact := self.exact.get(space)) is not None:
                if kept and exact.swept:
                    self._swept(space, exact.swept)
                exact.keep() if kept else exact.lift()

    @asynccontextmanager
    async def alone_in(self, spaces: Sequence[SpaceId]) -> AsyncIterator[None]:
        """Keep others of this process out of the spaces' lanes: exact views have one user at a time."""
        async with AsyncExitStack() as stack:
            # In one order everywhere: two calls that need the same spaces do not wait for each other in a ring.
            for space in sorted(spaces):
                await stack.enter_async_context(self._locks.setdefault(space, asyncio.Lock()))
            yield

    async def _lane_work(
        self,
        layout: Layout,
        seats: Sequence[Seat],
        readings: Sequence[Reading],
        careful: bool,
        tried: Tried[Sequence[Attended]],
        tx: Transaction,
    ) -> Sequence[Attended]:
        """Hold the lane, bring the exact views up to date, serve. ``careful``: one step after the other."""
        space, version = layout.configuration.space, layout.configuration.version
        exact = self.open_exact(layout, readings)
        exact.lift()  # what an attempt that came to nothing laid
        found, effects = await tx.open_lane(space, exact.oldest())
        # Before the version is looked at: the try whose answer was lost may itself have changed it.
        if (answered := await tried.committed_answer(tx)) is not None:
            return answered
        if found != version:
            return [None] * len(seats)
        exact.catch_up(effects)
        claims = [seat.claim for seat in seats]
        # The full way: all picks in one call.
        if not careful and (wishes := quick_picks(exact, claims, self._chance)):
            rows, number = await tx.grant_all(space, version, exact.frees, wishes)
            granted = [Granted(row, layout) for row in rows]
            tried.note([grant_entry(row) for row in rows], number, granted)
            return granted
        # The careful way: one step after the other.
        serving = Serving(tx, exact, self._chance)
        answers: Sequence[Attended]
        if layout.configuration.queued or any(seat.lasts_us for seat in seats):
            answers = await (await Queue.read(tx, layout, serving)).serve(serving, seats)
        else:
            answers = await serving.serve(claims)
        if serving.entries:
            tried.note(serving.entries, await tx.log(serving.entries), answers)
        return answers

    async def read_lines(self, layout: Layout, claims: Sequence[Claim]) -> list[Reading]:
        """Read lines that no exact view knows yet, before the lane is held."""
        space = layout.configuration.space
        exact = self.exact.get(space)
        known = exact.lines if exact is not None and renewable(exact, layout) else {}
        readings: list[Reading] = []
        for key in {line_key(claim) for claim in claims if claim.address is None} - set(known):
            try:
                line = layout.line(*key)
            except NotFound:
                continue  # the claim's own answer will say so
            if line.size:
                seen, spans = await self._store.spans(space, line.lowest, line.highest)
                readings.append((key, spans, seen))
        return readings

    def open_exact(self, layout: Layout, readings: Sequence[Reading]) -> ExactViews:
        """Return the exact views of a space; called only by code that holds its lane."""
        space = layout.configuration.space
        exact = self.exact.get(space)
        if exact is None or exact.layout.configuration.version != layout.configuration.version:
            exact = self.exact[space] = renewed(exact, layout)
        for key, spans, seen in readings:
            # A line that is there follows the log and is newer than the reading.
            if key not in exact.lines:
                exact.adopt(key, spans, seen)
        return exact


def _version(layout: Layout) -> int:
    return layout.configuration.version
