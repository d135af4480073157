"""Answers on standard output: JSON documents for scripts, tables and lines for people."""

import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from tenure.doors.cli.session import Session

Document = Mapping[str, Any]
Columns = Mapping[str, str]
"""Heading and key of each column of a table; a dot in a key reaches into a document within."""

FRACTION = re.compile(r"(?<=T\d\d:\d\d:\d\d)\.\d+(?=Z$)")
"""The part of a time that people do not read."""

COLOURS = {"held": "green", "pending": "yellow", "draining": "magenta", "cooling": "cyan"}


class Untold(Exception):
    """What was asked is done, but standard output does not take the answer."""


def echo(session: Session, text: str, *, end: bool = True) -> None:
    """Write a line of text (or, without an end, a piece of one), coloured only where a terminal shows it."""
    try:
        click.echo(text, nl=end, color=session.colour)
    except BrokenPipeError:
        # main has an exit code of its own for a reader that went away.
        raise
    except OSError as error:
        raise Untold(error.strerror or str(error)) from error


def answer(session: Session, document: object, text: str) -> None:
    """Write one answer: its document, or its text."""
    echo(session, json_text(document) if session.json else text)


def table(session: Session, documents: Sequence[Document], columns: Columns, *, nothing: str) -> None:
    """Write documents: as they are, or as a table of some of their fields."""
    if session.json:
        echo(session, json_text(list(documents)))
    elif documents:
        for line in table_lines(documents, columns):
            echo(session, line)
    else:
        echo(session, nothing)


def counted(counts: Mapping[str, int]) -> str:
    """Write how many there are of each kind, which is named in the plural; kinds without any are left out."""
    return ", ".join(f"{count:d} {_one_of(kind) if count == 1 else kind}" for kind, count in counts.items() if count)


def _one_of(kind: str) -> str:
    if kind.endswith("ies"):
        return kind.removesuffix("ies") + "y"
    return kind.removesuffix("es") if kind.endswith("sses") else kind.removesuffix("s")


def json_text(document: object) -> str:
    """Write a document. ASCII only: it must survive any locale."""
    return json.dumps(document, indent=2)


def json_line(document: object) -> str:
    """Write a document on one line, for streams."""
    return json.dumps(document)


def table_lines(documents: Sequence[Document], columns: Columns) -> list[str]:
    """Lay documents out in columns: numbers to the right, words to the left."""
    values = [[_value(document, key) for key in columns.values()] for document in documents]
    texts = [[cell_text(value) for value in row] for row in values]
    right = [_are_numbers([row[place] for row in values]) for place in range(len(columns))]
    widths = [max(map(width_of, column)) for column in zip(list(columns), *texts, strict=True)]
    head = click.style(_line(list(columns), widths, right), bold=True)
    return [head, *(_line(row, widths, right) for row in texts)]


def _are_numbers(values: Sequence[object]) -> bool:
    told = [value for value in values if value is not None]
    return bool(told) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in told)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (_padded(cell, width, to_right) for cell, width, to_right in zip(cells, widths, right, strict=True))
    return "  ".join(padded).rstrip()


def _padded(cell: str, width: int, to_right: bool) -> str:
    # Measured before it is coloured: escape sequences take no columns.
    space = " " * (width - width_of(cell))
    shown = click.style(cell, fg=COLOURS[cell]) if cell in COLOURS else cell
    return space + shown if to_right else shown + space


def _value(document: Document, key: str) -> Any:
    value: Any = document
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def cell_text(value: object) -> str:
    """Write a value in one line of a table."""
    if value is None or value == "" or value == [] or value == {}:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ",".join(f"{name}={text}" for name, text in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(map(str, value))
    return FRACTION.sub("", " ".join(str(value).split()))


def wire_text(mode: str, link: str, vlan: str) -> str:
    """Write how a NIC is wired, or the NICs of a network in a group."""
    return " ".join(filter(None, (mode, link, vlan and f"vlan {vlan}")))


def escaped(text: str) -> str:
    """Write signs that would steer the terminal as escapes: what others print is shown, not obeyed."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text)


def width_of(text: str) -> int:
    """Count the columns a text takes in a terminal."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fields(pairs: Document) -> str:
    """Write one document as a list of names and values."""
    margin = max(map(len, pairs))
    return "\n".join(f"{name:<{margin}}  {cell_text(value)}" for name, value in pairs.items())


def unicode_wanted() -> bool:
    """Tell whether the locale and the output take more than ASCII."""
    if not (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "").startswith("utf"):
        return False
    everything, characters, language = (os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    if not everything and characters == "C.UTF-8" and language in ("", "C", "POSIX"):
        return False  # Python itself put that LC_CTYPE in place of a plain C locale
    return "utf" in (everything or characters or language).lower()
