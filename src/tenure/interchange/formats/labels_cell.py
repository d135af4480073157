"""Labels in one cell: ``team=shop;rack=r1``, with a backslash before what would be misread."""

import re
from collections.abc import Mapping

from tenure.kernel.errors import Invalid

_PIECE = re.compile(r"((?:[^\\;=]|\\.)*)=((?:[^\\;]|\\.)*)(?:;|$)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def labels_cell(labels: Mapping[str, str]) -> str:
    """Write labels, in order of name."""
    return ";".join(f"{_escaped(name, '=')}={_escaped(labels[name])}" for name in sorted(labels))


def read_labels_cell(cell: str) -> dict[str, str]:
    """Read labels; white space around names is dropped, in values it stays."""
    labels: dict[str, str] = {}
    place = 0
    # Blanks behind the last semicolon are no label.
    while cell[place:].strip():
        match = _PIECE.match(cell, place)
        if match is None:
            raise Invalid(
                f"labels: {cell[place : place + 40]!r} is not of the form name=value;name=value", field="labels"
            )
        name = _ESCAPED.sub(r"\1", match[1]).strip()
        if not name:
            raise Invalid(f"labels: a label needs a name before its '=', in {cell[:40]!r}", field="labels")
        if name in labels:
            raise Invalid(f"labels: {name!r} comes twice", field="labels")
        labels[name] = _ESCAPED.sub(r"\1", match[2])
        place = match.end()
    return labels


def _escaped(text: str, also: str = "") -> str:
    return "".join("\\" + letter if letter in "\\;" + also else letter for letter in text)
