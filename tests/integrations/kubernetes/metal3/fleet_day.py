"""A day of a fleet, compressed: machines roll, pools grow, clusters and namespaces come and go; nothing is left over.

Each cluster has a Cluster object, a pool that names it, and machines with a claim each, of either kind. Machines that
have their address are rolled: a claim is deleted, and one of another name is made in its place; once while the cluster
is paused, as for an upgrade. A pool that is too small grows; pools that nobody uses come and go. A cluster that goes
takes everything with it, and at times its namespace, which comes again under the same name.

The operator has two replicas. The memory of both is looked at after each tenth of the day: one leads, the other only
follows. A replica that begins to lead has more to remember, so each of its terms is judged by itself.
"""

import asyncio
import contextlib
import itertools
import random
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import psutil

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import KINDS_OF_IP_POOLS, METAL3, kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLUSTER, CLUSTER_NAME, IP_POOL
from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, ResourceType
from tests.infrastructure.kube import KubeServer, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import CLUSTERS, IPAM, install_cluster_api
from tests.integrations.kubernetes.metal3.claim_specs import claim_spec
from tests.integrations.kubernetes.metal3.ipam_user import IpamUser, user_of, witness
from tests.integrations.kubernetes.metal3.operator_replica import replica
from tests.integrations.kubernetes.metal3.serving import until

SETTLES_S = 120.0
WARM = 2
"""So many tenths of the day a replica may grow after it has begun to lead or to follow; then its memory is flat."""
GROWTH_MB = 10.0
REPLICAS = ("one", "two")
NAMESPACES = "/api/v1/namespaces"
PROVIDER = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Any", "name": "any"}


@dataclass(frozen=True)
class FleetScale:
    """How large a fleet is."""

    lanes: int = 12
    """Clusters that live at the same time, each in a namespace of its own."""
    machines: int = 40
    rolled: int = 8
    """Machines of a cluster that are rolled at the same time; by as many its pool is too small at first."""
    rounds: int = 3
    """How often all machines of a cluster are rolled before the cluster goes."""
    passing: int = 6
    """Pools of a cluster that come and go without a claim."""

    @property
    def lives_a_cluster(self) -> int:
        """Return how many claims a cluster has in all."""
        return self.machines * (1 + self.rounds) + self.rolled


@dataclass
class Day:
    """What all lanes do together."""

    scale: FleetScale
    chance: random.Random
    wanted: int
    clusters: ResourceType
    """The kind of clusters, in the version that the server has."""
    numbers: Iterator[int] = field(default_factory=itertools.count)
    begun: int = 0
    ended: int = 0
    done: Counter[str] = field(default_factory=Counter)


