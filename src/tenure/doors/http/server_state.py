"""One running server: the ledger, who may come in, what is written down of every request, and what else it serves."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from tenure.doors.http.access.authenticate import Access
from tenure.doors.http.access.shares import Shares
from tenure.doors.http.events.log_follower import News
from tenure.doors.http.events.sse import Events
from tenure.doors.http.observe.counters import ServerCounters
from tenure.doors.http.observe.readiness import Readiness
from tenure.doors.http.observe.request_log import Journal
from tenure.doors.http.routing.side_loop import SideLoop
from tenure.doors.http.settings import Limits, Settings
from tenure.doors.http.utilisation.census import Census
from tenure.kernel.errors import TenureError
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.space_scan import Survey
from tenure.service.read.ledger_size import SizeGauge
from tenure.wiring import open_metered


@dataclass
class Site:
    """What all requests of one process share. Opened and closed by the server's own start and stop."""

    settings: Settings
    meter: ServerCounters = field(default_factory=ServerCounters)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server is asked to stop: whoever waits on a caller's behalf ends his wait."""
    journal: Journal = field(init=False)
    access: Access = field(init=False)
    readiness: Readiness = field(init=False)
    shares: Shares = field(init=False)
    ledger: AsyncLedger = field(init=False)
    news: News = field(init=False)
    events: Events = field(init=False)
    census: Census = field(init=False)
    size: SizeGauge = field(init=False)
    side: SideLoop = field(default_factory=SideLoop)
    _opened: AsyncExitStack = field(default_factory=AsyncExitStack)
    """What is to be closed, the last that was opened first, whatever becomes of the others."""

    @property
    def limits(self) -> Limits:
        """Return how large and how slow a request may be."""
        return self.settings.limits

    def __post_init__(self) -> None:
        self.journal = Journal(self.settings, self.meter)
        self.shares = Shares(self.settings.limits, self.meter)

    async def open(self) -> None:
        """Open the ledger, and whatever follows it; if that fails half-way, nothing stays open."""
        async with AsyncExitStack() as opened:
            self.ledger = await open_metered(self.settings.store, self.meter, most_keys=self.settings.most_keys)
            opened.push_async_callback(self.ledger.close)
            survey = Survey(self.ledger)
            self.size = survey.size
            self.readiness = Readiness(self.ledger, self.journal)
            # Closed before the ledger: what runs on the side loop asks that ledger, on this loop.
            opened.push_async_callback(self.side.close)
            self.news = News(self.ledger)
            opened.push_async_callback(self.news.close)
            self.events = Events(self.news)
            self.access = Access(self.ledger, self.settings)
            # Access listens before the log is followed, so that it misses no change of a token.
            self.news.listen(self.access.hear, gap=self.access.forget)
            await self.news.open()
            self.census = Census(self.ledger, self.news)
            opened.push_async_callback(self.census.close)
            await self.census.open()
            if self.settings.keep_changes is not None:
                keeper = survey.keeper(self.settings.keep_changes, self._not_archived)
                opened.push_async_callback(keeper.close)
                keeper.open()
            # Until here the local stack closes everything that is open if a step fails.
            self._opened = opened.pop_all()

    def _not_archived(self, error: TenureError) -> None:
        self.journal.note("changes not archived", "warning", code=error.code, advice=error.message)

    async def close(self) -> None:
        """Finish what was accepted, then let go of the ledger."""
        await self._opened.aclose()
