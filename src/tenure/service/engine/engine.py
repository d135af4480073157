"""One server: the batched asyncio driver of the allocator over one store.

It caches layouts and views (all of them doubtful or guarded by a version), and turns what many callers ask into few
store calls. A server that is killed leaves nothing behind but what was granted.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from tenure.kernel.errors import Conflict, KeyReused, NotFound, StoreUnavailable, TenureError
from tenure.kernel.holding_states import cooling_us
from tenure.kernel.holdings.actor import Asker, asker_of
from tenure.kernel.holdings.holding_model import Holding, Row, SpaceId, Ticket, Verdict, Wish
from tenure.kernel.holdings.idempotency import replayed
from tenure.kernel.names import Owner, check_lingering, check_name
from tenure.kernel.plan.edits import AddNetwork
from tenure.kernel.plan.layout import Layout, LineKey
from tenure.ports import Chance, Failed, Guard, KeyTaken, LedgerStore, Transaction
from tenure.service.allocator.allocation import UNKNOWN_REPEATS, worse
from tenure.service.allocator.claim import Claim, Granted, Waiting
from tenure.service.allocator.doubtful_view import DoubtfulLine, DoubtfulViews
from tenure.service.allocator.exact_view import ExactViews
from tenure.service.allocator.existing_holding import Answer, already, line_key, with_warnings
from tenure.service.allocator.lane import Restart
from tenure.service.allocator.overdue_pages import MuchDue, sweep_pages
from tenure.service.allocator.revocable_grants import report, report_kept, reported
from tenure.service.allocator.waiting_line import Seat
from tenure.service.apply.apply_operations import Applying
from tenure.service.apply.operations import EXPECTING, Cancel, Operation, Release, ReleaseOwner, Shown, networks_of
from tenure.service.apply.stored_replies import known_answer, reply_of
from tenure.service.engine.batcher import AnswerReceiver, Batcher
from tenure.service.engine.confirmations import Confirmations
from tenure.service.engine.lanes import RESTARTS, Attended, Lanes
from tenure.service.engine.lost_try import Tried, granted_since
from tenure.service.engine.meter import Meter, metered
from tenure.service.engine.reply_cleanup import DAY_US, MOST_KEYS, Tidier
from tenure.service.engine.waiting_rooms import WaitingRooms
from tenure.service.read.ledger_size import SizeGauge
from tenure.service.read.presenter import show

T = TypeVar("T")

GRANTING = 4
"""Batches of grants at a time, and of confirmations, each of another space, where the store can: a space whose lock is
waited for stops no other."""

OWNERS_AT_ONCE = 1000
"""Owners whose holdings are asked for in one question."""


class Engine:
    """The desk at which a process's callers queue."""

    def __init__(
        self,
        store: LedgerStore,
        *,
        name: str,
        chance: Chance,
        keys_live_us: int = DAY_US,
        most_keys: int = MOST_KEYS,
        meter: Meter | None = None,
    ) -> None:
        self.store = store
        self.name = name
        self.chance = chance
        self._closed = False
        self._layouts: dict[SpaceId, Layout] = {}
        self._spaces: dict[str, SpaceId] = {}
        self._doubtful: dict[SpaceId, DoubtfulViews] = {}
        self.lanes = Lanes(store, chance, self.pause, self._give_back)
        # Apart from the views of the lanes: calls inside a caller's transaction run beside the lanes of this process.
        self.exact_inside: dict[SpaceId, ExactViews] = {}
        self._readings: dict[Hashable, asyncio.Task[Any]] = {}
        self._applying = 0
        self._applied: asyncio.Future[None] | None = None
        """Set when ``close`` waits for the operations that are being applied."""
        largest = store.abilities.largest_batch
        writing = GRANTING if store.abilities.parallel_writes else 1
        self._meter = meter
        self._grants: Batcher[tuple[SpaceId, int], Wish, Verdict] = Batcher(
            metered(self._grant, None if meter is None else meter.grants),
            largest=largest, at_once=writing, identities=_wish_identities,
        )  # fmt: skip
        self._releases: Batcher[tuple[SpaceId, int], Ticket, Row | None] = Batcher(
            metered(self._release, None if meter is None else meter.releases),
            largest=largest, identities=lambda ticket: (ticket.first,),
        )  # fmt: skip
        self._looks: Batcher[SpaceId, int, Row | None] = Batcher(store.rows_at, largest=largest, at_once=GRANTING)
        self._lane_batches: Batcher[SpaceId, tuple[Layout, Seat], Attended] = Batcher(
            metered(self.lanes.serve, None if meter is None else meter.lane), largest=largest, at_once=4
        )
        self._confirmations = Confirmations(self, at_once=writing)
        self.doubts: dict[Asker | None, int] = {}
        """Requests whose first try was lost before they took the usual way, and the newest number from before it."""
        self.rooms = WaitingRooms(self)
        self.size = SizeGauge(store)
        self.tidier = Tidier(store, keys_live_us, self.size, most_keys)

    async def release(self, layout: Layout, ticket: Ticket) -> Row | None:
        """End one holding, together with all that wait; Stale if the layout is."""
        self.check_open()
        key = (layout.configuration.space, layout.configuration.version)
        row = await self._releases.submit(key, ticket)
        if row is not None and ticket.names(row):
            # An address that cools is not free yet.
            if (views := self._doubtful.get(key[0])) is not None and not cooling_us(row.state, ticket.cooling_us):
                views.give_back(row.first, row.last)
            self.rooms.wake(key[0])
        return row

    async def row_at(self, space: SpaceId, position: int) -> Row | None:
        """Return the holding that begins at a position now, if there is one; read together with all that wait."""
        self.check_open()
        return await self._looks.submit(space, position)

    def _give_back(self, space: SpaceId, spans: Sequence[tuple[int, int]]) -> None:
        """Note on the doubtful views of a space that spans are in nobody's way."""
        if (views := self._doubtful.get(space)) is not None:
            for first, last in spans:
                views.give_back(first, last)

    async def _release(self, key: tuple[SpaceId, int], tickets: Sequence[Ticket]) -> Sequence[Row | Failed | None]:
        return await self.store.release(key[0], tickets, version=key[1])

    def check_open(self) -> None:
        """Refuse to begin anything once the ledger is closed."""
        if self._closed:
            raise Conflict("this ledger is closed; open it again")

    def known_layout(self, network: str) -> Layout | None:
        """Return the layout of the network's space as it was last read, if it was."""
        space = self._spaces.get(network)
        return None if space is None else self._layouts.get(space)

    async def layout(self, network: str, *, newer_than: int | None = None) -> Layout:
        """Return the layout of the network's space; a version that proved stale is read again."""
        known = self.known_layout(network)
        if known is not None and (newer_than is None or known.configuration.version > newer_than):
            return known
        if newer_than is None:
            return await self.reread(network)
        # Many callers find the same version stale at once. A reading that one of them began is new enough for all.
        return await self._shared(("layout", network, newer_than), partial(self.reread, network))

    async def reread(self, network: str) -> Layout:
        """Read the network's space from the store."""
        space = (await self.store.locate([network])).get(network)
        configuration = None if space is None else await self.store.configuration(space)
        # Between the two reads the space may have been removed, or the network renamed.
        if configuration is None or network not in configuration.networks:
            self._spaces.pop(network, None)
            raise NotFound("network", network)
        # The known object where nothing changed: its indexes are built, and doubtful views belong to one object.
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
        # Readings may overtake each other: an older reading must not replace a newer one.
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
        # By identity: lines of another layout may number their units differently.
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
        # The views are looked up after the await: an edit may have replaced them meanwhile.
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
        # A caller that goes away must not end the reading of the others.
        return await asyncio.shield(task)

    def grant(self, layout: Layout, wish: Wish) -> "asyncio.Future[Verdict]":
        """Ask the store for one address, together with all that wait."""
        self.check_open()
        return self._grants.submit(_place(layout), wish)

    def grant_for(self, waiter: AnswerReceiver, layout: Layout, wish: Wish) -> None:
        """Ask the store for one address; the waiter will have the verdict."""
        self.check_open()
        self._grants.submit_for(waiter, _place(layout), wish)

    async def _grant(self, key: tuple[SpaceId, int], wishes: Sequence[Wish]) -> Sequence[Verdict | Failed]:
        if any(wish.key is not None for wish in wishes):
            self.tidier.now_and_then()
        return await self.store.grant(*key, wishes)

    async def mine(self, layout: Layout, claim: Claim) -> Answer | None:
        """Answer the claim by what its owner holds in this slot, or by what it was answered under its key, if any."""
        wish = claim.at(layout, 0, 0)

        async def look(tx: Transaction) -> Answer | None:
            # In the lane, because a give-back may be about to end the row that is reported here.
            await tx.guard([layout.configuration.space], Guard.LANE)
            [reply] = [None] if wish.key is None else await tx.replies([wish.key])
            if reply is None:
                [row] = await tx.rows_for([wish.claim])
                answer = None if row is None else already(claim, row, layout)
                # What is refused was reported to nobody.
                return answer._replace(row=await report(tx, answer.row)) if isinstance(answer, Granted) else answer
            if (before := replayed(wish, reply).row) is None:
                raise KeyReused(reply.key)
            await report_kept(tx, before, claim)
            return with_warnings(claim, Granted(reported(before), layout))

        return await self.store.transact(look)

    @property
    def newest(self) -> int:
        """The number of the newest change that the store has seen here."""
        return self.store.newest

    async def first_try(self, layout: Layout, claim: Claim, newest: int) -> Row | None:
        """Return what this very request was granted behind a number of the log, whether or not it is still held.

        Under a key the kept answer says so. O(changes behind the number), and only after an answer was lost.
        """
        if claim.key is not None:
            return None
        wanted = claim.at(layout, 0, 0).claim

        async def look(tx: Transaction) -> Row | None:
            await tx.guard([layout.configuration.space], Guard.LANE)
            return (await granted_since(tx, newest, [(wanted[0], claim)])).get(wanted)

        return await self.store.transact(look)

    async def settled_doubt(self, claim: Claim) -> Granted | None:
        """Return what a request was granted before it came here, if it came in doubt and was granted something."""
        newest = self.doubts.pop(asker_of(claim.details), None)
        if newest is None:
            return None
        layout = await self.layout(claim.network)
        row = await self.first_try(layout, claim, newest)
        return None if row is None else Granted(row, layout)

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
        answer = await self.attend(layout, Seat(claim))
        assert not isinstance(answer, Waiting)
        return answer

    def seat_for(self, waiter: AnswerReceiver, layout: Layout, seat: Seat) -> None:
        """Have a claim served in the lane, together with all that wait; the answer may be that it is refused."""
        self._let_in(seat)
        self._lane_batches.submit_for(waiter, layout.configuration.space, (layout, seat))

    def _let_in(self, seat: Seat) -> None:
        self.check_open()
        if seat.claim.key is not None:
            self.tidier.now_and_then()

    async def attend(self, layout: Layout, seat: Seat) -> Granted | Waiting | None:
        """Serve a claim in the lane, or put it in line if it may wait; None if the layout is stale."""
        self._let_in(seat)
        answer = await self._lane_batches.submit(layout.configuration.space, (layout, seat))
        if isinstance(answer, TenureError):
            raise answer
        return answer

    async def apply(
        self, operations: Sequence[Operation], key: str | None = None, body: bytes = b"", asker: Asker | None = None
    ) -> list[Shown]:
        """Make several operations one transaction; under an idempotency key they are made once, ever.

        Where all of them only expect something, nothing is stored, neither an answer nor the key: asked again, they
        look again.
        """
        self.check_open()
        self._applying += 1
        try:
            return await self._apply_whole(operations, key, body, asker)
        finally:
            self._applying -= 1
            if self._applied is not None and not self._applied.done() and not self._applying:
                self._applied.set_result(None)

    async def _apply_whole(
        self, operations: Sequence[Operation], key: str | None, body: bytes, asker: Asker | None
    ) -> list[Shown]:
        """Confirm plain holdings by the short way; make everything else one transaction."""
        expecting = all(isinstance(operation, EXPECTING) for operation in operations)
        if key is not None and not expecting:
            self.tidier.now_and_then()
        tried: Tried[list[Shown]] = Tried()
        lost: StoreUnavailable | None = None
        # Under a key the answer is kept in the transaction of its effect.
        if key is None:
            try:
                results = await self._confirmations.confirm(operations, asker, tried)
            except StoreUnavailable as error:
                if error.outcome != "unknown":
                    raise
                lost = error
            else:
                if results is not None:
                    return self._counted(operations, results)
        results = await self._apply(operations, key, body, asker, tried, lost)
        _give_back_released(self._doubtful, operations, results)
        return self._counted(operations, results)

    def _counted(self, operations: Sequence[Operation], results: list[Shown]) -> list[Shown]:
        if self._meter is not None:
            self._meter.applied(operations, results)
        return results

    async def _apply(
        self,
        operations: Sequence[Operation],
        key: str | None,
        body: bytes,
        asker: Asker | None,
        tried: Tried[list[Shown]],
        lost: StoreUnavailable | None,
    ) -> list[Shown]:
        """Make operations one transaction, again where that can help; ``lost``: a try before has an unknown outcome."""
        for attempt in range(0 if lost is None else 1, RESTARTS):
            spaces: list[SpaceId] = []
            try:
                # Found afresh in each attempt: networks may come and go between two attempts.
                spaces = await self.spaces_for(operations)
                results, edited = await self._transact_apply(operations, spaces, key, body, asker, tried)
            except (Restart, KeyTaken, MuchDue) as again:
                await self._make_way(again, attempt)
                continue
            except StoreUnavailable as error:
                # The lost try may have edited the plan, so the layouts in memory are in doubt.
                for space in spaces:
                    self.forget(space)
                lost = worse(lost, error)
                if lost.outcome != "unknown" or attempt >= UNKNOWN_REPEATS:
                    raise lost from error
                await self.pause(attempt)
                continue
            # Committed: what was known of edited spaces goes, and claims that wait are woken.
            for space in edited:
                self.forget(space)
            for space in spaces:
                self.rooms.wake(space)
            return results
        raise Conflict("the ledger kept changing while the operations were applied; try again")

    async def _make_way(self, again: Exception, attempt: int) -> None:
        """Do what must be done before operations are tried again."""
        if isinstance(again, MuchDue):
            await sweep_pages(self.store, again.space, self.pause)
        await self.pause(attempt)

    async def _transact_apply(
        self,
        operations: Sequence[Operation],
        spaces: Sequence[SpaceId],
        key: str | None,
        body: bytes,
        asker: Asker | None,
        tried: Tried[list[Shown]],
    ) -> tuple[list[Shown], list[SpaceId]]:
        async with self.lanes.alone_in(spaces):
            kept = False
            try:
                done = await self.store.transact(partial(self.apply_once, operations, spaces, key, body, asker, tried))
                kept = True
                return done
            # Nothing was refused: ``apply`` decides whether to ask again.
            except StoreUnavailable:
                raise
            except TenureError:
                # What is new cannot be held before it is there: this very request, elsewhere or in a try whose answer
                # was lost, may have been first with it.
                if key is None and not tried.entries:
                    raise
                known = await self.store.transact(partial(_answered_before, key, body, tried))
                if known is None:
                    raise
                return known, []
            finally:
                # Still alone in the spaces: the views must be clean before another lane uses them.
                self.lanes.settle(spaces, kept=kept)

    async def apply_once(
        self,
        operations: Sequence[Operation],
        spaces: Sequence[SpaceId],
        key: str | None,
        body: bytes,
        asker: Asker | None,
        tried: Tried[list[Shown]],
        tx: Transaction,
        *,
        bounded: bool = True,
    ) -> tuple[list[Shown], list[SpaceId]]:
        """Do the operations in a transaction; return what they answer, and the spaces that were edited."""
        applying = Applying(tx, self.chance, self.lanes.exact, self._layouts, asker, bounded=bounded)
        await applying.open(operations, spaces)
        # Looked for only now: the same request elsewhere, or before, held these spaces until it had ended.
        if (known := await _answered_before(key, body, tried, tx)) is not None:
            return known, []
        answers = [show(result) for result in await applying.run(operations)]
        if key is not None and not all(isinstance(operation, EXPECTING) for operation in operations):
            await tx.keep_replies([reply_of(key, body, answers)])
        # The log comes last: from there on the transaction holds the counter that all commits pass.
        tried.note(*await applying.finish(), answers)
        return answers, applying.ground.edited_spaces

    async def spaces_for(self, operations: Sequence[Operation]) -> list[SpaceId]:
        """Find the spaces that operations touch and that exist."""
        names = networks_of(operations)
        found = set((await self.store.locate(sorted(names))).values()) if names else set()
        owners = list(dict.fromkeys(Owner(each.owner) for each in operations if isinstance(each, ReleaseOwner)))
        for start in range(0, len(owners), OWNERS_AT_ONCE):
            found |= {row.space for row in await self.store.by_owner(owners[start : start + OWNERS_AT_ONCE])}
        for operation in operations:
            if isinstance(operation, AddNetwork):
                name = operation.network if operation.space is None else check_name(operation.space, field="space")
                space = await self.store.space_named(name)
                found |= set() if space is None else {space}
        return sorted(found)

    async def close(self) -> None:
        """Finish what was asked, then let go of the store; without waiting for the first if this is cancelled."""
        if self._closed:
            return
        try:
            await self._finish()
        finally:
            self._closed = True
            await self.store.close()

    async def _finish(self) -> None:
        # The rooms close while the engine is still open, because their last turns go through the lane.
        await self.rooms.close()
        self._closed = True
        if self._applying:
            self._applied = asyncio.get_running_loop().create_future()
            await self._applied
        for batcher in (self._grants, self._looks, self._releases, self._lane_batches, self._confirmations):
            await batcher.drain()
        await self.tidier.finish()
        await self.size.finish()


