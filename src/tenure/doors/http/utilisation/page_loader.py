"""Fills books by reading a space page by page, exactly, while changes go on.

What lies at or below the *frontier* has been counted and follows the log change by change; what lies above has not,
and changes there are left to the page that will show them. While a page is read, changes above the frontier are kept
aside: whether the page shows them or not is decided by replaying them over it. Each says what its holding has become,
so replaying twice is replaying once. The page is taken in when the log has been followed beyond the moment it was
read at; from then on the frontier is at its end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from tenure.doors.http.utilisation.subnet_tally import SubnetObserver
from tenure.doors.http.utilisation.tally_router import Router, move
from tenure.kernel.addressing.ranges import AddressRange, merge
from tenure.kernel.holdings.holding_model import NetworkId, Row, SpaceId, State
from tenure.service.ledger.space_scan import Survey

PAGE = 2000
"""Rows that are read and taken in at once: a few milliseconds of the loop's time."""


class HoldingChange(NamedTuple):
    """What a change made of a holding: it went from one state to another; None is: not there. Until when, if known."""

    network: NetworkId
    first: int
    last: int
    before: State | None
    after: State | None
    until_us: int | None = None


class Counted(Protocol):
    """What a feed asks of the space that it reads."""

    def is_over(self, first: int) -> bool:
        """Return whether the time of the holding at a place is over, as far as the space noticed."""
        ...

    def meet(self, step: HoldingChange) -> None:
        """Hear of a holding that a reading shows."""
        ...


class Feed:
    """One reading of a space, or of parts of it, for books that know nothing yet."""

    def __init__(
        self,
        space: SpaceId,
        books: Iterable[SubnetObserver],
        survey: Survey,
        followed: Callable[[int], Awaitable[None]],
        counted: Counted,
        page: int = PAGE,
    ) -> None:
        """``followed`` waits until the log was followed up to a number; ``counted`` hears of every row."""
        self.books = list(books)
        self._space = space
        self._router = Router(self.books)
        self._survey = survey
        self._followed = followed
        self._counted = counted
        self._page = page
        self._frontier = -1
        self._aside: list[HoldingChange] = []

    def follow(self, step: HoldingChange) -> None:
        """Take a change in: at once where it was counted already; else it is kept for the page that is being read."""
        for book in self._router.over(step.first, step.last):
            if max(step.first, book.terrain.first) <= self._frontier:
                move(book, step.network, step.first, step.last, (step.before, step.after))
        if step.last > self._frontier:
            self._aside.append(step)

    async def run(self) -> None:
        """Read everything; afterwards the books are complete and need only follow the log."""
        blocks = (AddressRange(book.terrain.first, book.terrain.last) for book in self.books)
        for part in merge(blocks):
            await self._read(part)
        self._aside.clear()

    async def _read(self, part: AddressRange) -> None:
        start = part.first
        while start <= part.last:
            # Earlier changes are in the page; only changes from here on are laid over it.
            self._aside.clear()
            page = await self._survey.rows(self._space, start, part.last, limit=self._page)
            # The number is read after the page, so everything that the page shows is followed before it is taken in.
            await self._followed(await self._survey.last_change())
            # A full page says nothing of what lies behind its last row.
            end = part.last if len(page) < self._page else min(page[-1].last, part.last)
            self._take_in(page, end)
            start = end + 1
            await asyncio.sleep(0)  # others want the loop, too

    def _take_in(self, page: Sequence[Row], end: int) -> None:
        """Take a page in as of now, without waiting."""
        # The page as it was read, without holdings whose time is over.
        shown = (row for row in page if not self._counted.is_over(row.first))
        rows = {
            row.first: HoldingChange(row.network, row.first, row.last, None, row.state, row.until_us) for row in shown
        }
        # Then all changes since the read began: each says what its holding has become.
        for step in self._aside:
            if step.after is None:
                rows.pop(step.first, None)
            else:
                rows[step.first] = step
        # Then each book gets what lies between the old frontier and the new one.
        for first, step in rows.items():
            if first <= end:
                self._counted.meet(step)
            for book in self._router.over(first, step.last):
                # A holding larger than the block begins before it; to this book it begins where the block does.
                if self._frontier < max(first, book.terrain.first) <= end:
                    # From nothing: above the old frontier the book has heard of no state before this one.
                    move(book, step.network, first, step.last, (None, step.after))
        self._frontier = end
