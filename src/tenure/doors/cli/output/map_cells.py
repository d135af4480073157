"""What a map is made of: a stretch of addresses painted with kinds, and cells that count them.

Pure functions over ranges. Their cost grows with holdings and cells, never with the number of addresses.
"""

import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tenure.kernel.addressing.addresses import width
from tenure.kernel.addressing.ranges import AddressRange

COLUMNS = 32
MOST_CELLS = 1024
LEAST_ZOOM = 256
"""A picture of fewer cells than this shows too little of the neighbourhood."""


class CellKind(enum.StrEnum):
    """What an address is to the map."""

    OUTSIDE = "outside"
    FREE = "free"
    RESERVED = "reserved"
    PENDING = "pending"
    HELD = "held"
    DRAINING = "draining"
    COOLING = "cooling"


TAKEN = (CellKind.HELD, CellKind.PENDING, CellKind.DRAINING, CellKind.COOLING)


class Stroke(NamedTuple):
    """Addresses of one kind: first and last, both included."""

    first: int
    last: int
    kind: CellKind


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: a range cut into cells of equal size, and how many addresses of each kind each cell has."""

    range: AddressRange
    cell: int
    start: int
    cells: list[Counter[CellKind]]
    counts: Counter[CellKind]
    zoomed: bool = False


def overlay(base: Iterable[Stroke], layer: Iterable[Stroke]) -> Iterator[Stroke]:
    """Paint a layer over a base; both are sorted and free of overlaps, and so is what comes out."""
    upper = iter(layer)
    top = next(upper, None)
    for stroke in base:
        first = stroke.first
        while top is not None and top.last < first:
            top = next(upper, None)
        while top is not None and top.first <= stroke.last:
            if top.first > first:
                yield Stroke(first, top.first - 1, stroke.kind)
            yield Stroke(max(first, top.first), min(top.last, stroke.last), top.kind)
            first = min(top.last, stroke.last) + 1
            # The upper stroke reaches into the next one of the base, so it is not used up.
            if top.last > stroke.last:
                break
            top = next(upper, None)
        if first <= stroke.last:
            yield Stroke(first, stroke.last, stroke.kind)


def joined(strokes: Iterable[Stroke]) -> list[Stroke]:
    """Join neighbours of one kind: a full pool of a million holdings is one stroke."""
    result: list[Stroke] = []
    for stroke in strokes:
        if result and result[-1].kind is stroke.kind and result[-1].last + 1 == stroke.first:
            result[-1] = Stroke(result[-1].first, stroke.last, stroke.kind)
        else:
            result.append(stroke)
    return result


def painted(whole: AddressRange, layers: Iterable[Iterable[Stroke]]) -> list[Stroke]:
    """Paint layers, lowest first, over a range; what none covers is outside."""
    strokes = [Stroke(whole.first, whole.last, CellKind.OUTSIDE)]
    for layer in layers:
        strokes = joined(overlay(strokes, layer))
    return strokes


def panels(strokes: list[Stroke], unit: int = 1) -> list[Panel]:
    """Cut painted strokes into pictures: the whole, and a closer look where all that is taken hides in one cell."""
    whole = AddressRange(strokes[0].first, strokes[-1].last)
    first = panel(strokes, whole, unit)
    block = _interesting(strokes)
    if first.cell == unit or block is None or block.covers(whole):
        return [first]
    closer = _padded(block, unit)
    if block.first // first.cell != block.last // first.cell or closer.covers(whole):
        return [first]
    return [first, panel(strokes, closer, unit, zoomed=True)]


def panel(strokes: list[Stroke], part: AddressRange, unit: int = 1, *, zoomed: bool = False) -> Panel:
    """Count the kinds in each cell of a part."""
    cell = unit
    while -(-part.size // cell) > MOST_CELLS:
        cell *= 2
    # Rows begin at multiples of a row, so the addresses in the margin are round; cells before the part stay empty.
    row = cell * COLUMNS
    start = part.first // row * row
    cells: list[Counter[CellKind]] = [Counter() for _ in range(-(-(part.last + 1 - start) // cell))]
    counts: Counter[CellKind] = Counter()
    for stroke in strokes:
        low, high = max(stroke.first, part.first), min(stroke.last, part.last)
        if low <= high:
            counts[stroke.kind] += high - low + 1
            for number in range((low - start) // cell, (high - start) // cell + 1):
                begin = start + number * cell
                cells[number][stroke.kind] += min(high, begin + cell - 1) - max(low, begin) + 1
    return Panel(part, cell, start, cells, counts, zoomed)


def _interesting(strokes: list[Stroke]) -> AddressRange | None:
    """Return the range around everything taken or, where nothing is, around the pools."""
    marked = [stroke for stroke in strokes if stroke.kind in TAKEN]
    if not marked and any(stroke.kind is CellKind.OUTSIDE for stroke in strokes):
        marked = [stroke for stroke in strokes if stroke.kind is CellKind.FREE]
    return AddressRange(marked[0].first, marked[-1].last) if marked else None


def _padded(part: AddressRange, unit: int) -> AddressRange:
    """Return the smallest block around a range that shows some of its neighbourhood, too."""
    bits = max((part.first ^ part.last).bit_length(), (LEAST_ZOOM * unit - 1).bit_length())
    bits = min(bits, width(part.first))
    low = part.first >> bits << bits
    return AddressRange(low, low + (1 << bits) - 1)
