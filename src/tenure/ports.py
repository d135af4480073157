"""What the rules ask of stores, clocks and chance. Two tiers: every store is a Book, some are LedgerStores.

A Book creates holdings *if nobody is in the way* (``grant``) and ends them (``release``). A LedgerStore adds
transactions, in which the ledger's own code makes several effects one: that code stands in ``service``, once, and
not in the stores. All verbs are plural. All are coroutines; a store that never waits just never suspends.

What a call promises:

* It answers, or raises ``StoreUnavailable`` with an outcome. ``none``: nothing happened. ``unknown``: it may have;
  the same call again tells.
* Answered effects are durable.
"""

import enum
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tenure.kernel.configuration import Configuration, Network
from tenure.kernel.contents import Section
from tenure.kernel.values import (
    Change,
    Entry,
    NetworkId,
    Reply,
    Row,
    SpaceId,
    Ticket,
    Verdict,
    Waiter,
    Wish,
)

T = TypeVar("T")


class Guard(enum.Enum):
    """How strongly a transaction holds a space, weakest first.

    Grants run together with each other and with one lane; a lane runs alone but for plain grants; an edit runs
    alone. Whatever frees an address holds the lane, so nothing is freed while somebody in the lane picks the lowest
    address, and no grant passes a configuration that is being changed.
    """

    GRANT = "grant"
    LANE = "lane"
    EDIT = "edit"


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a store can do beyond the book; suites and callers ask this, never the store's name."""

    ledger: bool = False
    mixed_units: bool = False
    survives_restart: bool = True
    shared_by_processes: bool = True
    quick_lane: bool = False
    parallel_writes: bool = False
    largest_batch: int = 1000


@dataclass(frozen=True, slots=True)
class Effects:
    """What happened to a space's addresses behind a cursor: (number, whether taken or freed, first, last).

    ``upto``: every change up to this number has been looked at. ``complete``: false where the cursor lies so far
    behind that reading the holdings anew is cheaper; then there are no steps. ``frees`` counts the commits that freed
    something in the space, where the store has a quick lane.
    """

    upto: int
    steps: Sequence[tuple[int, bool, int, int]]
    complete: bool = True
    frees: int = 0


FAR_BEHIND = 50_000
"""Changes behind the log from which ``effects`` answers that it is not complete."""


class Book(Protocol):
    """Every store."""

    abilities: Abilities

    async def grant(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        """Create each holding if nobody is in the way, under the configuration's version; one verdict a wish.

        No two wishes of a call share an address or a claim. A stale version makes all verdicts AGAIN.
        """
        ...

    async def release(self, space: SpaceId, tickets: Sequence[Ticket]) -> Sequence[Row | None]:
        """End each holding that the ticket's owner (and generation, where given) holds.

        Answers the row as it was found: of another owner or generation it is left alone; None if nobody holds it, or
        if it is cooling already. A ticket with ``cooling_us`` leaves the row in the way, cooling, unless it is pending.
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


class Stale(Exception):
    """The configuration has another version than the one that was named; nothing was done."""


class KeyTaken(Exception):
    """Another request with the same idempotency key came first; run again, its answer is there now."""


class NotAll(Exception):
    """Something was in the way of a grant of all or none; the transaction is spent."""


class Transaction(Protocol):
    """An open transaction: effects become one when it ends well, none when it does not."""

    async def guard(self, spaces: Sequence[SpaceId], strength: Guard) -> dict[SpaceId, int]:
        """Hold the spaces (sorted by the caller) and return their versions; a space that is gone is left out."""
        ...

    async def open_lane(self, space: SpaceId, after: int) -> tuple[int | None, Effects]:
        """Hold a space's lane; return its version (None if it is gone) and what happened there behind a cursor."""
        ...

    async def grant_all(self, space: SpaceId, version: int, frees: int, wishes: Sequence[Wish]) -> Sequence[Row]:
        """Create and log all of the holdings in a lane that is held, in one call; NotAll if one cannot be had.

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

    async def replies(self, keys: Sequence[str]) -> Sequence[Reply | None]:
        """Find what requests with these idempotency keys were answered."""
        ...

    async def keep_replies(self, replies: Sequence[Reply]) -> None:
        """Keep answers under their keys, at the store's time; KeyTaken if one of the keys was taken meanwhile."""
        ...

    async def drop_replies(self, keys: Sequence[str]) -> None:
        """Drop the answers under these keys: what they tell of was taken back before anybody saw it."""
        ...

    async def forget_replies(self, lived_us: int, *, limit: int = 1000) -> int:
        """Drop so many answers older than that, and count them."""
        ...

    async def rows_for(self, claims: Sequence[tuple[NetworkId, str, str]]) -> Sequence[Row | None]:
        """Find the pending or held row of each (network, owner, slot)."""
        ...

    async def effects(self, space: SpaceId, after: int) -> Effects:
        """Read what happened to a space's addresses; not complete if the cursor is too far behind."""
        ...

    async def spans(self, space: SpaceId, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Read all held spans that lie over a range (and maybe the one below it), in order."""
        ...

    async def last_change(self) -> int:
        """Return the number of the newest change that this transaction sees."""
        ...

    async def log(self, entries: Sequence[Entry]) -> int:
        """Append to the log and return the last number. Comes last: from here on the transaction holds the counter."""
        ...

    async def trim(self, before: int) -> None:
        """Drop changes numbered below ``before``."""
        ...


class CallerTransaction(Transaction, Protocol):
    """A transaction that somebody else has open and will end. A call in it is undone alone if it fails."""

    async def begin_call(self) -> bool:
        """Mark the place to which a failed call goes back; tell whether this transaction has logged anything yet."""
        ...

    async def end_call(self, *, failed: bool) -> None:
        """Keep the call's effects in the transaction, or undo them."""
        ...


class LedgerStore(Book, Protocol):
    """Memory, SQLite, PostgreSQL: the book, transactions, configuration and the log."""

    async def release(
        self, space: SpaceId, tickets: Sequence[Ticket], *, version: int | None = None
    ) -> Sequence[Row | None]:
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

        It is a reading of one moment; the first of the answer is the number of that moment's last change.
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
        address that was the lowest free one to a reader of that time, and can be had, still is. Offered by stores
        with the ability ``quick_lane``.
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

    async def changes_at(self, firsts: Sequence[int], *, after: int = 0, limit: int = 1000) -> Sequence[Change]:
        """Read the entries about what began at these positions, but grants, behind a number, in order.

        O(k log c + k limit) for k positions and c changes kept. What was trimmed is left out without a word.
        """
        ...

    async def last_change(self) -> int:
        """Return the number of the newest change."""
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


class Chance(Protocol):
    """Where randomness comes from; ``random.Random`` is one."""

    def getrandbits(self, count: int, /) -> int:
        """Return a number of that many random bits."""
        ...
