"""The book suite runs on every store there is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tenure.ports import Book
from tests.contract.kube_books import kube_book_providers
from tests.contract.providers import Provider, book_providers
from tests.contract.sites import Site


@asynccontextmanager
async def prepared(provider: Provider[Book]) -> AsyncIterator[Site[Book]]:
    """Open a store on a fresh place and make the two spaces."""
    async with provider.place() as url:
        store = await provider.connect(url)
        try:
            here, there = await provider.prepare(store)
            yield Site(provider, url, store, here, there)
        finally:
            await store.close()


KUBE = [pytest.param(each, marks=pytest.mark.proof) for each in kube_book_providers()]


@pytest.fixture(params=[*book_providers(), *KUBE], ids=lambda provider: provider.name)
async def site(request: pytest.FixtureRequest) -> AsyncIterator[Site[Book]]:
    """Give a prepared store of every kind."""
    async with prepared(request.param) as opened:
        yield opened


SHARED = [provider for provider in book_providers() if provider.abilities.shared_by_processes]


@pytest.fixture(params=[*SHARED, *KUBE], ids=lambda provider: provider.name)
async def shared_site(request: pytest.FixtureRequest) -> AsyncIterator[Site[Book]]:
    """Give a prepared store of every kind that several processes can share."""
    async with prepared(request.param) as opened:
        yield opened
