"""Tables in text: delimiter, header, line numbers, and cells that a spreadsheet would take for a formula."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tenure.interchange.formats.source_items import Fault, SourcePlace
from tenure.kernel.errors import Invalid

DELIMITERS = (",", ";", "\t")
DANGEROUS = "=+-@\t\r\n＝＋－＠"
"""A cell that begins with one of these is a formula to a spreadsheet."""

_GUARDED = frozenset(DANGEROUS + "'")


def guarded(cell: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would run; ``unguarded`` takes it away again."""
    return "'" + cell if cell[:1] in _GUARDED else cell


def unguarded(cell: str) -> str:
    """Read back what ``guarded`` wrote; an apostrophe before anything else stays."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in _GUARDED else cell


class TableRow(NamedTuple):
    """A row with its place and its cells by column; a row that cannot be read has a fault instead."""

    place: SourcePlace
    cells: Mapping[str, str]
    fault: Fault | None = None


def decoded(content: bytes, name: str) -> str:
    """Turn a file's bytes into text: UTF-8, with or without a byte order mark.

    Bytes that are no UTF-8 become lone surrogates, so that the fault can be told with its line.
    """
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise Invalid(f"source: {name} is UTF-16; save it as UTF-8", field="source")
    return content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")


def delimiter_of(text: str) -> str:
    """Choose the delimiter that the header uses most."""
    header = next((line for line in io.StringIO(text) if line.strip()), "")
    return max(DELIMITERS, key=header.count)


def columns_of(text: str) -> list[str]:
    """Read the names of the columns: lower case, with underscores for everything between words."""
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text)):
        if any(cell.strip() for cell in row):
            return [column_name(cell) for cell in row]
    return []


def column_name(cell: str) -> str:
    """Write the name of a column as we compare it: ``IP Address`` is ``ip_address``."""
    words = "".join(c if c.isalnum() else " " for c in unguarded(cell.strip()).lower()).split()
    return "_".join(words)


def read_table(text: str, name: str) -> Iterator[TableRow]:
    """Read the rows below the header; blank lines are passed over."""
    # newline="" keeps line breaks inside of cells as they are.
    # Strict: otherwise a broken quote becomes part of a cell, and rows below it are lost in it without an error.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text), strict=True)
    columns: list[str] | None = None
    for line, row, problem in _numbered(reader):
        place = SourcePlace(name, line)
        if problem:
            yield TableRow(place, {}, Fault(place, "", "unreadable", problem))
        elif not any(cell.strip() for cell in row):
            continue
        elif columns is None:
            columns = [column_name(cell) for cell in row]
            if fault := _bad_header(columns, place):
                yield TableRow(place, {}, fault)
                return
        elif fault := _bad_row(row, columns, place):
            yield TableRow(place, {}, fault)
        else:
            yield TableRow(place, {column: unguarded(cell) for column, cell in zip(columns, row, strict=False)})


def _numbered(reader: Iterator[Sequence[str]]) -> Iterator[tuple[int, Sequence[str], str]]:
    """Yield each row with the line it begins on, or with what is wrong there."""
    line = 1
    while True:
        try:
            row, problem = next(reader), ""
        except StopIteration:
            return
        except csv.Error as error:
            row, problem = [], f"the row cannot be read: {error}"
        yield line, row, problem
        # A quoted cell may hold line breaks, so rows cannot be counted instead.
        line = reader.line_num + 1  # type: ignore[attr-defined]  # the reader's own name for it


def _bad_header(columns: Sequence[str], place: SourcePlace) -> Fault | None:
    twice = sorted({column for column in columns if column and columns.count(column) > 1})
    if twice:
        return Fault(place, twice[0], "duplicate_column", f"the header has column {twice[0]!r} twice")
    return None


def _bad_row(row: Sequence[str], columns: Sequence[str], place: SourcePlace) -> Fault | None:
    if len(row) > len(columns):
        reason = f"{len(row)} cells, but the header has {len(columns)} columns"
        return Fault(place, "", "too_many_columns", reason)
    for column, cell in zip(columns, row, strict=False):
        if any("\ud800" <= letter <= "\udfff" for letter in cell):
            return Fault(place, column, "unreadable", "not UTF-8")
    return None


def written_row(cells: Iterable[str]) -> str:
    """Write one row, guarded, with a line end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow([guarded(cell) for cell in cells])
    return text.getvalue()
