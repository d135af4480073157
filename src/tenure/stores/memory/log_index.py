"""Entries of the log by address, in memory."""

from collections.abc import Sequence
from itertools import islice

from tenure.kernel.holdings.holding_model import Change


class ChangesByAddress:
    """An index that is brought up to date when somebody asks, so that those who write do not pay for it."""

    def __init__(self) -> None:
        self._oldest = 0
        self._upto = 0
        self._changes: dict[int, list[Change]] = {}

    def catch_up(self, log: Sequence[Change], oldest: int) -> None:
        """Take in what is new in a log that begins behind ``oldest``: O(1) for every entry, once."""
        # Entries left the beginning of the log: the index is built anew.
        if oldest != self._oldest:
            self._changes.clear()
            self._oldest = self._upto = oldest
        for change in islice(log, self._upto - oldest, None):
            if change.first is not None and change.verb != "grant":
                self._changes.setdefault(change.first, []).append(change)
        self._upto = oldest + len(log)

    def find(self, firsts: Sequence[int], after: int, limit: int) -> list[Change]:
        """Read entries about addresses. O(k + answer log answer)."""
        found = [change for first in set(firsts) for change in self._changes.get(first, ()) if change.seq > after]
        return sorted(found, key=lambda change: change.seq)[:limit]
