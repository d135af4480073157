"""What the units of a subnet are while nobody holds them: free, reserved, kept back, in no pool.

Pure values. Units are numbered from the block's first. Cost: by pools and barriers, never by addresses.
"""

import enum
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.plan.blocked_ranges import Barrier, Barriers
from tenure.kernel.plan.plan_model import Network, Subnet

NO_POOL = -1
Interval = tuple[int, int]


class UnitStatus(enum.StrEnum):
    """What a unit is while nobody holds it."""

    FREE = "free"
    RETIRED = "retired"
    OUTSIDE = "outside"
    PREALLOCATED = "preallocated"
    RESERVED = "reserved"
    KEPT_BACK = "kept_back"


class TerrainPiece(NamedTuple):
    """Units of one standing in one pool (by its place in the subnet), or in none: first and last, both included."""

    first: int
    last: int
    standing: UnitStatus
    pool: int


class Terrain:
    """A subnet cut into pieces. Two that are equal count alike, whatever else was edited."""

    def __init__(self, block: AddressRange, unit_size: int, pieces: list[TerrainPiece]) -> None:
        self.first, self.last = block.first, block.last
        self.unit_size = unit_size
        self.units = block.size // unit_size
        self.groups: list[tuple[UnitStatus, int]] = []
        self.sizes: list[int] = []
        self._key = (block, unit_size, pieces)
        self._firsts = [piece.first for piece in pieces]
        self._pieces = pieces
        self._group_of: list[int] = []
        self._sums: dict[UnitStatus | None, _Sums] = {}
        # Tallies keep a number for each group, and a pool with many gaps has many pieces of one group.
        known: dict[tuple[UnitStatus, int], int] = {}
        for piece in pieces:
            group = known.setdefault((piece.standing, piece.pool), len(known))
            if group == len(self.groups):
                self.groups.append((piece.standing, piece.pool))
                self.sizes.append(0)
            self._group_of.append(group)
            self.sizes[group] += piece.last - piece.first + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Terrain) and self._key == other._key

    __hash__ = None  # type: ignore[assignment]  # nobody needs it in a set

    def unit(self, position: int) -> int:
        """Return the number of the unit a position lies in; the nearest one, if it lies outside the block."""
        return (min(max(position, self.first), self.last) - self.first) // self.unit_size

    def position(self, unit: int) -> int:
        """Return the first position of a unit."""
        return self.first + unit * self.unit_size

    def group_at(self, unit: int) -> int:
        """Return the group of a unit. O(log pieces)."""
        return self._group_of[bisect_right(self._firsts, unit) - 1]

    def groups_over(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yield the groups of a run of units, and how many units of each."""
        place = bisect_right(self._firsts, low) - 1
        while place < len(self._pieces) and (piece := self._pieces[place]).first <= high:
            yield self._group_of[place], min(piece.last, high) - max(piece.first, low) + 1
            place += 1

    def standings(self) -> list[UnitStatus]:
        """Return the standings that occur."""
        return list(dict.fromkeys(standing for standing, _ in self.groups))

    def below(self, standing: UnitStatus | None, unit: int) -> int:
        """Count the units of a standing below a unit; of None: those in pools. O(log pieces)."""
        sums = self._sums.get(standing)
        if sums is None:
            fitting = (
                piece
                for piece in self._pieces
                if (piece.pool != NO_POOL if standing is None else piece.standing is standing)
            )
            sums = self._sums[standing] = _Sums(fitting)
        return sums.below(unit)


class _Sums:
    """How many units of some pieces lie below each of them."""

    def __init__(self, pieces: Iterable[TerrainPiece]) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._before: list[int] = []
        total = 0
        for piece in pieces:
            self._firsts.append(piece.first)
            self._lasts.append(piece.last)
            self._before.append(total)
            total += piece.last - piece.first + 1

    def below(self, unit: int) -> int:
        place = bisect_right(self._firsts, unit) - 1
        if place < 0:
            return 0
        return self._before[place] + min(unit, self._lasts[place] + 1) - self._firsts[place]


def terrain_of(network: Network, subnet: Subnet, barriers: Barriers) -> Terrain:
    """Cut a subnet into pieces, as picking sees it: what binds the space lies over the pools, in whole units."""
    block, size = subnet.cidr.range, subnet.unit_size
    closed = network.retired or subnet.retired
    # All units are outside at first; pools are laid over them, and over the pools what bars picking.
    pieces = [TerrainPiece(0, block.size // size - 1, UnitStatus.OUTSIDE, NO_POOL)]
    for number, pool in enumerate(subnet.pools):
        # Whole units only, as picking has it: a unit that sticks out of the pool is outside.
        low = -(-(pool.range.first - block.first) // size)
        high = (pool.range.last + 1 - block.first) // size - 1
        if low <= high:
            standing = UnitStatus.RETIRED if closed or pool.retired else UnitStatus.FREE
            pieces = _overlaid(pieces, [(low, high)], standing, number)
    # In this order: where several cover a unit, the last one is shown.
    kept = {
        standing: list[Interval]() for standing in (UnitStatus.PREALLOCATED, UnitStatus.RESERVED, UnitStatus.KEPT_BACK)
    }
    for barrier in barriers.over(block):
        kept[_standing(barrier)].append(_units(subnet, barrier.range))
    for position, _ in subnet.kept_back():
        kept[UnitStatus.KEPT_BACK].append(_units(subnet, AddressRange(position, position)))
    for standing, intervals in kept.items():
        pieces = _overlaid(pieces, _joined(intervals), standing)
    return Terrain(block, size, pieces)


def _standing(barrier: Barrier) -> UnitStatus:
    if barrier.reserved is not None:
        return UnitStatus.RESERVED
    return UnitStatus.KEPT_BACK if barrier.preallocation is None else UnitStatus.PREALLOCATED


def _units(subnet: Subnet, piece: AddressRange) -> Interval:
    """Return the units that a range touches in the subnet."""
    first, last = max(piece.first, subnet.cidr.first), min(piece.last, subnet.cidr.last)
    return (first - subnet.cidr.first) // subnet.unit_size, (last - subnet.cidr.first) // subnet.unit_size


def _joined(intervals: list[Interval]) -> list[Interval]:
    joined: list[Interval] = []
    for first, last in sorted(intervals):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def _overlaid(
    pieces: list[TerrainPiece], layer: list[Interval], standing: UnitStatus, pool: int | None = None
) -> list[TerrainPiece]:
    """Give another standing to what a layer covers; the layer is sorted and free of overlaps. It keeps its pool."""
    result: list[TerrainPiece] = []
    place = 0
    for piece in pieces:
        first = piece.first
        while place < len(layer) and layer[place][0] <= piece.last:
            low, high = max(layer[place][0], first), min(layer[place][1], piece.last)
            if low > first:
                result.append(piece._replace(first=first, last=low - 1))
            if low <= high:
                # A reserved unit of a pool still counts as one of the pool (`pooled_kept`).
                result.append(TerrainPiece(low, high, standing, piece.pool if pool is None else pool))
                first = high + 1
            # The interval reaches into the next piece, so it is not used up.
            if layer[place][1] > piece.last:
                break
            place += 1
        if first <= piece.last:
            result.append(piece._replace(first=first))
    return result
