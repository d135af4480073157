"""Holdings that only waiting callers were answered with, each of whom may be gone before the answer.

A caller who waits may hang up in the very moment of the grant. Its server then gives the address back, but may do so
only while nobody else was answered with that holding: the same owner may have asked again, at another server. So such
a grant carries a mark in its row: the waiting callers that it was an answer for. A waiting caller that is answered with
it later is added. Every other answer takes the mark off first, for good. A caller that is gone is taken off, and with
the last one the holding ends. All of this happens in the lane, so whichever comes first decides. A caller whose answer
arrives stays on the mark, and costs nothing more: nobody takes it off.
"""

import secrets

from tenure.kernel.asking import asker_of
from tenure.kernel.entries import release_entry
from tenure.kernel.values import OWNED, Entry, Row
from tenure.ports import Transaction
from tenure.service.claims import Claim

MARK = "unreported"


def new_caller(claim: Claim) -> str:
    """Return a name for one waiting caller, with the id of its request where that has one."""
    asker = asker_of(claim.details)
    return f"{secrets.token_hex(4)}/{'' if asker is None else asker.request_id or ''}"


def revocable(claim: Claim, caller: str) -> Claim:
    """Return the claim of a waiting caller: what it is granted carries the mark."""
    return claim._replace(details={**claim.details, MARK: [caller]})


def callers_of(thing: Row | Claim) -> list[str]:
    """Return the callers on a row's mark, or the one of a claim; none if it can no longer be given back."""
    return list(thing.details.get(MARK, ()))


def reported(row: Row) -> Row:
    """Return the row as answers and the log show it: without the mark."""
    return row if MARK not in row.details else _marked(row, [])


def _marked(row: Row, callers: list[str]) -> Row:
    details = {name: value for name, value in row.details.items() if name != MARK}
    return row._replace(details=details | {MARK: callers} if callers else details)


async def report(tx: Transaction, row: Row, claim: Claim | None = None) -> tuple[Row, bool]:
    """Note that a row is about to be reported to the caller of a claim, or of another request; the lane is held.

    Returns the row as it is shown, and whether that caller may still give it back. Costs a write where it is marked.
    """
    callers, own = callers_of(row), [] if claim is None else callers_of(claim)
    if callers and not set(own) <= set(callers):
        await tx.rewrite([_marked(row, callers + own)])
    elif callers and not own:
        await tx.rewrite([reported(row)])
    return reported(row), bool(callers and own)


async def report_twin(tx: Transaction, row: Row, callers: list[str], claim: Claim) -> list[str]:
    """Note that a row that was granted in this very transaction is reported to one more caller; return the mark."""
    if not callers:
        return []
    left = [*callers, *own] if (own := callers_of(claim)) else []
    await tx.rewrite([_marked(row, left)])
    return left


async def give_back(tx: Transaction, row: Row, gone: "Gone") -> list[Entry]:
    """Take callers that are gone off the mark, and end the holding with the last one; the lane is held.

    Returns what is to be logged. The address need not cool: nobody has used it.
    """
    [found] = await tx.rows_at(row.space, [row.first])
    if found is None or found.generation != row.generation or found.state not in OWNED:
        return []
    callers = callers_of(found)
    left = [caller for caller in callers if not gone.has(caller)]
    if not callers or left:
        if len(left) < len(callers):
            await tx.rewrite([_marked(found, left)])
        return []
    await tx.remove([found])
    return [release_entry(found, None, "given back")]


class Gone:
    """Callers that are gone: one, by its name, or all of a request, by its id."""

    def __init__(self, *, caller: str | None = None, request_id: str | None = None) -> None:
        self._caller = caller
        self._request_id = request_id

    def has(self, caller: str) -> bool:
        """Return whether a caller is gone."""
        return self._caller == caller or self._request_id == caller.partition("/")[2]
