"""Entries of the log by address, in PostgreSQL."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tenure.kernel.addresses import key
from tenure.kernel.values import Change
from tenure.stores.statements import read_change

Read = Callable[..., Awaitable[list[Any]]]


async def read_changes_at(read: Read, firsts: Sequence[int], after: int, limit: int) -> list[Change]:
    """Read entries about addresses: one statement, one probe of the index for each place."""
    keys = [key(first) for first in sorted(set(firsts))]
    return [read_change(record) for record in await read("changes_at", keys, after, limit)]
