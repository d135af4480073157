"""Measuring nodes that allocate from one pool at once: ours in every mode, the Go algorithm, plain reads and writes."""

import asyncio
import ipaddress
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import create
from tests.integrations.vmpool.seed_managers import SeedManagers
from tests.integrations.vmpool.test_pool_manifests import Account

from bench.cases import Case
from bench.crew import LONGEST_S, ROOT, Sample, WorkerFailed
from bench.http_servers import tenure_server
from bench.kubernetes_cases import (
    VM_POOL_GO,
    VM_POOL_IPS,
    VM_POOL_LEDGER,
    VM_POOL_MODES,
    VM_POOL_OURS,
    VM_POOL_TIMEOUT_S,
)
from bench.measuring import RowsLost
from bench.vm_pool_child import POOL_NAME, Operation, Report
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.pool_manifests import pool_documents
from tenure.integrations.vmpool.state.pool_state import PoolState, write_state
from tenure.integrations.vmpool.vm_pool_settings import TOKEN_VARIABLE, VMPoolSettings


@dataclass(frozen=True)
class Place:
    """Where a measurement runs: how to reach the cluster, the namespace, and a ledger where one is needed."""

    kubeconfig: Path
    namespace: str
    ledger: str = ""
    token: str = ""


def measure_vm_pool(server: KubeServer, namespace: str, case: Case, servers_cpu_s: Callable[[], float]) -> Sample:
    """Let nodes allocate at once, and compare what they report with what is stored."""
    return asyncio.run(_measured(server, namespace, case, servers_cpu_s))


async def _measured(server: KubeServer, namespace: str, case: Case, servers_cpu_s: Callable[[], float]) -> Sample:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tenure-vmpool-")))
        place = Place(_account(server, namespace, folder), namespace)
        spent = servers_cpu_s
        if case.work == VM_POOL_LEDGER:
            ledger = await stack.enter_async_context(tenure_server(f"sqlite:///{folder / 'ledger.db'}"))
            place = replace(place, ledger=f"http://127.0.0.1:{ledger.port}", token=ledger.token)
            spent = ledger.cpu_s
        elif case.work in (VM_POOL_OURS, VM_POOL_GO):
            _create(server, namespace, pool_of(case))
        if case.work in VM_POOL_MODES:
            await _use_once(place, case)
        before = spent()
        report = await asyncio.to_thread(_by_go if case.work == VM_POOL_GO else _by_child, place, case)
        store_s = spent() - before
        if case.work in (*VM_POOL_MODES, VM_POOL_GO):
            _compare(await _stored(place, case), report.operations)
    return _sample(report, store_s)


def _account(server: KubeServer, namespace: str, folder: Path) -> Path:
    """Return a kubeconfig of an account with the rights that are shipped, and no others (KP7)."""
    for document in pool_documents(("rbac", "modes"), namespace=namespace, name=POOL_NAME):
        create(server, document)
    return Account(server, namespace).kubeconfig(folder)


async def _use_once(place: Place, case: Case) -> None:
    """Let a pool be noted as what it is, which happens once: not by fifty nodes at the same moment."""
    async with _pool(place, case) as pool:
        await pool.allocate("first")
        await pool.deallocate("first")


async def _stored(place: Place, case: Case) -> dict[str, str]:
    """Read what is stored, as another node would."""
    async with _pool(place, case) as pool:
        return {each.allocation_id: each.ip for each in await pool.list()}


def _pool(place: Place, case: Case) -> AbstractAsyncContextManager[AsyncVMPool]:
    settings = VMPoolSettings(
        pool_ips=pool_of(case), namespace=place.namespace, config_map_name=POOL_NAME, node_name="bench",
        pool_mode=VM_POOL_MODES.get(case.work, "configmap"), pool_ledger=place.ledger, pool_token=place.token,
    )  # fmt: skip
    return AsyncVMPool.connect(settings, kubeconfig=str(place.kubeconfig))


def _create(server: KubeServer, namespace: str, pool: Sequence[str]) -> None:
    """Create the pool: Go managers that do so at once lose an allocation by it, which is no matter of speed."""
    metadata = {"namespace": namespace, "name": POOL_NAME}
    data = {"allocation-state": write_state(PoolState.fresh(pool))}
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    server.ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", document)


def pool_of(case: Case) -> list[str]:
    """Return the addresses of the pool."""
    return [str(address) for address in islice(ipaddress.ip_network(case.pool).hosts(), VM_POOL_IPS)]


def _by_child(place: Place, case: Case) -> Report:
    words = [case.work, str(place.kubeconfig), place.namespace, str(case.servers), str(case.count), place.ledger]
    child = [sys.executable, "-m", "bench.vm_pool_child", *words, ",".join(pool_of(case))]
    surroundings = {**os.environ, TOKEN_VARIABLE: place.token}
    ran = subprocess.run(
        child, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", timeout=LONGEST_S, check=False, env=surroundings
    )
    if ran.returncode != 0:
        raise WorkerFailed(f"{case.work} ended with {ran.returncode}")
    return Report.load(ran.stdout)


def _by_go(place: Place, case: Case) -> Report:
    assert case.count is not None
    more = ("--timeout", f"{VM_POOL_TIMEOUT_S:g}s")
    managers = SeedManagers(place.kubeconfig, place.namespace, pool_of(case), name=POOL_NAME, more=more)
    with managers.on_cue(nodes=case.servers, count=case.count) as cued:
        cued.begin()
        done, spent = cued.ended()
    operations = [Operation(each.id, each.ip, each.error, each.seconds) for each in done]
    return Report(operations, spent.seconds, spent.cpu_s, spent.peak_mb)


def _compare(stored: Mapping[str, str], operations: Sequence[Operation]) -> None:
    """Raise if the pool has not what was reported, or more, or one address twice."""
    reported = {each.id: each.ip for each in operations if not each.error}
    if stored != reported or len(set(stored.values())) != len(stored):
        raise RowsLost(f"{len(reported)} allocations reported, {len(stored)} stored")


def _sample(report: Report, store_s: float) -> Sample:
    """Put the figures of what was done together; what failed is a share."""
    done = [each.seconds for each in report.operations if not each.error]
    cuts = statistics.quantiles(done, n=100, method="inclusive") if len(done) > 1 else done * 99
    count = len(done)
    return Sample(
        count=count,
        rate=count / report.seconds,
        seconds=report.seconds,
        client_us=report.cpu_s / count * 1e6,
        store_us=store_s / count * 1e6,
        p50_ms=cuts[49] * 1e3,
        p99_ms=cuts[98] * 1e3,
        peak_mb=report.peak_mb,
        failed_share=1 - count / len(report.operations),
        retries=report.conflicts / count,
    )
