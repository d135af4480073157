"""Measuring on Kubernetes: one API server, a namespace and a process for each measurement."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence

import psutil
from tests.infrastructure.kube import OPERATOR, KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.metal3.metal3_manager import cluster_api_definitions, install_beside
from tests.integrations.kubernetes.runtime.toy_controller import CONFIG_MAP

from bench.cases import Case, Pair
from bench.claim_operators import nobody, ours
from bench.crew import LONGEST_S, ROOT, Sample, WorkerFailed, summed
from bench.jobs import Result
from bench.kubernetes_cases import ADDRESSES_JUDGED, CLAIMS_WORK, LISTED, OURS, TASKS, VM_POOL_WORK, is_claims
from bench.kubernetes_child import config_map
from bench.kubernetes_claims import SweepPoint, measure_claims, sweep_claims
from bench.measuring import Measured, Progress
from bench.vm_pool_measuring import measure_vm_pool
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig


async def measure_kubernetes(pairs: Sequence[Pair], rounds: int, progress: Progress) -> list[Measured]:
    """Measure all pairs in rounds, base and subject next to each other, under the operator's rights (KP7)."""
    measured = [Measured(pair) for pair in pairs]
    if not pairs:
        return measured
    with private_kube() as server:
        install(server)
        if any(is_claims(pair) for pair in pairs):
            install_beside(server, cluster_api_definitions())  # Metal3's manager ends without them
        _measure(server, Case("kubernetes", OURS, callers=TASKS, count=TASKS * 4))  # what a fresh server does once
        for number in range(1, rounds + 1):
            for each in measured:
                progress.step(f"round {number}/{rounds}  {each.pair.name}")
                if each.pair.base is not None:
                    each.base.append(await asyncio.to_thread(_measure, server, each.pair.base))
                each.subject.append(await asyncio.to_thread(_measure, server, each.pair.subject))
    return measured


async def measure_sweep(
    works: Sequence[str], steps: Sequence[int], count: int, progress: Progress
) -> dict[str, list[SweepPoint]]:
    """Measure claims a second by how many addresses are held, for each piece of work, on one server."""
    points: dict[str, list[SweepPoint]] = {}
    with private_kube() as server:
        install(server)
        install_beside(server, cluster_api_definitions())
        for work in works:
            progress.step(f"picture  {work}")
            case = Case("kubernetes", work, "sequential", callers=TASKS, count=count)
            with fresh_namespace(server) as namespace:
                points[work] = await asyncio.to_thread(sweep_claims, server, namespace, case, steps)
    return points


def _measure(server: KubeServer, case: Case) -> Sample:
    assert case.count is not None
    kubeconfig = str(server.kubeconfig(OPERATOR))
    with fresh_namespace(server) as namespace:
        if case.work == LISTED:
            asyncio.run(_fill(kubeconfig, namespace, case.count))
        if case.work.startswith(CLAIMS_WORK):
            return measure_claims(server, namespace, case, lambda: _servers_cpu_s(server))
        if case.work.startswith(VM_POOL_WORK):
            return measure_vm_pool(server, namespace, case, lambda: _servers_cpu_s(server))
        beside = ours if case.work == ADDRESSES_JUDGED else nobody
        with beside(server, namespace):
            before = _servers_cpu_s(server)
            words = [case.work, kubeconfig, namespace, str(case.callers), str(case.count)]
            return summed([_result_of_child(case.work, words)], _servers_cpu_s(server) - before)


def _result_of_child(work: str, words: Sequence[str]) -> Result:
    child = [sys.executable, "-m", "bench.kubernetes_child", *words]
    ran = subprocess.run(child, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", timeout=LONGEST_S, check=False)
    if ran.returncode != 0:
        raise WorkerFailed(f"{work} ended with {ran.returncode}")
    return Result.load(ran.stdout)


async def _fill(kubeconfig: str, namespace: str, count: int) -> None:
    numbers = iter(range(count))
    async with ApiClient(from_kubeconfig(kubeconfig)) as client:

        async def task() -> None:
            for number in numbers:
                await client.create(CONFIG_MAP, config_map(namespace, f"o{number}"))

        await asyncio.gather(*(task() for _ in range(TASKS)))


def _servers_cpu_s(server: KubeServer) -> float:
    spent = [psutil.Process(server.pid(name)).cpu_times() for name in ("kube-apiserver", "etcd")]
    return float(sum(each.user + each.system for each in spent))
