"""Holdings that were granted to a waiting caller, and that no other answer has reported yet.

A caller who waits may hang up in the very moment of the grant. Its server then gives the address back, but may do so only
while nobody else was answered with that holding: the same owner may have asked again, at another server. So such a
grant carries a mark in its row, and every answer that reports the holding takes the mark off first, in the lane, where
the give-back runs too. Whichever comes first decides. The first caller's own answer leaves the mark alone, and costs
nothing more: its server knows whether it was sent.
"""

from tenure.kernel.entries import release_entry
from tenure.kernel.values import OWNED, Entry, Row
from tenure.ports import Transaction
from tenure.service.claims import Claim

MARK = "unreported"


def revocable(claim: Claim) -> Claim:
    """Return the claim whose grant will carry the mark."""
    return claim._replace(details={**claim.details, MARK: True})


def is_revocable(claim: Claim) -> bool:
    """Return whether the claim's grant carries the mark."""
    return MARK in claim.details


def is_unreported(row: Row) -> bool:
    """Return whether a row carries the mark."""
    return MARK in row.details


def reported(row: Row) -> Row:
    """Return the row as answers and the log show it: without the mark."""
    if MARK not in row.details:
        return row
    return row._replace(details={name: value for name, value in row.details.items() if name != MARK})


async def report(tx: Transaction, row: Row) -> Row:
    """Take the mark off a row before an answer reports it, and return the row; the transaction holds the lane.

    Costs a write only where the mark is.
    """
    if is_unreported(row):
        row = reported(row)
        await tx.rewrite([row])
    return row


async def give_back(tx: Transaction, row: Row) -> list[Entry]:
    """End a holding that its owner never saw, unless an answer has reported it; return what is to be logged.

    The transaction holds the lane. The address need not cool: nobody has used it.
    """
    [found] = await tx.rows_at(row.space, [row.first])
    if found is None or found.generation != row.generation or found.state not in OWNED or not is_unreported(found):
        return []
    await tx.remove([found])
    return [release_entry(found, None, "given back")]
