"""What is read in one go: by the store itself, on its own connection, and inside transactions."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tenure.kernel.addressing.addresses import key, position
from tenure.kernel.errors import CursorExpired
from tenure.kernel.holdings.holding_model import Change, NetworkId, Row, SpaceId
from tenure.kernel.plan.document import read_network
from tenure.kernel.plan.plan_model import Configuration
from tenure.ports import FAR_BEHIND, Effects, Size
from tenure.stores.sql_files import read_change, read_row
from tenure.stores.sql_files import read_spans as spans_of
from tenure.stores.sqlite.log_archive import read_archived_at, read_oldest
from tenure.stores.sqlite.sql import SQL


def read_configuration(connection: sqlite3.Connection, space: SpaceId) -> Configuration | None:
    """Read one space's configuration."""
    found = connection.execute(SQL["space_by_id"], (space,)).fetchone()
    if found is None:
        return None
    records = connection.execute(SQL["networks_of_space"], (space,)).fetchall()
    networks = {name: read_network(number, name, json.loads(text)) for number, name, text in records}
    return Configuration(space, found[0], found[1], networks, bool(found[2]))


def read_effects(connection: sqlite3.Connection, space: SpaceId, after: int, now_us: int = 0) -> Effects:
    """Read what happened to a space's addresses behind a cursor; at a time, whether anything there is due."""
    seq, oldest, due = connection.execute(SQL["reach"], (space, now_us)).fetchone()
    if after < oldest or seq - after > FAR_BEHIND:
        return Effects(seq, [], complete=False, due=bool(due))
    records = connection.execute(SQL["effects"], (after, space)).fetchall() if seq > after else []
    steps = [(number, bool(takes), position(first), position(last)) for number, takes, first, last in records]
    return Effects(max(seq, steps[-1][0] if steps else 0), steps, due=bool(due))


def read_changes(connection: sqlite3.Connection, after: int, limit: int, space: SpaceId | None) -> list[Change]:
    """Read changes behind a cursor."""
    oldest = connection.execute(SQL["counters"]).fetchone()[1]
    if after < oldest:
        raise CursorExpired(after, oldest)
    if space is None:
        records: Iterable[Any] = connection.execute(SQL["changes"], (after, limit))
    else:
        records = connection.execute(SQL["changes_of_space"], (after, space, limit))
    return [read_change(record) for record in records]


def read_changes_at(connection: sqlite3.Connection, firsts: Sequence[int], after: int, limit: int) -> list[Change]:
    """Read entries about addresses: one probe of the index for each place, and of the archive's."""
    # Both in one transaction: an entry that is moved meanwhile is seen once, and the archived ones are the older.
    archived = read_archived_at(connection, firsts, after, limit)
    values = ((key(first), after, limit) for first in set(firsts))
    records = [record for each in values for record in connection.execute(SQL["changes_at"], each)]
    return [*archived, *sorted(map(read_change, records), key=lambda change: change.seq)][:limit]


def read_size(connection: sqlite3.Connection, path: Path) -> Size:
    """Count what the ledger keeps, and the bytes of its file and of the journal beside it."""
    seq, oldest, _ = connection.execute(SQL["counters"]).fetchone()
    [replies] = connection.execute(SQL["count_replies"]).fetchone()
    files = (path, path.with_name(f"{path.name}-wal"))
    taken = sum(file.stat().st_size for file in files if file.exists())
    return Size(seq, seq - oldest, oldest - read_oldest(connection), replies, taken)


def read_spans(connection: sqlite3.Connection, space: SpaceId, first: int, last: int) -> list[tuple[int, int]]:
    """Read held spans that lie over a range."""
    below = connection.execute(SQL["row_below"], (space, key(first))).fetchone()
    # A prefix may begin below the range and reach into it.
    start = first if below is None else min(first, position(below[2]))
    records = connection.execute(SQL["spans"], (space, key(start), key(last)))
    return spans_of(records)


def rows_within(
    connection: sqlite3.Connection, space: SpaceId, first: int, last: int, network: NetworkId | None, limit: int
) -> list[Row]:
    """Read rows that lie over a range."""
    below = connection.execute(SQL["row_below"], (space, key(first))).fetchone()
    start = below[2] if below is not None and position(below[3]) >= first else key(first)
    if network is None:
        records = connection.execute(SQL["rows_from"], (space, start, key(last), limit))
    else:
        records = connection.execute(SQL["rows_from_of_network"], (space, start, key(last), network, limit))
    return [read_row(record) for record in records]
