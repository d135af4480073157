"""Tries whose answers were lost: how the next try recognises what the one before it did.

A store that commits and then loses the connection leaves its caller in doubt, and the caller's only way out is to ask
again. Asking again must not do it again. So the next try looks for its own first effect in the log, while it holds what
the first one held: by then the first one has ended, either way.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.holdings.actor import asker_of
from tenure.kernel.holdings.holding_model import Change, Entry, NetworkId, Row, State
from tenure.ports import Transaction
from tenure.service.allocator.claim import Claim

T = TypeVar("T")

PAGE = 1000


@dataclass(slots=True)
class Tried(Generic[T]):
    """What the last try logged, under which number or behind which, and what it was to answer."""

    entries: Sequence[Entry] = ()
    number: int = 0
    answer: T | None = None
    after: int | None = None

    def note(self, entries: Sequence[Entry], number: int, answer: T) -> None:
        """Note what a run is about to commit; the numbers of a commit follow each other and end with ``number``."""
        self.entries, self.number, self.answer, self.after = entries, number, answer, None

    def note_sent(self, entries: Sequence[Entry], after: int, answer: T) -> None:
        """Note what a single statement is about to commit; its numbers are not known, but are higher than ``after``."""
        self.entries, self.answer, self.after = entries, answer, after

    def forget(self) -> None:
        """Forget what a try was to do: it is known to have done nothing."""
        self.entries, self.answer, self.after = (), None, None

    async def committed_answer(self, tx: Transaction) -> T | None:
        """Return the answer of the run before, if that was committed; None if there was none, or it was not.

        To be asked by a transaction that holds what the run before held. Costs a read where there was one.
        """
        if not self.entries:
            return None
        if self.after is not None:
            return self.answer if await _are_behind(tx, self.after, self.entries) else None
        written = await tx.changes(self.number - len(self.entries), limit=len(self.entries))
        # The log has passed the number and has fewer entries: some were trimmed, and the outcome cannot be known.
        if len(written) < len(self.entries) and await tx.last_change() >= self.number:
            raise _trimmed()
        same = len(written) == len(self.entries) and all(map(_is, written, self.entries))
        return self.answer if same else None


def _trimmed() -> StoreUnavailable:
    return StoreUnavailable("the log was trimmed past a request whose answer was lost", outcome="unknown")


async def _are_behind(tx: Transaction, after: int, entries: Sequence[Entry]) -> bool:
    """Return whether the log has entries behind a number. O(changes behind the number)."""
    wanted = {(entry.verb, entry.generation): entry for entry in entries}
    trimmed = False
    while wanted and (page := await tx.changes(after, limit=PAGE)):
        # The number may be older than the try: what was trimmed before it does not matter if the rest has the entries.
        trimmed = trimmed or page[0].seq > after + 1
        for change in page:
            entry = wanted.get((change.verb, change.generation))
            if entry is not None and _is(change, entry):
                del wanted[change.verb, change.generation]
        after = page[-1].seq
    if wanted and (trimmed or await tx.last_change() > after):
        raise _trimmed()
    return not wanted


def _is(change: Change, entry: Entry) -> bool:
    """Return whether a change of the log is the entry that was to be written."""
    found = Entry(
        change.verb, change.space, change.network, change.first, change.last, change.owner, change.slot,
        change.generation, change.request,
    )  # fmt: skip
    # Details compare as JSON: the log gives lists back where the entry had tuples.
    return found == entry._replace(details=found.details) and _plain(change.details) == _plain(entry.details)


def _plain(details: object) -> str:
    return json.dumps(details, sort_keys=True, default=str)


async def granted_since(
    tx: Transaction, after: int, claims: Sequence[tuple[NetworkId, Claim]]
) -> dict[tuple[NetworkId, str, str], Row]:
    """Find what these very requests were granted behind a number of the log, whether or not it is still held.

    Requests are known by their id; a claim without one is not looked for. O(changes behind the number).
    """
    wanted = {
        (network, claim.owner, claim.slot): asker
        for network, claim in claims
        if (asker := asker_of(claim.details)) is not None and asker.request_id is not None
    }
    found: dict[tuple[NetworkId, str, str], Row] = {}
    while wanted and (page := await tx.changes(after, limit=PAGE)):
        for change in page:
            if change.verb == "grant" and change.network is not None:
                claim = (change.network, change.owner or "", change.slot or "")
                if claim in wanted and asker_of(change.details) == wanted[claim]:
                    found[claim] = granted_row(change)
        after = page[-1].seq
    return found


def granted_row(change: Change) -> Row:
    """Return the row that a grant in the log made."""
    assert change.space is not None
    assert change.network is not None
    assert change.first is not None
    assert change.last is not None
    assert change.generation is not None
    details = dict(change.details)
    state = State(details.pop("state", State.HELD))
    until_us = details.pop("until_us", None)
    return Row(
        change.space, change.network, change.first, change.last, change.owner or "", change.slot or "", state,
        change.generation, change.at_us, until_us, change.request, details,
    )  # fmt: skip
