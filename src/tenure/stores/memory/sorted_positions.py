"""Positions kept in order."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

CHUNK = 1024


class SortedPositions:
    """Positions in order, in chunks of bounded length: O(log n + CHUNK) to add and remove."""

    def __init__(self) -> None:
        self._chunks: list[list[int]] = []
        self._lasts: list[int] = []

    def add(self, position: int) -> None:
        """Add a position that is not there."""
        if not self._chunks:
            self._chunks, self._lasts = [[position]], [position]
            return
        # A position above all others goes into the last chunk.
        index = min(bisect_left(self._lasts, position), len(self._lasts) - 1)
        chunk = self._chunks[index]
        chunk.insert(bisect_left(chunk, position), position)
        if len(chunk) > 2 * CHUNK:
            self._chunks[index : index + 1] = [chunk[:CHUNK], chunk[CHUNK:]]
            self._lasts[index : index + 1] = [chunk[CHUNK - 1], chunk[-1]]
        else:
            self._lasts[index] = chunk[-1]

    def remove(self, position: int) -> None:
        """Remove a position that is there."""
        index = bisect_left(self._lasts, position)
        chunk = self._chunks[index]
        del chunk[bisect_left(chunk, position)]
        if chunk:
            self._lasts[index] = chunk[-1]
        else:
            del self._chunks[index], self._lasts[index]

    def below(self, position: int) -> int | None:
        """Return the greatest position that is not above the given one."""
        index = bisect_left(self._lasts, position)
        if index < len(self._chunks):
            chunk = self._chunks[index]
            place = bisect_right(chunk, position)
            if place:
                return chunk[place - 1]
        return self._lasts[index - 1] if index else None

    def between(self, first: int, last: int) -> Iterator[int]:
        """Yield the positions of a range in order."""
        start = bisect_left(self._lasts, first)
        for chunk in self._chunks[start:]:
            if chunk[0] > last:
                return
            yield from chunk[bisect_left(chunk, first) : bisect_right(chunk, last)]
