"""Who was let in a moment ago: what the ledger said of a token or cookie, kept for less than two seconds."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import NamedTuple

from tenure.doors.http.routing.principal import Visitor

# Below the two seconds in which a revoked token is promised to end, also where the log is not followed.
KEPT_S = 1.5
KEPT_WRONG_S = 1.0
LATELY_S = 600.0
# Callers choose what they send, so every table here has a limit.
MOST_SEATS = 4096
MOST_WRONG = 1024
MOST_ONCE_GOOD = 16_384

Found = tuple[Visitor | None, datetime | None]
"""Whom the ledger knows, and until when; nobody, where it knows this as one that was good once."""

ENDED: Found = (None, None)

Look = Callable[[bytes], Awaitable[Found | None]]


class CachedVisitor(NamedTuple):
    """Who a token or cookie stands for (None: nobody), and until when (by the monotonic clock) nobody asks again."""

    visitor: Visitor | None
    until: float


class Seats:
    """Answers of the ledger about tokens, or about cookies. Cost of a known one: a look in a dictionary.

    Keys are what the client sent, whole: a wrong secret is another key. Nothing of a good one can be told from the
    time that takes, since a dictionary compares only what has the same (randomly seeded) hash.
    """

    def __init__(self, look: Look) -> None:
        self._look = look
        self._looking: dict[bytes, asyncio.Task[CachedVisitor]] = {}
        self._wrong: dict[bytes, CachedVisitor] = {}
        self._once_good: dict[bytes, None] = {}
        self.known: dict[bytes, CachedVisitor] = {}

    def needs_no_count(self, given: bytes) -> bool:
        """Tell whether looking for this guesses nothing: it is or was good, or somebody else asks for it just now.

        So a crowd that begins with one new token at once is not taken for one that guesses; nor are pages that are
        still open when their login is over.
        """
        return given in self.known or given in self._once_good or given in self._looking

    def was_good(self, given: bytes) -> bool:
        """Tell whether this was good once: whoever sends it did not guess it."""
        return given in self._once_good

    def wrong(self, given: bytes, now: float) -> bool:
        """Tell whether this was found wrong a moment ago."""
        seat = self._wrong.get(given)
        return seat is not None and seat.until > now

    def lately(self, given: bytes, now: float) -> Visitor | None:
        """Return who came in by this not long ago: the best that can be said of it while the ledger does not answer."""
        seat = self.known.get(given)
        return seat.visitor if seat is not None and seat.until + LATELY_S > now else None

    async def find(self, given: bytes) -> Visitor | None:
        """Ask the ledger; those who ask for the same at once share one answer."""
        task = self._looking.get(given)
        if task is None:
            task = self._looking[given] = asyncio.create_task(self._ask(given))
            task.add_done_callback(lambda done: self._looked(given, done))
        # Shielded, because other callers share the look-up.
        return (await asyncio.shield(task)).visitor

    def _looked(self, given: bytes, task: asyncio.Task[CachedVisitor]) -> None:
        del self._looking[given]
        if not task.cancelled():
            task.exception()  # whoever asked may be gone; then nobody else wants to know

    async def _ask(self, given: bytes) -> CachedVisitor:
        found = await self._look(given)
        now = time.monotonic()
        if found is not None:
            self._note_good(given)
        visitor, until = found or ENDED
        if visitor is None:
            # `lately` answers from seats whose time is over; a token that the ledger refuses must not be among them.
            self.known.pop(given, None)
            _make_room(self._wrong, MOST_WRONG, now)
            seat = self._wrong[given] = CachedVisitor(None, now + KEPT_WRONG_S)
            return seat
        # A seat must not outlast its token: it would let the caller in after the token's end.
        left = KEPT_S if until is None else min(KEPT_S, (until - datetime.now(UTC)).total_seconds())
        if given not in self.known:
            _make_room(self.known, MOST_SEATS, now)
        seat = self.known[given] = CachedVisitor(visitor, now + left)
        return seat

    def _note_good(self, given: bytes) -> None:
        """Remember that this was good; when there is no more room, what was noted first is forgotten."""
        if given not in self._once_good and len(self._once_good) >= MOST_ONCE_GOOD:
            del self._once_good[next(iter(self._once_good))]
        self._once_good[given] = None

    def forget(self, token: str | None = None) -> None:
        """Ask again for whoever came in by a token; or for everybody."""
        # The news may be of a new token: what was wrong a moment ago may be good now.
        self._wrong.clear()
        if token is None:
            self.known.clear()
            return
        for given in [given for given, seat in self.known.items() if seat.visitor and seat.visitor.id == token]:
            del self.known[given]

    def forget_names(self) -> None:
        """Ask again for whoever may have scopes on some networks: names of networks have changed."""
        # Not only for visitors with networks: the scope of one without may wait for the network that was just added.
        for given in [given for given, seat in self.known.items() if seat.visitor and not seat.visitor.admin]:
            del self.known[given]


def _make_room(seats: dict[bytes, CachedVisitor], most: int, now: float) -> None:
    """Keep the number of seats bounded: those whose time is over go first, and if there are none, all do."""
    if len(seats) < most:
        return
    for given in [given for given, seat in seats.items() if seat.until <= now]:
        del seats[given]
    if len(seats) >= most:
        seats.clear()
