"""Results that this process has had and no write has noted yet: they go into the notes with its next write.

So the pool itself says how often allocations succeeded and failed, how long they took and how often writers were in
each other's way, whichever processes allocate and however short they live; an agent reads it there. What a process had
when it ended without another write is lost: a write for the sake of a count would be in the way of allocations.
"""

from collections import Counter
from collections.abc import Mapping

NEW = "new"
CONFLICTS = "conflicts"
"""Writes that another writer was faster than; a result ``conflict`` is a call that has failed of them."""
MILLISECONDS = "milliseconds"
"""Of the allocations that are counted as new, until their write was sent."""
TIMED = "timed"
"""How many allocations the milliseconds are of; in the notes, of those that are not counted there as new."""


class ResultTally:
    """Counts by name, of one process on one pool."""

    def __init__(self) -> None:
        self._pending: Counter[str] = Counter()

    def add(self, name: str, count: int = 1) -> None:
        """Count something that is still to be noted."""
        self._pending[name] += count

    def take(self) -> Mapping[str, int]:
        """Return what a write is to note now; if it is not done, it is given back."""
        taken, self._pending = self._pending, Counter()
        return taken

    def give_back(self, taken: Mapping[str, int]) -> None:
        """Keep for another write what was not noted."""
        self._pending.update(taken)
