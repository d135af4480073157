"""Everything in a ledger in memory as one stream, and back."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tenure.kernel.plan.plan_model import Configuration
from tenure.kernel.snapshot import LARGE, Counters, Former, Inventory, Kind, PlacedNetwork, Section, Space, not_empty
from tenure.stores.memory.transaction import MemoryTransaction, SpaceBook

if TYPE_CHECKING:
    from tenure.stores.memory.store import MemoryStore

PAGE = 2000


async def read_contents(store: "MemoryStore") -> AsyncGenerator[Section, None]:
    """Stream everything as of the moment when the reading begins."""
    # Copied at once: between two sections others may change the store.
    copied = {kind: list(items) for kind, items in _items(store)}
    for kind, items in copied.items():
        size = LARGE.get(kind, PAGE)
        for start in range(0, len(items), size):
            yield Section(kind, items[start : start + size])


def _items(store: "MemoryStore") -> Iterator[tuple[Kind, Sequence[Any]]]:
    books = [store.books[space] for space in sorted(store.books)]
    plans = [book.configuration for book in books]
    rows = [book.rows[first] for book in books for first in sorted(book.rows)]
    networks = [PlacedNetwork(plan.space, network) for plan in plans for network in plan.networks.values()]
    yield Kind.COUNTERS, [_counters(store, len(rows))]
    yield Kind.SPACES, [Space(plan.space, plan.name, plan.version + plan.queued) for plan in plans]
    yield Kind.NETWORKS, sorted(networks, key=lambda placed: placed.network.id)
    yield Kind.HOLDINGS, rows
    yield Kind.FORMERS, [Former(*claim, first) for claim, first in sorted(store.formers.items())]
    yield Kind.REPLIES, [reply for _, reply in sorted(store.replies.items())]
    yield Kind.PAPERS, [paper for _, paper in sorted(store.papers_by_name.items())]
    yield Kind.ARCHIVE_PAGES, [page for page, _ in store.archive.pages]
    yield Kind.CHANGES, store.log


def _counters(store: "MemoryStore", holdings: int) -> Counters:
    numbers = (store.seq, store.oldest, store.generation, store.next_network, store.next_space)
    return Counters(*numbers, holdings, len(store.log), len(store.archive.pages))


async def write_contents(store: "MemoryStore", sections: AsyncIterator[Section]) -> None:
    """Write everything into an empty ledger, at once when all of it has come."""
    inventory = Inventory()
    items: dict[Kind, list[Any]] = {kind: [] for kind in Kind}
    async for section in sections:
        inventory.add(section)
        items[section.kind].extend(section.items)
    # Judged when all sections are here: from this line on nothing waits, so no other writer comes in between.
    counters = inventory.complete()
    if store.seq or store.books or store.formers or store.replies or store.papers_by_name:
        raise not_empty()
    _put_plan(store, items[Kind.SPACES], items[Kind.NETWORKS])
    rows = MemoryTransaction(store)
    for row in items[Kind.HOLDINGS]:
        rows.restore(row)
    for network, owner, slot, first in items[Kind.FORMERS]:
        store.formers[network, owner, slot] = first
    store.replies.update((reply.key, reply) for reply in items[Kind.REPLIES])
    store.papers_by_name.update(((paper.kind, paper.name), paper) for paper in items[Kind.PAPERS])
    store.archive.fill(items[Kind.ARCHIVE_PAGES])
    store.log.extend(items[Kind.CHANGES])
    store.seq, store.oldest, store.generation = counters.seq, counters.oldest, counters.generation
    store.next_network, store.next_space = counters.next_network, counters.next_space


def _put_plan(store: "MemoryStore", spaces: Sequence[Space], networks: Sequence[PlacedNetwork]) -> None:
    for space in spaces:
        own = {placed.network.name: placed.network for placed in networks if placed.space == space.id}
        store.books[space.id] = SpaceBook(Configuration(space.id, space.name, space.version, own))
