"""The ConfigMap itself: what a role allows, what the API server refuses, and what each refusal is called."""

import asyncio
import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.vmpool import pool_changes
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.config_map_swap import NOTES_KEY, STATE_KEY
from tenure.integrations.vmpool.modes import config_map_place
from tenure.integrations.vmpool.pool_errors import PoolForbidden, PoolNamespaceMissing, PoolTooLarge, PoolWriteRefused
from tenure.integrations.vmpool.vm_pool_settings import DEFAULT_CONFIG_MAP, LARGEST_CONFIG_MAP
from tenure.kernel.errors import Conflict
from tests.infrastructure.kube import KubeServer
from tests.integrations.vmpool.pool_stage import TWO, PoolStage, TroubledClient, refuses, state_with

RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}"
ACCOUNT = "adaptor"


def upstream_rules(name: str = DEFAULT_CONFIG_MAP) -> list[dict[str, Any]]:
    """Return what upstream's chart allows the adaptor of today."""
    on = {"apiGroups": [""], "resources": ["configmaps"]}
    named = ["delete", "replace", "update", "get", "watch"]
    return [{**on, "verbs": ["create"]}, {**on, "verbs": named, "resourceNames": [name]}]


def account_with(kube: KubeServer, namespace: str, rules: list[dict[str, Any]], folder: Path) -> str:
    """Make an account that may do so much, and return its kubeconfig."""
    kube.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": ACCOUNT}})
    version = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": ACCOUNT}}
    kube.ask("POST", RBAC.format(namespace) + "/roles", {**version, "kind": "Role", "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT}
    subjects = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}]
    binding = {**version, "kind": "RoleBinding", "roleRef": reference, "subjects": subjects}
    kube.ask("POST", RBAC.format(namespace) + "/rolebindings", binding)
    place = f"/api/v1/namespaces/{namespace}/serviceaccounts/{ACCOUNT}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    document = json.loads(kube.kubeconfig().read_text("utf-8"))
    document["users"][0]["user"] = {"token": kube.ask("POST", place, asked)["status"]["token"]}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(document), "utf-8")
    return str(path)


async def test_case_77_upstreams_role_allows_everything_on_its_own_name_and_nothing_on_another(
    kube: KubeServer, stage: PoolStage, tmp_path: Path
) -> None:
    place = account_with(kube, stage.namespace, upstream_rules(), tmp_path)
    async with TroubledClient(from_kubeconfig(place)) as client:
        pool = AsyncVMPool(client, stage.settings())
        assert (await pool.allocate("a")).ip in TWO
        assert await pool.deallocate("a") is True

        other = AsyncVMPool(client, stage.settings(config_map_name="mine"))
        for call in (other.allocate("a"), other.status()):
            with pytest.raises(PoolForbidden, match="forbidden") as caught:
                await call
            assert "mine" in caught.value.message
            assert not isinstance(caught.value, Conflict)
        with pytest.raises(Exception, match="403"):
            await client.get(f"/api/v1/namespaces/{stage.namespace}/configmaps")


async def test_case_77_a_role_without_create_is_named(kube: KubeServer, stage: PoolStage, tmp_path: Path) -> None:
    """So is the role of upstream's second controller."""
    place = account_with(kube, stage.namespace, upstream_rules()[1:], tmp_path)
    async with TroubledClient(from_kubeconfig(place)) as client:
        pool = AsyncVMPool(client, stage.settings())
        assert (await pool.status()).available == 2
        with pytest.raises(PoolForbidden, match="cannot create resource"):
            await pool.allocate("a")


async def test_case_24_a_write_that_is_forbidden_says_so(kube: KubeServer, stage: PoolStage, tmp_path: Path) -> None:
    stage.put(state_with(list(TWO)))
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    place = account_with(kube, stage.namespace, rules, tmp_path)
    before = stage.object()
    async with TroubledClient(from_kubeconfig(place)) as client:
        pool = AsyncVMPool(client, stage.settings())
        with pytest.raises(PoolForbidden, match="forbidden") as caught:
            await pool.allocate("a")
        # Others of the same round that need no write have their answers.
        ended = await asyncio.gather(pool.allocate("b"), pool.deallocate("x"), return_exceptions=True)
        assert [type(each) for each in ended] == [PoolForbidden, bool]

    assert "conflict" not in caught.value.message.lower()
    assert stage.object() == before


