"""What a transaction of a ledger store can do: the ledger's own code makes several effects one with it."""

from collections.abc import Sequence
from typing import Protocol

from tenure.kernel.holdings.archive_pages import ArchivedPage
from tenure.kernel.holdings.holding_model import (
    Change,
    Entry,
    NetworkId,
    Paper,
    Reply,
    Row,
    SpaceId,
    Verdict,
    Waiter,
    Wish,
)
from tenure.kernel.plan.plan_model import Configuration, Network
from tenure.ports.contract_types import Effects, Guard


class Transaction(Protocol):
    """An open transaction: effects become one when it ends well, none when it does not."""

    async def guard(self, spaces: Sequence[SpaceId], strength: Guard) -> dict[SpaceId, int]:
        """Hold the spaces (sorted by the caller) and return their versions; a space that is gone is left out."""
        ...

    async def open_lane(self, space: SpaceId, after: int) -> tuple[int | None, Effects]:
        """Hold a space's lane; return its version (None if it is gone) and what happened there behind a cursor."""
        ...

    async def grant_all(
        self, space: SpaceId, version: int, frees: int, wishes: Sequence[Wish]
    ) -> tuple[Sequence[Row], int]:
        """Create and log all of the holdings in a lane that is held, in one call; NotAll if one cannot be had.

        Returns the rows, and the number of the last one's entry in the log.

        Comes last, as ``log`` does. Offered by stores with the ability ``quick_lane``.
        """
        ...

    async def locate(self, networks: Sequence[str]) -> dict[str, SpaceId]:
        """Find the space of each network that exists."""
        ...

    async def spaces_named(self, names: Sequence[str]) -> list[SpaceId]:
        """Find the spaces of these names that exist."""
        ...

    async def configurations(self, spaces: Sequence[SpaceId]) -> Sequence[Configuration]:
        """Read the spaces' configurations."""
        ...

    async def add_space(self, name: str) -> SpaceId:
        """Create a space; AlreadyExists if the name is taken."""
        ...

    async def rename_space(self, space: SpaceId, name: str) -> bool:
        """Give a space another name, unless that is taken; tell whether it was done."""
        ...

    async def remove_space(self, space: SpaceId) -> None:
        """Remove an empty space."""
        ...

    async def next_network(self) -> NetworkId:
        """Take a number for a network."""
        ...

    async def put_networks(self, space: SpaceId, networks: Sequence[Network]) -> None:
        """Write networks whole; AlreadyExists if a name is another network's."""
        ...

    async def remove_networks(self, networks: Sequence[NetworkId]) -> None:
        """Remove networks."""
        ...

    async def bump(self, space: SpaceId) -> None:
        """Make the version one higher; every older view is stale from the commit on."""
        ...

    async def insert(self, space: SpaceId, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        """Create holdings as ``grant`` does, without guard and log."""
        ...

    async def rows_at(self, space: SpaceId, positions: Sequence[int]) -> Sequence[Row | None]:
        """Find the holding that begins at each position, and keep it from changing until the end."""
        ...

    async def rows_within(
        self, space: SpaceId, first: int, last: int, *, network: NetworkId | None = None, limit: int = 1000
    ) -> Sequence[Row]:
        """Find holdings that lie over a range, lowest first."""
        ...

    async def rows_of(self, owners: Sequence[str]) -> Sequence[Row]:
        """Find all holdings of these owners."""
        ...

    async def rewrite(self, rows: Sequence[Row]) -> None:
        """Write changed owner, slot, state, deadline or details of rows found in this transaction."""
        ...

    async def remember(self, rows: Sequence[Row]) -> None:
        """Note where these owners were, for the sticky policy."""
        ...

    async def former(self, network: NetworkId, owner: str, slot: str) -> int | None:
        """Return the position this owner's slot had before, if it was noted."""
        ...

    async def remove(self, rows: Sequence[Row]) -> None:
        """Remove rows found in this transaction."""
        ...

    async def now_us(self) -> int:
        """Read the store's clock, the only one that deadlines are measured by (I10)."""
        ...

    async def is_due(self, space: SpaceId) -> bool:
        """Return whether the time of a holding in the space is over by the store's clock."""
        ...

    async def overdue(self, space: SpaceId, *, limit: int = 1000) -> Sequence[Row]:
        """Find rows whose deadline has passed by the store's clock, and keep them from changing until the end."""
        ...

    async def waiters(self, space: SpaceId) -> Sequence[Waiter]:
        """Read who waits in a space whose lane is held, in order of arrival."""
        ...

    async def join(self, waiter: Waiter, lasts_us: int) -> Waiter:
        """Put a claim at the end of the line (or, with a ticket, back in its place) for so long; return it as it is.

        The first to wait in a space marks it queued and makes its version one higher.
        """
        ...

    async def linger(self, tickets: Sequence[int], lasts_us: int) -> None:
        """Let waiting claims live so long from now."""
        ...

    async def leave(self, space: SpaceId, tickets: Sequence[int]) -> None:
        """Take claims out of the line. The last one takes the mark off and makes the version one higher."""
        ...

    async def papers_named(self, kind: str, names: Sequence[str], *, shared: bool = False) -> Sequence[Paper | None]:
        """Find papers by name, and keep them from changing until the end; shared: others may do the same meanwhile."""
        ...

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Paper]:
        """Read papers of a kind whose name begins so, behind a name, in order of name."""
        ...

    async def add_papers(self, papers: Sequence[Paper]) -> None:
        """Write new papers; AlreadyExists if there is one of that name."""
        ...

    async def put_papers(self, papers: Sequence[Paper]) -> None:
        """Write papers whole, over those that were found in this transaction."""
        ...

    async def remove_papers(self, kind: str, names: Sequence[str]) -> None:
        """Remove papers."""
        ...

    async def replies(self, keys: Sequence[str]) -> Sequence[Reply | None]:
        """Find what requests with these idempotency keys were answered."""
        ...

    async def keep_replies(self, replies: Sequence[Reply]) -> None:
        """Keep answers under their keys, at the store's time; KeyTaken if one of the keys was taken meanwhile."""
        ...

    async def forget_replies(self, lived_us: int, *, limit: int = 1000) -> int:
        """Drop so many answers older than that, and count them."""
        ...

    async def forget_oldest_replies(self, count: int) -> int:
        """Drop so many answers, the oldest first, whatever their age; return how many there were."""
        ...

    async def rows_for(self, claims: Sequence[tuple[NetworkId, str, str]]) -> Sequence[Row | None]:
        """Find the pending or held row of each (network, owner, slot)."""
        ...

    async def effects(self, space: SpaceId, after: int) -> Effects:
        """Read what happened to a space's addresses; not complete if the cursor is too far behind."""
        ...

    async def spans(self, space: SpaceId, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Read all held spans that lie over a range (and maybe the one below it), in order; some may be told as one."""
        ...

    async def last_change(self) -> int:
        """Return the number of the newest change that this transaction sees."""
        ...

    async def changes(self, after: int, *, limit: int = 1000) -> Sequence[Change]:
        """Read the log behind a number, as this transaction sees it. What was trimmed is left out without a word."""
        ...

    async def log(self, entries: Sequence[Entry]) -> int:
        """Append to the log and return the last number. Comes last: from here on the transaction holds the counter."""
        ...

    async def trim(self, before: int) -> None:
        """Drop changes numbered below ``before``, archived ones included."""
        ...

    async def archive(self, page: ArchivedPage, places: Sequence[int]) -> bool:
        """Move a page's changes, the oldest of the log, into the archive, to be found under the marks of places.

        Comes last, as ``log`` does. False, and nothing was done, if they are no longer the oldest ones, or if somebody
        else moves some at this moment, for whom nobody waits.
        """
        ...


class CallerTransaction(Transaction, Protocol):
    """A transaction that somebody else has open and will end. A call in it is undone alone if it fails."""

    async def begin_call(self) -> bool:
        """Mark the place to which a failed call goes back; tell whether this transaction has logged anything yet."""
        ...

    async def end_call(self, *, failed: bool) -> None:
        """Keep the call's effects in the transaction, or undo them."""
        ...
