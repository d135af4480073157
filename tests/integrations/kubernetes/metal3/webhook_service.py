"""What a Service is to webhooks: one place for the API server, behind which are the replicas that are ready.

Nothing routes Services here, so connections are passed on by this process. A connection that goes to a replica which
is frozen or killed then is not saved, as it is not in a cluster.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import PLACES, create

Ready = Callable[[], Iterable[int]]
"""Return the ports of the replicas that are ready."""


class WebhookService:
    """Passes connections on, each to a replica of its own choice."""

    def __init__(self, ready: Ready, chance: random.Random) -> None:
        self._ready, self._chance = ready, chance
        self.passed_on = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection on, until one of its sides ends it."""
        with contextlib.closing(writer):
            behind = await self._connect()
            if behind is None:
                return
            self.passed_on += 1
            with contextlib.closing(behind[1]):
                copies = [asyncio.create_task(_copy(reader, behind[1])), asyncio.create_task(_copy(behind[0], writer))]
                try:
                    await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for copy in copies:
                        copy.cancel()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        ports = list(self._ready())
        for port in self._chance.sample(ports, len(ports)):
            with contextlib.suppress(OSError):  # it does not listen yet, or any more
                return await asyncio.open_connection("127.0.0.1", port)
        return None


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


@contextlib.asynccontextmanager
async def webhook_service(
    server: KubeServer, namespace: str, ready: Ready, chance: random.Random
) -> AsyncIterator[WebhookService]:
    """Register the webhooks that are shipped for a namespace, at a place of their own."""
    service = WebhookService(ready, chance)
    async with await asyncio.start_server(service.accept, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        with _registered(server, namespace, f"https://127.0.0.1:{port}"):
            yield service


@contextlib.contextmanager
def _registered(server: KubeServer, namespace: str, url: str) -> Iterator[None]:
    """Register webhooks; the operator writes the CA of its certificate into them."""
    documents = documents_of(["webhooks"], namespaces=[namespace], webhook_url=url)
    for document in documents:
        create(server, document)
    try:
        yield
    finally:
        for document in documents:
            server.ask("DELETE", f"{PLACES[document['kind']]}/{document['metadata']['name']}")
