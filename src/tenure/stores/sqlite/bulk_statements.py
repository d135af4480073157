"""Many rows in one statement, for the transactions that consist of several; see grants.py for why that matters.

A statement is written for a few fixed numbers of rows, so that SQLite has it ready; what is left over goes row by row.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from tenure.stores.sqlite.sql import SQL

SIZES = (64, 16, 4)
FEWEST = SIZES[-1]

Record = tuple[Any, ...]

_ROW = re.compile(r"\((?:\?, )+\?\)")
T = TypeVar("T")


def many(name: str, size: int) -> str:
    """Write a statement with one row of values for so many rows."""
    return _ROW.sub(lambda row: ", ".join([row[0]] * size), SQL[name], count=1)


GRANTS = {size: many("grant_holdings", size) for size in SIZES}
CHANGES = {size: many("insert_change", size) for size in SIZES}
REPLIES = {size: many("keep_reply", size) for size in SIZES}


def cut(records: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut records into pieces for which there is a statement; the last piece may be too small for any."""
    start = 0
    for size in SIZES:
        while len(records) - start >= size:
            yield records[start : start + size]
            start += size
    if start < len(records):
        yield records[start:]


def grant(connection: sqlite3.Connection, records: Sequence[Record]) -> bool:
    """Create holdings if nobody is in the way; tell whether all were. O(k log n)."""
    return connection.execute(GRANTS[len(records)], flat(records)).rowcount == len(records)


def append(connection: sqlite3.Connection, records: Sequence[Record]) -> None:
    """Append to the log. O(k)."""
    _insert(connection, records, CHANGES, SQL["insert_change"])


def keep(connection: sqlite3.Connection, records: Sequence[Record]) -> None:
    """Keep answers. O(k log r)."""
    _insert(connection, records, REPLIES, SQL["keep_reply"])


def _insert(connection: sqlite3.Connection, records: Sequence[Record], by_size: Mapping[int, str], one: str) -> None:
    for piece in cut(records):
        if len(piece) in by_size:
            connection.execute(by_size[len(piece)], flat(piece))
        else:
            connection.executemany(one, piece)


def flat(records: Sequence[Record]) -> list[Any]:
    """Put the values of all records in one row."""
    return list(chain.from_iterable(records))
