"""The map of a pool as lines of text, in Unicode or ASCII, with or without colours."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import click

from tenure.doors.cli.output.map_cells import COLUMNS, TAKEN, CellKind, Panel
from tenure.kernel.addressing.addresses import format_address, width
from tenure.kernel.addressing.ranges import AddressRange

GROUP = 8
FOLDED = 4
"""Rows that look alike are folded when there are at least this many."""

COLOURS = {
    CellKind.HELD: "green",
    CellKind.PENDING: "yellow",
    CellKind.DRAINING: "magenta",
    CellKind.COOLING: "cyan",
    CellKind.RESERVED: "red",
}
COUNTED = (
    CellKind.HELD,
    CellKind.PENDING,
    CellKind.DRAINING,
    CellKind.COOLING,
    CellKind.RESERVED,
    CellKind.FREE,
    CellKind.OUTSIDE,
)
WORDS = {CellKind.OUTSIDE: "in no pool"}


@dataclass(frozen=True, slots=True)
class Signs:
    """The characters of a map: one a kind, and shades from nearly empty to full."""

    kinds: dict[CellKind, str]
    shades: str
    fold: str


UNICODE = Signs(dict(zip(COUNTED, "■◐◪◌×·–", strict=True)), "░▒▓█", "⋮")
ASCII = Signs(dict(zip(COUNTED, "#pdcx.-", strict=True)), ":=%#", ":")

Cell = tuple[str, CellKind | None]


@dataclass(frozen=True, slots=True)
class Drawing:
    """What one picture is drawn with: its signs, and the unit that is handed out."""

    signs: Signs
    unit: int = 1

    def lines(self, panels: list[Panel], title: str) -> list[str]:
        """Draw the panels of one range: rows with the address they begin at, and a legend."""
        lines: list[str] = []
        for panel in panels:
            name = f"closer: {block_text(panel.range)}" if panel.zoomed else title
            head = click.style(f"{name}, {self._amount(panel.range.size)}", bold=True)
            lines += [head, *self._rows(panel), *self._legend(panel), ""]
        return lines[:-1]

    def _rows(self, panel: Panel) -> Iterator[str]:
        drawn = self.cells(panel)
        rows = [drawn[start : start + COLUMNS] for start in range(0, len(drawn), COLUMNS)]
        labels = row_labels(panel)
        margin = max(map(len, labels))
        number = 0
        while number < len(rows):
            alike = _alike(rows, number)
            yield f"{labels[number]:>{margin}}  {_row_text(rows[number])}".rstrip()
            if alike >= FOLDED:
                yield f"{self.signs.fold:>{margin}}  {alike - 2} more rows like it"
                # The last of the folded rows is drawn again, so that the end of the fold shows its address.
                number += alike - 1
            else:
                number += 1

    def cells(self, panel: Panel) -> list[Cell]:
        """Choose the sign of each cell, with the kind that lends it the colour."""
        return [self._sign(counts, panel.cell) for counts in panel.cells]

    def _sign(self, counts: Counter[CellKind], cell: int) -> Cell:
        taken = sum(counts[kind] for kind in TAKEN)
        if cell == self.unit or taken == 0:
            kind = _leading(counts)
            return (" ", None) if kind is None else (self.signs.kinds[kind], kind)
        # A cell in which little is taken and the rest is kept away has nothing free either, but must not look full.
        kept_away = counts[CellKind.RESERVED] + counts[CellKind.OUTSIDE]
        full = not counts[CellKind.FREE] and taken >= kept_away
        shade = 3 if full else min(taken * 4 // counts.total(), 2)
        return self.signs.shades[shade], max(TAKEN, key=lambda kind: counts[kind])

    def _legend(self, panel: Panel) -> Iterator[str]:
        present = (kind for kind in COUNTED if panel.counts[kind])
        yield "  " + "   ".join(f"{self._key(kind, panel)}{_count(panel, kind, self.unit)}" for kind in present)
        if panel.cell == 1:
            yield "  one sign is one address"
            return
        block = f"a /{width(panel.start) - (panel.cell - 1).bit_length()}"
        if panel.cell == self.unit:
            yield f"  one sign is {block}"
            return
        low, half, more, full = list(self.signs.shades)
        yield f"  one sign is {block}, {self._amount(panel.cell)}"
        yield f"  taken of it: {low} under a quarter   {half} under a half   {more} more   {full} all"

    def _key(self, kind: CellKind, panel: Panel) -> str:
        if panel.cell != self.unit and kind in TAKEN:
            return ""
        return coloured(self.signs.kinds[kind], kind) + " "

    def _amount(self, addresses: int) -> str:
        if self.unit == 1:
            return f"{plain_number(addresses)} addresses"
        return f"{plain_number(addresses // self.unit)} prefixes"


def row_labels(panel: Panel) -> list[str]:
    """Write the address that each row begins at."""
    return [format_address(panel.start + number * panel.cell) for number in range(0, len(panel.cells), COLUMNS)]


def _alike(rows: list[list[Cell]], number: int) -> int:
    """Count the rows from here on that look the same, of one sign throughout."""
    end = number
    while len(set(rows[number])) == 1 and end < len(rows) and rows[end] == rows[number]:
        end += 1
    return end - number


def _row_text(row: list[Cell]) -> str:
    groups = (row[start : start + GROUP] for start in range(0, len(row), GROUP))
    return " ".join(_group_text(group) for group in groups)


def _group_text(group: list[Cell]) -> str:
    """Write a few cells, with one change of colour for neighbours of one kind."""
    runs = groupby(group, key=lambda cell: cell[1])
    return "".join(coloured("".join(sign for sign, _ in run), kind) for kind, run in runs)


def coloured(text: str, kind: CellKind | None) -> str:
    """Write text in the colour of a kind."""
    return click.style(text, fg=COLOURS[kind]) if kind in COLOURS else text


def _leading(counts: Counter[CellKind]) -> CellKind | None:
    """Name what a cell is: taken before free, free before reserved, reserved before outside."""
    return next((kind for kind in (*TAKEN, CellKind.FREE, CellKind.RESERVED, CellKind.OUTSIDE) if counts[kind]), None)


def _count(panel: Panel, kind: CellKind, unit: int) -> str:
    return f"{WORDS.get(kind, kind)} {plain_number(-(-panel.counts[kind] // unit))}"


def block_text(range: AddressRange) -> str:
    """Write a range as a block where it is one."""
    if range.size & (range.size - 1) or range.first % range.size:
        return str(range)
    return f"{format_address(range.first)}/{width(range.first) - (range.size - 1).bit_length()}"


def plain_number(number: int) -> str:
    """Write a number for people: whole up to a million million, then rounded."""
    return f"{number:,}" if number < 10**12 else f"{number:.2e}".replace("e+", "e")
