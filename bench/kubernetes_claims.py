"""Measuring how operators serve claims, each as a process: ours, and Metal3's manager as shipped and without limit."""

import asyncio
import contextlib
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import psutil
from tests.infrastructure.kube import ADMIN, OPERATOR, KubeServer
from tests.integrations.kubernetes.metal3.metal3_manager import UNTHROTTLED, metal3_manager

from bench.cases import Case
from bench.crew import LONGEST_S, ROOT, Sample, summed
from bench.jobs import Result
from bench.kubernetes_cases import CLAIMS_OURS, CLAIMS_UNTHROTTLED
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_CLAIM, IP_POOL, finalizers_of, text
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of

LIMITS = {CLAIMS_UNTHROTTLED: UNTHROTTLED}
POOL: Object = {
    "apiVersion": IP_POOL.api_version,
    "kind": IP_POOL.kind,
    "metadata": {"name": "pool"},
    "spec": {"namePrefix": "pool", "pools": [{"start": "10.0.0.1", "end": "10.0.255.254"}], "prefix": 16},
}


def measure_claims(server: KubeServer, namespace: str, case: Case, servers_cpu_s: Callable[[], float]) -> Sample:
    """Create claims as a user, all at once, and return how fast an operator serves them, and what it costs."""
    own = (f"--namespace={namespace}", *LIMITS.get(case.work, ()))
    operator = _ours(server, namespace) if case.work == CLAIMS_OURS else metal3_manager(server, *own)
    with operator as process:
        spent = Spent(psutil.Process(process.pid), servers_cpu_s)
        return asyncio.run(_serve(str(server.kubeconfig(ADMIN)), namespace, case, spent))


class Spent:
    """The CPU that an operator and the servers have spent since the claims were begun with."""

    def __init__(self, operator: psutil.Process, servers_cpu_s: Callable[[], float]) -> None:
        self.operator = operator
        self._servers_cpu_s = servers_cpu_s
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self._began = self._now_s()

    def seconds(self) -> tuple[float, float]:
        """Return the operator's and the servers'."""
        operator_s, servers_s = self._now_s()
        return operator_s - self._began[0], servers_s - self._began[1]

    def _now_s(self) -> tuple[float, float]:
        times = self.operator.cpu_times()
        return times.user + times.system, self._servers_cpu_s()


@contextlib.contextmanager
def _ours(server: KubeServer, namespace: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run ours under the rights that are shipped (KP7); webhooks are nobody's here."""
    words = ["--namespaces", namespace, "--own-namespace", "tenure-system", "--port", "0", "--no-webhooks"]
    command = [sys.executable, "-m", "tenure.doors.cli.main", "operator", *words]
    command += ["--kubeconfig", str(server.kubeconfig(OPERATOR))]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        killer = threading.Timer(10.0, process.kill)
        killer.start()
        process.wait()
        killer.cancel()


async def _serve(kubeconfig: str, namespace: str, case: Case, spent: Spent) -> Sample:
    assert case.count is not None
    created: dict[str, float] = {}
    served: dict[str, float] = {}
    all_served = asyncio.Event()

    def look(delta: Delta) -> None:
        if delta.after is not None and text(delta.after, "status", "address", "name"):
            served.setdefault(delta.key[1], time.perf_counter())
            if len(served) == case.count:
                all_served.set()

    async with ApiClient(from_kubeconfig(kubeconfig), agent="bench", in_flight=case.callers) as client:
        await _await_pool(client, namespace)
        claims = Informer(client, IP_CLAIM, namespace=namespace)
        claims.on_change(look)
        following = asyncio.create_task(claims.run())
        await claims.synced.wait()
        spent.begin()
        began = time.perf_counter()
        await asyncio.gather(*(_create(client, namespace, f"c{number}", created) for number in range(case.count)))
        async with asyncio.timeout(LONGEST_S):
            await all_served.wait()
        seconds = max(served.values()) - began
        following.cancel()
    taken = statistics.quantiles((served[name] - created[name] for name in created), n=100)
    operator_s, servers_s = spent.seconds()
    peak_mb = spent.operator.memory_info().rss / 2**20
    result = Result(case.count, seconds, operator_s, taken[49] * 1e3, taken[98] * 1e3, peak_mb)
    return summed([result], servers_s)


async def _await_pool(client: ApiClient, namespace: str) -> None:
    """Create a pool, and wait until the operator has seen it."""
    pool = await client.create(IP_POOL, {**POOL, "metadata": {**POOL["metadata"], "namespace": namespace}})
    async with asyncio.timeout(60):
        while not finalizers_of(pool):
            await asyncio.sleep(0.05)
            pool = await client.get(IP_POOL.path(*key_of(pool)))


async def _create(client: ApiClient, namespace: str, name: str, created: dict[str, float]) -> None:
    """Create a claim; its time begins when the server has answered, since before that no operator knows of it."""
    metadata = {"namespace": namespace, "name": name}
    head = {"apiVersion": IP_CLAIM.api_version, "kind": IP_CLAIM.kind, "metadata": metadata}
    await client.create(IP_CLAIM, {**head, "spec": {"pool": {"name": "pool"}}})
    created[name] = time.perf_counter()
