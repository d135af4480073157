"""Results of this process, noted in a pool that is not in one ConfigMap: now and then, beside the allocations.

In one ConfigMap they go with the next write of the state and cost nothing. In the other modes an allocation writes no
notes, so a process that lives long enough writes them by themselves; an agent shows the sum of all processes.
"""

import asyncio
import time
from dataclasses import dataclass, field

from tenure.integrations.vmpool.config_map_swap import SwapLost
from tenure.integrations.vmpool.metering.result_tally import NEW, TIMED, ResultTally
from tenure.integrations.vmpool.modes.allocation_book import AllocationBook
from tenure.integrations.vmpool.state.pool_notes import read_notes, write_notes
from tenure.kernel.errors import TenureError

NOTED_EVERY_S = 10.0


@dataclass
class NotedResults:
    """Writes what a tally has, at most so often."""

    book: AllocationBook
    tally: ResultTally
    _noted_at: float = field(default_factory=time.monotonic)
    """A process that ends within the first seconds, as commands do, writes nothing."""
    _writing: asyncio.Task[None] | None = None

    def note_soon(self) -> None:
        """Begin to write, unless that was done a moment ago; nobody waits for it."""
        if self._writing is not None or time.monotonic() - self._noted_at < NOTED_EVERY_S:
            return
        # Before the write, so that a write that fails is tried no sooner than any other.
        self._noted_at = time.monotonic()
        self._writing = asyncio.create_task(self._note())

    async def _note(self) -> None:
        taken = self.tally.take()
        # Allocations are counted by who sees them; noted is how many the milliseconds are of.
        counts = {TIMED if name == NEW else name: count for name, count in taken.items()}
        try:
            stored = await self.book.read_notes()
            notes = read_notes(stored.text)
            if notes.problem or not counts:
                self.tally.give_back(taken)
                return
            await self.book.write_notes(write_notes(notes.with_counts(counts).with_write("")), stored)
        except (SwapLost, TenureError):
            self.tally.give_back(taken)  # it is for people: the next try will do
        finally:
            self._writing = None

    async def close(self) -> None:
        """Wait until nothing is under way."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
