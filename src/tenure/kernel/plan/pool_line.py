"""A pool laid out as a line: the units a wish may be served from, numbered in the order *lowest* picks them.

Reserved, kept back and pre-allocated addresses are left out when the line is laid, so a pick can never meet them, and
policies work on plain numbers whatever the family, the unit, or the order the ranges were written in. Pools of a lower
rank come first, and no policy picks from a rank while an earlier rank has room.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tenure.kernel.plan.plan_model import Policy

Run = tuple[int, int, int]
"""Units at consecutive addresses: the first position, the size of a unit, and how many there are."""


class RankPart(NamedTuple):
    """The numbers of a line that pools of one rank have: ``start..start+size-1``."""

    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of units: numbers ``start..start+count-1`` of the line, at consecutive addresses."""

    start: int
    first: int
    unit_size: int
    count: int

    @property
    def last(self) -> int:
        """Return the last position of the run."""
        return self.first + self.unit_size * self.count - 1


class Line:
    """The units of one pool (or of a whole network), numbered in the order they are handed out."""

    def __init__(self, runs: Iterable[Run], policy: Policy, *, later: Iterable[Iterable[Run]] = ()) -> None:
        """Lay runs behind each other: those of the first rank, then those of each later rank."""
        self.policy = policy
        self.pieces: list[Piece] = []
        self.size = 0
        self.ranks: list[RankPart] = []
        """The parts that are picked from one after the other. A rank of no units is none; so an empty line has none."""
        for of_one_rank in (runs, *later):
            self._lay(of_one_rank)
        self.ascending = all(a.first < b.first for a, b in zip(self.pieces, self.pieces[1:], strict=False))
        self._starts = [piece.start for piece in self.pieces]
        self._by_position = sorted(self.pieces, key=lambda piece: piece.first)
        self._firsts = [piece.first for piece in self._by_position]

    def _lay(self, runs: Iterable[Run]) -> None:
        start = self.size
        for first, unit_size, count in runs:
            self.pieces.append(Piece(self.size, first, unit_size, count))
            self.size += count
        if self.size > start:
            self.ranks.append(RankPart(start, self.size - start))

    def rank_of(self, number: int) -> RankPart:
        """Return the part of one rank that a number lies in."""
        return next(part for part in self.ranks if number < part.start + part.size)

    @property
    def lowest(self) -> int:
        """Return the lowest position on the line, which is not empty."""
        return self._by_position[0].first

    @property
    def highest(self) -> int:
        """Return the highest position on the line, which is not empty."""
        return self._by_position[-1].last

    def unit(self, number: int) -> tuple[int, int]:
        """Return first and last position of a unit."""
        piece = self.pieces[bisect_right(self._starts, number) - 1]
        first = piece.first + (number - piece.start) * piece.unit_size
        return first, first + piece.unit_size - 1

    def end_of_run(self, number: int) -> int:
        """Return the last number up to which units follow each other as addresses do, from a number on."""
        index = bisect_right(self._starts, number) - 1
        piece = self.pieces[index]
        for after in self.pieces[index + 1 :]:
            if (after.first, after.unit_size) != (piece.last + 1, piece.unit_size):
                break
            piece = after
        return piece.start + piece.count - 1

    def number(self, position: int) -> int | None:
        """Return the number of the unit that a position lies in, if it is on the line."""
        index = bisect_right(self._firsts, position) - 1
        if index < 0 or position > (piece := self._by_position[index]).last:
            return None
        return piece.start + (position - piece.first) // piece.unit_size

    def numbers(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the intervals of the line that ``first..last`` lies over."""
        # From the piece that begins at or before the range: it may reach into it.
        index = max(bisect_right(self._firsts, first) - 1, 0)
        while index < len(self._by_position) and (piece := self._by_position[index]).first <= last:
            index += 1
            if piece.last >= first:
                low = max(first - piece.first, 0) // piece.unit_size
                high = min((last - piece.first) // piece.unit_size, piece.count - 1)
                yield piece.start + low, piece.start + high

    def between(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the intervals of the line that ``first..last`` lies over, in order and joined.

        O(log n) of the pieces where these are written in order of address, else O(n).
        """
        if not self.ascending:
            return sorted(_joined(sorted(self.numbers(first, last))))
        # On an ascending line pieces are written in order of address, so `_firsts` gives places in `pieces`, too.
        index = max(bisect_right(self._firsts, first) - 1, 0)
        if index < len(self.pieces) and self.pieces[index].last < first:
            index += 1
        at_end = bisect_right(self._firsts, last) - 1
        if index > at_end:
            return []
        low, high = self.pieces[index], self.pieces[at_end]
        begins = low.start + max(first - low.first, 0) // low.unit_size
        ends = high.start + min((last - high.first) // high.unit_size, high.count - 1)
        # One interval: on an ascending line the pieces between two others have all numbers between theirs.
        return [(begins, ends)]

    def taken(self, spans: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
        """Turn held spans, sorted by position, into intervals of the line, sorted and joined."""
        if len(self.pieces) == 1:
            return _joined(_of_one_piece(self.pieces[0], spans))
        joined = _joined(interval for first, last in spans for interval in self.numbers(first, last))
        # Where pieces are not written in order of address, positions in order give numbers out of order.
        return joined if self.ascending else sorted(joined)


def _of_one_piece(piece: Piece, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Do what ``numbers`` does, for the usual line of one piece and a million spans."""
    base, size, end, highest = piece.first, piece.unit_size, piece.last, piece.count - 1
    for first, last in spans:
        if last >= base and first <= end:
            yield (first - base) // size if first > base else 0, min((last - base) // size, highest)


def _joined(intervals: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    current: tuple[int, int] | None = None
    for first, last in intervals:
        # On a line that is not ascending, an interval may jump back and begins anew.
        if current is not None and current[0] <= first <= current[1] + 1:
            current = (current[0], max(current[1], last))
            continue
        if current is not None:
            yield current
        current = (first, last)
    if current is not None:
        yield current
