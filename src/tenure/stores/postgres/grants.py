"""Plain grants and releases in single statements, and the second look at what they could not do."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tenure.kernel.addressing.addresses import key
from tenure.kernel.holdings.holding_model import AGAIN, DUE, Outcome, Row, SpaceId, State, Ticket, Verdict, Wish
from tenure.kernel.holdings.idempotency import replayed
from tenure.ports import Failed, Stale
from tenure.stores.postgres.driver_errors import TROUBLE, unavailable
from tenure.stores.postgres.hot_connections import HotConnection
from tenure.stores.postgres.sql import SQL
from tenure.stores.postgres.timed_rows import read_replies
from tenure.stores.postgres.transaction import (
    details_column,
    explain_refused,
    granted_row,
    key_columns,
    log_details_column,
    plain_columns,
    wish_columns,
)
from tenure.stores.sql_files import read_row


class Released(NamedTuple):
    """What a release ended, and what stands where the rest was to be ended: a row, or that it could not be read."""

    ended: Mapping[int, Row]
    found: Mapping[int, Row | Failed]

    def leaves(self, ticket: Ticket) -> bool:
        """Return whether what a ticket names is there still: its owner was granted it after the ending."""
        row = self.found.get(ticket.first)
        return isinstance(row, Row) and ticket.names(row)


async def grant_on(hot: HotConnection, space: SpaceId, version: int, wishes: Sequence[Wish]) -> list[Verdict | Failed]:
    """Create holdings in one statement; those it did not create are explained in others.

    What was created is committed by then: a failure of the explanation is the refused ones' alone.
    """
    # Without states, deadlines, requests and keys a shorter statement does, which costs PostgreSQL less.
    if all(_is_plain(wish) for wish in wishes):
        columns = plain_columns(wishes)
        records = await hot.fetch("grant_plain", space, version, *columns, details_column(wishes))
    else:
        columns = wish_columns(wishes)
        records = await hot.fetch("grant", space, version, *columns, log_details_column(wishes), *key_columns(wishes))
    given = {record[0]: record for record in records}
    if records:
        hot.newest = records[0][3]
    if len(given) == len(wishes):
        return [granted(space, wish, given[first]) for first, wish in zip(columns[1], wishes, strict=True)]
    refused = [wish for first, wish in zip(columns[1], wishes, strict=True) if first not in given]
    reasons: Iterator[Verdict | Failed]
    try:
        reasons = iter(await _explained(hot.connection, space, version, refused))
    except TROUBLE as error:
        reasons = iter([Failed(unavailable(error, sent=False))] * len(refused))
    return [
        granted(space, wish, given[first]) if first in given else next(reasons)
        for first, wish in zip(columns[1], wishes, strict=True)
    ]


def _is_plain(wish: Wish) -> bool:
    return wish.state is State.HELD and wish.request is None and wish.key is None


def granted(space: SpaceId, wish: Wish, record: Any) -> Verdict:
    """Read a verdict from what a grant returns."""
    return Verdict(Outcome.GRANTED, granted_row(space, wish, record[1], record[2]))


async def _explained(connection: Any, space: SpaceId, version: int, wishes: Sequence[Wish]) -> list[Verdict]:
    """Find out why wishes were not granted; what is known under a key comes first."""
    keys = [wish.key for wish in wishes if wish.key is not None]
    known = {reply.key: reply for reply in await read_replies(connection, keys)} if keys else {}
    rest = [wish for wish in wishes if wish.key not in known]
    verdicts: list[Verdict] = []
    if rest:
        # An old version or an overdue holding refuses all wishes alike: then no row need be looked at.
        standing = await connection.fetchrow(SQL["standing"], space)
        if standing is None or standing["version"] != version:
            verdicts = [AGAIN] * len(rest)
        else:
            verdicts = [DUE] * len(rest) if standing["due"] else await explain_refused(connection, space, rest)
    found = iter(verdicts)
    return [replayed(wish, known[wish.key]) if wish.key in known else next(found) for wish in wishes]


async def release_on(connection: Any, space: SpaceId, tickets: Sequence[Ticket], version: int | None) -> Released:
    """End what can be ended; return that, and what stands where the rest was to be ended."""
    columns = (
        [ticket.network for ticket in tickets],
        [key(ticket.first) for ticket in tickets],
        [ticket.owner for ticket in tickets],
        [ticket.generation for ticket in tickets],
        [ticket.request for ticket in tickets],
        [ticket.remember for ticket in tickets],
        version,
        [None if ticket.by is None else json.dumps(ticket.by) for ticket in tickets],
    )
    if any(ticket.cooling_us for ticket in tickets):
        cooling_us = [ticket.cooling_us for ticket in tickets]
        records = await connection.fetch(SQL["release_to_cool"], space, *columns, cooling_us)
    else:
        records = await connection.fetch(SQL["release"], space, *columns)
    ended = {row.first: row for row in map(read_row, records)}
    left = [ticket for ticket in tickets if ticket.first not in ended]
    try:
        # Where anything was ended the version was right, so only an empty result can be due to it.
        return Released(ended, await _standing(connection, space, left, None if ended else version))
    except TROUBLE as error:  # what was ended is committed: only the others have no answer
        return Released(ended, {ticket.first: Failed(unavailable(error, sent=False)) for ticket in left})


async def _standing(
    connection: Any, space: SpaceId, tickets: Sequence[Ticket], version: int | None
) -> Mapping[int, Row]:
    """Return what stands where nothing was ended; Stale if that is because of the version."""
    if not tickets:
        return {}
    if version is not None and await connection.fetchval(SQL["versions"], space) != version:
        raise Stale
    records = await connection.fetch(SQL["rows_at"], space, [key(ticket.first) for ticket in tickets])
    # A cooling row was released before: nobody holds its address.
    return {row.first: row for row in map(read_row, records) if row.state is not State.COOLING}
