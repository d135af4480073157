"""Free intervals of a line of numbers 0..size-1.

Intervals are kept sorted in chunks of bounded length, so every operation costs O(log n + CHUNK) however many
intervals there are: 1-2 µs in a /16, the same in a /64 with a million holes. A /64 costs what its holes cost.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

CHUNK = 512


class FreeSet:
    """Disjoint, non-touching free intervals, ordered."""

    __slots__ = ("_chunk_ends", "_firsts", "_lasts", "free", "size")

    def __init__(self, size: int, taken: Iterable[tuple[int, int]] = ()) -> None:
        """Begin with everything free but ``taken``: intervals sorted by their start (overlaps are fine)."""
        self.size = size
        self.free = 0
        # Parallel lists of chunks: starts and ends of intervals; _chunk_ends holds each chunk's last end.
        self._firsts: list[list[int]] = []
        self._lasts: list[list[int]] = []
        self._chunk_ends: list[int] = []
        self._fill(_gaps(size, taken))

    def _fill(self, intervals: Iterator[tuple[int, int]]) -> None:
        firsts: list[int] = []
        lasts: list[int] = []
        for first, last in intervals:
            self.free += last - first + 1
            firsts.append(first)
            lasts.append(last)
            if len(firsts) == CHUNK:
                self._append(firsts, lasts)
                firsts, lasts = [], []
        if firsts:
            self._append(firsts, lasts)

    def _append(self, firsts: list[int], lasts: list[int]) -> None:
        self._firsts.append(firsts)
        self._lasts.append(lasts)
        self._chunk_ends.append(lasts[-1])

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for firsts, lasts in zip(self._firsts, self._lasts, strict=True):
            yield from zip(firsts, lasts, strict=True)

    def __contains__(self, number: int) -> bool:
        return self.at_or_after(number) == number

    def at_or_after(self, number: int) -> int | None:
        """Return the lowest free number that is not below ``number``."""
        # By ends and not by starts: the first interval that ends at or behind the number has it, or lies behind it.
        chunk = bisect_left(self._chunk_ends, number)
        if chunk == len(self._chunk_ends):
            return None
        first = self._firsts[chunk][bisect_left(self._lasts[chunk], number)]
        return first if first > number else number

    def end_of(self, number: int) -> int:
        """Return the last number of the free interval that a free number lies in."""
        chunk, index = self._locate(number)
        return self._lasts[chunk][index]

    def take(self, first: int, last: int) -> list[tuple[int, int]]:
        """Mark ``first..last`` as not free; return the intervals that were free until now."""
        changed: list[tuple[int, int]] = []
        # Each turn looks the place up afresh: a cut may delete an interval or split a chunk.
        while (chunk := bisect_left(self._chunk_ends, first)) < len(self._chunk_ends):
            index = bisect_left(self._lasts[chunk], first)
            start = max(first, self._firsts[chunk][index])
            if start > last:
                break
            end = self._cut(chunk, index, start, last)
            # The exact view undoes a take by these, so they must not name what was not free before.
            changed.append((start, end))
            if end == last:  # as with a single number, which is by far the most frequent
                break
        return changed

    def give_back(self, first: int, last: int) -> list[tuple[int, int]]:
        """Mark ``first..last`` as free; return the intervals that were not free until now."""
        # What is free already is taken first: ``_join`` adds an interval of which nothing is free.
        were_free = self.take(first, last)
        self._join(first, last)
        if not were_free:
            return [(first, last)]
        shifted = [(low - first, high - first) for low, high in were_free]
        return [(low + first, high + first) for low, high in _gaps(last - first + 1, shifted)]

    def _join(self, first: int, last: int) -> None:
        """Add an interval, none of which is free, and join it with its neighbours."""
        self.free += last - first + 1
        after = self.at_or_after(last + 1)
        if after == last + 1:
            chunk, index = self._locate(after)
            last = self._lasts[chunk][index]
            self._delete(chunk, index)
        # Looked up only now: the deletion above may have taken a whole chunk away.
        chunk = bisect_left(self._chunk_ends, first - 1)
        if chunk < len(self._chunk_ends):
            index = bisect_left(self._lasts[chunk], first - 1)
            if self._lasts[chunk][index] == first - 1:
                first = self._firsts[chunk][index]
                self._delete(chunk, index)
        self._insert(first, last)

    def _locate(self, number: int) -> tuple[int, int]:
        chunk = bisect_left(self._chunk_ends, number)
        return chunk, bisect_left(self._lasts[chunk], number)

    def _cut(self, chunk: int, index: int, start: int, last: int) -> int:
        """Take ``start..last`` out of the interval that ``start`` lies in; return where the cut ends."""
        interval_first, interval_last = self._firsts[chunk][index], self._lasts[chunk][index]
        last = min(last, interval_last)
        self.free -= last - start + 1
        if start == interval_first and last == interval_last:
            self._delete(chunk, index)
        elif start == interval_first:
            self._firsts[chunk][index] = last + 1
        else:
            self._lasts[chunk][index] = start - 1
            if index == len(self._lasts[chunk]) - 1:
                self._chunk_ends[chunk] = start - 1
            # The rest goes in last: an insert may split the chunk, and then ``chunk`` and ``index`` point elsewhere.
            if last < interval_last:
                self._insert(last + 1, interval_last)
        return last

    def _insert(self, first: int, last: int) -> None:
        if not self._chunk_ends:
            self._append([first], [last])
            return
        # An interval behind all others belongs to the last chunk.
        chunk = min(bisect_right(self._chunk_ends, first), len(self._chunk_ends) - 1)
        firsts, lasts = self._firsts[chunk], self._lasts[chunk]
        index = bisect_left(firsts, first)
        firsts.insert(index, first)
        lasts.insert(index, last)
        self._chunk_ends[chunk] = lasts[-1]
        # Split at twice the length, so that the halves have room for CHUNK more before the next split.
        if len(firsts) > 2 * CHUNK:
            self._split(chunk)

    def _split(self, chunk: int) -> None:
        firsts, lasts = self._firsts[chunk], self._lasts[chunk]
        self._firsts[chunk : chunk + 1] = [firsts[:CHUNK], firsts[CHUNK:]]
        self._lasts[chunk : chunk + 1] = [lasts[:CHUNK], lasts[CHUNK:]]
        self._chunk_ends[chunk : chunk + 1] = [lasts[CHUNK - 1], lasts[-1]]

    def _delete(self, chunk: int, index: int) -> None:
        firsts, lasts = self._firsts[chunk], self._lasts[chunk]
        del firsts[index], lasts[index]
        # An empty chunk has no last end to be found by, so it goes.
        if firsts:
            self._chunk_ends[chunk] = lasts[-1]
        else:
            del self._firsts[chunk], self._lasts[chunk], self._chunk_ends[chunk]


class FreePart:
    """A part of a free set, numbered from 0: what a policy sees of the numbers that it may pick from."""

    __slots__ = ("_free", "_start", "size")

    def __init__(self, free: FreeSet, start: int, size: int) -> None:
        self.size = size
        self._free = free
        self._start = start

    def at_or_after(self, number: int) -> int | None:
        """Return the lowest free number of the part that is not below ``number``."""
        found = self._free.at_or_after(self._start + number)
        return None if found is None or found >= self._start + self.size else found - self._start


def _gaps(size: int, taken: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start = 0
    for first, last in taken:
        if first > start:
            yield start, first - 1
        # An interval that lies inside of an earlier one must not move the start back.
        if last >= start:
            start = last + 1
    if start < size:
        yield start, size - 1
