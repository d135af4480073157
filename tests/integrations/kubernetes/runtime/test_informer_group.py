"""A kind in some namespaces only, with rights in these alone (KP7), is read as one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.informer_group import InformerGroup
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import ResourceType, key_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.cluster import create, role_in
from tests.integrations.kubernetes.runtime.crooked_server import crooked, page, refuses, watches
from tests.integrations.kubernetes.runtime.test_object_cache import made

LIMIT_RANGE = ResourceType("", "v1", "limitranges", "LimitRange")
"""A kind for which the operator has no rights in the whole cluster."""

RULES = [{"apiGroups": [""], "resources": ["limitranges"], "verbs": ["list", "watch", "create", "delete"]}]


def limit_range(namespace: str, name: str) -> dict[str, object]:
    metadata = {"namespace": namespace, "name": name, "labels": {"side": name[0]}}
    return {"metadata": metadata, "spec": {"limits": []}}


@pytest.fixture
async def three(kube: KubeServer) -> AsyncIterator[list[str]]:
    """Give three namespaces with an object each; the operator has rights in the first two."""
    with ExitStack() as stack:
        names = [stack.enter_context(fresh_namespace(kube)) for _ in range(3)]
        for name in names[:2]:
            for document in role_in(name, "limit-ranges", RULES):
                create(kube, document)
        for name in names:
            kube.ask("POST", LIMIT_RANGE.path(name), limit_range(name, "here"))
        yield names


def side(object: dict[str, object]) -> list[str]:
    metadata = object["metadata"]
    assert isinstance(metadata, dict)
    return [metadata["labels"]["side"]]


async def test_a_kind_is_followed_in_the_namespaces_where_there_are_rights(
    kube: KubeServer, client: ApiClient, three: list[str]
) -> None:
    first, second, third = three
    group = InformerGroup(
        three[:2], lambda name: Informer(client, LIMIT_RANGE, namespace=name, indexers={"side": side})
    )
    seen: list[Delta] = []
    group.on_change(seen.append)
    assert group.unsynced() == [first, second]
    running = asyncio.create_task(group.run())
    try:
        await asyncio.wait_for(group.wait_synced(), 30)
        assert (len(list(group)), group.is_there, group.unsynced()) == (2, True, [])
        assert sorted(map(key_of, group)) == sorted([(first, "here"), (second, "here")])
        assert group.get((third, "here")) is None

        made = await client.create(LIMIT_RANGE, limit_range(second, "later"))
        group.wrote(made)
        assert group.get((second, "later")) is not None
        assert [key_of(each) for each in group.by_index("side", "l")] == [(second, "later")]

        group.deleted(made, await client.delete(LIMIT_RANGE, made))
        assert group.get((second, "later")) is None
        assert await group.compare() == 0
        assert [delta.key[1] for delta in seen] == ["here", "here", "later", "later"]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_the_whole_cluster_is_not_asked_for_without_the_right_to(client: ApiClient, three: list[str]) -> None:
    with pytest.raises(ApiError, match="403"):
        await Informer(client, LIMIT_RANGE).list_all()


async def test_without_namespaces_the_whole_cluster_is_followed(client: ApiClient, namespace: str) -> None:
    config_map = ResourceType("", "v1", "configmaps", "ConfigMap")
    group = InformerGroup((), lambda name: Informer(client, config_map, namespace=name))
    running = asyncio.create_task(group.run())
    try:
        await asyncio.wait_for(group.wait_synced(), 30)
        made = await client.create(config_map, {"metadata": {"namespace": namespace, "name": "anywhere"}})
        group.wrote(made)
        assert group.get((namespace, "anywhere")) is not None
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_caches_are_compared_again_and_again_whatever_the_server_answers() -> None:
    """KP13."""
    async with crooked() as server:
        thing = ResourceType("example.org", "v1", "things", "Thing")
        meter = RuntimeMeter()
        async with ApiClient(server.load) as client:
            group = InformerGroup((), lambda name: Informer(client, thing, namespace=name, meter=meter))
            server.answers = [page(7, made("a", 5)), watches(("ADDED", made("b", 9)), then="silent")]
            running = asyncio.create_task(group.run())
            async with asyncio.timeout(10):
                while len(list(group)) < 2:  # noqa: ASYNC110 - a cache is polled
                    await asyncio.sleep(0.01)
            server.answers = [refuses(500, "InternalError"), refuses(404, "NotFound"), page(9, made("a", 8))]
            server.otherwise = page(9, made("a", 8))
            comparing = asyncio.create_task(group.compare_regularly(every_s=0.02))
            async with asyncio.timeout(10):
                while not meter.drift:  # noqa: ASYNC110 - a meter is polled
                    await asyncio.sleep(0.01)
            for task in (running, comparing):
                task.cancel()
            await asyncio.gather(running, comparing, return_exceptions=True)

    assert (meter.drift, len(list(group))) == ({"things.example.org": 2}, 1)
