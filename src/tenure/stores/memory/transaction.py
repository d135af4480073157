"""A transaction in memory: every step notes how to undo it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush, nsmallest
from itertools import islice
from typing import TYPE_CHECKING

from tenure.kernel.errors import AlreadyExists
from tenure.kernel.holdings.archive_pages import ArchivedPage
from tenure.kernel.holdings.deadlines import is_over
from tenure.kernel.holdings.holding_model import (
    OWNED,
    Change,
    Entry,
    NetworkId,
    Outcome,
    Reply,
    Row,
    SpaceId,
    Verdict,
    Waiter,
    Wish,
)
from tenure.kernel.plan.plan_model import Configuration, Network
from tenure.ports import Effects, Guard, KeyTaken, NotAll
from tenure.stores.memory.papers import MemoryPapers, put_back
from tenure.stores.memory.sorted_positions import SortedPositions

if TYPE_CHECKING:
    from tenure.stores.memory.store import MemoryStore

ClaimKey = tuple[NetworkId, str, str]


@dataclass(slots=True)
class SpaceBook:
    """One space: its holdings, and its configuration."""

    configuration: Configuration
    rows: dict[int, Row] = field(default_factory=dict)
    order: SortedPositions = field(default_factory=SortedPositions)
    due: dict[int, int] = field(default_factory=dict)
    deadlines: list[tuple[int, int]] = field(default_factory=list)
    """A heap of what ``due`` has or had: whoever looks at the earliest drops those that are no more."""

    def earliest(self) -> Row | None:
        """Return the row whose deadline comes first, if there is one. O(log n) over all calls."""
        while self.deadlines and self.due.get(self.deadlines[0][1]) != self.deadlines[0][0]:
            heappop(self.deadlines)
        return self.rows[self.deadlines[0][1]] if self.deadlines else None


class MemoryTransaction(MemoryPapers):
    """The ledger's verbs on dictionaries."""

    def __init__(self, store: "MemoryStore") -> None:
        super().__init__(store)

    def undo(self) -> None:
        """Take back every step, last first."""
        while self._undo:
            self._undo.pop()()

    async def guard(self, spaces: Sequence[SpaceId], strength: Guard) -> dict[SpaceId, int]:
        """Return the versions; nobody else runs meanwhile."""
        books = self._store.books
        return {space: books[space].configuration.version for space in spaces if space in books}

    async def open_lane(self, space: SpaceId, after: int) -> tuple[int | None, Effects]:
        """Hold the lane and read what happened."""
        version = (await self.guard([space], Guard.LANE)).get(space)
        return version, await self.effects(space, after)

    async def grant_all(
        self, space: SpaceId, version: int, frees: int, wishes: Sequence[Wish]
    ) -> tuple[Sequence[Row], int]:
        """Decline: here a step more costs nothing."""
        raise NotAll

    async def locate(self, networks: Sequence[str]) -> dict[str, SpaceId]:
        """Find networks' spaces."""
        return await self._store.locate(networks)

    async def spaces_named(self, names: Sequence[str]) -> list[SpaceId]:
        """Find spaces by name."""
        return [space for space, book in self._store.books.items() if book.configuration.name in names]

    async def configurations(self, spaces: Sequence[SpaceId]) -> Sequence[Configuration]:
        """Read configurations."""
        return [self._store.books[space].configuration for space in spaces if space in self._store.books]

    async def add_space(self, name: str) -> SpaceId:
        """Create a space."""
        store = self._store
        if any(book.configuration.name == name for book in store.books.values()):
            raise AlreadyExists("space", name)
        space = store.next_space
        store.next_space += 1
        store.books[space] = SpaceBook(Configuration(space, name, 1))
        self._undo.append(lambda: store.books.pop(space))
        return space

    async def rename_space(self, space: SpaceId, name: str) -> bool:
        """Give a space another name."""
        if await self.spaces_named([name]):
            return False
        book = self._store.books[space]
        before = book.configuration
        book.configuration = replace(before, name=name)
        self._undo.append(lambda: setattr(book, "configuration", before))
        return True

    async def remove_space(self, space: SpaceId) -> None:
        """Remove a space and those who waited in it."""
        self._take_waiters([waiter.ticket for waiter in self._store.waiting.values() if waiter.space == space])
        book = self._store.books.pop(space)
        self._undo.append(lambda: self._store.books.update({space: book}))

    async def next_network(self) -> NetworkId:
        """Take a number; numbers are not given back."""
        self._store.next_network += 1
        return self._store.next_network - 1

    async def put_networks(self, space: SpaceId, networks: Sequence[Network]) -> None:
        """Write networks whole."""
        written = {network.id for network in networks}
        names = {network.name for network in networks}
        for book in self._store.books.values():
            taken = [old.name for old in book.configuration.networks.values() if old.id not in written]
            for name in names.intersection(taken):
                raise AlreadyExists("network", name)
        configuration = self._store.books[space].configuration
        # By number: under a new name a network must replace itself, and two networks may exchange names.
        by_id = {old.id: old for old in configuration.networks.values()} | {network.id: network for network in networks}
        self._configure(space, replace(configuration, networks={new.name: new for new in by_id.values()}))

    async def remove_networks(self, networks: Sequence[NetworkId]) -> None:
        """Remove networks and what was remembered of their owners."""
        for space, book in self._store.books.items():
            kept = {name: old for name, old in book.configuration.networks.items() if old.id not in networks}
            if len(kept) != len(book.configuration.networks):
                self._configure(space, replace(book.configuration, networks=kept))
        formers = self._store.formers
        self._store.formers = {claim: place for claim, place in formers.items() if claim[0] not in networks}
        self._undo.append(lambda: setattr(self._store, "formers", formers))

    async def bump(self, space: SpaceId) -> None:
        """Make the version one higher."""
        configuration = self._store.books[space].configuration
        self._configure(space, replace(configuration, version=configuration.version + 1))

    def _configure(self, space: SpaceId, configuration: Configuration) -> None:
        book = self._store.books[space]
        old = book.configuration
        book.configuration = configuration
        self._undo.append(lambda: setattr(book, "configuration", old))

    async def insert(self, space: SpaceId, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        """Create holdings if nobody is in the way."""
        return [self._insert_one(space, wish) for wish in wishes]

    def _insert_one(self, space: SpaceId, wish: Wish) -> Verdict:
        store, book = self._store, self._store.books[space]
        # Before the look at neighbours: the row in the way may be the owner's own, and asking again must return it.
        mine = store.claims.get(wish.claim) if wish.state in OWNED else None
        if mine is not None:
            return Verdict(Outcome.ALREADY, mine)
        below = book.order.below(wish.last)
        if below is not None and book.rows[below].last >= wish.first:
            return Verdict(Outcome.TAKEN, book.rows[below])
        store.generation += 1
        now_us = store.clock()
        row = Row(
            space, wish.network, wish.first, wish.last, wish.owner, wish.slot, wish.state, store.generation, now_us,
            None if wish.lasts_us is None else now_us + wish.lasts_us, wish.request, wish.details,
        )  # fmt: skip
        self.restore(row)
        return Verdict(Outcome.GRANTED, row)

    def restore(self, row: Row) -> None:
        """Put a row as it is where nobody is in the way."""
        self._add(row)
        self._undo.append(lambda: self._drop(row))

    def _add(self, row: Row) -> None:
        book = self._store.books[row.space]
        book.rows[row.first] = row
        book.order.add(row.first)
        if row.until_us is not None:
            book.due[row.first] = row.until_us
            heappush(book.deadlines, (row.until_us, row.first))
        self._store.owners.setdefault(row.owner, {})[row.space, row.first] = row
        if row.state in OWNED:
            self._store.claims[row.network, row.owner, row.slot] = row

    def _drop(self, row: Row) -> None:
        book = self._store.books[row.space]
        del book.rows[row.first]
        book.order.remove(row.first)
        # The heap keeps its entry: `earliest` drops it when it comes up.
        book.due.pop(row.first, None)
        owned = self._store.owners[row.owner]
        del owned[row.space, row.first]
        if not owned:
            del self._store.owners[row.owner]
        if row.state in OWNED:
            del self._store.claims[row.network, row.owner, row.slot]

    async def rows_at(self, space: SpaceId, positions: Sequence[int]) -> Sequence[Row | None]:
        """Find rows by their first address."""
        book = self._store.books.get(space)
        return [None if book is None else book.rows.get(position) for position in positions]

    async def rows_within(
        self, space: SpaceId, first: int, last: int, *, network: NetworkId | None = None, limit: int = 1000
    ) -> Sequence[Row]:
        """Find rows over a range."""
        return await self._store.rows_within(space, first, last, network=network, limit=limit)

    async def rows_of(self, owners: Sequence[str]) -> Sequence[Row]:
        """Find rows by owner."""
        return await self._store.by_owner(owners)

    async def rows_for(self, claims: Sequence[ClaimKey]) -> Sequence[Row | None]:
        """Find the row of each claim."""
        return [self._store.claims.get(claim) for claim in claims]

    async def rewrite(self, rows: Sequence[Row]) -> None:
        """Write rows anew."""
        for row in rows:
            old = self._store.books[row.space].rows[row.first]
            other = self._store.claims.get((row.network, row.owner, row.slot)) if row.state in OWNED else None
            if other is not None and (other.space, other.first) != (row.space, row.first):
                raise AlreadyExists("holding", f"{row.owner} {row.slot}".strip(), field="owner")
            self._swap(old, row)
            self._undo.append(lambda old=old, row=row: self._swap(row, old))  # type: ignore[misc]

    def _swap(self, old: Row, new: Row) -> None:
        self._drop(old)
        self._add(new)

    async def remember(self, rows: Sequence[Row]) -> None:
        """Note where owners were."""
        formers = self._store.formers
        for row in rows:
            claim = (row.network, row.owner, row.slot)
            self._undo.append(partial(put_back, formers, claim, formers.get(claim)))
            formers[claim] = row.first

    async def former(self, network: NetworkId, owner: str, slot: str) -> int | None:
        """Return where an owner was."""
        return self._store.formers.get((network, owner, slot))

    async def remove(self, rows: Sequence[Row]) -> None:
        """Remove rows."""
        for row in rows:
            self._drop(row)
            self._undo.append(lambda row=row: self._add(row))  # type: ignore[misc]

    async def now_us(self) -> int:
        """Read the clock."""
        return self._store.clock()

    async def is_due(self, space: SpaceId) -> bool:
        """Look at the earliest deadline."""
        book = self._store.books.get(space)
        earliest = None if book is None else book.earliest()
        return earliest is not None and is_over(earliest, self._store.clock())

    async def overdue(self, space: SpaceId, *, limit: int = 1000) -> Sequence[Row]:
        """Find rows whose deadline has passed."""
        book, now_us = self._store.books.get(space), self._store.clock()
        # The heap answers the usual case, that nothing is due, without a look at all deadlines.
        if book is None or not await self.is_due(space):
            return []
        passed = [row for row in (book.rows[first] for first in book.due) if is_over(row, now_us)]
        return sorted(passed, key=lambda row: (row.until_us, row.first))[:limit]

    async def waiters(self, space: SpaceId) -> Sequence[Waiter]:
        """Read who waits, in order."""
        waiting = self._store.waiting
        return [waiting[ticket] for ticket in sorted(waiting) if waiting[ticket].space == space]

    async def join(self, waiter: Waiter, lasts_us: int) -> Waiter:
        """Put a claim in line."""
        store, now_us = self._store, self._store.clock()
        if not waiter.ticket:
            waiter = waiter._replace(ticket=store.next_ticket, since_us=now_us)
            store.next_ticket += 1
        waiter = waiter._replace(until_us=now_us + lasts_us, lasts_us=lasts_us)
        store.waiting[waiter.ticket] = waiter
        self._undo.append(lambda: store.waiting.pop(waiter.ticket))
        self._mark(waiter.space, queued=True)
        return waiter

    async def linger(self, tickets: Sequence[int], lasts_us: int) -> None:
        """Let claims live on."""
        waiting, until_us = self._store.waiting, self._store.clock() + lasts_us
        known = [waiting[ticket] for ticket in tickets if ticket in waiting]
        for waiter in known:
            waiting[waiter.ticket] = waiter._replace(until_us=until_us, lasts_us=lasts_us)
            self._undo.append(partial(waiting.update, {waiter.ticket: waiter}))

    async def leave(self, space: SpaceId, tickets: Sequence[int]) -> None:
        """Take claims out of the line."""
        self._take_waiters(tickets)
        if not await self.waiters(space):
            self._mark(space, queued=False)

    def _take_waiters(self, tickets: Sequence[int]) -> None:
        waiting = self._store.waiting
        for ticket in tickets:
            if ticket in waiting:
                self._undo.append(partial(waiting.update, {ticket: waiting.pop(ticket)}))

    def _mark(self, space: SpaceId, *, queued: bool) -> None:
        book = self._store.books.get(space)
        if book is not None and book.configuration.queued is not queued:
            # A new version with the mark: a plain grant under the old plan must not pass the first claim in line.
            version = book.configuration.version + 1
            self._configure(space, replace(book.configuration, queued=queued, version=version))

    async def replies(self, keys: Sequence[str]) -> Sequence[Reply | None]:
        """Find kept answers."""
        return [self._store.replies.get(key) for key in keys]

    async def keep_replies(self, replies: Sequence[Reply]) -> None:
        """Keep answers."""
        kept, now_us = self._store.replies, self._store.clock()
        for reply in replies:
            if reply.key in kept:
                raise KeyTaken
            kept[reply.key] = reply._replace(at_us=reply.at_us or now_us)
            self._undo.append(partial(kept.pop, reply.key))

    async def forget_replies(self, lived_us: int, *, limit: int = 1000) -> int:
        """Drop old answers."""
        kept, oldest = self._store.replies, self._store.clock() - lived_us
        gone = dict(islice(((key, reply) for key, reply in kept.items() if reply.at_us < oldest), limit))
        for key in gone:
            del kept[key]
        self._undo.append(partial(kept.update, gone))
        return len(gone)

    async def forget_oldest_replies(self, count: int) -> int:
        """Drop the oldest answers."""
        kept = self._store.replies
        gone = {reply.key: reply for reply in nsmallest(count, kept.values(), key=lambda reply: reply.at_us)}
        for key in gone:
            del kept[key]
        self._undo.append(partial(kept.update, gone))
        return len(gone)

    async def effects(self, space: SpaceId, after: int) -> Effects:
        """Read what happened to a space's addresses."""
        return replace(await self._store.effects(space, after), due=await self.is_due(space))

    async def spans(self, space: SpaceId, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Read held spans over a range."""
        return (await self._store.spans(space, first, last))[1]

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        return self._store.seq

    async def changes(self, after: int, *, limit: int = 1000) -> Sequence[Change]:
        """Read the log behind a number."""
        store = self._store
        begin = max(after - store.oldest, 0)
        return store.log[begin : begin + limit]

    async def log(self, entries: Sequence[Entry]) -> int:
        """Append to the log."""
        store = self._store
        before, length = store.seq, len(store.log)
        now_us = store.clock()
        for entry in entries:
            store.seq += 1
            store.log.append(_change(store.seq, now_us, entry))

        def take_back() -> None:
            store.seq = before
            del store.log[length:]

        self._undo.append(take_back)
        return store.seq

    async def trim(self, before: int) -> None:
        """Drop old changes."""
        store = self._store
        dropped = max(min(before - 1, store.seq) - store.oldest, 0)
        # A copy, because the archive changes its list in place.
        self._undo.append(partial(setattr, store.archive, "pages", list(store.archive.pages)))
        store.archive.drop(before)
        self._cut_log(dropped)

    async def archive(self, page: ArchivedPage, places: Sequence[int]) -> bool:
        """Move the oldest changes into the archive."""
        store = self._store
        if page.first_seq != store.oldest + 1 or page.last_seq > store.seq:
            return False
        self._undo.append(partial(setattr, store.archive, "pages", list(store.archive.pages)))
        store.archive.add(page, places)
        self._cut_log(page.last_seq - store.oldest)
        return True

    def _cut_log(self, count: int) -> None:
        """Take the oldest changes out of the log."""
        store = self._store
        kept, oldest = store.log[:count], store.oldest
        del store.log[:count]
        store.oldest += count

        def take_back() -> None:
            store.log[:0] = kept
            store.oldest = oldest

        self._undo.append(take_back)


def _change(seq: int, now_us: int, entry: Entry) -> Change:
    return Change(
        seq, now_us, entry.verb, entry.space, entry.network, entry.first, entry.last, entry.owner, entry.slot,
        entry.generation, entry.request, entry.details,
    )  # fmt: skip
