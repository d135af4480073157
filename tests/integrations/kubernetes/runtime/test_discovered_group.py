"""A kind whose version the server decides: it comes, goes, and comes again in another version."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import cast

from tenure.integrations.kubernetes.runtime.api_client import GONE, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError
from tenure.integrations.kubernetes.runtime.discovered_group import DiscoveredGroup
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.informer_group import InformerGroup
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import (
    CUSTOM_RESOURCE_DEFINITION,
    Object,
    ResourceType,
    key_of,
)
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import await_kind, create, plain_definition, role
from tests.integrations.kubernetes.runtime.test_discovery import until

GROUP = "spins.tenure.dev"


async def test_kp6_a_kind_is_followed_in_whatever_version_it_comes(
    client: ApiClient, kube: KubeServer, namespace: str
) -> None:
    for document in role("tenure-spins", [{"apiGroups": [GROUP], "resources": ["spins"], "verbs": ["*"]}]):
        create(kube, document)

    def group(kind: ResourceType) -> InformerGroup:
        return InformerGroup([namespace], partial(_informer, client, kind))

    spins = DiscoveredGroup(client, GROUP, "spins", ["v2", "v1"], group, looks_every_s=0.1)
    seen: list[Delta] = []
    spins.on_change(seen.append)
    running = asyncio.create_task(spins.run())
    try:
        await asyncio.wait_for(spins.wait_synced(), 10)
        assert not spins.is_there
        assert (list(spins), spins.get((namespace, "a"))) == ([], None)
        for version in ("v1", "v2"):
            await asyncio.to_thread(_install, kube, version)
            place = ResourceType(GROUP, version, "spins", "Spin").path(namespace)
            made = await asyncio.to_thread(kube.ask, "POST", place, _spin(version))
            await until(lambda: spins.get((namespace, "a")) is not None)
            assert seen[-1].after is not None
            assert seen[-1].after["metadata"]["uid"] == made["metadata"]["uid"]
            path = CUSTOM_RESOURCE_DEFINITION.path(name=f"spins.{GROUP}")
            await asyncio.to_thread(kube.ask, "DELETE", path)
            await until(lambda: not spins.is_there and not list(spins))
            assert seen[-1].after is None
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _informer(client: ApiClient, kind: ResourceType, namespace: str) -> Informer:
    return Informer(client, kind, namespace=namespace)


def _install(kube: KubeServer, version: str) -> None:
    definition = plain_definition(GROUP, version, "spins", "Spin")
    create(kube, definition)
    await_kind(kube, definition)


def _spin(version: str) -> dict[str, object]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Spin", "metadata": {"name": "a"}}


async def test_a_kind_that_is_not_there_counts_as_read_also_while_it_is_looked_for_again(client: ApiClient) -> None:
    absent = DiscoveredGroup(client, "absent.tenure.dev", "absences", ["v1"], lambda kind: InformerGroup([], _never))
    running = asyncio.create_task(absent.run())
    try:
        await asyncio.wait_for(absent.wait_synced(), 10)
        comparing = asyncio.create_task(absent.compare())
        while not comparing.done():
            # Webhooks refuse everything while a kind is not read: a comparison every ten minutes must not do that.
            assert absent.unsynced() == []
            await asyncio.sleep(0)
        assert comparing.result() == 0
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _never(namespace: str) -> Informer:
    raise AssertionError("there is no such kind")


class ChangingServer:
    """A server, in memory, that serves the kind in one version at a time; lists of the second one can be held up."""

    def __init__(self) -> None:
        self.served = "v1"
        self.objects: dict[str, int] = {}
        """The names of the objects, with their versions."""
        self.listing = asyncio.Event()
        self.may_list = asyncio.Event()

    async def get(self, path: str, query: object = None) -> Object:
        await asyncio.sleep(0)
        match path.split("/")[2:]:
            case []:
                groups = [{"name": GROUP, "versions": [{"version": self.served}]}]
                return {"kind": "APIGroupList", "groups": groups}
            case [_, _]:
                resources = [{"name": "spins", "kind": "Spin", "namespaced": True}]
                return {"kind": "APIResourceList", "resources": resources}
            case [_, version, _]:
                self._check(version)
                if version == "v2":
                    self.listing.set()
                    await self.may_list.wait()
                items = [self.object(name, version) for name in self.objects]
                return {"metadata": {"resourceVersion": str(max(self.objects.values()))}, "items": items}
        raise AssertionError(path)

    @asynccontextmanager
    async def stream(self, path: str, query: object, silent_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        version = path.split("/")[3]
        self._check(version)
        yield self._silent(version)

    async def _silent(self, version: str) -> AsyncIterator[bytes]:
        while self.served == version:  # noqa: ASYNC110 - it is told so by nobody
            await asyncio.sleep(0.005)
        return
        yield b""

    def _check(self, version: str) -> None:
        if version != self.served:
            raise ApiError(404, "", "404 page not found")

    def object(self, name: str, version: str) -> Object:
        metadata = {"namespace": "n", "name": name, "uid": name, "resourceVersion": str(self.objects[name])}
        return {"apiVersion": f"{GROUP}/{version}", "kind": "Spin", "metadata": metadata}


@asynccontextmanager
async def changing() -> AsyncIterator[tuple[ChangingServer, DiscoveredGroup, list[Delta]]]:
    """Follow such a server, in a version that it has."""
    server = ChangingServer()
    client = cast(ApiClient, server)
    server.objects = {"a": 50, "b": 51}

    def group(kind: ResourceType) -> InformerGroup:
        return InformerGroup([], lambda namespace: Informer(client, kind, namespace=namespace, empties=False))

    spins = DiscoveredGroup(client, GROUP, "spins", ["v2", "v1"], group, looks_every_s=0.01)
    seen: list[Delta] = []
    spins.on_change(seen.append)
    running = asyncio.create_task(spins.run())
    try:
        await until(lambda: len(seen) == 2)
        yield server, spins, seen
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def known(seen: list[Delta]) -> dict[str, int]:
    """Return how often each object came without having gone, as somebody counts who only hears of changes."""
    count: Counter[str] = Counter()
    for delta in seen:
        count[delta.key[1]] += (delta.after is not None) - (delta.before is not None)
    return {name: number for name, number in count.items() if number}


async def test_what_is_written_while_another_version_is_read_is_reported_once() -> None:
    async with changing() as (server, spins, seen):
        server.served = "v2"
        async with asyncio.timeout(30):
            await server.listing.wait()
        spins.deleted(server.object("a", "v1"), GONE)
        del server.objects["a"]
        server.objects["c"] = 150  # after the list of the former version
        spins.wrote(server.object("c", "v2"))
        assert known(seen) == {"b": 1, "c": 1}
        assert spins.get(("n", "c")) is not None

        server.may_list.set()
        await until(lambda: spins.is_there)
        assert known(seen) == {"b": 1, "c": 1}
        assert {key_of(each)[1]: each["apiVersion"] for each in spins} == {"b": f"{GROUP}/v2", "c": f"{GROUP}/v2"}


async def test_a_version_that_goes_while_it_is_read_leaves_nothing_counted_twice() -> None:
    async with changing() as (server, spins, seen):
        server.served = "v2"
        async with asyncio.timeout(30):
            await server.listing.wait()
        server.objects["c"] = 150  # after the list of the former version
        spins.wrote(server.object("c", "v2"))
        server.served = "v1"
        server.may_list.set()
        await until(lambda: spins.is_there)

        assert known(seen) == {"a": 1, "b": 1, "c": 1}
        assert len(list(spins)) == 3


async def test_a_kind_that_is_served_in_an_unknown_version_alone_is_not_read_and_not_gone() -> None:
    async with changing() as (server, spins, seen):
        server.served = "v9"
        await until(lambda: bool(spins.unknown))
        assert spins.unsynced() == [""]
        assert spins.unknown == f"spins.{GROUP} is served in v9, and not in v2, v1"
        assert (known(seen), len(list(spins))) == ({"a": 1, "b": 1}, 2)

        server.served = "v1"
        await until(lambda: spins.is_there)
        assert (spins.unsynced(), spins.unknown, known(seen)) == ([], "", {"a": 1, "b": 1})
