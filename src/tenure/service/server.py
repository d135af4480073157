"""One server: the batched asyncio driver of the allocator over one store.

It caches layouts and views (all of them doubtful or guarded by a version), and turns what many callers ask into few
store calls. A server that is killed leaves nothing behind but what was granted.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from tenure.kernel.edits import AddNetwork
from tenure.kernel.errors import Conflict, NotFound, StoreUnavailable, TenureError
from tenure.kernel.layout import Layout
from tenure.kernel.names import check_name
from tenure.kernel.values import Row, SpaceId, Ticket, Verdict, Wish
from tenure.ports import Chance, LedgerStore, NotAll, Transaction
from tenure.service.allocating import UNKNOWN_REPEATS
from tenure.service.applying import Applying, Result
from tenure.service.batcher import Batcher
from tenure.service.claims import Claim, Granted
from tenure.service.lane import Answer, Restart, line_key, quick_picks, serve
from tenure.service.operations import Allocate, Operation, Release, ReleaseOwner
from tenure.service.views import DoubtfulLine, DoubtfulViews, ExactViews, LineKey

T = TypeVar("T")

RESTARTS = 20
"""Times a lane is begun again because something it should have known had changed."""

Reading = tuple[LineKey, Sequence[tuple[int, int]], int]


class Server:
    """The desk at which a process's callers queue."""

    def __init__(self, store: LedgerStore, *, name: str, chance: Chance, at_once: int = 2) -> None:
        self.store = store
        self.name = name
        self.chance = chance
        self._closed = False
        self._layouts: dict[SpaceId, Layout] = {}
        self._spaces: dict[str, SpaceId] = {}
        self._doubtful: dict[SpaceId, DoubtfulViews] = {}
        self.exact: dict[SpaceId, ExactViews] = {}
        self.exact_inside: dict[SpaceId, ExactViews] = {}
        self._lane_locks: dict[SpaceId, asyncio.Lock] = {}
        self._readings: dict[Hashable, asyncio.Task[Any]] = {}
        largest = store.abilities.largest_batch
        self._grants: Batcher[tuple[SpaceId, int], Wish, Verdict] = Batcher(
            self._grant, largest=largest, at_once=at_once, at_once_per_key=at_once, identities=_wish_identities
        )
        self._releases: Batcher[SpaceId, Ticket, Row | None] = Batcher(
            self.store.release, largest=largest, identities=lambda ticket: (ticket.first,)
        )
        self._lanes: Batcher[SpaceId, tuple[Layout, Claim], Answer | None] = Batcher(
            self._serve_lane, largest=largest, at_once=4
        )

    async def release(self, space: SpaceId, ticket: Ticket) -> Row | None:
        """End one holding; a lost answer is asked for again, which changes nothing more."""
        for attempt in range(UNKNOWN_REPEATS):
            try:
                row = await self._releases.submit(space, ticket)
                break
            except StoreUnavailable as error:
                if error.outcome != "unknown":
                    raise
                await self.pause(attempt)
        else:
            row = await self._releases.submit(space, ticket)
        if row is not None and ticket.names(row) and (views := self._doubtful.get(space)) is not None:
            views.give_back(row.first, row.last)
        return row

    def known_layout(self, network: str) -> Layout | None:
        """Return the layout of the network's space as it was last read, if it was."""
        space = self._spaces.get(network)
        return None if space is None else self._layouts.get(space)

    async def layout(self, network: str, *, newer_than: int | None = None) -> Layout:
        """Return the layout of the network's space; a version that proved stale is read anew."""
        known = self.known_layout(network)
        if known is not None and (newer_than is None or known.configuration.version > newer_than):
            return known
        return await self.reread(network)

    async def reread(self, network: str) -> Layout:
        """Read the network's space from the store."""
        space = (await self.store.locate([network])).get(network)
        configuration = None if space is None else await self.store.configuration(space)
        if configuration is None or network not in configuration.networks:
            self._spaces.pop(network, None)
            raise NotFound("network", network)
        known = self._layouts.get(configuration.space)
        if known is not None and known.configuration.version == configuration.version:
            return known
        return self._keep(configuration.space, Layout(configuration))

    async def layout_around(self, network: str, position: int) -> Layout:
        """Return a layout in which the network has a subnet around a position; read anew before saying no."""
        layout = await self.layout(network)
        try:
            layout.subnet_at(network, position)
        except TenureError:
            layout = await self.reread(network)
            layout.subnet_at(network, position)
        return layout

    async def layout_of_space(self, space: SpaceId) -> Layout | None:
        """Read a space's layout from the store; None if the space is gone."""
        configuration = await self.store.configuration(space)
        return None if configuration is None else self._keep(space, Layout(configuration))

    def _keep(self, space: SpaceId, layout: Layout) -> Layout:
        """Keep the newer of two layouts; views of an older version go."""
        known = self._layouts.get(space)
        if known is not None and known.configuration.version >= layout.configuration.version:
            layout = known
        else:
            self._layouts[space] = layout
            self._doubtful.pop(space, None)
        self._spaces.update((name, space) for name in layout.configuration.networks)
        return layout

    def forget(self, space: SpaceId) -> None:
        """Drop what was cached of a space that was edited."""
        self._layouts.pop(space, None)
        self._doubtful.pop(space, None)
        self._spaces = {name: other for name, other in self._spaces.items() if other != space}

    def doubtful(self, layout: Layout) -> DoubtfulViews:
        """Return the server's doubtful views of a space."""
        space = layout.configuration.space
        views = self._doubtful.get(space)
        if views is None or views.layout is not layout:
            views = self._doubtful[space] = DoubtfulViews(layout, self.name)
        return views

    async def load(self, layout: Layout, claim: Claim) -> DoubtfulLine:
        """Read who holds what on the claim's line, now; callers who come together share one reading."""
        key = line_key(claim)
        reading = ("load", layout.configuration.space, layout.configuration.version, key)
        return await self._shared(reading, partial(self._load, layout, key))

    async def _load(self, layout: Layout, key: LineKey) -> DoubtfulLine:
        line = layout.line(*key)
        if not line.size:
            return self.doubtful(layout).open(key, loaded=True)
        seen, spans = await self.store.spans(layout.configuration.space, line.lowest, line.highest)
        return self.doubtful(layout).open(key, line.taken(spans), seen=seen, loaded=True)

    async def catch_up(self, layout: Layout) -> None:
        """Correct the doubtful views from the log; callers who come together share one reading."""
        reading = ("catch up", layout.configuration.space, layout.configuration.version)
        await self._shared(reading, partial(self._catch_up, layout))

    async def _catch_up(self, layout: Layout) -> None:
        views = self.doubtful(layout)
        loaded = [view for view in views.lines.values() if view.loaded]
        if not loaded:
            return
        effects = await self.store.effects(layout.configuration.space, min(view.seen for view in loaded))
        if not effects.complete:
            views.lines.clear()
            return
        for view in loaded:
            for number, takes, first, last in effects.steps:
                if number > view.seen:
                    (view.take if takes else view.give_back)(first, last)
            view.seen = max(view.seen, effects.upto)

    async def _shared(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run work once for everybody who asks for the same thing at the same time."""
        task: asyncio.Task[T] | None = self._readings.get(key)
        if task is None:
            task = self._readings[key] = asyncio.get_running_loop().create_task(work())
            task.add_done_callback(lambda _: self._readings.pop(key, None))
        return await asyncio.shield(task)

    def grant(self, layout: Layout, wish: Wish) -> "asyncio.Future[Verdict]":
        """Ask the store for one address, together with all that wait."""
        return self._grants.submit((layout.configuration.space, layout.configuration.version), wish)

    async def _grant(self, key: tuple[SpaceId, int], wishes: Sequence[Wish]) -> Sequence[Verdict]:
        return await self.store.grant(*key, wishes)

    async def mine(self, layout: Layout, claim: Claim) -> Row | None:
        """Return what the claim's owner holds in this slot, if anything."""
        key = (layout.configuration.network(claim.network).id, claim.owner, claim.slot)

        async def look(tx: Transaction) -> Row | None:
            return (await tx.rows_for([key]))[0]

        return await self.store.transact(look)

    async def former(self, layout: Layout, claim: Claim) -> int | None:
        """Return the position the claim's owner had before."""
        network = layout.configuration.network(claim.network).id

        async def look(tx: Transaction) -> int | None:
            return await tx.former(network, claim.owner, claim.slot)

        return await self.store.transact(look)

    async def pause(self, attempt: int) -> None:
        """Let others go on for a moment."""
        await asyncio.sleep(min(0.001 * (attempt + 1), 0.05))

    async def serve_in_lane(self, layout: Layout, claim: Claim) -> Granted | None:
        """Serve the claim from exact views, together with all that wait; None if the layout is stale."""
        answer = await self._lanes.submit(layout.configuration.space, (layout, claim))
        if isinstance(answer, TenureError):
            raise answer
        return answer

    async def _serve_lane(self, space: SpaceId, asked: Sequence[tuple[Layout, Claim]]) -> Sequence[Answer | None]:
        """Run one lane for claims of one space; those of a stale layout are sent back."""
        newest = max((layout for layout, _ in asked), key=_version)
        claims = [claim for layout, claim in asked if _version(layout) == _version(newest)]
        served = iter(await self._lane(newest, claims))
        return [next(served) if _version(layout) == _version(newest) else None for layout, _ in asked]

    async def _lane(self, layout: Layout, claims: Sequence[Claim]) -> Sequence[Answer | None]:
        async with self._alone_in([layout.configuration.space]):
            if self.store.abilities.quick_lane and (quick := await self._quick_lane(layout, claims)):
                return quick
            return await self._full_lane(layout, claims)

    async def _quick_lane(self, layout: Layout, claims: Sequence[Claim]) -> Sequence[Answer] | None:
        """Serve claims in one store call, if nobody else is about and every pick can be had; else None."""
        exact = self.exact.get(layout.configuration.space)
        if exact is None or not exact.calm or exact.layout.configuration.version != layout.configuration.version:
            return None
        wishes = quick_picks(exact, claims, self.chance)
        granted = False
        try:
            if wishes:
                space, version = layout.configuration.space, layout.configuration.version
                verdicts = await self.store.grant_unless_freed(space, version, exact.frees, wishes)
                if verdicts is not None:
                    granted = True
                    return [Granted(verdict.row, layout) for verdict in verdicts if verdict.row is not None]
        except StoreUnavailable as error:
            if error.outcome != "unknown":
                raise
        finally:
            exact.keep() if granted else exact.lift()
            exact.calm = granted
        return None

    async def _full_lane(self, layout: Layout, claims: Sequence[Claim]) -> Sequence[Answer | None]:
        careful = not self.store.abilities.quick_lane
        for attempt in range(RESTARTS):
            try:
                readings = await self.read_lines(layout, claims)
                answers = await self.store.transact(partial(self._lane_work, layout, claims, readings, careful))
                self._settle_exact([layout.configuration.space], kept=True)
                return answers
            except Restart:
                continue
            except NotAll:
                careful = True
            except TenureError as error:
                self._settle_exact([layout.configuration.space], kept=False)
                if not isinstance(error, StoreUnavailable):
                    raise
                # Repeating is safe: claims that were granted are answered with what they hold.
                if error.outcome != "unknown" or attempt >= UNKNOWN_REPEATS:
                    raise
                await self.pause(attempt)
        return [None] * len(claims)

    def _settle_exact(self, spaces: Sequence[SpaceId], *, kept: bool) -> None:
        """Keep or take off what a transaction laid over exact views, now that its end is known."""
        for space in spaces:
            if (exact := self.exact.get(space)) is not None:
                exact.keep() if kept else exact.lift()

    @asynccontextmanager
    async def _alone_in(self, spaces: Sequence[SpaceId]) -> AsyncIterator[None]:
        """Keep others of this process out of the spaces' lanes: exact views have one user at a time."""
        async with AsyncExitStack() as stack:
            for space in sorted(spaces):
                await stack.enter_async_context(self._lane_locks.setdefault(space, asyncio.Lock()))
            yield

    async def _lane_work(
        self, layout: Layout, claims: Sequence[Claim], readings: Sequence[Reading], careful: bool, tx: Transaction
    ) -> Sequence[Answer | None]:
        """Hold the lane, bring the exact views up to date, serve. ``careful``: one step after the other."""
        space, version = layout.configuration.space, layout.configuration.version
        exact = self.open_exact(layout, readings)
        exact.lift()  # what an attempt that came to nothing laid
        found, effects = await tx.open_lane(space, exact.oldest())
        if found != version:
            return [None] * len(claims)
        exact.catch_up(effects)
        if not careful and (wishes := quick_picks(exact, claims, self.chance)):
            rows = await tx.grant_all(space, version, exact.frees, wishes)
            return [Granted(row, layout) for row in rows]
        answers, entries = await serve(tx, exact, claims, self.chance, together=False)
        if entries:
            await tx.log(entries)
        return answers

    async def read_lines(self, layout: Layout, claims: Sequence[Claim]) -> list[Reading]:
        """Read lines that no exact view knows yet, before the lane is held."""
        space = layout.configuration.space
        exact = self.exact.get(space)
        version = layout.configuration.version
        known = exact.lines if exact is not None and exact.layout.configuration.version == version else {}
        readings: list[Reading] = []
        for key in {line_key(claim) for claim in claims if claim.address is None} - set(known):
            try:
                line = layout.line(*key)
            except NotFound:
                continue  # the claim's own answer will say so
            if line.size:
                seen, spans = await self.store.spans(space, line.lowest, line.highest)
                readings.append((key, spans, seen))
        return readings

    def open_exact(self, layout: Layout, readings: Sequence[Reading]) -> ExactViews:
        """Return the exact views of a space; called only by code that holds its lane."""
        space = layout.configuration.space
        exact = self.exact.get(space)
        if exact is None or exact.layout.configuration.version != layout.configuration.version:
            exact = self.exact[space] = ExactViews(layout)
        for key, spans, seen in readings:
            if key not in exact.lines:
                exact.adopt(key, spans, seen)
        return exact

    async def apply(self, operations: Sequence[Operation]) -> list[Result]:
        """Make several operations one transaction."""
        repeatable = all(isinstance(operation, Allocate | Release | ReleaseOwner) for operation in operations)
        for attempt in range(RESTARTS):
            spaces = await self._spaces_for(operations)
            try:
                results, edited = await self._transact_apply(operations, spaces)
            except Restart:
                await self.pause(attempt)
                continue
            except StoreUnavailable as error:
                for space in spaces:
                    self.forget(space)
                if not repeatable or error.outcome != "unknown" or attempt >= UNKNOWN_REPEATS:
                    raise
                await self.pause(attempt)
                continue
            for space in edited:
                self.forget(space)
            return results
        raise Conflict("the ledger kept changing while the operations were applied; try again")

    async def _transact_apply(
        self, operations: Sequence[Operation], spaces: Sequence[SpaceId]
    ) -> tuple[list[Result], list[SpaceId]]:
        async with self._alone_in(spaces):
            kept = False
            try:
                done = await self.store.transact(partial(self._apply_once, operations, spaces))
                kept = True
                return done
            finally:
                self._settle_exact(spaces, kept=kept)

    async def _apply_once(
        self, operations: Sequence[Operation], spaces: Sequence[SpaceId], tx: Transaction
    ) -> tuple[list[Result], list[SpaceId]]:
        applying = Applying(tx, self.chance, self.exact)
        results = await applying.run(operations, spaces)
        return results, applying.edited_spaces

    async def _spaces_for(self, operations: Sequence[Operation]) -> list[SpaceId]:
        """Find the spaces that operations touch and that exist."""
        placed = [operation for operation in operations if not isinstance(operation, ReleaseOwner)]
        names = {check_name(operation.network, field="network") for operation in placed}
        found = set((await self.store.locate(sorted(names))).values()) if names else set()
        for operation in operations:
            if isinstance(operation, ReleaseOwner):
                found |= {row.space for row in await self.store.by_owner([operation.owner])}
            if isinstance(operation, AddNetwork):
                name = operation.network if operation.space is None else check_name(operation.space, field="space")
                space = await self.store.space_named(name)
                found |= set() if space is None else {space}
        return sorted(found)

    async def close(self) -> None:
        """Finish what was asked, then let go of the store."""
        if self._closed:
            return
        self._closed = True
        for batcher in (self._grants, self._releases, self._lanes):
            await batcher.drain()
        await self.store.close()


def _version(layout: Layout) -> int:
    return layout.configuration.version


def _wish_identities(wish: Wish) -> tuple[object, ...]:
    return (wish.first, wish.claim)
