"""Measuring how operators serve claims of one pool: what a claim waits for, what it costs, what is held beside it."""

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import psutil
from tests.infrastructure.kube import ADMIN, KubeServer

from bench.cases import Case
from bench.claim_operators import operator_of
from bench.crew import LONGEST_S, Sample, Sustained, summed
from bench.jobs import Result
from bench.kubernetes_cases import (
    CLAIMS_AT_ONCE,
    CLAIMS_CLUSTER_API,
    CLAIMS_HELD,
    CLAIMS_IN_CLUSTER,
    FILLED_AT_ONCE,
    PEERS,
    WARMED_UP,
)
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLUSTER_API, METAL3
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    IP_POOL,
    OWN_ADDRESS,
    PAUSED,
    annotations_of,
    finalizers_of,
)
from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType

IN_CLUSTER_POOL = ResourceType("ipam.cluster.x-k8s.io", "v1alpha2", "inclusterippools", "InClusterIPPool")
RANGE = ("10.0.0.1", "10.0.255.254")
SETTLED_S = 2.0
"""Claims that wait for their pool have been looked at by then."""
PROBE = "probe"


def measure_claims(server: KubeServer, namespace: str, case: Case, servers_cpu_s: Callable[[], float]) -> Sample:
    """Create claims as a user, and return how fast an operator serves them, and what it costs."""
    with operator_of(case.work, server, namespace) as process:
        spent = Spent(psutil.Process(process.pid), servers_cpu_s)
        return asyncio.run(_measured(str(server.kubeconfig(ADMIN)), namespace, case, spent))


class SweepPoint(NamedTuple):
    """How many claims a second were served while so many addresses of their pool were held."""

    held: int
    rate: float


def sweep_claims(server: KubeServer, namespace: str, case: Case, steps: Sequence[int]) -> list[SweepPoint]:
    """Fill a pool step by step, and create claims at once at each; those of a step are held in the next one."""
    with operator_of(case.work, server, namespace):
        return asyncio.run(_swept(str(server.kubeconfig(ADMIN)), namespace, case, steps))


class Spent:
    """The CPU that an operator and the servers have spent since the claims were begun with."""

    def __init__(self, operator: psutil.Process, servers_cpu_s: Callable[[], float]) -> None:
        self.operator = operator
        self._servers_cpu_s = servers_cpu_s
        self._memory_before_mb = 0.0
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self._began = self._now_s()

    def seconds(self) -> tuple[float, float]:
        """Return the operator's and the servers'."""
        operator_s, servers_s = self._now_s()
        return operator_s - self._began[0], servers_s - self._began[1]

    def note_memory(self) -> None:
        """Count as memory what comes from now on."""
        self._memory_before_mb = self._memory_mb()

    def memory_mb(self) -> float:
        """Return the memory of the operator; without what it had when that was noted."""
        return self._memory_mb() - self._memory_before_mb

    def _memory_mb(self) -> float:
        return float(self.operator.memory_info().rss / 2**20)

    def _now_s(self) -> tuple[float, float]:
        times = self.operator.cpu_times()
        return times.user + times.system, self._servers_cpu_s()


