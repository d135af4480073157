"""Kinds that come, go and change their versions under a running operator (KP6)."""

import asyncio
from collections.abc import Callable

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.discovery import find_kind
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.resource_types import CUSTOM_RESOURCE_DEFINITION, SECRET, ResourceType
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import create, role

GROUP = "toys.tenure.dev"


def definition(*versions: str) -> dict[str, object]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = [{"name": each, "served": True, "storage": each == versions[0], "schema": schema} for each in versions]
    names = {"plural": "tops", "singular": "top", "kind": "Top", "listKind": "TopList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"tops.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": served},
    }


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - a cache is polled
            await asyncio.sleep(0.05)


async def found(client: ApiClient, *versions: str) -> ResourceType:
    async with asyncio.timeout(30):
        while (kind := await find_kind(client, GROUP, "tops", versions)) is None:  # noqa: ASYNC110 - a server is polled
            await asyncio.sleep(0.05)
    return kind


async def test_a_kind_is_found_in_the_first_of_the_wanted_versions(client: ApiClient) -> None:
    """``HorizontalPodAutoscaler`` is served in two versions."""
    for versions, chosen in [(("v3", "v2", "v1"), "v2"), (("v1", "v2"), "v1")]:
        kind = await find_kind(client, "autoscaling", "horizontalpodautoscalers", versions)
        assert kind == ResourceType("autoscaling", chosen, "horizontalpodautoscalers", "HorizontalPodAutoscaler")


async def test_core_kinds_are_found_and_kinds_of_the_whole_cluster_are_known(client: ApiClient) -> None:
    assert await find_kind(client, "", "secrets", ["v1"]) == SECRET
    assert await find_kind(client, "", "namespaces", ["v2", "v1"]) == ResourceType(
        "", "v1", "namespaces", "Namespace", namespaced=False
    )
    assert await find_kind(client, "", "things", ["v1"]) is None


async def test_a_kind_is_found_when_it_comes_followed_when_it_goes_and_found_again(
    client: ApiClient, kube: KubeServer, namespace: str
) -> None:
    for document in role("tenure-tops", [{"apiGroups": [GROUP], "resources": ["tops"], "verbs": ["*"]}]):
        create(kube, document)
    assert await find_kind(client, GROUP, "tops", ["v2", "v1"]) is None

    create(kube, definition("v1"))
    kind = await found(client, "v2", "v1")
    assert kind == ResourceType(GROUP, "v1", "tops", "Top", namespaced=True)
    assert await find_kind(client, GROUP, "bottoms", ["v1"]) is None

    informer = Informer(client, kind, namespace=namespace)
    task = asyncio.create_task(informer.run())
    path = kind.path(namespace)
    top = {"apiVersion": f"{GROUP}/v1", "kind": "Top", "metadata": {"name": "a"}}
    await asyncio.to_thread(kube.ask, "POST", path, top)
    await until(lambda: len(informer.cache) == 1)
    kube.ask("DELETE", CUSTOM_RESOURCE_DEFINITION.path(name=f"tops.{GROUP}"))
    await until(lambda: len(informer.cache) == 0 and not informer.is_there)

    create(kube, definition("v1"))
    await found(client, "v1")
    await until(lambda: informer.is_there)
    await asyncio.to_thread(kube.ask, "POST", path, top)
    await until(lambda: len(informer.cache) == 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
