"""Keys that need work: each once, however often it is added, never by two workers, and later if it fails."""

import asyncio
import contextlib
import heapq
import itertools
import random
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)

FIRST_DELAY_S, LONGEST_DELAY_S = 0.01, 60.0


class WorkQueue(Generic[KeyT]):
    """A queue that folds: a thousand additions of a key before a worker takes it are one pass.

    A key that is added while a worker has it is given out again when the worker is done, so no change is missed.
    A failure delays only its key, twice as long each time. Cost: O(1) an addition, O(log n) a delayed one.
    """

    def __init__(self, *, longest_delay_s: float = LONGEST_DELAY_S) -> None:
        self._ready: OrderedDict[KeyT, None] = OrderedDict()
        """Keys that a worker may take, in the order in which they are taken."""
        self._wanted: dict[KeyT, float] = {}
        """Keys that wait for a worker, with when they were added."""
        self._taken: set[KeyT] = set()
        self._later: list[tuple[float, int, KeyT]] = []
        self._due: dict[KeyT, float] = {}
        self._failures: dict[KeyT, int] = {}
        self._number = itertools.count()
        self._changed = asyncio.Event()
        self._longest_delay_s = longest_delay_s

    def __len__(self) -> int:
        return len(self._wanted)

    @property
    def oldest_s(self) -> float:
        """Return for how long the longest waiting key has waited."""
        return time.monotonic() - min(self._wanted.values()) if self._wanted else 0.0

    def add(self, key: KeyT) -> None:
        """Ask for a pass over a key."""
        if key in self._wanted:
            return
        self._wanted[key] = time.monotonic()
        if key not in self._taken:
            self._ready[key] = None
            self._changed.set()

    def discard(self, key: KeyT) -> None:
        """Take back what was asked for a key, of which nothing is left; a worker that has it goes on."""
        self._wanted.pop(key, None)
        self._ready.pop(key, None)
        self._due.pop(key, None)
        self._failures.pop(key, None)

    def add_after(self, key: KeyT, delay_s: float) -> None:
        """Ask for a pass over a key after a time, or sooner if it is due sooner already."""
        due = time.monotonic() + delay_s
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._later, (due, next(self._number), key))
            self._changed.set()

    def failed(self, key: KeyT) -> float:
        """Ask for another pass over a key that failed, and return after which delay it comes."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        # The exponent is bounded: 2.0 ** 1024 raises OverflowError.
        doubled: float = FIRST_DELAY_S * 2.0 ** min(failures, 40)
        delay = min(doubled, self._longest_delay_s) * random.uniform(0.8, 1.2)
        self.add_after(key, delay)
        return delay

    def succeeded(self, key: KeyT) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    async def take(self) -> KeyT:
        """Wait for a key, and keep it from other workers until ``done``."""
        while True:
            wait_s = self._bring_due()
            if self._ready:
                key, _ = self._ready.popitem(last=False)
                del self._wanted[key]
                self._taken.add(key)
                return key
            # Without an await since the look at the keys, so no addition is missed.
            self._changed.clear()
            # Not ``wait_for``: in Python 3.11 it swallows a cancellation that comes in the same turn as the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()

    def done(self, key: KeyT) -> None:
        """Give a key back; it is ready again if it was added meanwhile."""
        self._taken.discard(key)
        if key in self._wanted:
            self._ready[key] = None
            self._changed.set()

    async def work(
        self, handle: Callable[[KeyT], Awaitable[None]], workers: int, report: Callable[[KeyT, Exception, float], None]
    ) -> None:
        """Handle keys with so many workers until cancelled; a key whose pass raises comes again later.

        A key whose pass is cancelled is in the queue again, for the workers of the next leadership.
        """

        async def worker() -> None:
            while True:
                key = await self.take()
                try:
                    await handle(key)
                except Exception as error:
                    report(key, error, self.failed(key))
                except asyncio.CancelledError:
                    self.add(key)
                    raise
                else:
                    self.succeeded(key)
                finally:
                    self.done(key)

        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(worker())

    def _bring_due(self) -> float | None:
        """Add what is due, and return for how long nothing else will be."""
        while self._later:
            due, _, key = self._later[0]
            wait_s = due - time.monotonic()
            if wait_s > 0:
                return wait_s
            heapq.heappop(self._later)
            # Else the key was wanted sooner, or taken back; this entry of the heap is an old one.
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
        return None
