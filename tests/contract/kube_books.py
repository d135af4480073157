"""Books in a cluster, for the suite of books: an object for each cell, shards, and one ConfigMap (KD13).

A place is a namespace of the run's API server. ``make proof`` runs the suite on them.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.vmpool.cells.cell_book import BookLayout, CellBook
from tests.contract.providers import Ground, Provider

LAYOUTS: dict[str, tuple[BookLayout, int]] = {
    "kube-objects": ("objects", 1),
    "kube-shards": ("shards", 4),
    "kube-configmap": ("shards", 1),
}
ROOT = "book"


class KubeBook(CellBook):
    """A book with a client of its own."""

    client: ApiClient

    @classmethod
    async def open(cls, url: str) -> "KubeBook":
        """Open ``layout|kubeconfig|namespace``."""
        name, kubeconfig, namespace = url.split("|")
        client = await ApiClient(from_kubeconfig(kubeconfig)).__aenter__()
        layout, shards = LAYOUTS[name]
        book = cls(CellBook.on(client, namespace, ROOT, layout, shards).cells)
        book.client = client
        return book

    async def close(self) -> None:
        """Close the client."""
        await self.client.__aexit__(None, None, None)


def kube_book_providers() -> list[Provider[KubeBook]]:
    """List the books in a cluster."""
    return [Provider(name, CellBook.abilities, _place(name), KubeBook.open, _prepare) for name in LAYOUTS]


def _place(name: str) -> Callable[[], AbstractAsyncContextManager[str]]:
    @asynccontextmanager
    async def place() -> AsyncIterator[str]:
        from tests.infrastructure.kube import fresh_namespace, shared_kube  # children that only want a book need none

        server = shared_kube()
        with fresh_namespace(server) as namespace:
            yield f"{name}|{server.kubeconfig()}|{namespace}"

    return place


async def _prepare(store: KubeBook) -> tuple[Ground, Ground]:
    """Open two spaces for grants; networks are but numbers to a book."""
    here, there = Ground(1, 1, (1, 2)), Ground(2, 1, (3, 4))
    for ground in (here, there):
        await store.set_version(ground.space, ground.version)
    return here, there
