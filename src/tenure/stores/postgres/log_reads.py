"""Entries of the log by address, in PostgreSQL."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tenure.kernel.addressing.addresses import key
from tenure.kernel.holdings.holding_model import Change
from tenure.stores.postgres.log_archive import read_archived_at
from tenure.stores.sql_files import read_change

Read = Callable[..., Awaitable[list[Any]]]


async def read_changes_at(read: Read, firsts: Sequence[int], after: int, limit: int) -> list[Change]:
    """Read entries about addresses: one probe of the index for each place, and of the archive's.

    The log comes first: what is moved into the archive meanwhile is then found twice, and never missed.
    """
    keys = [key(first) for first in sorted(set(firsts))]
    logged = [read_change(record) for record in await read("changes_at", keys, after, limit)]
    archived = await read_archived_at(read, firsts, after, limit)
    found = {change.seq: change for change in (*archived, *logged)}
    return [found[seq] for seq in sorted(found)][:limit]
