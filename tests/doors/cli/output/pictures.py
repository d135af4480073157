"""Ranges painted for the tests of the map."""

import click

from tenure.doors.cli.output.map_cells import CellKind, Stroke, painted, panels
from tenure.doors.cli.output.map_text import Drawing, Signs
from tenure.kernel.addressing.ranges import parse_range


def strokes(kind: CellKind, *ranges: str) -> list[Stroke]:
    """Paint ranges in one kind."""
    parsed = sorted(parse_range(text) for text in ranges)
    return [Stroke(piece.first, piece.last, kind) for piece in parsed]


def drawn(signs: Signs, whole: str, *layers: list[Stroke], unit: int = 1) -> str:
    """Draw a block, without colours."""
    pictures = panels(painted(parse_range(whole), [sorted(layer) for layer in layers]), unit)
    return click.unstyle("\n".join(Drawing(signs, unit).lines(pictures, whole)))
