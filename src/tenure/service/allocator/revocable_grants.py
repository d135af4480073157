"""Grants that can still be taken back: so far, only waiting callers were answered with them.

A caller who waits may hang up in the very moment of the grant. Its server then gives the address back, but may do so
only while nobody else was answered with that holding: the same owner may have asked again, at another server. So such
a grant carries a mark in its row: the waiting callers that it was an answer for. A waiting caller that is answered with
it later is added. Every other answer takes the mark off first, for good. A caller that is gone is taken off, and with
the last one the holding ends. All of this happens in the lane, so whichever comes first decides. The usual answer, to
the caller that was granted the address, writes nothing: that caller stays on the mark.
"""

import secrets

from tenure.kernel.holdings.actor import asker_of
from tenure.kernel.holdings.holding_model import OWNED, Entry, Row
from tenure.kernel.holdings.log_entries import release_entry
from tenure.ports import Transaction
from tenure.service.allocator.claim import Claim

MARK = "unreported"


def new_caller(claim: Claim) -> str:
    """Return a name for one waiting caller, with the id of its request where that has one."""
    asker = asker_of(claim.details)
    # Chance sets apart two callers of one request, and callers without a request id.
    return f"{secrets.token_hex(4)}/{'' if asker is None else asker.request_id or ''}"


def revocable(claim: Claim, caller: str) -> Claim:
    """Return the claim of a waiting caller: what it is granted carries the mark."""
    return claim._replace(details={**claim.details, MARK: [caller]})


def callers_of(thing: Row | Claim) -> list[str]:
    """Return the callers on a row's mark, or the one of a claim; none if it can no longer be given back."""
    return list(thing.details.get(MARK, ()))


def marked_for(row: Row, claim: Claim) -> Row:
    """Return the row with the mark that a claim gives it."""
    return _marked(row, callers_of(claim)) if callers_of(claim) else row


def unmarked(claim: Claim) -> Claim:
    """Return the claim without its caller's mark."""
    return claim._replace(details={name: value for name, value in claim.details.items() if name != MARK})


def reported(row: Row) -> Row:
    """Return the row as answers and the log show it: without the mark."""
    return row if MARK not in row.details else _marked(row, [])


def _marked(row: Row, callers: list[str]) -> Row:
    details = {name: value for name, value in row.details.items() if name != MARK}
    return row._replace(details=details | {MARK: callers} if callers else details)


async def report(tx: Transaction, row: Row, claim: Claim | None = None) -> Row:
    """Note that a row is about to be reported to the caller of a claim, or of another request; the lane is held.

    Returns the row as it is stored then. Costs a write where it is marked.
    """
    callers, own = callers_of(row), [] if claim is None else callers_of(claim)
    # A caller that stands on the mark already is the usual case, and costs no write.
    if not callers or (own and set(own) <= set(callers)):
        return row
    stored = _marked(row, callers + own) if own else reported(row)
    await tx.rewrite([stored])
    return stored


async def report_kept(tx: Transaction, kept: Row, claim: Claim) -> None:
    """Note that what a key stands for is reported again, if it can still be given back; the lane is held.

    The same request under its key is the same caller, who asks elsewhere because a connection broke.
    """
    asker = asker_of(claim.details)
    request_id = None if asker is None else asker.request_id
    if not callers_of(kept) or request_id in {caller.partition("/")[2] for caller in callers_of(kept)}:
        return
    # The kept row is an old copy: only the row in the store has the present mark.
    [found] = await tx.rows_at(kept.space, [kept.first])
    if found is not None and found.generation == kept.generation:
        await report(tx, found)


async def report_twin(tx: Transaction, row: Row, callers: list[str], claim: Claim) -> list[str]:
    """Note that a row that was granted in this very transaction is reported to one more caller; return the mark."""
    # The row has no mark, or an earlier answer took it off for good: no later caller puts it back.
    if not callers:
        return []
    left = [*callers, *own] if (own := callers_of(claim)) else []
    await tx.rewrite([_marked(row, left)])
    return left


async def give_back(tx: Transaction, row: Row, gone: "Departed") -> list[Entry]:
    """Take callers that are gone off the mark, and end the holding with the last one; the lane is held.

    Returns what is to be logged. The address need not cool: nobody has used it.
    """
    [found] = await tx.rows_at(row.space, [row.first])
    if found is None or found.generation != row.generation or found.state not in OWNED:
        return []
    callers = callers_of(found)
    left = [caller for caller in callers if not gone.has(caller)]
    # Without a mark, another answer has reported the holding for good. With callers left, it is still their answer.
    if not callers or left:
        if len(left) < len(callers):
            await tx.rewrite([_marked(found, left)])
        return []
    await tx.remove([found])
    return [release_entry(found, None, "given back")]


class Departed:
    """Callers that are gone: one, by its name, or all of a request, by its id."""

    def __init__(self, *, caller: str | None = None, request_id: str | None = None) -> None:
        self._caller = caller
        self._request_id = request_id

    def has(self, caller: str) -> bool:
        """Return whether a caller is gone."""
        return self._caller == caller or self._request_id == caller.partition("/")[2]
