"""The rooms in which a process's claims wait: one a space, with one task that stands in line for all of them.

The task goes through the lane when something became free (it reads the log), when somebody comes, and every now and
then to say that its claims live and to remove what is overdue. A process that dies says nothing any more, and its
claims are dropped from the line. Whoever leaves (cancelled, out of time) takes his claim with him, and gives back what
it was granted in that very moment; only under a key it stays, for whoever asks again under it.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Protocol

from tenure.kernel.errors import Case, Conflict, CursorExpired, NotFound, StoreUnavailable, TenureError
from tenure.kernel.holdings.holding_model import NetworkId, Row, SpaceId, Waiter
from tenure.kernel.holdings.log_entries import waiting_entry
from tenure.kernel.plan.layout import Layout
from tenure.ports import Guard, LedgerStore, Transaction
from tenure.service.allocator.allocation import insist, worse
from tenure.service.allocator.claim import Claim, Granted, Known, Waiting, case_of_line, exhausted
from tenure.service.allocator.existing_holding import line_key
from tenure.service.allocator.revocable_grants import Departed, give_back, new_caller
from tenure.service.allocator.waiting_line import Seat

LIFE_US = 10_000_000
"""How long a waiting claim is taken for alive after it last said so."""

CLOSED = "this ledger was closed meanwhile; open it again"

BEAT_S = 1.0
"""How often waiting claims say that they live."""

POLL_S = 0.05
"""How often the log is looked at for something that became free."""

# ``leave`` is not among them: what was kept free for that claim becomes free.
MAKES_NO_ROOM = frozenset({"grant", "confirm", "modify", "transfer", "cool", "wait"})


class WaitingEngine(Protocol):
    """What a room asks of the server it is in."""

    store: LedgerStore

    async def layout(self, network: str, *, newer_than: int | None = None) -> Layout:
        """Return the layout of the network's space; a version that proved stale is read anew."""
        ...

    async def layout_of_space(self, space: SpaceId) -> Layout | None:
        """Read a space's layout from the store; None if the space is gone."""
        ...

    async def attend(self, layout: Layout, seat: Seat) -> Granted | Waiting | None:
        """Serve a claim in the lane, or put it in line; None if the layout is stale."""
        ...

    async def first_try(self, layout: Layout, claim: Claim, newest: int) -> Row | None:
        """Return what this very request was granted behind a number of the log, whether or not it is still held."""
        ...


@dataclass(slots=True, eq=False)
class Guest:
    """A caller who waits, and what became of his claim so far."""

    claim: Claim
    answer: "asyncio.Future[Granted]"
    caller: str
    place: Waiter | None = None
    doubt: StoreUnavailable | None = None
    """His last turn's answer was lost: he may hold something."""
    kept: Waiting | None = None
    """Where in line he was left when his time in the room was over."""
    newest: int = 0
    """The number of the newest change from before he came: what he is granted is numbered above it."""
    gives_up_at: float = math.inf
    """When he gives up, by the loop's clock."""

    @property
    def waits_s(self) -> float:
        """Return how much longer he waits."""
        return max(0.0, self.gives_up_at - asyncio.get_running_loop().time())

    def may_hold(self) -> bool:
        """Return whether this guest was granted something, or may have been, that can still be given back."""
        if not self.answer.done():
            return self.doubt is not None and self.doubt.outcome == "unknown"
        granted = not self.answer.cancelled() and self.answer.exception() is None
        return granted and not isinstance(self.answer.result(), Known)


@dataclass(slots=True, eq=False)
class Room:
    """Those of this process who wait in one space."""

    guests: list[Guest] = field(default_factory=list)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    task: "asyncio.Task[None] | None" = None


Late = Callable[[Room, Guest], Coroutine[None, None, None]]
"""What is done with a guest whose time is over."""


