"""The census of a process: every space counted once, then kept current from the log.

It never drifts: an edit has the subnets it concerns counted afresh, a gap in the log has everything counted afresh.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator

from tenure.doors.http.events.log_follower import News
from tenure.doors.http.utilisation.map_cache import MapCache
from tenure.doors.http.utilisation.page_loader import PAGE, Feed
from tenure.doors.http.utilisation.space_count import SpaceCount
from tenure.doors.http.utilisation.subnet_tally import SubnetObserver
from tenure.doors.http.utilisation.trends import READ_BACK, Trends
from tenure.kernel.errors import CursorExpired, NotFound, TenureError
from tenure.kernel.holdings.holding_model import Change, SpaceId
from tenure.kernel.plan.plan_model import Network
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.space_scan import Survey
from tenure.wire.http_errors import Overloaded

OF_HOLDINGS = frozenset({"grant", "release", "cool", "confirm", "modify"})
# A transfer changes the owner only, and a claim that leaves its line had no address.
WITHOUT_EFFECT = frozenset({"transfer", "leave"})
AT_ONCE = 16
"""Spaces that are counted at the same time, page by page in turn: a large one does not keep small ones waiting."""

AFTER_FAULT_S = 0.5
MOST_REST_S = 1.0
LOG_PAGE = 1000
WITHIN_S = 10.0
"""So long an answer waits for a count that is not ready."""

FINDING = "finding spaces"


class Census:
    """Counts of everything, for one process. Open it once the log is followed."""

    def __init__(self, ledger: AsyncLedger, news: News, *, page: int = PAGE) -> None:
        """``page``: holdings that are read and taken in at once."""
        self._page = page
        self.survey = Survey(ledger)
        self._news = news
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._moved = asyncio.Condition()
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self._places: dict[str, SpaceCount] = {}
        self.spaces: dict[SpaceId, SpaceCount] = {}
        self.trends = Trends()
        self.atlas = MapCache(self)

    async def open(self) -> None:
        """Begin to count, in the background."""
        # Before the spaces are looked for, so that no change of them is missed.
        self._news.listen(self._told, gap=self._begin)
        self._begin()

    async def close(self) -> None:
        """Stop counting."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self) -> None:
        """Count everything, from nothing."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self.spaces, self._places = {}, {}
        self.trends.missed()
        # Up to here the log is read back; later changes come from the news.
        newest = self._news.seen
        self.do(FINDING, self._find_spaces)
        self.do("trends", lambda: self._read_back(newest))
        self.atlas.begin()

    def do(self, name: object, work: Callable[[], Awaitable[None]]) -> None:
        """Do something in the background until it is done; one that is under way is left alone."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.create_task(self._until_done(name, work))

    async def _until_done(self, name: object, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
                break
            except TenureError:  # the store was away
                await asyncio.sleep(AFTER_FAULT_S)
            except Exception as error:  # a fault of ours must not leave a network uncounted for ever
                said = {"message": f"the census met a fault ({name}) and begins again", "exception": error}
                asyncio.get_running_loop().call_exception_handler(said)
                await asyncio.sleep(AFTER_FAULT_S)
        # A task that _begin or _distrust cancelled does not get here: its name may belong to another task by now.
        del self._tasks[name]
        await self._notify()

    async def _notify(self) -> None:
        async with self._moved:
            self._moved.notify_all()

    def _told(self, change: Change) -> None:
        """Take a change in. It must not fail: what it cannot follow has the space counted afresh."""
        if change.space is None or change.verb in WITHOUT_EFFECT:
            return
        space = self.spaces.get(change.space)
        if change.verb in OF_HOLDINGS:
            # Also while the space is not counted: a trend adds up changes and needs no count to begin with.
            self.trends.follow(change)
            if space is not None:
                try:
                    space.follow(change)
                except (KeyError, IndexError, ValueError):
                    self._distrust(space)
        elif space is None:
            self._recount(self.spaces.setdefault(change.space, SpaceCount(change.space)))
        elif change.verb == "wait":
            space.queued = True
            space.waits += 1
        else:
            space.edits += 1
            self._recount(space)

    def _distrust(self, space: SpaceCount) -> None:
        task = self._tasks.pop(space.number, None)
        if task is not None:
            task.cancel()
        # A new object: the cancelled count still takes its feed off the old object.
        fresh = self.spaces[space.number] = SpaceCount(space.number)
        self._recount(fresh)

    def _recount(self, space: SpaceCount) -> None:
        self.do(space.number, lambda: self._count(space))

    async def _find_spaces(self) -> None:
        for number in await self.survey.spaces():
            self._recount(self.spaces.setdefault(number, SpaceCount(number)))

    async def _count(self, space: SpaceCount) -> None:
        """Lay a space's plan out and count what is not counted, until nothing is left to do."""
        async with self._turns:
            while not space.settled:
                # Noted before the plan is read: an edit that comes meanwhile has the plan read once more.
                edits, began = space.edits, time.monotonic()
                plan = await self.survey.plan(space.number)
                if plan is None:
                    self.trends.forget(space.numbers())
                    self.spaces.pop(space.number, None)
                    return
                self.trends.forget(await space.lay_out(plan))
                space.laid_out = edits
                await self._notify()
                if todo := space.uncounted():
                    feed = self.feed(space, todo)
                    try:
                        await feed.run()
                    except BaseException:
                        # A cancellation, too, leaves tallies half filled.
                        space.abandoned(feed)
                        raise
                    space.finished(feed)
                if not space.settled:  # edits come fast: let others have half of the time
                    await asyncio.sleep(min(time.monotonic() - began, MOST_REST_S))

    def feed(self, space: SpaceCount, books: Iterable[SubnetObserver]) -> Feed:
        """Begin to read a space for books that know nothing yet; from now on they hear of every change."""
        feed = Feed(space.number, books, self.survey, self.followed, space, self._page)
        space.feeds.append(feed)
        return feed

    async def followed(self, seq: int) -> None:
        """Wait until the log was followed up to a number."""
        if self._news.seen < seq:
            await self._news.beyond(seq - 1)

    async def _read_back(self, newest: int) -> None:
        """Read what the log has of the past, for trends: behind what they know, unless that is far behind."""
        trends = self.trends
        if newest - trends.at > READ_BACK:
            trends.restart(newest - READ_BACK)
        while trends.at < newest:
            try:
                page = await self.survey.changes(trends.at, limit=LOG_PAGE)
            except CursorExpired as error:
                trends.restart(error.oldest)
                continue
            for change in page:
                # Later entries come by `follow` and wait there until the past is read.
                if change.seq <= newest:
                    trends.take(change)
            trends.at = min(page[-1].seq, newest) if page else newest
            # Between pages others have a turn: taking one in is pure Python.
            await asyncio.sleep(0)
        trends.caught_up()

    @property
    def seen(self) -> int:
        """Return the number of the newest change that is in."""
        return self._news.seen

    async def waiting(self, ledger: AsyncLedger, name: str | None = None) -> dict[str, int]:
        """Count the claims that wait, by network or in one; nobody is asked where the log told of none."""
        queued = {space: space.waits for space in self.spaces.values() if space.queued}
        names = [each for space in queued if space.plan is not None for each in space.plan.networks]
        if name is not None:
            return {name: len(await ledger.waiting(name))} if name in names else {}
        some = len(names) <= len(self.spaces)  # whichever asks the store less often
        lines = [await ledger.waiting(each) for each in names] if some else [await ledger.waiting()]
        found = Counter(claim.network for line in lines for claim in line)
        for space, waits in queued.items():
            # A claim that began to wait while the store was asked has raised `waits`; then the mark stays.
            if space.waits == waits and space.plan is not None and found.keys().isdisjoint(space.plan.networks):
                space.queued = False
        return dict(found)

    async def current(self) -> int:
        """Wait until everything is in that was done before now, by callers or by time; return the newest number."""
        newest = await self.survey.last_change()
        with contextlib.suppress(TimeoutError):  # the log is followed slowly just now: what is known must do
            async with asyncio.timeout(WITHIN_S):
                await self.followed(newest)
        # Behind the log: an entry that ends or extends a holding must be in before its deadline is looked at.
        await self._run_out()
        return self._news.seen

    async def _run_out(self) -> None:
        """Take out whatever time has ended by the store's clock; it is asked only where something has a deadline."""
        if not any(space.timed for space in self.spaces.values()):
            return
        now_us = await self.survey.now_us()
        for space in self.spaces.values():
            for step in space.run_out(now_us):
                self.trends.run_out(space.number, step)

    async def wait_until(self, ready: Callable[[], bool], within_s: float = WITHIN_S) -> bool:
        """Wait until something is ready that is done in the background; tell whether it is."""
        try:
            async with asyncio.timeout(within_s), self._moved:
                await self._moved.wait_for(ready)
        except TimeoutError:
            return ready()
        return True

    def networks(self) -> Iterator[tuple[SpaceCount, Network]]:
        """Yield all networks that are known, with their space."""
        for space in self.spaces.values():
            if space.plan is not None:
                for network in space.plan.networks.values():
                    yield space, network

    def is_settled(self) -> bool:
        """Tell whether everything is counted."""
        return all(space.settled for space in self.spaces.values()) and FINDING not in self._tasks

    def _is_laid_out(self) -> bool:
        return all(space.edits == space.laid_out for space in self.spaces.values()) and FINDING not in self._tasks

    def _find(self, name: str) -> SpaceCount | None:
        # Names move: what is remembered is a guess that is checked, and a wrong one costs a search.
        space = self._places.get(name)
        if space is None or space.plan is None or name not in space.plan.networks or not self._has(space):
            space = next((space for space, network in self.networks() if network.name == name), None)
            if space is not None:
                self._places[name] = space
        return space

    def _has(self, space: SpaceCount) -> bool:
        return self.spaces.get(space.number) is space

    async def counted(self, name: str) -> tuple[SpaceCount, Network]:
        """Return a network that is counted as of now, with its space; Overloaded if that takes too long."""
        await self.current()

        def ready() -> bool:
            space = self._find(name)
            if space is None or space.plan is None:
                # Only when every plan is laid out is it certain that there is no network of this name.
                return self._is_laid_out()
            return space.is_counted(space.plan.network(name))

        if not await self.wait_until(ready):
            raise Overloaded(f"network {name!r} is still being counted; ask again in a moment")
        space = self._find(name)
        if space is None or space.plan is None:
            raise NotFound("network", name)
        return space, space.plan.network(name)