@dataclass
class ClaimMaker:
    """A user that creates claims of a kind for a pool, and sees when each has its address."""

    client: ApiClient
    namespace: str
    kind: ClaimKind
    pool_type: ResourceType
    is_named: bool
    """Whether the operator also writes the address on the claim, as ours does after it has served it."""
    created: dict[str, float] = field(default_factory=dict)
    served: dict[str, float] = field(default_factory=dict)
    named: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._arrived = asyncio.Event()

    def look(self, delta: Delta) -> None:
        """Note a claim that has its address, and one that nothing is written about any more."""
        if delta.after is None or delta.key[1] == PROBE or not self.kind.given(delta.after):
            return
        now = time.perf_counter()
        self.served.setdefault(delta.key[1], now)
        if not self.is_named or OWN_ADDRESS in annotations_of(delta.after):
            self.named.setdefault(delta.key[1], now)
        self._arrived.set()

    async def make(self, count: int, tasks: int) -> list[str]:
        """Create claims; the time of each begins when the server has answered, since no operator knows it before."""
        names = [f"c{len(self.created) + number}" for number in range(count)]
        left = iter(names)

        async def task() -> None:
            for name in left:
                await self.client.create(self.kind.claim, self.claim(name))
                self.created[name] = time.perf_counter()

        await asyncio.gather(*(task() for _ in range(tasks)))
        return names

    async def until_served(self, count: int) -> None:
        """Wait until so many claims have their addresses."""
        await self._until(self.served, count)

    async def until_named(self, count: int) -> None:
        """Wait until nothing is written any more about so many claims."""
        await self._until(self.named, count)

    async def _until(self, noted: dict[str, float], count: int) -> None:
        async with asyncio.timeout(LONGEST_S):
            while len(noted) < count:
                self._arrived.clear()
                await self._arrived.wait()

    async def make_pool(self) -> None:
        """Create the pool; while its webhook is not yet answered, again."""
        async with asyncio.timeout(LONGEST_S):
            while True:
                try:
                    await self.client.create(self.pool_type, self._pool())
                    return
                except ApiError as error:
                    if error.status not in (500, 503):
                        raise
                    await asyncio.sleep(0.1)

    async def until_seen(self) -> None:
        """Wait until the operator has given the pool its finalizer."""
        path = self.pool_type.path(self.namespace, "pool")
        async with asyncio.timeout(LONGEST_S):
            while not finalizers_of(await self.client.get(path)):  # noqa: ASYNC110 - a server is asked
                await asyncio.sleep(0.05)

    async def pause(self, paused: str | None) -> None:
        """Pause the pool, or let it go on."""
        object = {"metadata": {"namespace": self.namespace, "name": "pool"}}
        patch = {"metadata": {"annotations": {PAUSED: paused}}}
        await self.client.patch(self.pool_type, object, patch, content_type=MERGE_PATCH)

    def claim(self, name: str) -> Object:
        """Write a claim."""
        kind = self.kind.claim
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        reference = {"apiGroup": self.pool_type.group, "kind": self.pool_type.kind, "name": "pool"}
        spec = {"pool": {"name": "pool"}} if self.kind is METAL3 else {"poolRef": reference}
        return {**head, "metadata": {"namespace": self.namespace, "name": name}, "spec": spec}

    def _pool(self) -> Object:
        head = {"apiVersion": self.pool_type.api_version, "kind": self.pool_type.kind}
        metadata = {"namespace": self.namespace, "name": "pool"}
        spec: Object = {"namePrefix": "pool", "pools": [dict(zip(("start", "end"), RANGE, strict=True))], "prefix": 16}
        if self.pool_type is IN_CLUSTER_POOL:
            spec = {"addresses": ["-".join(RANGE)], "prefix": 16}
        return {**head, "metadata": metadata, "spec": spec}


async def _measured(kubeconfig: str, namespace: str, case: Case, spent: Spent) -> Sample:
    assert case.count is not None
    async with _user(kubeconfig, namespace, case) as maker:
        began = await BEGINNINGS.get(case.work, claims_then_pool)(maker, case, spent)
        await maker.until_served(len(maker.created))
        operator_s, servers_s = spent.seconds()
        memory_mb = spent.memory_mb()
        await maker.until_named(len(maker.created))
        whole_s = spent.seconds()
    names = list(maker.created)[-case.count :]
    seconds = max(maker.served[name] for name in names) - began
    waited = [maker.served[name] - max(maker.created[name], began) for name in names]
    cuts = statistics.quantiles(waited, n=100)
    result = Result(case.count, seconds, operator_s, cuts[49] * 1e3, cuts[98] * 1e3, memory_mb)
    named_s = max(maker.named[name] for name in names) - began
    sustained = Sustained(case.count / named_s, *(each_s / case.count * 1e6 for each_s in whole_s))
    return replace(summed([result], servers_s), sustained=sustained if maker.is_named else None)


