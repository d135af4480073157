"""Ours beside Go managers on one ConfigMap: those of the seed's time share it, those of today are found out (VD8)."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.state.state_rules import pick_index
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tests.infrastructure.kube import KubeServer
from tests.integrations.vmpool.seed_managers import Done, SeedManagers

NAME = "byom-ip-pool-state"
POOL = [f"10.9.0.{number}" for number in range(1, 201)]


@asynccontextmanager
async def nodes_of_ours(kube: KubeServer, namespace: str, count: int) -> AsyncIterator[list[AsyncVMPool]]:
    """Give nodes, each with connections of its own, as on machines of their own."""
    async with AsyncExitStack() as stack:
        pools = []
        for number in range(count):
            client = await stack.enter_async_context(ApiClient(from_kubeconfig(str(kube.kubeconfig()))))
            settings = VMPoolSettings(pool_ips=POOL, namespace=namespace, node_name=f"ours-{number}")
            pools.append(AsyncVMPool(client, settings))
            stack.push_async_callback(pools[-1].close)
        yield pools


def stored(kube: KubeServer, namespace: str) -> dict[str, str]:
    """Return the address of each id, as the ConfigMap says."""
    state = state_of(kube, namespace)
    return {key: each["ip"] for key, each in state["allocatedIPs"].items()}


def state_of(kube: KubeServer, namespace: str) -> dict[str, dict[str, dict[str, str]]]:
    found = kube.ask("GET", f"/api/v1/namespaces/{namespace}/configmaps/{NAME}")
    state: dict[str, dict[str, dict[str, str]]] = json.loads(found["data"]["allocation-state"])
    return state


async def work(pool: AsyncVMPool, count: int, release_every: int = 0) -> dict[str, str]:
    """Allocate one after the other, release some again, and return what is reported as allocated at the end."""
    held = {}
    for number in range(count):
        id = f"{pool.node_name}-pod-{number}"
        held[id] = (await pool.allocate(id, id, "default")).ip
        if release_every and (number + 1) % release_every == 0:
            assert await pool.deallocate(id)
            del held[id]
    return held


def held_by(done: Sequence[Done]) -> dict[str, str]:
    """Return what Go managers report as allocated at the end."""
    held = {}
    for each in done:
        if each.operation == "allocate" and not each.error:
            held[each.id] = each.ip
        if each.operation == "deallocate" and not each.error:
            held.pop(each.id, None)
    return held


def test_go_and_ours_pick_the_same_place(kube: KubeServer, namespace: str) -> None:
    managers = SeedManagers(kube.kubeconfig(), namespace, POOL)
    ids = ["pod-1", "worker-9-alloc-1", "nginx-7c5ddbdf54-x2x8p-3f1c9d2e8b7a4f60", "α-pod-β", "a b"]

    [*done] = managers.allocate(*ids)

    free = list(POOL)
    for each in done:
        assert each.ip == free.pop(pick_index(len(free), each.id))


async def test_go_reads_what_ours_wrote_and_writes_it_the_same(kube: KubeServer, namespace: str) -> None:
    """Bytes: a Go manager that adds an allocation and takes it back leaves entries as ours have written them."""
    managers = SeedManagers(kube.kubeconfig(), namespace, POOL)
    await asyncio.to_thread(managers.allocate, "b<&>é\u2028")
    async with nodes_of_ours(kube, namespace, 1) as [pool]:
        for id in ("pod-1", "a<&>é", "pod-3"):
            await pool.allocate(id, "pod", "ns")
    path = f"/api/v1/namespaces/{namespace}/configmaps/{NAME}"
    ours = kube.ask("GET", path)["data"]

    await asyncio.to_thread(managers.allocate, "go-1")
    await asyncio.to_thread(managers.deallocate, "go-1")

    theirs = kube.ask("GET", path)["data"]
    assert theirs["tenure-notes"] == ours["tenure-notes"]
    before, after = (each["allocation-state"].partition('"availableIPs"')[0] for each in (ours, theirs))
    assert before == after


async def test_done_when_1_go_and_ours_on_one_configmap_at_once_lose_nothing_and_double_nothing(
    kube: KubeServer, namespace: str
) -> None:
    """Go managers give up after four tries, which is theirs to report; nothing is lost by it."""
    managers = SeedManagers(kube.kubeconfig(), namespace, POOL)
    async with nodes_of_ours(kube, namespace, 4) as pools:
        # Go managers that create the ConfigMap at once lose an allocation by themselves, so it is there before.
        first = await pools[0].allocate("first")
        with managers.on_cue(nodes=4, count=15, release_every=3) as cued:
            cued.begin()
            ours = await asyncio.gather(*(work(pool, 15, 3) for pool in pools))
            done, _ = await asyncio.to_thread(cued.ended)
        vanished = [each for pool in pools for each in await pool.reassert()]

    found = stored(kube, namespace)
    reported = {"first": first.ip} | held_by(done) | {id: ip for held in ours for id, ip in held.items()}
    assert found == reported
    assert max(Counter(found.values()).values()) == 1
    assert sum(map(len, ours)) == 4 * 10
    assert vanished == []
    assert set(state_of(kube, namespace)["availableIPs"]) == set(POOL) - set(found.values())


async def test_vd8_every_allocation_of_ours_that_a_manager_of_today_overwrites_is_reported(
    kube: KubeServer, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """120 allocations, 60 by each. Of ours each is stored in the end as it was answered, or was reported."""
    caplog.set_level(logging.INFO, "tenure.vmpool")
    managers = SeedManagers(kube.kubeconfig(), namespace, POOL, overwrite=True)
    async with nodes_of_ours(kube, namespace, 2) as pools:
        await pools[0].allocate("first")
        with managers.on_cue(count=60) as cued:
            cued.begin()
            ours = await asyncio.gather(*(work(pool, 30) for pool in pools))
            await asyncio.to_thread(cued.ended)
        for pool in pools:
            await pool.reassert()
        found = stored(kube, namespace)
        reported = {each.entry.allocation_id for pool in pools for each in pool.vanished}

    answered = {id: ip for held in ours for id, ip in held.items()}
    silently = {id for id, ip in answered.items() if found.get(id) != ip} - reported
    told = {record.pool_fields["id"] for record in caplog.records if record.pool_event in ("VANISHED", "GONE")}  # type: ignore[attr-defined]
    assert len(answered) == 60
    assert silently == set()
    assert reported <= told
    assert reported, "nothing vanished: the managers were not at work at the same time"