async def test_case_24_a_write_that_is_invalid_says_so(stage: PoolStage) -> None:
    stage.put_object({"data": {STATE_KEY: json.dumps(state_with(list(TWO)))}, "immutable": True})
    pool = await stage.pool(*TWO)
    with pytest.raises(PoolWriteRefused, match="immutable") as caught:
        await pool.allocate("a")

    assert not isinstance(caught.value, Conflict)


async def test_a_namespace_that_is_not_there_is_named(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO, namespace="nowhere")
    assert (await pool.status()).available == 2
    with pytest.raises(PoolNamespaceMissing, match="there is no namespace 'nowhere'") as caught:
        await pool.allocate("a")

    assert isinstance(caught.value, PoolWriteRefused)
    assert "`kubectl create namespace nowhere`" in caught.value.message


async def test_case_78_a_state_that_would_not_fit_is_refused_before_it_is_sent(stage: PoolStage) -> None:
    client = await stage.client()
    stage.put(state_with(list(TWO)), filler="x" * (LARGEST_CONFIG_MAP - 1000))
    before = stage.object()
    pool = await stage.pool(*TWO, client=client, history=0)
    with pytest.raises(PoolTooLarge, match="pool state too large") as caught:
        await pool.allocate("a" * 512)

    assert caught.value.size > caught.value.limit == LARGEST_CONFIG_MAP
    assert client.sent == ["get"]
    assert stage.object() == before


async def test_case_78_exactly_what_fits_is_written_and_one_byte_more_is_not(
    stage: PoolStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second keys count, and so do binary values (VD5)."""
    # A time is written without its last zeros, as Go does: texts of different moments differ in length.
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_912, UTC)
    for module in (pool_changes, config_map_place):
        monkeypatch.setattr(module, "now", lambda: moment)
    # The notes add up how long allocations took: on a busy machine that sum has a digit more.
    monkeypatch.setattr(pool_changes, "_results", lambda _: {})
    pool = await stage.pool(*TWO, history=0)
    await pool.allocate("a")
    await pool.deallocate("a")
    one = stage.object()["data"]
    await pool.allocate("a")
    blob = b"12345"
    rest = LARGEST_CONFIG_MAP - sum(len(text) for text in stage.object()["data"].values()) - len(blob)
    for surplus, fits in ((0, True), (1, False)):
        values = {STATE_KEY: one[STATE_KEY], NOTES_KEY: one[NOTES_KEY], "filler": "x" * (rest + surplus)}
        stage.put_object({"data": values, "binaryData": {"blob": base64.b64encode(blob).decode()}})
        try:
            await pool.allocate("a")
            found = True
        except PoolTooLarge:
            found = False
        assert found is fits
        if fits:
            stored = sum(len(text) for text in stage.object()["data"].values())
            assert stored + len(blob) == LARGEST_CONFIG_MAP


async def test_case_78_a_release_is_possible_where_an_allocation_is_not(stage: PoolStage) -> None:
    """Both share a round; the one that does not fit must not take the other with it."""
    stage.put(state_with([TWO[1]], {"allocationID": "a", "ip": TWO[0]}), filler="x" * (LARGEST_CONFIG_MAP - 900))
    pool = await stage.pool(*TWO, history=0)
    refused, released = await asyncio.gather(pool.allocate("b" * 512), pool.deallocate("a"), return_exceptions=True)

    assert isinstance(refused, PoolTooLarge)
    assert released is True
    assert stage.state()["allocatedIPs"] == {}


async def test_the_history_gives_way_before_an_allocation_is_refused(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    for _ in range(10):
        await pool.allocate("a" * 300)
        await pool.deallocate("a" * 300)
    notes = stage.object()["data"][NOTES_KEY]
    assert len(notes) > 5000
    stage.put(state_with(list(TWO)), **{NOTES_KEY: notes, "filler": "x" * (LARGEST_CONFIG_MAP - len(notes) - 200)})
    await pool.allocate("b")

    assert "history" not in stage.notes()
    assert list(stage.state()["allocatedIPs"]) == ["b"]


async def test_a_413_of_a_server_before_the_api_server_is_too_large_as_well(stage: PoolStage) -> None:
    client = await stage.client()
    client.trouble = refuses(413, "RequestEntityTooLarge", "limit is 3145728", on="create")
    pool = await stage.pool(*TWO, client=client)
    with pytest.raises(PoolTooLarge):
        await pool.allocate("a")


async def test_a_configmap_that_is_nearly_full_is_said_before_it_is(stage: PoolStage) -> None:
    stage.put(state_with(list(TWO)), filler="x" * int(LARGEST_CONFIG_MAP * 0.91))
    pool = await stage.pool(*TWO)

    assert "nearly full" in (await pool.status()).warnings[0]