async def _answered_before(
    key: str | None, body: bytes, tried: Tried[list[Shown]], tx: Transaction
) -> list[Shown] | None:
    """Return what this very request was answered before: under its key, or by a try whose answer was lost."""
    if (answers := await tried.committed_answer(tx)) is not None:
        return answers
    return None if key is None else await known_answer(tx, key, body)


def _place(layout: Layout) -> tuple[SpaceId, int]:
    return layout.configuration.space, layout.configuration.version


def _wish_identities(wish: Wish) -> tuple[object, ...]:
    return (wish.first, wish.claim) if wish.key is None else (wish.first, wish.claim, wish.key)


def _give_back_released(
    views: Mapping[SpaceId, DoubtfulViews], operations: Sequence[Operation], results: Sequence[Shown]
) -> None:
    """Note what operations released and let nobody wait for: who comes by *hashed* next finds it free at once."""
    for operation, result in zip(operations, results, strict=True):
        if not isinstance(operation, Release | ReleaseOwner | Cancel):
            continue
        lingers_us = check_lingering(operation.lingers_s) if isinstance(operation, Release) else 0
        for held in result if isinstance(result, list) else [result]:
            if not isinstance(held, Holding) or (view := views.get(held.row.space)) is None:
                continue
            if not _cools(view.layout, held, lingers_us):
                view.give_back(held.row.first, held.row.last)


def _cools(layout: Layout, held: Holding, lingers_us: int) -> bool:
    try:
        return cooling_us(held.row.state, layout.pool_cooling_us(held.network, held.row.first), lingers_us) > 0
    except NotFound:
        return True  # the plan has changed; the line will be read again
