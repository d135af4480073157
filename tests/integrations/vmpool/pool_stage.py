"""A namespace with the ConfigMap of a pool: managers on it, what is stored, and another writer's hand in it."""

import asyncio
import contextlib
import json
import urllib.error
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from tenure.integrations.kubernetes.runtime.api_client import ApiClient, Propagation
from tenure.integrations.kubernetes.runtime.api_errors import ApiUnreachable, ObjectExists, WriteConflict, error_of
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.config_map_swap import NOTES_KEY, STATE_KEY
from tenure.integrations.vmpool.pool_changes import PoolObserver
from tenure.integrations.vmpool.vm_pool_settings import DEFAULT_CONFIG_MAP, VMPoolSettings
from tests.infrastructure.kube import ADMIN, KubeServer

TWO = ("192.168.1.10", "192.168.1.11")
SIX = tuple(f"192.168.3.{last}" for last in range(10, 16))

Send = Callable[[], Awaitable[Object]]
Trouble = Callable[[str, Send], Awaitable[Object]]
"""What becomes of a request: it is named (``get``, ``create``, ``replace``, ``delete``), and may be sent or not."""


async def no_trouble(word: str, send: Send) -> Object:
    """Send a request."""
    return await send()


class TroubledClient(ApiClient):
    """A client whose requests meet the trouble that a test makes; it counts them."""

    trouble: Trouble = staticmethod(no_trouble)

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.sent: list[str] = []
        self._waiting: dict[str, asyncio.Event] = {}

    async def begun(self, word: str) -> None:
        """Wait until a request of a kind is about to be sent."""
        await self._waiting.setdefault(word, asyncio.Event()).wait()

    async def get(self, path: str, *words: Any, **options: Any) -> Object:
        """Read, or fail."""
        return await self._meet("get", lambda: super(TroubledClient, self).get(path, *words, **options))

    async def create(self, kind: ResourceType, object: Object) -> Object:
        """Create, or fail."""
        return await self._meet("create", lambda: super(TroubledClient, self).create(kind, object))

    async def replace(self, kind: ResourceType, object: Object) -> Object:
        """Replace, or fail."""
        return await self._meet("replace", lambda: super(TroubledClient, self).replace(kind, object))

    async def delete(self, kind: ResourceType, object: Object, propagation: Propagation = "Background") -> Object:
        """Delete, or fail."""
        return await self._meet("delete", lambda: super(TroubledClient, self).delete(kind, object, propagation))

    async def _meet(self, word: str, send: Send) -> Object:
        self.sent.append(word)
        self._waiting.setdefault(word, asyncio.Event()).set()
        return await self.trouble(word, send)


def refuses(status: int, reason: str = "", message: str = "", *, on: str = "replace", times: int = 1000) -> Trouble:
    """Answer requests of a kind with an error, so many times."""
    left = [times]

    async def trouble(word: str, send: Send) -> Object:
        if word == on and left[0]:
            left[0] -= 1
            raise error_of(status, {"kind": "Status", "reason": reason, "message": message})
        return await send()

    return trouble


def loses_answers(*, on: str = "replace", is_done: bool = True, times: int = 1, late_s: float = 0.0) -> Trouble:
    """Lose the answers of requests of a kind, so many times: the server has done them, or not, or does so later."""
    left = [times]
    landing: list[asyncio.Task[None]] = []

    async def trouble(word: str, send: Send) -> Object:
        if word != on or not left[0]:
            return await send()
        left[0] -= 1
        if late_s:
            landing.append(asyncio.create_task(_later(send, late_s)))
        elif is_done:
            await send()
        raise ApiUnreachable(f"the answer of {word} is lost")

    return trouble


async def _later(send: Send, late_s: float) -> None:
    await asyncio.sleep(late_s)
    # It is refused if the object has changed meanwhile.
    with contextlib.suppress(WriteConflict, ObjectExists):
        await send()


class PoolStage:
    """A namespace, and everything that tests do to the ConfigMap in it."""

    def __init__(self, kube: KubeServer, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self._stack = AsyncExitStack()
        self._pools: list[AsyncVMPool] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in self._pools:
            await pool.close()
        await self._stack.aclose()

    async def client(self, token: str = ADMIN) -> TroubledClient:
        """Open a client."""
        return await self._stack.enter_async_context(TroubledClient(from_kubeconfig(str(self.kube.kubeconfig(token)))))

    def settings(self, *ips: str, **words: Any) -> VMPoolSettings:
        """Write settings for this namespace."""
        usual: dict[str, Any] = {"namespace": self.namespace, "node_name": "node-1", "operation_timeout_s": 10.0}
        return VMPoolSettings(pool_ips=ips or TWO, **{**usual, **words})

    async def pool(
        self, *ips: str, client: ApiClient | None = None, observer: PoolObserver | None = None, **words: Any
    ) -> AsyncVMPool:
        """Open a manager of its own, as another node would have."""
        pool = AsyncVMPool(client or await self.client(), self.settings(*ips, **words), observer=observer)
        self._pools.append(pool)
        return pool

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    def object(self, name: str = DEFAULT_CONFIG_MAP) -> Any:
        """Read the ConfigMap as it is stored; nothing if there is none."""
        try:
            return self.kube.ask("GET", f"{self._path}/{name}")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    def state(self) -> Any:
        """Read the stored state, as any reader of JSON would."""
        return json.loads(self.object()["data"][STATE_KEY])

    def notes(self) -> Any:
        """Read the stored notes."""
        return json.loads(self.object()["data"][NOTES_KEY])

    def version(self) -> str:
        """Return the resource version of the ConfigMap."""
        return str(self.object()["metadata"]["resourceVersion"])

    def put(self, state: Any = None, **data: str) -> None:
        """Write a ConfigMap as somebody else would: create it, or replace its values."""
        if state is not None:
            data[STATE_KEY] = state if isinstance(state, str) else json.dumps(state, indent=2)
        self.put_object({"data": data})

    def put_object(self, fields: Any, name: str = DEFAULT_CONFIG_MAP) -> None:
        """Create a ConfigMap, or replace the whole of it."""
        found = self.object(name)
        metadata = {"name": name, "namespace": self.namespace, **fields.pop("metadata", {})}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}
        if found is None:
            self.kube.ask("POST", self._path, document)
        else:
            self.kube.ask("PUT", f"{self._path}/{name}", document)

    def overwrite_state(self, text: str) -> None:
        """Write a state back over whatever is there, as managers of today do; other values stay."""
        patch = {"data": {STATE_KEY: text}}
        self.kube.ask("PATCH", f"{self._path}/{DEFAULT_CONFIG_MAP}", patch, content_type="application/merge-patch+json")


def entry(allocation_id: str, ip: str, node: str = "node-1", at: str | None = "2026-01-02T03:04:05Z") -> dict[str, Any]:
    """Write an entry of a state."""
    return {
        "allocationID": allocation_id, "ip": ip, "nodeName": node, "podName": "pod", "podNamespace": "ns",
        "allocatedAt": at,
    }  # fmt: skip


def state_with(available: list[str], *entries: dict[str, Any], version: int = 5) -> dict[str, Any]:
    """Write a state."""
    return {
        "allocatedIPs": {each["allocationID"]: each for each in entries},
        "availableIPs": available,
        "lastUpdated": "2026-01-02T03:04:05Z",
        "version": version,
    }