@dataclass
class Lane:
    """One cluster after the other, in one namespace."""

    day: Day
    server: KubeServer
    user: IpamUser
    served: dict[str, asyncio.Event] = field(default_factory=dict)
    """Set as soon as the claim of a name has its address."""

    def claim_changed(self, delta: Delta) -> None:
        """Note a claim that has its address."""
        if delta.after is not None and kind_of(delta.after).given(delta.after) and delta.key[1] in self.served:
            self.served[delta.key[1]].set()

    async def live(self) -> None:
        """Let clusters come and go until the day is over."""
        day, lives = self.day, self.day.scale.lives_a_cluster
        for number in itertools.count():
            if day.begun >= day.wanted:
                return
            day.begun += lives
            await self._cluster(f"k{next(day.numbers)}", with_namespace=number % 2 == 0)
            day.ended += lives

    async def _cluster(self, name: str, *, with_namespace: bool) -> None:
        """Let a cluster come, grow out of its pool, roll its machines, and go, with its namespace or without."""
        scale = self.day.scale
        await asyncio.to_thread(self._create_namespace)
        await self._pool(name)  # it waits for its cluster
        machines = [await self._machine(name) for _ in range(scale.machines)]
        await self.user.create(self.day.clusters, name, {"infrastructureRef": PROVIDER})
        await self._grow(name)
        for number in range(scale.rounds):
            for start in range(0, scale.machines, scale.rolled):
                part = range(start, min(start + scale.rolled, scale.machines))
                await asyncio.gather(*(self._roll(name, machines, at) for at in part))
            if number == 0:
                await self._passing_pools(name)
        await self._roll_while_paused(name, machines)
        for _, machine in machines:
            await self._until_served(machine)
            del self.served[machine]
        await (self._remove_namespace() if with_namespace else self._remove(name, machines))

    async def _pool(self, name: str) -> None:
        spec = {"namePrefix": name, "clusterName": name, "pools": self._entries(self.day.scale.rolled)}
        await self.user.create(IP_POOL, name, spec)

    async def _grow(self, name: str) -> None:
        await self._patch(IP_POOL, name, {"spec": {"pools": self._entries(-2 * self.day.scale.rolled)}})

    def _entries(self, fewer: int) -> list[dict[str, str]]:
        """Return the range of a pool that has so many addresses fewer than there are machines."""
        return [{"start": "10.0.0.1", "end": f"10.0.0.{self.day.scale.machines - fewer}"}]

    async def _passing_pools(self, cluster: str) -> None:
        """Let pools come and go of which nothing is claimed."""
        for number in range(self.day.scale.passing):
            await self.user.pool(f"{cluster}-{number}", "10.1.0.1", "10.1.0.9")
        for number in range(self.day.scale.passing):
            await self.user.delete(IP_POOL, f"{cluster}-{number}")
        self.day.done["passing_pools"] += self.day.scale.passing

    async def _machine(self, cluster: str) -> tuple[ClaimKind, str]:
        kind, name = self.day.chance.choice(list(KINDS_OF_IP_POOLS.values())), f"m{next(self.day.numbers)}"
        self.served[name] = asyncio.Event()
        metadata: dict[str, Any] = {"finalizers": [kind.claim_finalizer], "labels": {CLUSTER_NAME: cluster}}
        of = {} if kind is METAL3 else {"clusterName": cluster}
        await self.user.create(kind.claim, name, {**claim_spec(kind, cluster), **of}, **metadata)
        return kind, name

    async def _roll(self, cluster: str, machines: list[tuple[ClaimKind, str]], at: int) -> None:
        """Replace a machine: some new ones come before the old one goes, some after."""
        kind, old = machines[at]
        await self._until_served(old)
        del self.served[old]
        if self.day.chance.random() < 0.5:
            machines[at] = await self._machine(cluster)
            await self.user.delete(kind.claim, old)
        else:
            await self.user.delete(kind.claim, old)
            machines[at] = await self._machine(cluster)

    async def _roll_while_paused(self, cluster: str, machines: list[tuple[ClaimKind, str]]) -> None:
        """Replace machines of a paused cluster; the old ones go, and the new ones are served, when it goes on."""
        part = range(self.day.scale.rolled)
        for at in part:
            await self._until_served(machines[at][1])
        await self._patch(self.day.clusters, cluster, {"spec": {"paused": True}})
        await asyncio.gather(*(self._roll(cluster, machines, at) for at in part))
        await self._patch(self.day.clusters, cluster, {"spec": {"paused": False}})
        self.day.done["pauses"] += 1

    async def _until_served(self, machine: str) -> None:
        async with asyncio.timeout(SETTLES_S):
            await self.served[machine].wait()

    async def _remove(self, name: str, machines: list[tuple[ClaimKind, str]]) -> None:
        """Delete a cluster piece by piece."""
        await self.user.delete(IP_POOL, name)  # it waits for its claims
        for kind, machine in machines:
            await self.user.delete(kind.claim, machine)
        await self.user.delete(self.day.clusters, name)

    async def _remove_namespace(self) -> None:
        """Delete the namespace, and do in it what Kubernetes' controller of namespaces does: delete all, and let go."""
        await asyncio.to_thread(self.server.ask, "DELETE", f"{NAMESPACES}/{self.user.namespace}")
        kinds = [*(type for kind in KINDS_OF_IP_POOLS.values() for type in (kind.address, kind.claim)), IP_POOL]
        await self.user.delete_all(*kinds, self.day.clusters)
        await self.user.until_gone(within_s=SETTLES_S)
        await asyncio.to_thread(self._let_namespace_go)
        self.day.done["namespaces"] += 1

    def _create_namespace(self) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.user.namespace}}
        with contextlib.suppress(urllib.error.HTTPError):  # it is there, since its last cluster went without it
            self.server.ask("POST", NAMESPACES, body)
        until(self._takes_objects, within_s=SETTLES_S)

    def _takes_objects(self) -> bool:
        """Return whether the namespace takes objects: a busy server refuses them by what it knew of the last one."""
        try:
            path = f"{NAMESPACES}/{self.user.namespace}/configmaps?dryRun=All"
            self.server.ask("POST", path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}})
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.FORBIDDEN:
                raise
            return False
        return True

    def _let_namespace_go(self) -> None:
        path = f"{NAMESPACES}/{self.user.namespace}"
        found = self.server.ask("GET", path)
        self.server.ask("PUT", f"{path}/finalize", {**found, "spec": {"finalizers": []}})

    async def _patch(self, kind: ResourceType, name: str, body: Mapping[str, Any]) -> None:
        object = {"metadata": {"namespace": self.user.namespace, "name": name}}
        await self.user.client.patch(kind, object, body, content_type=MERGE_PATCH)