class WaitingRooms:
    """A server's rooms."""

    def __init__(self, desk: WaitingEngine) -> None:
        self._desk = desk
        self._rooms: dict[SpaceId, Room] = {}
        self._departures: set[asyncio.Task[None]] = set()
        self._closing = False

    def wake(self, space: SpaceId) -> None:
        """Tell a room that something may have become free."""
        if (room := self._rooms.get(space)) is not None:
            room.woken.set()

    async def wait(self, claim: Claim, wait_s: float) -> Granted:
        """Wait for an address in order of arrival, so long at most; leaving early leaves nothing behind."""
        guest = await self._received(claim, wait_s, self._leave)
        if not guest.answer.done():
            raise guest.doubt or exhausted(claim, await self._case(claim), waited_s=wait_s)
        return guest.answer.result()

    async def _case(self, claim: Claim) -> Case | None:
        """Return why nothing became free, where the plan knows; its network may have gone meanwhile."""
        try:
            return case_of_line((await self._desk.layout(claim.network)).line(*line_key(claim)))
        except TenureError:
            return None

    async def stay(self, claim: Claim, wait_s: float, lasts_us: int) -> Granted | Waiting:
        """Wait like that; who gets nothing in that time keeps his place for so long, and is told which it is.

        Only whoever is cancelled leaves the line.
        """
        keeps_s = lasts_us / 1e6
        guest = await self._received(claim, wait_s, lambda room, guest: self._keep(room, guest, lasts_us), keeps_s)
        if not guest.answer.done():
            assert guest.kept is not None
            return guest.kept
        return guest.answer.result()

    async def _received(self, claim: Claim, wait_s: float, late: Late, keeps_s: float = 0.0) -> Guest:
        """Have a guest wait; when his time is over, do what is to be done with whoever is late.

        ``keeps_s``: how long his claim stays in line after that.
        """
        space = (await self._desk.layout(claim.network)).configuration.space
        # Looked at after the await: the ledger may have been closed meanwhile.
        if self._closing:
            raise Conflict(CLOSED)
        room = self._rooms.setdefault(space, Room())
        answer = asyncio.get_running_loop().create_future()
        gives_up_at = asyncio.get_running_loop().time() + wait_s + keeps_s
        guest = Guest(claim, answer, new_caller(claim), newest=self._desk.store.newest, gives_up_at=gives_up_at)
        room.guests.append(guest)
        room.woken.set()
        if room.task is None:
            room.task = asyncio.get_running_loop().create_task(self._stand_in_line(space, room))
        try:
            # ``asyncio.wait`` cancels nothing at a time-out: the answer may still come until the guest is out.
            done, _ = await asyncio.wait([guest.answer], timeout=None if wait_s == math.inf else wait_s)
            if not done:
                await self._shielded(late(room, guest))
        except asyncio.CancelledError:
            # The caller is to see the cancellation, not the trouble of the store.
            with contextlib.suppress(StoreUnavailable):
                await self._shielded(self._depart(room, guest))
            raise
        return guest

    async def _shielded(self, work: Coroutine[None, None, None]) -> None:
        """Run work to its end even if its caller goes away."""
        task = asyncio.get_running_loop().create_task(work)
        # Kept here, because the loop has only weak references to tasks, and because ``close`` waits for them.
        self._departures.add(task)
        task.add_done_callback(self._departed)
        await asyncio.shield(task)

    def _departed(self, task: "asyncio.Task[None]") -> None:
        self._departures.discard(task)
        if not task.cancelled():
            task.exception()  # whoever has gone away is not told

    async def _leave(self, room: Room, guest: Guest) -> None:
        """Take a guest out of the room and the line, unless his answer has come meanwhile."""
        # Not during a turn: the turn would put the claim back in line.
        async with room.turn:
            if guest in room.guests:
                room.guests.remove(guest)
            if guest.answer.done() or guest.place is None:
                return
            # Another caller waits with the same claim, which must stay in line.
            if (twin := self._twin_of(room, guest)) is None:
                try:
                    await self._take_out(guest.place)
                except StoreUnavailable as error:
                    raise worse(guest.doubt, error) from error
            elif twin.place is None:
                twin.place = guest.place  # he came after the last turn, and takes it out when he leaves

    async def _keep(self, room: Room, guest: Guest, lasts_us: int) -> None:
        """Take a guest out of the room but not out of the line, unless his answer has come meanwhile."""
        async with room.turn:
            if guest in room.guests:
                room.guests.remove(guest)
            if guest.answer.done():
                return
            # Through the lane once more: the claim in line gets the life that this caller asked for.
            answer = await attend(self._desk, Seat(guest.claim, lasts_us, guest.place, guest.caller))
            if isinstance(answer, Waiting):
                guest.place, guest.kept = answer.waiter, answer
            else:
                guest.answer.set_result(answer)

    async def _depart(self, room: Room, guest: Guest) -> None:
        """Take a cancelled guest out, and give back what he was granted meanwhile.

        Not under a key: another server may just now be telling it to him who asks again, since his connection broke.
        """
        with contextlib.suppress(StoreUnavailable):  # then the line drops the claim by itself, before long
            await self._leave(room, guest)
        if guest.claim.key is None and guest.may_hold():
            await self._give_back(guest)

    def _twin_of(self, room: Room, guest: Guest) -> Guest | None:
        """Find another caller who waits with the same claim."""
        return next((other for other in room.guests if _key(other) == _key(guest)), None)

    async def _take_out(self, waiter: Waiter) -> None:
        """Take a claim out of the line, whatever its ticket is by now."""

        async def leaving(tx: Transaction) -> None:
            await tx.guard([waiter.space], Guard.LANE)
            for other in await tx.waiters(waiter.space):
                if other.key == waiter.key:
                    await tx.leave(other.space, [other.ticket])
                    await tx.log([waiting_entry("leave", other)])

        await self._desk.store.transact(leaving)

    async def _give_back(self, guest: Guest) -> None:
        """End what a guest was granted and never saw, unless another answer, of any server, has reported it.

        Callers hang up when the store is in trouble, so it is tried for as long as this server lives.
        """
        claim, departed = guest.claim, Departed(caller=guest.caller)
        space, network = await self._whereabouts(guest)

        async def taking_back(tx: Transaction) -> None:
            await tx.guard([space], Guard.LANE)
            # By owner and slot: where the answer was lost, the row is not known. The mark in the row decides the rest.
            [row] = await tx.rows_for([(network, claim.owner, claim.slot)])
            if row is not None and (entries := await give_back(tx, row, departed)):
                await tx.log(entries)

        while True:
            try:
                await insist(lambda: self._desk.store.transact(taking_back), lambda attempt: asyncio.sleep(POLL_S))
                break
            except StoreUnavailable:
                if self._closing:
                    raise
                await asyncio.sleep(BEAT_S)
        self.wake(space)

    async def _whereabouts(self, guest: Guest) -> tuple[SpaceId, NetworkId]:
        """Return the space and the number of a guest's network, whatever that is called by now."""
        if guest.answer.done():
            row = guest.answer.result().row
            return row.space, row.network
        if guest.place is not None:
            return guest.place.space, guest.place.network
        configuration = (await self._desk.layout(guest.claim.network)).configuration
        return configuration.space, configuration.network(guest.claim.network).id

    async def _stand_in_line(self, space: SpaceId, room: Room) -> None:
        """Go through the lane as often as it may help, while there are guests."""
        try:
            while room.guests:
                # Before the turn: a guest that comes during the turn sets the event again.
                room.woken.clear()
                try:
                    # Before the turn, too: what becomes free during the turn lies behind the cursor.
                    cursor = await self._desk.store.last_change()
                    async with room.turn:
                        await self._go_through(room)
                    await self._until_something_happens(space, room, cursor)
                except StoreUnavailable:
                    await asyncio.sleep(BEAT_S)  # the store may come back; the guests' own time-outs go on
        except Exception as error:  # whatever it is, nobody may wait for a task that is no more
            for guest in room.guests:
                if not guest.answer.done():
                    guest.answer.set_exception(error)
            room.guests.clear()
        finally:
            # No await lies between the last look at ``guests`` and this, so no guest enters a room without a task.
            room.task = None
            self._rooms.pop(space, None)

    async def _go_through(self, room: Room) -> None:
        """Have every guest served or kept in line, in the order they came."""
        guests = list(room.guests)
        # All at once: the batcher makes one lane of them, in this order.
        answers = await asyncio.gather(*(self._ask_for(guest) for guest in guests), return_exceptions=True)
        lost: StoreUnavailable | None = None
        for guest, answer in zip(guests, answers, strict=True):
            # The guest stays: the next turn looks for what this turn may have done.
            if isinstance(answer, StoreUnavailable):
                lost = answer
                guest.doubt = worse(guest.doubt, answer)
                continue
            if isinstance(answer, Waiting):
                # A claim in line holds nothing, so an earlier doubt is settled.
                guest.place, guest.doubt = answer.waiter, None
                continue
            room.guests.remove(guest)
            if guest.answer.done():
                continue
            if isinstance(answer, BaseException):
                if guest.place is not None:  # nothing is left of his claim when he is told
                    with contextlib.suppress(StoreUnavailable):
                        await self._take_out(guest.place)
                guest.answer.set_exception(answer)
            else:
                guest.answer.set_result(answer)
        # Raised last: guests that have an answer do not wait for the store.
        if lost is not None:
            raise lost

    async def _ask_for(self, guest: Guest) -> Granted | Waiting:
        if guest.doubt is not None and guest.doubt.outcome == "unknown":
            # His last turn may have been granted something that was ended meanwhile: not twice for one request.
            layout = await self._desk.layout(guest.claim.network)
            if (row := await self._desk.first_try(layout, guest.claim, guest.newest)) is not None:
                return Granted(row, layout)
        return await attend(self._desk, Seat(guest.claim, LIFE_US, guest.place, guest.caller, guest.waits_s))

    async def _until_something_happens(self, space: SpaceId, room: Room, cursor: int) -> None:
        """Sleep until somebody comes, something became free, or it is time to say that we live."""
        loop = asyncio.get_running_loop()
        beat = loop.time() + BEAT_S
        while room.guests and loop.time() < beat:
            try:
                await asyncio.wait_for(room.woken.wait(), POLL_S)
                return
            except TimeoutError:
                pass
            try:
                changes = await self._desk.store.watch(cursor, space=space)
            # What happened is not known, so a turn through the lane finds out.
            except (CursorExpired, StoreUnavailable):
                return
            if any(change.verb not in MAKES_NO_ROOM for change in changes):
                return
            cursor = max((change.seq for change in changes), default=cursor)

    async def close(self) -> None:
        """Send everybody away: tell the callers, and take their claims out of the line."""
        # Comes first: no guest enters any more, and no departure goes on asking a store in trouble.
        self._closing = True
        for room in list(self._rooms.values()):
            for guest in list(room.guests):
                with contextlib.suppress(StoreUnavailable):
                    await self._leave(room, guest)
                if not guest.answer.done():
                    guest.answer.set_exception(guest.doubt or Conflict(CLOSED))
            room.woken.set()
            if room.task is not None:
                await asyncio.gather(room.task, return_exceptions=True)
        # A departure may begin while others are awaited.
        while self._departures:
            await asyncio.gather(*self._departures, return_exceptions=True)


