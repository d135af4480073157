"""The one list of stores: what the contract suites and the benchmarks run on.

A provider makes *places*: fresh, empty, named by a URL, gone afterwards. A store can be opened on a place any number
of times and, where its abilities say so, by any number of processes. ``TENURE_STORES=memory,sqlite`` narrows the list.
"""

import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from tenure.kernel.holdings.holding_model import NetworkId, SpaceId
from tenure.kernel.plan.plan_model import Network
from tenure.ports import Abilities, Book, LedgerStore, Transaction
from tenure.stores.etcd.store import EtcdStore
from tenure.stores.memory.store import MemoryStore
from tenure.stores.postgres.store import PostgresStore
from tenure.stores.sqlite.store import SqliteStore
from tenure.wiring import open_store
from tests.infrastructure.etcd import fresh_root
from tests.infrastructure.postgres import emptied_schema

S = TypeVar("S", bound=Book, covariant=True)

STORES = "TENURE_STORES"


@dataclass(frozen=True, slots=True)
class Ground:
    """A space to grant in, the version that grants must name, and two networks that lie over each other."""

    space: SpaceId
    version: int
    networks: tuple[NetworkId, NetworkId]


@dataclass(frozen=True)
class Provider(Generic[S]):
    """One kind of store: how to have a place for it, and how to open and prepare it."""

    name: str
    abilities: Abilities
    place: Callable[[], AbstractAsyncContextManager[str]]
    connect: Callable[[str], Awaitable[S]]
    prepare: Callable[[S], Awaitable[tuple[Ground, Ground]]]

    @property
    def tier(self) -> str:
        """Name the suite the store must pass beside the book's own."""
        return "ledger" if self.abilities.ledger else "book"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[S]:
        """Give a fresh, empty store."""
        async with self.place() as url:
            store = await self.connect(url)
            try:
                yield store
            finally:
                await store.close()


def ledger_providers() -> list[Provider[LedgerStore]]:
    """List the stores of the ledger tier."""
    return _narrowed(
        [
            Provider("memory", MemoryStore.abilities, _memory_place, open_store, prepare_ledger),
            Provider("sqlite", SqliteStore.abilities, _sqlite_place, open_store, prepare_ledger),
            Provider("postgres", PostgresStore.abilities, emptied_schema, open_store, prepare_ledger),
        ]
    )


@dataclass(frozen=True)
class Ledgers:
    """One way to have a ledger: on a store of one's own, or behind a server."""

    name: str
    abilities: Abilities
    place: Callable[[], AbstractAsyncContextManager[str]]
    embedded: bool = True
    """Whether it lives in the caller's own process: he sets it up, acts for others, and can look and reach inside."""


def all_ledgers() -> list[Ledgers]:
    """List every way to have a ledger: what the suite that knows only its public verbs runs on."""
    stores = [Ledgers(each.name, each.abilities, each.place) for each in ledger_providers()]
    return [*stores, *_narrowed([Ledgers("http", SqliteStore.abilities, _http_place, embedded=False)])]


STORES_BEHIND: dict[str, LedgerStore] = {}
"""The stores behind servers, by the server's URL: opened a second time, as another server would."""


@asynccontextmanager
async def _http_place() -> AsyncIterator[str]:
    from tests.infrastructure.street import street  # children that only want a store need no server

    async with _sqlite_place() as store, street().house(store) as url:
        STORES_BEHIND[url] = await open_store(store)
        try:
            yield url
        finally:
            await STORES_BEHIND.pop(url).close()


def book_providers() -> list[Provider[Book]]:
    """List every store: those of the ledger tier are books too."""
    return [*ledger_providers(), *_narrowed(_books_only())]


def _books_only() -> list[Provider[EtcdStore]]:
    return [Provider("etcd", EtcdStore.abilities, fresh_root, EtcdStore.open, _prepare_etcd)]


def provider_named(name: str) -> Provider[Book]:
    """Find a provider."""
    from tests.contract.kube_books import kube_book_providers  # they are made of what is here

    return next(each for each in [*book_providers(), *kube_book_providers()] if each.name == name)


async def prepare_ledger(store: LedgerStore) -> tuple[Ground, Ground]:
    """Make two spaces with two empty networks each."""

    async def work(tx: Transaction) -> tuple[Ground, Ground]:
        return await _make_ground(tx, "here"), await _make_ground(tx, "there")

    return await store.transact(work)


async def _prepare_etcd(store: EtcdStore) -> tuple[Ground, Ground]:
    """Open two spaces for grants; networks are but numbers to a book."""
    here, there = Ground(1, 1, (1, 2)), Ground(2, 1, (3, 4))
    for ground in (here, there):
        await store.set_version(ground.space, ground.version)
    return here, there


async def _make_ground(tx: Transaction, name: str) -> Ground:
    space = await tx.add_space(name)
    numbers = (await tx.next_network(), await tx.next_network())
    networks = [Network(number, f"{name}-{number}", f"uuid-{name}-{number}") for number in numbers]
    await tx.put_networks(space, networks)
    [configuration] = await tx.configurations([space])
    return Ground(space, configuration.version, numbers)


@asynccontextmanager
async def _memory_place() -> AsyncIterator[str]:
    yield "memory:"


@asynccontextmanager
async def _sqlite_place() -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="tenure-sqlite-") as folder:
        yield f"sqlite:///{Path(folder) / 'ledger.db'}"


class Named(Protocol):
    """What can be narrowed down by name."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...


P = TypeVar("P", bound=Named)


def _narrowed(providers: Sequence[P]) -> list[P]:
    wanted = [name.strip() for name in os.environ.get(STORES, "").split(",") if name.strip()]
    return [provider for provider in providers if not wanted or provider.name in wanted]
