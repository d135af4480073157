"""A stretch of a subnet cut into equal cells: what each has of everything."""

from dataclasses import dataclass
from itertools import pairwise

from tenure.doors.http.utilisation.position_index import Spots

Counts = dict[str, int]


@dataclass(frozen=True, slots=True)
class Cut:
    """A stretch in cells: the number of the first unit, the units of a cell (a power of two), and how many cells."""

    start: int
    cell: int
    cells: int

    @property
    def bounds(self) -> list[int]:
        """Return the first unit of every cell, and the one after the last."""
        return [self.start + number * self.cell for number in range(self.cells + 1)]

    @property
    def whole(self) -> "Cut":
        """Return the same stretch as one cell."""
        return Cut(self.start, self.cell * self.cells, 1)

    @property
    def end(self) -> int:
        """Return the last unit."""
        return self.start + self.cells * self.cell - 1


def cut(low: int, high: int, most: int) -> Cut:
    """Cut units into at most so many cells, each a power of two and aligned; the ends are widened to whole cells."""
    cell = 1
    while high // cell - low // cell + 1 > most:
        cell *= 2
    return Cut(low // cell * cell, cell, high // cell - low // cell + 1)


def draw(spots: Spots, wanted: Cut) -> list[Counts]:
    """Count every cell, leaving out what it has none of. O(cells log n), whatever is held."""
    terrain, bounds = spots.terrain, wanted.bounds
    taken = spots.stretches(bounds)
    cells: list[Counts] = [{} for _ in range(wanted.cells)]
    for way, by_standing in taken.items():
        for counts in by_standing.values():
            _add(cells, str(way), counts)
    for standing in terrain.standings():
        units = _between([terrain.below(standing, bound) for bound in bounds])
        for by_standing in taken.values():
            # A unit that is taken is shown as taken, so it is not also what it would be otherwise.
            if standing in by_standing:
                units = [all_of - held for all_of, held in zip(units, by_standing[standing], strict=True)]
        _add(cells, str(standing), units)
    _add(cells, "pooled", _between([terrain.below(None, bound) for bound in bounds]))
    return cells


def _between(sums: list[int]) -> list[int]:
    return [after - before for before, after in pairwise(sums)]


def _add(cells: list[Counts], name: str, counts: list[int]) -> None:
    for cell, count in zip(cells, counts, strict=True):
        if count:
            cell[name] = cell.get(name, 0) + count