def _key(guest: Guest) -> tuple[str, str, str]:
    """Return what may wait only once."""
    return (guest.claim.network, guest.claim.owner, guest.claim.slot)


async def attend(desk: WaitingEngine, seat: Seat) -> Granted | Waiting:
    """Serve a claim in the lane, or put it in line, under the newest layout there is."""
    layout = await _layout_for(desk, seat, None)
    while True:
        answer = await desk.attend(layout, _renamed(seat, layout))
        if answer is not None:
            return answer
        layout = await _layout_for(desk, seat, layout.configuration.version)


async def _layout_for(desk: WaitingEngine, seat: Seat, stale: int | None) -> Layout:
    """Return the layout for a claim; of one in line the network is known by number, whatever it is called by now."""
    try:
        layout = await desk.layout(seat.claim.network, newer_than=stale)
    except NotFound:
        found = None if seat.was is None else await desk.layout_of_space(seat.was.space)
        if found is None:
            raise
        layout = found
        if _renamed(seat, layout).claim.network not in layout.configuration.networks:
            raise
    return layout


def _renamed(seat: Seat, layout: Layout) -> Seat:
    """Return the seat with its network's present name; one that is gone may have a successor of the same name."""
    names = {network.id: name for name, network in layout.configuration.networks.items()}
    name = seat.claim.network if seat.was is None else names.get(seat.was.network, seat.claim.network)
    return seat if name == seat.claim.network else seat._replace(claim=seat.claim._replace(network=name))
