"""Rows that are written again in one statement, if they are still as they were seen."""

from collections.abc import Sequence
from typing import Any

from tenure.kernel.addressing.addresses import key
from tenure.kernel.holdings.holding_model import Rewrite, SpaceId
from tenure.ports import Stale
from tenure.stores.postgres.hot_connections import HotConnection
from tenure.stores.sql_files import STATE_NUMBER, dump_details


async def rewrite_on(
    hot: HotConnection, space: SpaceId, version: int, groups: Sequence[Sequence[Rewrite]]
) -> list[bool]:
    """Write groups of rows again, each whole or not at all; Stale if the configuration has another version."""
    records = await hot.fetch("rewrite_unchanged", space, version, *_columns(groups))
    # The guard alone gives a record: without one, the space has another version, or is gone.
    if not records:
        raise Stale
    written = {part for part, _ in records if part is not None}
    if written:
        hot.newest = records[0][1]
    return [part in written for part in range(len(groups))]


def _columns(groups: Sequence[Sequence[Rewrite]]) -> tuple[list[Any], ...]:
    """Turn groups of rewrites into the columns that the statement takes.

    Details are compared as text. A text that another release wrote otherwise is no longer as it was seen, which costs
    the caller the usual transaction, and is never wrong.
    """
    every = [(part, len(group), each) for part, group in enumerate(groups) for each in group]
    return (
        [part for part, _, _ in every],
        [size for _, size, _ in every],
        [key(each.seen.first) for _, _, each in every],
        [each.seen.generation for _, _, each in every],
        [STATE_NUMBER[each.seen.state] for _, _, each in every],
        [each.seen.until_us for _, _, each in every],
        [dump_details(each.seen.details) for _, _, each in every],
        [STATE_NUMBER[each.row.state] for _, _, each in every],
        [each.row.until_us for _, _, each in every],
        [dump_details(each.row.details) for _, _, each in every],
        [each.entry.verb for _, _, each in every],
        [each.entry.request for _, _, each in every],
        [dump_details(each.entry.details) for _, _, each in every],
    )
