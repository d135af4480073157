"""The memory store: a ledger that lives as long as the process. For tests, planning, dry runs.

It is a store like the others and passes the same suites. Nothing in it waits, so a transaction runs from begin to
end without anybody else in between; one that raises is undone step by step.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from heapq import nsmallest
from itertools import islice
from typing import TypeVar

from tenure.kernel.errors import CursorExpired, Invalid
from tenure.kernel.holdings.holding_model import (
    Change,
    NetworkId,
    Paper,
    Reply,
    Rewrite,
    Row,
    SpaceId,
    Ticket,
    Verdict,
    Waiter,
    Wish,
)
from tenure.kernel.plan.plan_model import Configuration
from tenure.kernel.snapshot import Section
from tenure.ports import FAR_BEHIND, Abilities, CallerTransaction, Effects, Size, Transaction
from tenure.stores.memory.dump import read_contents, write_contents
from tenure.stores.memory.log_archive import MemoryArchive
from tenure.stores.memory.log_index import ChangesByAddress
from tenure.stores.memory.papers import copied
from tenure.stores.memory.transaction import ClaimKey, MemoryTransaction, SpaceBook
from tenure.stores.serial_grants import grant_rows, release_rows, rewrite_rows

T = TypeVar("T")

PAGE = 1000


class MemoryStore:
    """A ledger in memory."""

    abilities = Abilities(ledger=True, mixed_units=True, survives_restart=False, shared_by_processes=False)

    def __init__(self, clock: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self.clock = clock
        self.books: dict[SpaceId, SpaceBook] = {}
        self.claims: dict[ClaimKey, Row] = {}
        self.owners: dict[str, dict[tuple[SpaceId, int], Row]] = {}
        self.formers: dict[ClaimKey, int] = {}
        self.replies: dict[str, Reply] = {}
        self.papers_by_name: dict[tuple[str, str], Paper] = {}
        self.waiting: dict[int, Waiter] = {}
        self.log: list[Change] = []
        self.archive = MemoryArchive()
        self.seq = 0
        self.oldest = 0
        self.generation = 0
        self.next_space = 1
        self.next_network = 1
        self.next_ticket = 1
        self._by_address = ChangesByAddress()

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run work; undo it if it raises."""
        transaction = MemoryTransaction(self)
        try:
            return await work(transaction)
        except BaseException:
            transaction.undo()
            raise

    async def grant(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        """Create holdings if nobody is in the way."""
        return await self.transact(lambda tx: grant_rows(tx, space, version, wishes))

    async def release(
        self, space: SpaceId, tickets: Sequence[Ticket], *, version: int | None = None
    ) -> Sequence[Row | None]:
        """End holdings of their owners."""
        return await self.transact(lambda tx: release_rows(tx, space, tickets, version))

    def inside(self, connection: object) -> CallerTransaction:
        """Refuse: memory has no connections."""
        raise Invalid("connection: a ledger in memory has no connections to be inside of", field="connection")

    async def held(self, space: SpaceId, *, after: int = -1) -> AsyncIterator[Sequence[Row]]:
        """Stream holdings in pages."""
        book = self.books.get(space)
        while book is not None:
            # 1 << 140 is above every position.
            page = [book.rows[first] for first in islice(book.order.between(after + 1, 1 << 140), PAGE)]
            if not page:
                return
            yield page
            after = page[-1].first

    async def by_owner(self, owners: Sequence[str]) -> Sequence[Row]:
        """Find holdings by owner."""
        return [row for owner in owners for row in self.owners.get(owner, {}).values()]

    async def watch(self, after: int, *, limit: int = 1000, space: SpaceId | None = None) -> Sequence[Change]:
        """Read the log."""
        if after < self.oldest:
            raise CursorExpired(after, self.oldest)
        found: list[Change] = []
        for change in self.log[after - self.oldest :]:
            if space is None or change.space == space:
                found.append(change)
                if len(found) == limit:
                    break
        return found

    async def effects(self, space: SpaceId, after: int) -> Effects:
        """Read what happened to a space's addresses."""
        if after < self.oldest or self.seq - after > FAR_BEHIND:
            return Effects(self.seq, [], complete=False)
        steps = [
            (change.seq, change.verb == "grant", change.first, change.last)
            for change in self.log[after - self.oldest :]
            if change.space == space
            and change.verb in ("grant", "release")
            and change.first is not None
            and change.last is not None
        ]
        return Effects(self.seq, steps)

    async def spans(self, space: SpaceId, first: int, last: int) -> tuple[int, Sequence[tuple[int, int]]]:
        """Read held spans."""
        rows = await self.rows_within(space, first, last, limit=1 << 62)
        return self.seq, [(row.first, row.last) for row in rows]

    async def grant_unless_freed(
        self, space: SpaceId, version: int, frees: int, wishes: Sequence[Wish]
    ) -> Sequence[Verdict] | None:
        """Decline: a transaction of its own costs nothing more here."""
        return None

    async def rewrite_unchanged(
        self, space: SpaceId, version: int, groups: Sequence[Sequence[Rewrite]]
    ) -> Sequence[bool]:
        """Write rows again if they are still as they were seen: one transaction for all."""
        return await self.transact(lambda tx: rewrite_rows(tx, space, version, groups))

    async def spaces(self) -> Sequence[tuple[SpaceId, str]]:
        """List spaces."""
        return sorted(
            ((space, book.configuration.name) for space, book in self.books.items()), key=lambda pair: pair[1]
        )

    async def locate(self, networks: Sequence[str]) -> dict[str, SpaceId]:
        """Find networks' spaces."""
        wanted = set(networks)
        return {
            name: space for space, book in self.books.items() for name in book.configuration.networks if name in wanted
        }

    async def space_named(self, name: str) -> SpaceId | None:
        """Find a space by name."""
        return next((space for space, book in self.books.items() if book.configuration.name == name), None)

    async def configuration(self, space: SpaceId) -> Configuration | None:
        """Read a configuration."""
        book = self.books.get(space)
        return None if book is None else book.configuration

    async def changes_at(self, firsts: Sequence[int], *, after: int = 0, limit: int = 1000) -> Sequence[Change]:
        """Read entries by address."""
        self._by_address.catch_up(self.log, self.oldest)
        found = self.archive.find(firsts, after, limit)
        return [*found, *self._by_address.find(firsts, after, limit)][:limit]

    async def archived(self, after: int, *, limit: int = 1000) -> Sequence[Change]:
        """Read archived changes."""
        oldest = self.archive.oldest(self.oldest)
        if after < oldest:
            raise CursorExpired(after, oldest)
        return self.archive.read(after, limit)

    async def size(self) -> Size:
        """Count what there is."""
        archived = self.oldest - self.archive.oldest(self.oldest)
        return Size(self.seq, self.seq - self.oldest, archived, len(self.replies))

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Paper]:
        """Read papers of a kind, in order of name."""
        found = (name for of, name in self.papers_by_name if of == kind and name.startswith(prefix) and name > after)
        return [copied(self.papers_by_name[kind, name]) for name in nsmallest(limit, found)]

    @property
    def newest(self) -> int:
        """The number of the newest change."""
        return self.seq

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        return self.seq

    async def rows_at(self, space: SpaceId, positions: Sequence[int]) -> Sequence[Row | None]:
        """Find rows by their first address."""
        book = self.books.get(space)
        return [None if book is None else book.rows.get(place) for place in positions]

    async def try_write(self) -> None:
        """Return: memory can be written."""

    async def now_us(self) -> int:
        """Read the clock."""
        return self.clock()

    async def rows_within(
        self, space: SpaceId, first: int, last: int, *, network: NetworkId | None = None, limit: int = 1000
    ) -> Sequence[Row]:
        """Find rows over a range."""
        book = self.books.get(space)
        if book is None:
            return []
        below = book.order.below(first)
        start = below if below is not None and book.rows[below].last >= first else first
        found: list[Row] = []
        for position in book.order.between(start, last):
            row = book.rows[position]
            if network is None or row.network == network:
                found.append(row)
                if len(found) == limit:
                    break
        return found

    async def close(self) -> None:
        """Nothing to let go of."""

    def contents(self) -> AsyncGenerator[Section, None]:
        """Stream everything as of one moment."""
        return read_contents(self)

    async def fill(self, sections: AsyncIterator[Section]) -> None:
        """Write everything into an empty ledger."""
        await write_contents(self, sections)
