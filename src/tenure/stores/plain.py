"""Plain grants and releases for stores whose transactions run one after the other."""

from collections.abc import Sequence

from tenure.kernel.entries import grant_entry, release_entry
from tenure.kernel.values import AGAIN, Outcome, Row, SpaceId, Ticket, Verdict, Wish
from tenure.ports import Guard, Stale, Transaction


async def grant_rows(tx: Transaction, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict]:
    """Create holdings under a version of the configuration, and log them."""
    if (await tx.guard([space], Guard.GRANT)).get(space) != version:
        return [AGAIN] * len(wishes)
    verdicts = await tx.insert(space, wishes)
    granted = [v.row for v in verdicts if v.outcome is Outcome.GRANTED and v.row is not None]
    if granted:
        await tx.log([grant_entry(row) for row in granted])
    return verdicts


async def release_rows(
    tx: Transaction, space: SpaceId, tickets: Sequence[Ticket], version: int | None = None
) -> Sequence[Row | None]:
    """End the holdings that tickets name, if the ticket's owner and generation still hold them."""
    if version is not None and (await tx.guard([space], Guard.LANE)).get(space) != version:
        raise Stale
    rows = await tx.rows_at(space, [ticket.first for ticket in tickets])
    ended = [(row, ticket) for row, ticket in zip(rows, tickets, strict=True) if row is not None and ticket.names(row)]
    if ended:
        await tx.remove([row for row, _ in ended])
        await tx.remember([row for row, ticket in ended if ticket.remember])
        await tx.log([release_entry(row, ticket.request) for row, ticket in ended])
    return rows
