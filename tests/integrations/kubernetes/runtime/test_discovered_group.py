"""A kind whose version the server decides: it comes, goes, and comes again in another version."""

import asyncio
from functools import partial
from typing import cast

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.discovered_group import DiscoveredGroup
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.informer_group import InformerGroup
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import CUSTOM_RESOURCE_DEFINITION, Object, ResourceType
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


class SlowDiscovery:
    """A server without the kind, which answers when it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = asyncio.Event()

    async def get(self, path: str) -> Object:
        self.asked += 1
        await self.may_answer.wait()
        return {"kind": "APIGroupList", "groups": []}


async def test_a_kind_that_is_not_there_stays_known_while_it_is_looked_for_again() -> None:
    """Else every new leader would be unready for a moment, and its webhooks would refuse what users write."""
    server = SlowDiscovery()
    client = cast(ApiClient, server)
    spins = DiscoveredGroup(
        client, GROUP, "spins", ["v1"], lambda kind: InformerGroup([], partial(_informer, client, kind))
    )
    running = asyncio.create_task(spins.run())
    assert spins.unsynced() == [""]
    server.may_answer.set()
    await asyncio.wait_for(spins.wait_synced(), 5)
    server.may_answer.clear()
    comparing = asyncio.create_task(spins.compare())
    while server.asked < 2:  # noqa: ASYNC110 - another task asks
        await asyncio.sleep(0)

    assert (spins.unsynced(), comparing.done()) == ([], False)
    server.may_answer.set()
    assert await asyncio.wait_for(comparing, 5) == 0
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
