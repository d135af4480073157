"""``python -m bench.vm_pool_child WORK KUBECONFIG NAMESPACE NODES COUNT LEDGER POOL``: nodes at work; figures.

Every node has a pool object and connections of its own, as on machines of their own; they share this process and so its
core. Imports and first connections are not counted.
"""

import asyncio
import dataclasses
import gc
import json
import logging
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from bench.kubernetes_cases import VM_POOL_CREATES, VM_POOL_MODES, VM_POOL_PLAIN, VM_POOL_TIMEOUT_S
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.config_map_swap import CONFIG_MAP
from tenure.integrations.vmpool.pool_changes import NoObserver
from tenure.integrations.vmpool.state.pool_state import PoolState, write_state
from tenure.integrations.vmpool.vm_pool_settings import TOKEN_VARIABLE, VMPoolSettings
from tenure.kernel.errors import TenureError

POOL_NAME = "byom-ip-pool-state"


@dataclass(frozen=True)
class Operation:
    """One allocation; ``error`` is empty if it was done."""

    id: str
    ip: str
    error: str
    seconds: float


@dataclass(frozen=True)
class Report:
    """What nodes did, and what it took."""

    operations: list[Operation]
    seconds: float
    cpu_s: float
    peak_mb: float
    conflicts: int = 0
    """Writes that another writer was faster than."""

    def dump(self) -> str:
        """Write it in one line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, text: str) -> "Report":
        """Read what ``dump`` wrote."""
        fields = json.loads(text)
        operations = [Operation(**each) for each in fields.pop("operations")]
        return cls(operations, **fields)


Allocate = Callable[[str], Awaitable[str]]
"""Allocate for an id, and return the address."""


@dataclass
class Ground:
    """Where nodes work: the cluster, the namespace, a ledger, the addresses; and what has been counted."""

    kind: str
    kubeconfig: str
    namespace: str
    ledger: str
    pool: list[str]
    conflicts: int = 0


class Counting(NoObserver):
    """Count conflicts."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def conflict(self, operation: str) -> None:
        """Count one more."""
        self._ground.conflicts += 1


async def open_pool(stack: AsyncExitStack, ground: Ground, node: str) -> Allocate:
    """Return how a node of ours allocates."""
    mode = VM_POOL_MODES[ground.kind]
    client = await stack.enter_async_context(ApiClient(from_kubeconfig(ground.kubeconfig)))
    settings = VMPoolSettings(
        pool_ips=ground.pool, namespace=ground.namespace, config_map_name=POOL_NAME, node_name=node,
        operation_timeout_s=VM_POOL_TIMEOUT_S, pool_mode=mode, pool_ledger=ground.ledger,
        pool_token=os.environ.get(TOKEN_VARIABLE, ""),
    )  # fmt: skip
    opened = AsyncVMPool(None if mode == "ledger" else client, settings, observer=Counting(ground))
    stack.push_async_callback(opened.close)
    await opened.status()

    async def allocate(id: str) -> str:
        return (await opened.allocate(id, id, "default")).ip

    return allocate


async def open_plain(stack: AsyncExitStack, ground: Ground, node: str) -> Allocate:
    """Return how a node reads and writes a ConfigMap of its own, which is as large as a pool."""
    client = await stack.enter_async_context(ApiClient(from_kubeconfig(ground.kubeconfig)))
    metadata = {"namespace": ground.namespace, "name": node}
    data = {"allocation-state": write_state(PoolState.fresh(ground.pool))}
    await client.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    async def read_and_write(id: str) -> str:
        found = await client.get(CONFIG_MAP.path(ground.namespace, node))
        await client.replace(CONFIG_MAP, {**found, "data": {**found["data"], "last": id}})
        return ""

    return read_and_write


async def open_creates(stack: AsyncExitStack, ground: Ground, node: str) -> Allocate:
    """Return how a node creates small objects that nobody else wants."""
    client = await stack.enter_async_context(ApiClient(from_kubeconfig(ground.kubeconfig)))
    await client.get(CONFIG_MAP.path(ground.namespace), {"limit": "1"})

    async def create(id: str) -> str:
        metadata = {"namespace": ground.namespace, "name": id, "labels": {"pool": POOL_NAME}}
        data = {"cell": json.dumps({"address": id, "token": 1 << 60})}
        await client.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        return ""

    return create


OPENED = {VM_POOL_PLAIN: open_plain, VM_POOL_CREATES: open_creates}
"""How nodes work that are none of ours."""


async def work(allocate: Allocate, node: str, count: int) -> list[Operation]:
    """Allocate so many times, one after the other."""
    done = []
    for number in range(count):
        id, began = f"{node}-pod-{number}", time.perf_counter()
        try:
            ip, error = await allocate(id), ""
        except TenureError as refused:
            ip, error = "", str(refused)
        done.append(Operation(id, ip, error, time.perf_counter() - began))
    return done


async def main(ground: Ground, nodes: int, count: int) -> None:
    """Let all nodes work at once, and print what came of it."""
    logging.getLogger("tenure").setLevel(logging.CRITICAL + 1)
    names = [f"node-{number}" for number in range(nodes)]
    open_one = OPENED.get(ground.kind, open_pool)
    async with AsyncExitStack() as stack:
        opened = [await open_one(stack, ground, name) for name in names]
        # A pass of the collector over what was imported takes a tenth of the run, in which it comes once or not at all.
        gc.collect()
        gc.freeze()
        began, cpu_s, ground.conflicts = time.perf_counter(), time.process_time(), 0
        done = await asyncio.gather(*(work(each, name, count) for each, name in zip(opened, names, strict=True)))
        seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    operations = [each for node in done for each in node]
    print(Report(operations, seconds, cpu_s, peak_mb, ground.conflicts).dump(), flush=True)


if __name__ == "__main__":
    kind, kubeconfig, namespace, nodes, count, ledger, pool = sys.argv[1:]
    asyncio.run(main(Ground(kind, kubeconfig, namespace, ledger, pool.split(",")), int(nodes), int(count)))
