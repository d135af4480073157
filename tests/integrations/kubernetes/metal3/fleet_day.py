"""A day of a fleet, compressed: machines roll, pools grow, clusters come and go; at its end nothing is left over.

Each cluster has a pool, and machines with a claim each, of either kind. Machines that have their address are rolled: a
claim is deleted, and one of another name is made in its place. A pool that is too small grows. A cluster that goes
takes everything with it. The operator is one process; its memory is looked at after each tenth of the day.
"""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import psutil

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLAIM_KINDS, kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL
from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tests.infrastructure.kube import KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import IPAM, install_cluster_api
from tests.integrations.kubernetes.metal3.ipam_user import IpamUser, user_of, witness
from tests.integrations.kubernetes.metal3.operator_replica import replica

CLUSTERS = 12
"""Clusters that live at the same time."""
MACHINES = 40
ROLLED = 8
"""Machines of a cluster that are rolled at the same time."""
ROUNDS = 3
"""How often all machines of a cluster are rolled before the cluster goes."""
SMALL, LARGE = 32, 250
"""How many addresses a pool has at first, which is too few, and after it has grown."""
LIVES_A_CLUSTER = MACHINES * (1 + ROUNDS)
SETTLES_S = 120.0
WARM = 2
"""So many tenths of the day the operator may grow; then its memory is flat."""
GROWTH_MB = 10.0


@dataclass
class Fleet:
    """All clusters of the day."""

    user: IpamUser
    chance: random.Random
    wanted: int
    lives: Iterator[int] = field(default_factory=itertools.count)
    begun: int = 0
    ended: int = 0
    served: dict[str, asyncio.Event] = field(default_factory=dict)
    """Set as soon as the claim of a name has its address."""

    def claim_changed(self, delta: Delta) -> None:
        """Note a claim that has its address."""
        if delta.after is not None and kind_of(delta.after).given(delta.after) and delta.key[1] in self.served:
            self.served[delta.key[1]].set()

    async def live(self) -> None:
        """Let clusters come and go, one after the other, until the day is over."""
        while self.begun < self.wanted:
            self.begun += LIVES_A_CLUSTER
            await self._cluster(f"k{next(self.lives)}")
            self.ended += LIVES_A_CLUSTER

    async def _cluster(self, name: str) -> None:
        """Let a cluster come, grow out of its pool, roll its machines, and go."""
        await self._pool(name)
        machines = [await self._machine(name) for _ in range(MACHINES)]
        await self._grow(name)
        for _ in range(ROUNDS):
            for start in range(0, MACHINES, ROLLED):
                await asyncio.gather(*(self._roll(name, machines, at) for at in range(start, start + ROLLED)))
        await self.user.delete(IP_POOL, name)  # it waits for its claims
        for kind, machine in machines:
            self.served.pop(machine)
            await self.user.delete(kind.claim, machine)

    async def _pool(self, name: str) -> None:
        entries = [{"start": "10.0.0.1", "end": f"10.0.0.{SMALL}"}]
        await self.user.create(IP_POOL, name, {"namePrefix": name, "pools": entries})

    async def _grow(self, name: str) -> None:
        entries = [{"start": "10.0.0.1", "end": f"10.0.0.{LARGE}"}]
        object = {"metadata": {"namespace": self.user.namespace, "name": name}}
        await self.user.client.patch(IP_POOL, object, {"spec": {"pools": entries}}, content_type=MERGE_PATCH)

    async def _machine(self, pool: str) -> tuple[ClaimKind, str]:
        kind, name = self.chance.choice(list(CLAIM_KINDS.values())), f"m{next(self.lives)}"
        self.served[name] = asyncio.Event()
        await self.user.claim_of(kind, name, pool, finalizers=[kind.claim_finalizer])
        return kind, name

    async def _roll(self, pool: str, machines: list[tuple[ClaimKind, str]], at: int) -> None:
        """Replace a machine: some new ones come before the old one goes, some after."""
        kind, old = machines[at]
        async with asyncio.timeout(SETTLES_S):
            await self.served[old].wait()
        del self.served[old]
        if self.chance.random() < 0.5:
            machines[at] = await self._machine(pool)
            await self.user.delete(kind.claim, old)
        else:
            await self.user.delete(kind.claim, old)
            machines[at] = await self._machine(pool)


async def fleet_day(server: KubeServer, seed: int, lives: int, clusters: int = CLUSTERS) -> Counter[str]:
    """Live a day of so many claims; what is left over, doubled or grown at its end is an error."""
    memory: list[float] = []
    with fresh_namespace(server) as namespace, replica(server, namespace, f"day-{namespace}", "one") as process:
        async with user_of(server, namespace) as user:
            fleet = Fleet(user, random.Random(seed), lives)
            async with witness(user, fleet.claim_changed) as seen:
                measuring = asyncio.create_task(_measure(fleet, psutil.Process(process.pid), memory))
                await asyncio.gather(*(fleet.live() for _ in range(clusters)))
                left_s = await user.until_gone(within_s=SETTLES_S)
                await measuring
    flat = memory[WARM:]
    growth = (flat[-1] - flat[0]) if len(flat) > 1 else 0.0
    assert growth <= GROWTH_MB, f"the operator grew by {growth:.1f} MB: {memory}"
    figures = Counter(lives=fleet.ended, address_changes=seen.seen, settled_s=round(left_s))
    figures.update(memory_mb=round(max(memory, default=0)), grown_mb=round(growth))
    return figures


async def _measure(fleet: Fleet, process: psutil.Process, memory: list[float]) -> None:
    """Note the operator's memory after each tenth of the day."""
    for tenth in range(1, 11):
        while fleet.ended < fleet.wanted * tenth / 10:  # noqa: ASYNC110 - others work
            await asyncio.sleep(0.1)
        memory.append(process.memory_info().rss / 2**20)
        print(f"    {tenth}/10 of the day: {fleet.ended:,} claims, {memory[-1]:.0f} MB", flush=True)


async def live_day(seed: int, lives: int) -> Counter[str]:
    """Live a day on a server of its own."""
    with private_kube() as server:
        install(server)
        install_cluster_api(server, *IPAM)
        return await fleet_day(server, seed, lives)
