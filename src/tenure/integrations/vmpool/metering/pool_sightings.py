"""What has happened to a pool, as a process that reads it now and then can see: by whomever, in every mode.

An allocation that is there now and was not before is new, whether a Go manager made it or Tenure. What came and went
between two looks is seen only in the notes, where Tenure's own writers count it. Failures, conflicts and times are
known from the notes alone. Cost of a look: O(n) look-ups.
"""

from collections import Counter
from collections.abc import Mapping

from tenure.integrations.vmpool.metering.result_tally import CONFLICTS, MILLISECONDS, NEW, TIMED
from tenure.integrations.vmpool.pool_document import PoolDocument
from tenure.integrations.vmpool.state.held_back import is_held_back

Sighting = tuple[str, str, object]
"""An allocation: its id, its IP, and since when."""

RELEASED = "released"
FAILURES = ("existing", "exhausted", "conflict", "error")


class PoolSightings:
    """Totals since the first look."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self._seen: frozenset[Sighting] | None = None
        self._noted: Mapping[str, int] = {}

    def see(self, document: PoolDocument) -> None:
        """Count what is different from the last look; the first look, and one at a pool on the move, count nothing."""
        placement = document.notes.placement
        if placement is not None and placement.moves_to:
            return
        now = frozenset(
            (id, each.ip, each.allocated_at) for id, each in document.state.allocated.items() if not is_held_back(each)
        )
        if self._seen is not None:
            self._count(now, self._seen, self._increase(document.notes.counts))
        self._seen = now
        # Notes that cannot be read count nothing; with their zeros, all would be counted again when they are mended.
        if not document.notes.problem:
            self._noted = document.notes.counts

    def _increase(self, counts: Mapping[str, int]) -> Counter[str]:
        """Return what was noted since the last look; notes that begin again, with less, begin with what they say."""
        before = self._noted
        is_again = any(counts.get(name, 0) < before[name] for name in before)
        return Counter({name: count - (0 if is_again else before.get(name, 0)) for name, count in counts.items()})

    def _count(self, now: frozenset[Sighting], before: frozenset[Sighting], noted: Counter[str]) -> None:
        came, went = len(now - before), len(before - now)
        # An allocation that is noted, and was not seen to come, was gone again before this look.
        short_lived = max(0, noted[NEW] - came)
        self.totals[NEW] += came + short_lived
        self.totals[RELEASED] += went + short_lived
        self.totals[TIMED] += noted[NEW] + noted[TIMED]
        for name in (*FAILURES, CONFLICTS, MILLISECONDS):
            self.totals[name] += noted[name]
