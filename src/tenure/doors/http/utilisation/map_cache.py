"""The indexes that maps are drawn from: one a subnet that somebody looks at, let go when nobody does any more."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from tenure.doors.http.utilisation.page_loader import Feed
from tenure.doors.http.utilisation.position_index import Spots
from tenure.doors.http.utilisation.space_count import SpaceCount, SubnetKey
from tenure.doors.http.utilisation.subnet_tally import SubnetObserver
from tenure.kernel.errors import NotFound
from tenure.kernel.holdings.holding_model import SpaceId
from tenure.wire.http_errors import Overloaded

MOST_KEPT = 8_000_000
"""Holdings that all indexes have together: some 64 MB."""

MOST_LOOKED_AT = 64
IDLE_S = 300.0
LOOKS_EVERY_S = 30.0


class Counting(Protocol):
    """What an atlas needs of the census."""

    spaces: dict[SpaceId, SpaceCount]

    def do(self, name: object, work: Callable[[], Awaitable[None]]) -> None:
        """Do something in the background."""
        ...

    def feed(self, space: SpaceCount, books: Iterable[SubnetObserver]) -> Feed:
        """Begin to read a space for books."""
        ...

    async def wait_until(self, ready: Callable[[], bool]) -> bool:
        """Wait until something in the background is ready."""
        ...


class MapCache:
    """Builds an index on the first look at a subnet, by streaming; the log keeps it current like the tallies."""

    def __init__(self, census: Counting) -> None:
        self._census = census

    def begin(self) -> None:
        """Begin to look for indexes that nobody uses."""
        self._census.do("idle maps", self._drop_idle)

    async def spots(self, space: SpaceCount, key: SubnetKey) -> Spots:
        """Return the index of a subnet; Overloaded if it takes long to build: it goes on, and asking again helps."""
        # `do` leaves a build alone that is under way, so callers who look at once share one reading.
        if key not in space.spots:
            self._census.do((space.number, *key), lambda: self._build(space, key))
            if not await self._census.wait_until(lambda: key in space.spots or key not in space.tallies):
                raise Overloaded("the map is still being drawn; ask again in a moment")
        # Asked for again: the wait also ends when the subnet is gone.
        found = space.spots.get(key)
        if found is None:
            raise NotFound("subnet", key[1], hint="it was removed while its map was drawn")
        found.used_at = time.monotonic()
        return found

    async def _build(self, space: SpaceCount, key: SubnetKey) -> None:
        while key in space.tallies:
            spots = Spots(key[0], space.tallies[key].terrain)
            feed = self._census.feed(space, [spots])
            try:
                await feed.run()
            finally:
                space.feeds.remove(feed)
            # No await between the end of the feed and the entry in `spots`, so no change is missed in between.
            # An edit while the space was read makes the index one of another terrain: it is built anew.
            if key in space.tallies and space.tallies[key].terrain == spots.terrain:
                spots.used_at = time.monotonic()
                space.spots[key] = spots
                self._keep_within_bounds()
                return

    def _keep_within_bounds(self) -> None:
        """Let go of what was looked at longest ago, but never of the newest."""
        kept = 0
        for number, (spots, space, key) in enumerate(self._newest_first()):
            kept += len(spots)
            if number and (kept > MOST_KEPT or number >= MOST_LOOKED_AT):
                del space.spots[key]

    async def _drop_idle(self) -> None:
        while True:
            await asyncio.sleep(LOOKS_EVERY_S)
            for spots, space, key in self._newest_first():
                if spots.used_at < time.monotonic() - IDLE_S:
                    del space.spots[key]

    def _newest_first(self) -> list[tuple[Spots, SpaceCount, SubnetKey]]:
        kept = [(spots, space, key) for space in self._census.spaces.values() for key, spots in space.spots.items()]
        return sorted(kept, key=lambda each: each[0].used_at, reverse=True)