async def _swept(kubeconfig: str, namespace: str, case: Case, steps: Sequence[int]) -> list[SweepPoint]:
    assert case.count is not None
    points = []
    async with _user(kubeconfig, namespace, case) as maker:
        await maker.make_pool()
        await maker.until_seen()
        for step in steps:
            await _fill(maker, step, case.callers)
            await asyncio.sleep(SETTLED_S)
            held, began = len(maker.created), time.perf_counter()
            names = await maker.make(case.count, case.callers)
            await maker.until_served(len(maker.created))
            points.append(SweepPoint(held, case.count / (max(maker.served[name] for name in names) - began)))
            await maker.until_named(len(maker.created))
    return points


@contextlib.asynccontextmanager
async def _user(kubeconfig: str, namespace: str, case: Case) -> AsyncIterator[ClaimMaker]:
    kind = CLUSTER_API if case.work in (CLAIMS_CLUSTER_API, CLAIMS_IN_CLUSTER) else METAL3
    pool_type = IN_CLUSTER_POOL if case.work == CLAIMS_IN_CLUSTER else IP_POOL
    async with ApiClient(from_kubeconfig(kubeconfig), agent="bench", in_flight=case.callers) as client:
        maker = ClaimMaker(client, namespace, kind, pool_type, is_named=case.work not in PEERS)
        claims = Informer(client, kind.claim, namespace=namespace)
        claims.on_change(maker.look)
        following = asyncio.create_task(claims.run())
        await claims.synced.wait()
        try:
            yield maker
        finally:
            following.cancel()


async def claims_then_pool(maker: ClaimMaker, case: Case, spent: Spent) -> float:
    """Let claims be there and then their pool, so that the time is the operator's alone; return when it begins."""
    assert case.count is not None
    await _create_while_webhooks_start(maker)
    await maker.make(case.count, case.callers)
    await asyncio.sleep(SETTLED_S)
    spent.begin()
    began = time.perf_counter()
    await maker.make_pool()
    return began


async def pool_then_claims(maker: ClaimMaker, case: Case, spent: Spent) -> float:
    """Create all claims at once for a pool that is there; the time has the creation in it."""
    assert case.count is not None
    await maker.make_pool()
    await maker.until_seen()
    spent.begin()
    began = time.perf_counter()
    await maker.make(case.count, case.callers)
    return began


async def held_then_claims(maker: ClaimMaker, case: Case, spent: Spent) -> float:
    """Fill the pool first; the claims come while it is paused, so that the time is the operator's alone."""
    assert case.count is not None
    await maker.make_pool()
    await maker.until_seen()
    await _fill(maker, min(WARMED_UP, case.held), case.callers)
    if case.held:
        spent.note_memory()
    await _fill(maker, case.held, case.callers)
    await maker.pause("")
    await asyncio.sleep(SETTLED_S)
    await maker.make(case.count, case.callers)
    await asyncio.sleep(SETTLED_S)
    spent.begin()
    began = time.perf_counter()
    await maker.pause(None)
    return began


async def _fill(maker: ClaimMaker, held: int, callers: int) -> None:
    while len(maker.created) < held:
        await maker.make(min(FILLED_AT_ONCE, held - len(maker.created)), callers)
        await maker.until_served(len(maker.created))
    await maker.until_named(len(maker.created))


async def _create_while_webhooks_start(maker: ClaimMaker) -> None:
    """Wait until a claim can be created: the API server asks webhooks some moments after their CA is written."""
    async with asyncio.timeout(LONGEST_S):
        while True:
            try:
                await maker.client.create(maker.kind.claim, maker.claim(PROBE))
                break
            except ApiError as error:
                if error.status not in (500, 503):
                    raise
                await asyncio.sleep(0.1)


Beginning = Callable[[ClaimMaker, Case, Spent], Awaitable[float]]
BEGINNINGS: dict[str, Beginning] = {
    CLAIMS_HELD: held_then_claims,
    CLAIMS_AT_ONCE: pool_then_claims,
    CLAIMS_CLUSTER_API: pool_then_claims,
    CLAIMS_IN_CLUSTER: pool_then_claims,
}
"""How the claims of a piece of work come; the others are there before their pool."""
