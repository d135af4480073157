"""``python -m bench.kubernetes_child WORK KUBECONFIG NAMESPACE TASKS COUNT``: one client at work, one line of figures.

Every client creates the same ConfigMaps of 1 KB with the same number of tasks; or the runtime creates the objects of
addresses alone, which the rate of claims is measured by. The garbage collector runs as in any
program; imports and the first request are not counted.
"""

import asyncio
import gc
import itertools
import statistics
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from bench.jobs import Result
from bench.kubernetes_cases import ADDRESSES, ADDRESSES_JUDGED, BARE, LISTED, OURS, WORK
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL, MADE_FOR
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType

CONFIG_MAP = ResourceType("", "v1", "configmaps", "ConfigMap")
TEXT = "x" * 600
"""With the fields that the server adds, an object has about 1 KB."""

WATCHED = 200
"""So many writes are followed through the watch."""

NUMBERS = itertools.count(1)

Create = Callable[[Object], Awaitable[object]]
Write = Callable[[str, str], Object]


def config_map(namespace: str, name: str) -> Object:
    """Write an object."""
    metadata = {"namespace": namespace, "name": name, "labels": {"bench": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": TEXT}}


def ip_address(namespace: str, name: str) -> Object:
    """Write the object of another address each time, as large as the operator's."""
    number = next(NUMBERS)
    owners = [
        {"apiVersion": kind.api_version, "kind": kind.kind, "name": "any", "uid": str(uuid.uuid4())}
        for kind in (IP_POOL, IP_CLAIM)
    ]
    annotations = {MADE_FOR: f"{namespace}/{name}"}
    metadata = {"namespace": namespace, "name": name, "annotations": annotations, "ownerReferences": owners}
    address = f"10.1.{number // 250}.{number % 250}"
    spec = {"address": address, "prefix": 16, "pool": {"name": "any"}, "claim": {"name": name}}
    return {"apiVersion": IP_ADDRESS.api_version, "kind": IP_ADDRESS.kind, "metadata": metadata, "spec": spec}


async def create_many(create: Create, namespace: str, tasks: int, count: int, write: Write = config_map) -> Result:
    """Create so many objects by so many tasks."""
    numbers = iter(range(count))
    taken: list[float] = []

    async def task() -> None:
        for number in numbers:
            began = time.perf_counter()
            await create(write(namespace, f"o{number}"))
            taken.append(time.perf_counter() - began)

    await create(write(namespace, "first"))
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(task() for _ in range(tasks)))
    return _result(count, time.perf_counter() - began, time.process_time() - cpu, taken, _now_mb())


async def with_runtime(kubeconfig: str, stack: AsyncExitStack, tasks: int) -> Create:
    """Create by the runtime, as a controller does."""
    client = await stack.enter_async_context(ApiClient(from_kubeconfig(kubeconfig)))
    return lambda wanted: client.create(CONFIG_MAP, wanted)


async def with_runtime_addresses(kubeconfig: str, stack: AsyncExitStack, tasks: int) -> Create:
    """Create addresses by the runtime."""
    client = await stack.enter_async_context(ApiClient(from_kubeconfig(kubeconfig)))
    return lambda wanted: client.create(IP_ADDRESS, wanted)


async def with_bare_session(kubeconfig: str, stack: AsyncExitStack, tasks: int) -> Create:
    """Create by nothing but a session: no bound, no second try, no errors, the limit of this language."""
    access = await from_kubeconfig(kubeconfig)()
    connector = aiohttp.TCPConnector(limit=0, ssl=access.tls or True)
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
    headers = {"Authorization": access.authorization or "", "Content-Type": "application/json"}

    async def create(object: Object) -> object:
        url = access.server + CONFIG_MAP.path(object["metadata"]["namespace"])
        async with session.post(url, data=orjson.dumps(object), headers=headers) as response:
            answer = orjson.loads(await response.read())
            assert response.status == 201, answer
            return answer

    return create


async def with_kubernetes_asyncio(kubeconfig: str, stack: AsyncExitStack, tasks: int) -> Create:
    """Create by kubernetes_asyncio's typed client."""
    client, config = import_module("kubernetes_asyncio.client"), import_module("kubernetes_asyncio.config")

    configuration = client.Configuration()
    await config.load_kube_config(kubeconfig, client_configuration=configuration)
    configuration.connection_pool_maxsize = tasks
    api = client.CoreV1Api(await stack.enter_async_context(client.ApiClient(configuration)))
    return lambda wanted: api.create_namespaced_config_map(wanted["metadata"]["namespace"], wanted)


async def with_lightkube(kubeconfig: str, stack: AsyncExitStack, tasks: int) -> Create:
    """Create by lightkube's client."""
    configs, kinds = import_module("lightkube.config.kubeconfig"), import_module("lightkube.resources.core_v1")
    client = import_module("lightkube").AsyncClient(configs.KubeConfig.from_file(kubeconfig))
    stack.push_async_callback(client.close)
    return lambda wanted: client.create(kinds.ConfigMap.from_dict(wanted))


CLIENTS = {
    OURS: with_runtime,
    ADDRESSES: with_runtime_addresses,
    ADDRESSES_JUDGED: with_runtime_addresses,
    BARE: with_bare_session,
    f"{WORK}kubernetes_asyncio": with_kubernetes_asyncio,
    f"{WORK}lightkube": with_lightkube,
}


async def list_and_watch(kubeconfig: str, namespace: str, count: int) -> Result:
    """Fill a cache from a list, then follow writes through the watch behind it; memory is what the cache added."""
    async with ApiClient(from_kubeconfig(kubeconfig)) as client:
        await client.get(CONFIG_MAP.path(namespace), {"limit": "1"})
        gc.collect()
        before_mb, cpu, began = _now_mb(), time.process_time(), time.perf_counter()
        informer = Informer(client, CONFIG_MAP, namespace=namespace)
        following = asyncio.create_task(informer.run())
        await informer.synced.wait()
        spent, cpu = time.perf_counter() - began, time.process_time() - cpu
        assert len(informer.cache) == count
        gc.collect()
        cache_mb = _now_mb() - before_mb
        taken = await _followed(client, informer, namespace)
        following.cancel()
    return _result(count, spent, cpu, taken, cache_mb)


async def _followed(client: ApiClient, informer: Informer, namespace: str) -> list[float]:
    """Return how long it takes from a write until the watch has brought it, write by write."""
    seen = asyncio.Event()
    informer.on_change(lambda delta: seen.set())
    taken = []
    for number in range(WATCHED):
        seen.clear()
        began = time.perf_counter()
        await client.create(CONFIG_MAP, config_map(namespace, f"watched{number}"))
        await seen.wait()
        taken.append(time.perf_counter() - began)
    return taken


def _result(count: int, seconds: float, cpu_s: float, taken: list[float], memory_mb: float) -> Result:
    cuts = statistics.quantiles(taken, n=100)
    return Result(count, seconds, cpu_s, cuts[49] * 1e3, cuts[98] * 1e3, memory_mb)


def _now_mb() -> float:
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this system does not say how much memory a process has")


async def main(work: str, kubeconfig: str, namespace: str, tasks: int, count: int) -> None:
    """Do one piece of work and print its figures."""
    if work == LISTED:
        result = await list_and_watch(kubeconfig, namespace, count)
    else:
        async with AsyncExitStack() as stack:
            create = await CLIENTS[work](kubeconfig, stack, tasks)
            write = ip_address if work.startswith(ADDRESSES) else config_map
            result = await create_many(create, namespace, tasks, count, write)
    print(result.dump(), flush=True)


if __name__ == "__main__":
    words: list[Any] = sys.argv[1:]
    asyncio.run(main(words[0], words[1], words[2], int(words[3]), int(words[4])))
