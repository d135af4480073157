"""The ledger suite runs on every store of the ledger tier; what knows only the public verbs, over HTTP as well."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import tenure
from tenure.ports import LedgerStore
from tests.contract.providers import Ledgers, Provider, all_ledgers, ledger_providers
from tests.contract.sites import Site
from tests.scale import by_store


@asynccontextmanager
async def prepared(provider: Provider[LedgerStore]) -> AsyncIterator[Site[LedgerStore]]:
    """Open a store on a fresh place and make the two spaces."""
    async with provider.place() as url:
        store = await provider.connect(url)
        try:
            here, there = await provider.prepare(store)
            yield Site(provider, url, store, here, there)
        finally:
            await store.close()


@pytest.fixture(params=by_store(all_ledgers()))
def ledgers(request: pytest.FixtureRequest) -> Ledgers:
    """Run the test on every kind of ledger."""
    kind: Ledgers = request.param
    return kind


@pytest.fixture
async def place(ledgers: Ledgers) -> AsyncIterator[str]:
    """Give the URL of a fresh, empty ledger."""
    async with ledgers.place() as url:
        yield url


@pytest.fixture
async def ledger(place: str) -> AsyncIterator[tenure.AsyncLedger]:
    """Give a fresh ledger, and find it without breaches at the end."""
    async with await tenure.open_async(place) as opened:
        yield opened
        assert await opened.verify() == []


@pytest.fixture
def embedded(ledgers: Ledgers) -> None:
    """Leave out ledgers that live elsewhere: nobody sets them up, acts for others or reaches inside from here."""
    if not ledgers.embedded:
        pytest.skip("this ledger lives in another process")


@pytest.fixture
async def site(ledger_provider: Provider[LedgerStore]) -> AsyncIterator[Site[LedgerStore]]:
    """Give a prepared store of every kind of the ledger tier."""
    async with prepared(ledger_provider) as opened:
        yield opened


SHARED = [provider for provider in ledger_providers() if provider.abilities.shared_by_processes]
PARALLEL = [provider for provider in ledger_providers() if provider.abilities.parallel_writes]


@pytest.fixture(params=SHARED, ids=lambda provider: provider.name)
async def shared_site(request: pytest.FixtureRequest) -> AsyncIterator[Site[LedgerStore]]:
    """Give a prepared store of every kind that several processes can share."""
    async with prepared(request.param) as opened:
        yield opened


@pytest.fixture(params=PARALLEL, ids=lambda provider: provider.name)
async def parallel_site(request: pytest.FixtureRequest) -> AsyncIterator[Site[LedgerStore]]:
    """Give a prepared store of every kind whose transactions run at the same time."""
    async with prepared(request.param) as opened:
        yield opened
