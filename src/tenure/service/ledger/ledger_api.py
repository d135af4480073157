"""What a ledger does behind its verbs: the promise that both ends keep, and what both check alike.

``AsyncLedger`` reads a caller's words into values once. Behind it is an end: ``EngineLedger``, which works on a store,
or ``RemoteLedger``, which asks a server over HTTP. An end has one method for each thing that the two do differently;
whatever can be said as operations (every edit of the plan, transfers, confirmations) goes through ``apply``.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from tenure.kernel.errors import Invalid
from tenure.kernel.holdings.holding_model import Change, Holding, Paper
from tenure.kernel.holdings.tenures import History
from tenure.kernel.names import Owner, shown
from tenure.kernel.plan.plan_model import Configuration, Network
from tenure.service.allocator.claim import Claim
from tenure.service.apply.operations import Operation, Release, Shown
from tenure.service.engine.log_keeper import DAY_US
from tenure.service.ledger.caller_transaction import AsyncInside
from tenure.service.read.explain import Explanation
from tenure.service.read.presenter import ClaimStatus, WaitingClaim
from tenure.service.read.search import Found
from tenure.service.read.verify import Breach

PAGE = 1000
"""How much is read of a store, or asked of a server, at once."""

LIMITLESS = 1 << 62
MOST_DAYS = 36_525
"""A century."""


class LedgerApi(Protocol):
    """One end of a ledger. Names, addresses, owners and limits come in checked."""

    def asked_by(self, actor: str, request_id: str | None) -> "LedgerApi":
        """Return the same end, of which every change tells on whose word it was made, and by which request."""
        ...

    def inside(self, connection: object) -> AsyncInside:
        """Work inside a transaction that the caller has open."""
        ...

    async def apply(self, operations: Sequence[Operation], key: str | None) -> list[Shown]:
        """Make operations one transaction; at least one is there."""
        ...

    async def rehearse(self, operations: Sequence[Operation]) -> list[Shown]:
        """Return what ``apply`` would answer, and change nothing."""
        ...

    async def serve(self, claim: Claim, wait_s: float) -> Holding:
        """Give a claim its address; where nothing is free, wait so long for one."""
        ...

    async def claim(self, claim: Claim, patience_us: int, wait_s: float) -> ClaimStatus:
        """Give a claim its address, or a place in line that is kept for so long; wait so long for the address."""
        ...

    async def withdraw(self, network: str, owner: Owner, slot: str, request_id: str | None) -> bool:
        """Take a claim out of the line, and give back what the request of this id was granted."""
        ...

    async def release(self, operation: Release, key: str | None) -> Holding | None:
        """End a holding; the operation's words are still to be checked."""
        ...

    async def sweep(self) -> list[Holding]:
        """Remove what is overdue."""
        ...

    async def waiting(self, network: str | None) -> list[WaitingClaim]:
        """Read the claims in line, space by space in order of arrival."""
        ...

    async def spaces(self) -> list[Configuration]:
        """Read all spaces, in order of name."""
        ...

    async def networks(self) -> list[Network]:
        """Read all networks, in order of name."""
        ...

    async def network(self, name: str) -> Network:
        """Read one network."""
        ...

    async def holding(self, network: str, position: int) -> Holding:
        """Read the holding that a position lies in."""
        ...

    async def holdings(self, network: str, after: int | None, limit: int) -> list[Holding]:
        """Read holdings of a network behind a position, in order of address."""
        ...

    async def holdings_of(self, owners: Sequence[Owner], network: str | None) -> list[Holding]:
        """Read all that owners hold, owner by owner; in one network, if one is named."""
        ...

    async def paper(self, kind: str, name: str) -> Paper:
        """Read a paper."""
        ...

    async def papers(self, kind: str, prefix: str, after: str, limit: int) -> list[Paper]:
        """Read papers of a kind whose name begins so, in order of name, behind a name."""
        ...

    def changes(self, after: int, limit: int | None) -> AsyncIterator[Change]:
        """Read the log behind a number up to its end; both words are still to be checked."""
        ...

    def tail(self, after: int) -> AsyncIterator[Change]:
        """Follow the log from a number on, which is still to be checked."""
        ...

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        ...

    async def why(self, position: int, network: str | None) -> Explanation:
        """Explain an address."""
        ...

    async def history(self, position: int, network: str | None, at: datetime | None) -> History:
        """Read who held an address."""
        ...

    async def search(
        self,
        text: str | None,
        labels: Mapping[str, str | None] | None,
        kind: str | None,
        network: str | None,
        limit: int | None,
    ) -> list[Found]:
        """Find objects; all words are still to be checked."""
        ...

    async def verify(self) -> list[Breach]:
        """Check every invariant."""
        ...

    async def trim_changes(self, end: int) -> None:
        """Drop the log below a number that it has reached."""
        ...

    async def archive_changes(self, keep_days: float) -> int:
        """Move older changes into the archive; the number of days is still to be checked."""
        ...

    async def close(self) -> None:
        """Finish what was asked, then let go of what is behind. Closing twice is once."""
        ...


def check_limit(limit: object) -> int:
    """Return how many are wanted at most; all of them unless the caller names a limit."""
    if limit is None:
        return LIMITLESS
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= LIMITLESS:
        raise Invalid(f"limit: a positive number is needed, not {shown(limit)}", field="limit")
    return limit


def check_cursor(after: object) -> int:
    """Return a number of the log to go on from."""
    if not isinstance(after, int) or isinstance(after, bool) or not 0 <= after <= LIMITLESS:
        raise Invalid(f"after: a number from the log is needed, not {shown(after)}", field="after")
    return after


def check_days(value: object) -> int:
    """Return how long changes stay in the log, in microseconds: from nothing to a century."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MOST_DAYS:
        text = f"keep_days: a number of days from 0 to {MOST_DAYS} is needed, not {shown(value)}"
        raise Invalid(text, field="keep_days")
    return round(value * DAY_US)


def check_before(value: object) -> int:
    """Return a number of the log below which it may be dropped."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Invalid(f"before: a number from the log is needed, not {shown(value)}", field="before")
    return value
