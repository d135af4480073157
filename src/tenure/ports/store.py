"""What rules ask of stores, in two tiers: every store is a Book, some are LedgerStores."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from tenure.kernel.holdings.holding_model import (
    Change,
    NetworkId,
    Paper,
    Rewrite,
    Row,
    SpaceId,
    Ticket,
    Verdict,
    Wish,
)
from tenure.kernel.plan.plan_model import Configuration
from tenure.kernel.snapshot import Section
from tenure.ports.contract_types import Abilities, Effects, Failed, Size
from tenure.ports.transaction import CallerTransaction, Transaction

T = TypeVar("T")


class Book(Protocol):
    """Every store."""

    abilities: Abilities

    @property
    def newest(self) -> int:
        """The highest number of the log that this process has seen: whatever begins now is numbered above it.

        It may be far behind, and costs nothing. Whoever loses an answer looks for its own entry from there on.
        """
        ...

    async def grant(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict | Failed]:
        """Create each holding if nobody is in the way, under the configuration's version; one verdict a wish.

        No two wishes of a call share an address or a claim. A stale version makes all verdicts AGAIN. Where the time
        of a holding in the space is over by the store's clock, nothing is granted, and what no key, owner or version
        decides is DUE; a store without a clock never says so.
        """
        ...

    async def release(self, space: SpaceId, tickets: Sequence[Ticket]) -> Sequence[Row | Failed | None]:
        """End each holding that the ticket's owner (and generation, where given) holds; a ticket for each address.

        Answers the row as it was found: of another owner or generation it is left alone; None if nobody holds it, or
        if it is cooling already. A ticket with ``cooling_us`` leaves the row in the way, cooling, for as long as
        ``holding_states.cooling_us`` says of the state in which the row is found.
        """
        ...

    def held(self, space: SpaceId, *, after: int = -1) -> AsyncIterator[Sequence[Row]]:
        """Stream the space's holdings in order of position, in pages; the pages are one snapshot where that is said."""
        ...

    async def by_owner(self, owners: Sequence[str]) -> Sequence[Row]:
        """Find all holdings of these owners, in all spaces."""
        ...

    async def watch(self, after: int, *, limit: int = 1000, space: SpaceId | None = None) -> Sequence[Change]:
        """Read the changes behind a cursor, in the order they took effect; CursorExpired if they are gone."""
        ...

    async def close(self) -> None:
        """Let go of the store; what was answered stays."""
        ...


class LedgerStore(Book, Protocol):
    """Memory, SQLite, PostgreSQL: the book, transactions, configuration and the log."""

    async def release(
        self, space: SpaceId, tickets: Sequence[Ticket], *, version: int | None = None
    ) -> Sequence[Row | Failed | None]:
        """End holdings as a book does; under a version of the configuration, where one is named.

        If it has another by now, raises Stale: a network's number may be another network's.
        """
        ...

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run work in a transaction: it commits when work returns, and leaves nothing when work raises.

        Work awaits nothing but the transaction, and may be run again from the start when the store asks for it
        (a deadlock, a lock that took too long); so it must not keep what it learned in an attempt that failed.
        """
        ...

    def inside(self, connection: object) -> CallerTransaction:
        """Run in a transaction that the caller has open on a connection of his to the same database."""
        ...

    async def spans(self, space: SpaceId, first: int, last: int) -> tuple[int, Sequence[tuple[int, int]]]:
        """Read all held spans that lie over a range (and maybe the one below it), in order.

        Spans that touch may be told as one. It is a reading of one moment; the first of the answer is the number of
        that moment's last change.
        """
        ...

    async def effects(self, space: SpaceId, after: int) -> Effects:
        """Read what happened to a space's addresses; not complete if the cursor is too far behind."""
        ...

    async def grant_unless_freed(
        self, space: SpaceId, version: int, frees: int, wishes: Sequence[Wish]
    ) -> Sequence[Verdict] | None:
        """Create all of the holdings or none, in the lane, in one call; None if it could not be all.

        Only under the given version, and only if nothing in the space was freed since ``frees`` was read: then an
        address that was the lowest free one to a reader of that time, and can be had, still is. Nor if the time of a
        holding there is over: its address is free, and may be lower. Offered by stores with the ability ``quick_lane``.
        """
        ...

    async def rewrite_unchanged(
        self, space: SpaceId, version: int, groups: Sequence[Sequence[Rewrite]]
    ) -> Sequence[bool]:
        """Write rows again and log it, in the lane, in one call: each group whole, or not at all.

        Returns for each group whether it was written. It is not where a row is no longer as it was seen, or where the
        lane was not to be had at once. No two rewrites of a call are at one position. Raises Stale, and does nothing,
        if the configuration has another version.
        """
        ...

    async def spaces(self) -> Sequence[tuple[SpaceId, str]]:
        """List all spaces: number and name, in order of name."""
        ...

    async def locate(self, networks: Sequence[str]) -> dict[str, SpaceId]:
        """Find the space of each network that exists."""
        ...

    async def space_named(self, name: str) -> SpaceId | None:
        """Find a space by name."""
        ...

    async def configuration(self, space: SpaceId) -> Configuration | None:
        """Read one space's configuration."""
        ...

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Paper]:
        """Read papers of a kind whose name begins so, behind a name, in order of name."""
        ...

    async def changes_at(self, firsts: Sequence[int], *, after: int = 0, limit: int = 1000) -> Sequence[Change]:
        """Read the entries about what began at these positions, but grants, behind a number, in order.

        O(k log c + k limit) for k positions and c changes kept, and some 3 ms for each page of the archive that has
        any. What was trimmed is left out without a word.
        """
        ...

    async def archived(self, after: int, *, limit: int = 1000) -> Sequence[Change]:
        """Read archived changes behind a number, in order; fewer than the limit may come, none only at the end.

        CursorExpired if neither the archive nor the log reaches back that far.
        """
        ...

    async def size(self) -> Size:
        """Count what the ledger keeps. Not for every request: answers under keys are counted one by one."""
        ...

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        ...

    async def rows_at(self, space: SpaceId, positions: Sequence[int]) -> Sequence[Row | None]:
        """Find the holding that begins at each position, as it is now. O(k log n)."""
        ...

    async def try_write(self) -> None:
        """Commit a write that changes nothing, by the way of all others; StoreUnavailable if nothing can be written.

        Cost: one small commit.
        """
        ...

    async def now_us(self) -> int:
        """Read the store's clock, the only one that deadlines are measured by (I10)."""
        ...

    async def rows_within(
        self, space: SpaceId, first: int, last: int, *, network: NetworkId | None = None, limit: int = 1000
    ) -> Sequence[Row]:
        """Find holdings that lie over a range, lowest first."""
        ...

    def contents(self) -> AsyncGenerator[Section, None]:
        """Stream everything the ledger holds, as of one moment; others go on meanwhile."""
        ...

    async def fill(self, sections: AsyncIterator[Section]) -> None:
        """Write everything, numbers and times included, into an empty ledger: all of it in one step, or nothing.

        Conflict if the ledger is not empty, Invalid if the sections are not all there.
        """
        ...
