"""A sorted set of numbers that tells quickly how many of them lie below another: 8 bytes a number."""

from array import array
from bisect import bisect_left
from collections.abc import MutableSequence
from itertools import accumulate

CHUNK = 2048
WORD = 1 << 64


class Numbers:
    """Numbers in order, in chunks of bounded length. Taking one in or out costs O(log n + CHUNK)."""

    def __init__(self, most: int) -> None:
        """Begin empty, for numbers up to ``most``; those that fit no machine word cost more memory."""
        self._wide = most >= WORD
        self._chunks: list[MutableSequence[int]] = []
        self._ends: list[int] = []
        self._before: list[int] | None = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, number: int) -> None:
        """Take a number in; it must not be there."""
        self._size += 1
        self._before = None
        # A reading comes in order, so nearly all numbers are appended while an index is built.
        if not self._ends or number > self._ends[-1]:
            self._append(number)
            return
        place = bisect_left(self._ends, number)
        chunk = self._chunks[place]
        chunk.insert(bisect_left(chunk, number), number)
        # Split at twice the length, so that the halves have room for CHUNK more before the next split.
        if len(chunk) > 2 * CHUNK:
            self._chunks[place : place + 1] = [chunk[:CHUNK], chunk[CHUNK:]]
            self._ends[place : place + 1] = [chunk[CHUNK - 1], chunk[-1]]

    def _append(self, number: int) -> None:
        if not self._chunks or len(self._chunks[-1]) >= CHUNK:
            self._chunks.append([] if self._wide else array("Q"))
            self._ends.append(number)
        self._chunks[-1].append(number)
        self._ends[-1] = number

    def discard(self, number: int) -> None:
        """Take a number out, if it is there."""
        place = bisect_left(self._ends, number)
        if place == len(self._ends):
            return
        chunk = self._chunks[place]
        index = bisect_left(chunk, number)
        if chunk[index] != number:
            return
        del chunk[index]
        self._size -= 1
        self._before = None
        if chunk:
            self._ends[place] = chunk[-1]
        else:
            del self._chunks[place], self._ends[place]

    def below(self, number: int) -> int:
        """Count the numbers that are smaller. O(log n)."""
        # The sums are made on demand: many changes come between two looks.
        if self._before is None:
            self._before = [0, *accumulate(len(chunk) for chunk in self._chunks)]
        place = bisect_left(self._ends, number)
        if place == len(self._ends):
            return self._size
        return self._before[place] + bisect_left(self._chunks[place], number)
