"""Entries of the log by address, in SQLite."""

import sqlite3
from collections.abc import Sequence

from tenure.kernel.addressing.addresses import key
from tenure.kernel.holdings.holding_model import Change
from tenure.stores.sql_files import read_change
from tenure.stores.sqlite.log_archive import read_archived_at
from tenure.stores.sqlite.sql import SQL


def read_changes_at(connection: sqlite3.Connection, firsts: Sequence[int], after: int, limit: int) -> list[Change]:
    """Read entries about addresses: one probe of the index for each place, and of the archive's."""
    archived = read_archived_at(connection, firsts, after, limit)
    values = ((key(first), after, limit) for first in set(firsts))
    records = [record for each in values for record in connection.execute(SQL["changes_at"], each)]
    return [*archived, *sorted(map(read_change, records), key=lambda change: change.seq)][:limit]
