"""Patches and deletions on a real server: they hold for what was read, and for nothing else (KP4)."""

import pytest

from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ObjectMissing, WriteConflict
from tenure.integrations.kubernetes.runtime.patches import (
    finalizer_steps,
    guarded,
    pointer,
    remove_finalizer,
    status_patch,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType

CONFIG_MAP = ResourceType("", "v1", "configmaps", "ConfigMap")
SET = {"op": "add", "path": "/data", "value": {"a": "1"}}


async def made(client: ApiClient, namespace: str, name: str = "a") -> Object:
    return await client.create(CONFIG_MAP, {"metadata": {"namespace": namespace, "name": name}})


async def test_a_patch_of_what_has_changed_since_is_refused(client: ApiClient, namespace: str) -> None:
    read = await made(client, namespace)
    newer = await client.patch(CONFIG_MAP, read, guarded(read, SET))

    with pytest.raises(WriteConflict):
        await client.patch(CONFIG_MAP, read, guarded(read, {**SET, "value": {"a": "2"}}))
    assert newer["data"] == {"a": "1"}


async def test_a_patch_of_an_object_that_was_made_again_is_refused(client: ApiClient, namespace: str) -> None:
    first = await client.patch(CONFIG_MAP, await made(client, namespace), [SET])
    first = await client.patch(CONFIG_MAP, first, guarded(first, *finalizer_steps(first, "example.org/keep")))
    await client.delete(CONFIG_MAP, first)
    first = await client.get(CONFIG_MAP.path_of(first))
    await client.patch(CONFIG_MAP, first, remove_finalizer(first, "example.org/keep"))
    second = await made(client, namespace)

    for patch in (guarded(first, SET), remove_finalizer(first, "example.org/keep")):
        with pytest.raises(WriteConflict):
            await client.patch(CONFIG_MAP, first, patch)
    with pytest.raises(WriteConflict):
        await client.patch(CONFIG_MAP, first, status_patch(first, {}), content_type=MERGE_PATCH)
    with pytest.raises(WriteConflict):
        await client.delete(CONFIG_MAP, first)
    assert (await client.get(CONFIG_MAP.path_of(second)))["metadata"]["uid"] == second["metadata"]["uid"]


async def test_finalizers_come_and_go_beside_those_of_others(client: ApiClient, namespace: str) -> None:
    read = await made(client, namespace)
    ours, theirs = "example.org/ours", "example.org/theirs"
    read = await client.patch(CONFIG_MAP, read, guarded(read, *finalizer_steps(read, theirs)))
    read = await client.patch(CONFIG_MAP, read, guarded(read, *finalizer_steps(read, ours)))
    assert read["metadata"]["finalizers"] == [theirs, ours]
    assert finalizer_steps(read, theirs) == []

    await client.patch(CONFIG_MAP, read, remove_finalizer(read, theirs))
    with pytest.raises(WriteConflict):  # it stands elsewhere now
        await client.patch(CONFIG_MAP, read, remove_finalizer(read, ours))
    read = await client.get(CONFIG_MAP.path_of(read))
    read = await client.patch(CONFIG_MAP, read, remove_finalizer(read, ours))
    assert "finalizers" not in read["metadata"]


async def test_a_deletion_names_what_was_read(client: ApiClient, namespace: str) -> None:
    read = await made(client, namespace)
    newer = await client.patch(CONFIG_MAP, read, guarded(read, SET))

    with pytest.raises(WriteConflict):
        await client.delete(CONFIG_MAP, read)
    await client.delete(CONFIG_MAP, newer)
    with pytest.raises(ObjectMissing):
        await client.get(CONFIG_MAP.path_of(newer))


async def test_what_the_roles_do_not_allow_is_forbidden(client: ApiClient) -> None:
    """KP7."""
    with pytest.raises(ApiError, match="403"):
        await client.get("/api/v1/nodes")


def test_a_pointer_may_have_any_name_in_it() -> None:
    assert pointer("metadata", "annotations", "example.org/a~b", 0) == "/metadata/annotations/example.org~1a~0b/0"


async def test_all_writes_have_one_field_manager(client: ApiClient, namespace: str) -> None:
    """KP10."""
    read = await client.create(CONFIG_MAP, {"metadata": {"namespace": namespace, "name": "a"}, "data": {"b": "1"}})
    read = await client.patch(CONFIG_MAP, read, guarded(read, SET))
    patch = {"metadata": {"annotations": {"c": "2"}}}
    read = await client.patch(CONFIG_MAP, read, patch, content_type=MERGE_PATCH)

    assert {each["manager"] for each in read["metadata"]["managedFields"]} == {"tenure-operator"}
