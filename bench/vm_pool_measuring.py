"""Measuring nodes that allocate from one ConfigMap at once: ours, the Go algorithm, and a plain GET + PUT."""

import ipaddress
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import islice

from tests.infrastructure.kube import OPERATOR, KubeServer
from tests.integrations.vmpool.seed_managers import SeedManagers

from bench.cases import Case
from bench.crew import LONGEST_S, ROOT, Sample, WorkerFailed
from bench.kubernetes_cases import VM_POOL_GO, VM_POOL_IPS, VM_POOL_PLAIN, VM_POOL_TIMEOUT_S
from bench.measuring import RowsLost
from bench.vm_pool_child import POOL_NAME, Operation, Report
from tenure.integrations.vmpool.state.pool_state import PoolState, write_state


def measure_vm_pool(server: KubeServer, namespace: str, case: Case, servers_cpu_s: Callable[[], float]) -> Sample:
    """Let nodes allocate at once, and compare what they report with what is stored."""
    _create(server, namespace, pool_of(case))
    before = servers_cpu_s()
    report = _by_go(server, namespace, case) if case.work == VM_POOL_GO else _by_child(server, namespace, case)
    store_s = servers_cpu_s() - before
    if case.work != VM_POOL_PLAIN:
        _compare(server, namespace, report.operations)
    return _sample(report, store_s)


def _create(server: KubeServer, namespace: str, pool: Sequence[str]) -> None:
    """Create the pool: Go managers that do so at once lose an allocation by it, which is no matter of speed."""
    metadata = {"namespace": namespace, "name": POOL_NAME}
    data = {"allocation-state": write_state(PoolState.fresh(pool))}
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    server.ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", document)


def pool_of(case: Case) -> list[str]:
    """Return the addresses of the pool."""
    return [str(address) for address in islice(ipaddress.ip_network(case.pool).hosts(), VM_POOL_IPS)]


def _by_child(server: KubeServer, namespace: str, case: Case) -> Report:
    words = [case.work, str(server.kubeconfig(OPERATOR)), namespace, str(case.servers), str(case.count)]
    child = [sys.executable, "-m", "bench.vm_pool_child", *words, ",".join(pool_of(case))]
    ran = subprocess.run(child, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", timeout=LONGEST_S, check=False)
    if ran.returncode != 0:
        raise WorkerFailed(f"{case.work} ended with {ran.returncode}")
    return Report.load(ran.stdout)


def _by_go(server: KubeServer, namespace: str, case: Case) -> Report:
    assert case.count is not None
    more = ("--timeout", f"{VM_POOL_TIMEOUT_S:g}s")
    managers = SeedManagers(server.kubeconfig(OPERATOR), namespace, pool_of(case), name=POOL_NAME, more=more)
    with managers.on_cue(nodes=case.servers, count=case.count) as cued:
        cued.begin()
        done, spent = cued.ended()
    operations = [Operation(each.id, each.ip, each.error, each.seconds) for each in done]
    return Report(operations, spent.seconds, spent.cpu_s, spent.peak_mb)


def _compare(server: KubeServer, namespace: str, operations: Sequence[Operation]) -> None:
    """Raise if the state has not what was reported, or more, or one address twice."""
    found = server.ask("GET", f"/api/v1/namespaces/{namespace}/configmaps/{POOL_NAME}")
    stored = {each["allocationID"]: each["ip"] for each in _entries(found["data"]["allocation-state"])}
    reported = {each.id: each.ip for each in operations if not each.error}
    if stored != reported or len(set(stored.values())) != len(stored):
        raise RowsLost(f"{len(reported)} allocations reported, {len(stored)} stored")


def _entries(text: str) -> list[dict[str, str]]:
    return list(json.loads(text)["allocatedIPs"].values())


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
    )