async def fleet_day(server: KubeServer, day: Day, name: str, *, in_whole_cluster: bool = False) -> Counter[str]:
    """Live a day of so many claims; what is left over, doubled or grown at its end is an error."""
    namespaces = [f"{name}-{lane}" for lane in range(day.scale.lanes)]
    watched = "" if in_whole_cluster else ",".join(namespaces)
    seen = []
    async with contextlib.AsyncExitStack() as stack:
        running = {each: stack.enter_context(replica(server, watched, name, each)) for each in REPLICAS}
        lanes = []
        for namespace in namespaces:
            lane = Lane(day, server, await stack.enter_async_context(user_of(server, namespace)))
            seen.append(await stack.enter_async_context(witness(lane.user, lane.claim_changed)))
            lanes.append(lane)
        processes = {each: psutil.Process(running[each].pid) for each in REPLICAS}
        measuring = asyncio.create_task(_measure(day, processes, lambda: _leader(server, name)))
        await asyncio.gather(*(lane.live() for lane in lanes))
        left_s = max([await lane.user.until_gone(within_s=SETTLES_S) for lane in lanes])
        memory = await measuring
    figures = Counter(lives=day.ended, address_changes=sum(each.seen for each in seen), settled_s=round(left_s))
    return figures + day.done + memory_figures(memory)


def _leader(server: KubeServer, name: str) -> str:
    return str(server.ask("GET", LEASE.path("tenure-system", name))["spec"]["holderIdentity"])


@dataclass(frozen=True)
class MemoryNote:
    """The memory of a replica at a moment, and what it does then."""

    megabytes: float
    role: str


def memory_figures(memory: Mapping[str, Sequence[MemoryNote]]) -> Counter[str]:
    """Return how much memory leaders and followers have, and by how much each grew; too much is an error."""
    figures: Counter[str] = Counter()
    for name, noted in memory.items():
        for role, term in itertools.groupby(noted, key=lambda note: note.role):
            told = [note.megabytes for note in term]
            flat = told[WARM:]
            growth = (flat[-1] - flat[0]) if len(flat) > 1 else 0.0
            assert growth <= GROWTH_MB, f"the {role} {name} grew by {growth:.1f} MB: {told}"
            figures[f"{role}_mb"] = max(figures[f"{role}_mb"], round(max(told)))
            figures[f"{role}_grown_mb"] = max(figures[f"{role}_grown_mb"], round(growth))
            figures[f"{role}_terms"] += 1
    return figures


async def _measure(
    day: Day, processes: Mapping[str, psutil.Process], find_leader: Callable[[], str]
) -> dict[str, list[MemoryNote]]:
    """Return the memory of the replicas after each tenth of the day."""
    memory: dict[str, list[MemoryNote]] = {name: [] for name in processes}
    for tenth in range(1, 11):
        while day.ended < day.wanted * tenth / 10:  # noqa: ASYNC110 - others work
            await asyncio.sleep(0.1)
        leader = await asyncio.to_thread(find_leader)
        for name, process in processes.items():
            role = "leader" if name == leader else "follower"
            memory[name].append(MemoryNote(process.memory_info().rss / 2**20, role))
        told = ", ".join(f"{noted[-1].role} {noted[-1].megabytes:.0f} MB" for noted in memory.values())
        print(f"    {tenth}/10 of the day: {day.ended:,} claims, {told}", flush=True)
    return memory


async def live_day(seed: int, lives: int) -> Counter[str]:
    """Live a day on a server of its own."""
    with private_kube() as server:
        install(server)
        install_cluster_api(server, CLUSTERS, *IPAM)
        day = Day(FleetScale(), random.Random(seed), lives, CLUSTER)
        return await fleet_day(server, day, "day", in_whole_cluster=True)
