"""Shares: how much of a process one caller may have at a time, so that whoever is greedy takes it from nobody else.

A process works on so many requests at a time, lets so many calls wait and feeds so many streams. Each token has a share
of each, counted together with its logins; callers without a token have one share together. Above its share a caller
gets 429, and the others notice nothing. The limits of the whole process (503) are the last resort.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tenure.doors.http.observe.counters import REFUSED_KINDS, ServerCounters
from tenure.doors.http.routing.principal import Visitor
from tenure.doors.http.settings import Limits
from tenure.kernel.errors import TenureError
from tenure.wire.http_errors import Overloaded, ShareUsedUp

REQUESTS, WAITING, STREAMS = range(len(REFUSED_KINDS))
"""The kinds, as places in a share."""

NOUNS = ("requests in work", "calls that wait", "streams of events")
RETRY_AFTER_S = (1, 5, 5)
"""When a place is likely to be free again: requests take milliseconds, the others seconds and more."""

MOST_REMEMBERED = 4096

Share = list[int]
"""How many requests, waiting calls and streams a caller has at this moment."""


class Shares:
    """Counts who has how much of one process. Cost of a request: a look in a dictionary and four integers."""

    def __init__(self, limits: Limits, meter: ServerCounters) -> None:
        self._meter = meter
        self._most = (limits.requests_at_once, limits.waiting_at_once, limits.streams)
        parts = (limits.requests_share, limits.waiting_share, limits.streams_share)
        # At least one: a small part of a low limit must not shut every token out.
        self._most_each = tuple(max(1, int(most * part)) for most, part in zip(self._most, parts, strict=True))
        # Copies for room_for, which every request passes.
        self._requests, self._requests_each = self._most[REQUESTS], self._most_each[REQUESTS]
        self._shares: dict[str, Share] = {}
        self.total: Share = [0, 0, 0]

    def room_for(self, caller: str) -> Share | None:
        """Return the share of a caller, by the token's id, if one more request may be worked on; else None."""
        share = self._shares.get(caller) or self._new(caller)
        if share[REQUESTS] >= self._requests_each or self.total[REQUESTS] >= self._requests:
            return None
        return share

    def begin(self, share: Share) -> None:
        """Count a request that is worked on from now."""
        share[REQUESTS] += 1
        self.total[REQUESTS] += 1

    def end(self, share: Share) -> None:
        """Count a request no longer."""
        share[REQUESTS] -= 1
        self.total[REQUESTS] -= 1

    def admit(self, visitor: Visitor) -> Share:
        """Count a request and return the share to be given to ``end``; raise ShareUsedUp or Overloaded without room."""
        share = self.room_for(visitor.id)
        if share is None:
            raise self._refusal(self._shares[visitor.id], REQUESTS, visitor)
        self.begin(share)
        return share

    def check(self, kind: int, visitor: Visitor) -> None:
        """Raise ShareUsedUp or Overloaded if a request of this caller could not be of this kind now."""
        share = self._shares.get(visitor.id) or self._new(visitor.id)
        if share[kind] >= self._most_each[kind] or self.total[kind] >= self._most[kind]:
            raise self._refusal(share, kind, visitor)

    @contextmanager
    def counted_as(self, kind: int, visitor: Visitor) -> Iterator[None]:
        """Count a request that was admitted as a waiting call or as a stream, meanwhile, and not as work.

        Raises what ``check`` raises. Nothing comes between the check and the count.
        """
        self.check(kind, visitor)
        share = self._shares[visitor.id]
        self.end(share)
        self._add(share, kind, 1)
        try:
            yield
        finally:
            # Back among the requests without a check: the request was admitted, and its answer is still to be sent.
            self._add(share, kind, -1)
            self.begin(share)

    def _add(self, share: Share, kind: int, by: int) -> None:
        share[kind] += by
        self.total[kind] += by
        self._meter.count(REFUSED_KINDS[kind], by)

    def _new(self, caller: str) -> Share:
        """Begin a share; when very many are remembered, those of callers who have nothing are forgotten."""
        if len(self._shares) >= MOST_REMEMBERED:
            self._shares = {each: share for each, share in self._shares.items() if any(share)}
        share = self._shares[caller] = [0, 0, 0]
        return share

    def _refusal(self, share: Share, kind: int, visitor: Visitor) -> TenureError:
        """Return the refusal of one more, and count it: by the caller's own share, or else by the process's limit."""
        name, most = REFUSED_KINDS[kind], self._most_each[kind]
        if share[kind] < most:
            self._meter.count(f"refused_{name}_server")
            return Overloaded(f"this server has {self._most[kind]} {NOUNS[kind]} already; try again, or another one")
        self._meter.count(f"refused_{name}_token")
        told = f"{visitor.name!r} has {most} {NOUNS[kind]} on this server already, which is the share of one token"
        return ShareUsedUp(told, kind=name, most=most, after_s=RETRY_AFTER_S[kind])
