"""Plain grants, releases and rewrites for stores whose transactions run one after the other."""

from collections.abc import Sequence

from tenure.kernel.holding_states import cooling_us
from tenure.kernel.holdings.actor import Asker, asked_entry
from tenure.kernel.holdings.holding_model import (
    AGAIN,
    DUE,
    Entry,
    Outcome,
    Rewrite,
    Row,
    SpaceId,
    State,
    Ticket,
    Verdict,
    Wish,
)
from tenure.kernel.holdings.idempotency import replayed, reply_to
from tenure.kernel.holdings.log_entries import cool_entry, grant_entry, release_entry
from tenure.ports import Guard, Stale, Transaction


async def grant_rows(tx: Transaction, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict]:
    """Create holdings under a version of the configuration, and log them; none where something is due."""
    if (await tx.guard([space], Guard.GRANT)).get(space) != version:
        return [AGAIN] * len(wishes)
    if await tx.is_due(space):
        # A wish with a kept answer takes no address, so an overdue holding does not hold it up.
        keys = [wish.key for wish in wishes if wish.key is not None]
        known = {reply.key: reply for reply in await tx.replies(keys) if reply is not None}
        return [replayed(wish, known[wish.key]) if wish.key in known else DUE for wish in wishes]
    verdicts = await insert_keyed(tx, space, wishes)
    granted = [v.row for v in verdicts if v.outcome is Outcome.GRANTED and v.row is not None]
    if granted:
        await tx.log([grant_entry(row) for row in granted])
    return verdicts


async def insert_keyed(tx: Transaction, space: SpaceId, wishes: Sequence[Wish]) -> Sequence[Verdict]:
    """Create holdings; a wish whose idempotency key is known gets its old answer, and what is granted now is kept."""
    keys = [wish.key for wish in wishes if wish.key is not None]
    if not keys:
        return await tx.insert(space, wishes)
    known = {reply.key: reply for reply in await tx.replies(keys) if reply is not None}
    new = [wish for wish in wishes if wish.key not in known]
    answers = await tx.insert(space, new)
    pairs = [(wish, answer) for wish, answer in zip(new, answers, strict=True) if answer.outcome is Outcome.GRANTED]
    # In the transaction of the grants: an answer is kept exactly if its effect exists, whatever is killed between.
    await tx.keep_replies([reply_to(wish, answer) for wish, answer in pairs if wish.key is not None])
    rest = iter(answers)
    return [replayed(wish, known[wish.key]) if wish.key in known else next(rest) for wish in wishes]


async def release_rows(
    tx: Transaction, space: SpaceId, tickets: Sequence[Ticket], version: int | None = None
) -> Sequence[Row | None]:
    """End the holdings that tickets name, if the ticket's owner and generation still hold them."""
    if version is not None and (await tx.guard([space], Guard.LANE)).get(space) != version:
        raise Stale
    rows = await tx.rows_at(space, [ticket.first for ticket in tickets])
    ended = [(row, ticket) for row, ticket in zip(rows, tickets, strict=True) if row is not None and ticket.names(row)]
    if ended:
        entries = await _end(tx, ended)
        await tx.remember([row for row, ticket in ended if ticket.remember])
        await tx.log(entries)
    # A cooling row was released before, so a repeated release finds nothing and leaves the cooling alone.
    return [None if row is not None and row.state is State.COOLING else row for row in rows]


async def rewrite_rows(
    tx: Transaction, space: SpaceId, version: int, groups: Sequence[Sequence[Rewrite]]
) -> Sequence[bool]:
    """Write each group of rows again, and log it, if all rows of the group are still as they were seen."""
    if (await tx.guard([space], Guard.LANE)).get(space) != version:
        raise Stale
    places = [each.seen.first for group in groups for each in group]
    found = dict(zip(places, await tx.rows_at(space, places), strict=True))
    unchanged = [all(found[each.seen.first] == each.seen for each in group) for group in groups]
    written = [each for group, same in zip(groups, unchanged, strict=True) if same for each in group]
    if written:
        await tx.rewrite([each.row for each in written])
        await tx.log([each.entry for each in written])
    return unchanged


async def _end(tx: Transaction, ended: Sequence[tuple[Row, Ticket]]) -> list[Entry]:
    """Remove rows, or let them cool; return what the log is to tell."""
    now_us = await tx.now_us()
    entries: list[Entry] = []
    gone: list[Row] = []
    cooling: list[Row] = []
    for row, ticket in ended:
        if cools_us := cooling_us(row.state, ticket.cooling_us):
            cool = row._replace(state=State.COOLING, until_us=now_us + cools_us)
            cooling.append(cool)
            entries.append(asked_entry(cool_entry(cool, ticket.request), _asker(ticket)))
        else:
            gone.append(row)
            entries.append(asked_entry(release_entry(row, ticket.request), _asker(ticket)))
    await tx.remove(gone)
    await tx.rewrite(cooling)
    return entries


def _asker(ticket: Ticket) -> Asker | None:
    return None if ticket.by is None else Asker(*ticket.by)
