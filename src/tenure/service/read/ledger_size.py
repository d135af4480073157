"""How large a ledger is and how fast it grows: read now and then, since counting costs."""

import asyncio
from collections import deque
from dataclasses import dataclass

from tenure.ports import LedgerStore, Size

LASTS_S = 60.0
"""How long a reading serves."""

SHARE = 1000
"""A reading serves so many times longer than it took: counting takes a thousandth of the time at most."""

SAMPLE_S = 3600.0
SAMPLES = 25
"""Readings that growth is told by: the last day's, one an hour."""

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Growth:
    """How much a ledger would grow in a day, by what it did over the last seconds; bytes where the store knows them."""

    over_s: float
    changes_per_day: float
    bytes_per_day: float | None


class SizeGauge:
    """Reads the size of one store, for all who ask in this process."""

    def __init__(self, store: LedgerStore) -> None:
        self._store = store
        self._last: Size | None = None
        self._read_at = self._serves_until = 0.0
        self._reading: asyncio.Task[Size] | None = None
        self._samples: deque[tuple[float, Size]] = deque(maxlen=SAMPLES)

    @property
    def last(self) -> Size | None:
        """Return the last reading, if there was one."""
        return self._last

    async def current(self) -> Size:
        """Return a reading that still serves, or a new one; callers who come together share it."""
        if self._last is not None and _now_s() < self._serves_until:
            return self._last
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read())
            self._reading.add_done_callback(self._over)
        # A caller that goes away must not end the reading of the others.
        return await asyncio.shield(self._reading)

    async def anew(self) -> Size:
        """Return a reading that began after this call."""
        # A reading under way may have begun before this call.
        await self.finish()
        self._serves_until = 0.0
        return await self.current()

    async def _read(self) -> Size:
        began = _now_s()
        size = await self._store.size()
        now = _now_s()
        self._last, self._read_at = size, now
        self._serves_until = now + max(LASTS_S, SHARE * (now - began))
        if not self._samples or now - self._samples[-1][0] >= SAMPLE_S:
            self._samples.append((now, size))
        return size

    def _over(self, reading: "asyncio.Task[Size]") -> None:
        self._reading = None
        if not reading.cancelled():
            reading.exception()  # whoever still waits is told; nobody else need be

    def growth(self) -> Growth | None:
        """Return how fast the ledger grows, as of the last reading; None until there are two of different times."""
        if self._last is None or not self._samples:
            return None
        began, then = self._samples[0]
        over_s = self._read_at - began
        if over_s <= 0:
            return None
        a_day = DAY_S / over_s
        known = None if self._last.bytes is None or then.bytes is None else (self._last.bytes - then.bytes) * a_day
        return Growth(over_s, (self._last.newest - then.newest) * a_day, known)

    async def finish(self) -> None:
        """Wait for a reading that is under way."""
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
