"""Claims of both kinds under fire: replicas killed, frozen and woken, the API server restarted; then all is judged."""

import asyncio
import random
import secrets
import signal
import subprocess
import urllib.error
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from tenure.integrations.kubernetes.metal3.objects.claim_kinds import KINDS_OF_IP_POOLS
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL
from tenure.integrations.kubernetes.runtime.resource_types import LEASE
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import IPAM, install_cluster_api
from tests.integrations.kubernetes.metal3.claim_chronicle import POOL, ClaimChronicle
from tests.integrations.kubernetes.metal3.ipam_user import user_of
from tests.integrations.kubernetes.metal3.operator_replica import TIMES, start_replica
from tests.integrations.kubernetes.metal3.webhook_service import webhook_service
from tests.proof.plan import Plan

CLAIMS = 500
MAKERS = 12
"""Users that create and delete claims at the same time."""
LIVES_S = 0.4
FIRST = "10.0.0.1"
LAST = str(IPv4Address(FIRST) + CLAIMS * 3 // 5 - 1)
"""Fewer addresses than the claims that are made, more than those that stay."""
PLAN = Plan([(POOL, "10.0.0.0/23", f"{FIRST}-{LAST}", "any", "lowest")])
SETTLES_S = 60.0


@dataclass
class Replicas:
    """Two replicas of an operator that fight for one Lease; each that was ever started has a name of its own."""

    server: KubeServer
    namespace: str
    lease: str
    chance: random.Random
    webhooks: bool = False
    living: "dict[str, subprocess.Popen[bytes]]" = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    """Where the webhooks of each replica are."""
    frozen: set[str] = field(default_factory=set)
    started: int = 0

    def fill(self) -> None:
        """Start replicas until there are two."""
        while len(self.living) < 2:
            self.started += 1
            name = f"r{self.started}"
            self.ports[name] = free_port() if self.webhooks else 0
            self.living[name] = start_replica(self.server, self.namespace, self.lease, name, self.ports[name])

    def ready(self) -> list[int]:
        """Return the ports of the replicas that live and are not frozen: of the others the probes get no answer."""
        return [self.ports[name] for name in self.living if name not in self.frozen]

    async def leader(self) -> str:
        """Wait until a living replica leads, and return which."""
        async with asyncio.timeout(SETTLES_S):
            while (name := await asyncio.to_thread(self._holder)) not in self.living:  # noqa: ASYNC110 - a server
                await asyncio.sleep(0.05)
        return name

    def _holder(self) -> str:
        try:
            lease = self.server.ask("GET", LEASE.path("tenure-system", self.lease))
        except (urllib.error.URLError, OSError):
            return ""
        return str(lease["spec"].get("holderIdentity"))

    async def kill_leader(self) -> None:
        """Kill the replica that leads, and start another."""
        process = self.living.pop(await self.leader())
        process.kill()
        process.wait(10)
        self.fill()

    async def freeze_leader(self) -> None:
        """Freeze the replica that leads until the other one does, and wake it."""
        name = await self.leader()
        process = self.living[name]
        process.send_signal(signal.SIGSTOP)
        self.frozen.add(name)
        try:
            async with asyncio.timeout(SETTLES_S):
                while await asyncio.to_thread(self._holder) in (name, ""):  # noqa: ASYNC110 - a server is polled
                    await asyncio.sleep(0.05)
            await asyncio.sleep(self.chance.uniform(0, TIMES.lasts_s))
        finally:
            process.send_signal(signal.SIGCONT)
            self.frozen.discard(name)

    async def restart_api_server(self) -> None:
        """Kill the API server, and start it again."""
        self.server.kill("kube-apiserver")
        await asyncio.sleep(self.chance.random())
        await asyncio.to_thread(self.server.start_api_server)


@contextmanager
def replicas(server: KubeServer, namespace: str, chance: random.Random, *, webhooks: bool) -> Iterator[Replicas]:
    """Give two replicas; all that were started are killed at the end."""
    found = Replicas(server, namespace, f"fire-{secrets.token_hex(5)}", chance, webhooks)
    found.fill()
    try:
        yield found
    finally:
        for process in found.living.values():
            process.kill()
            process.wait(10)


async def play_fire(server: KubeServer, seed: int, claims: int = CLAIMS, *, webhooks: bool = False) -> Counter[str]:
    """Create and delete claims while everything fails once, in an order of the seed; return what was found."""
    chance = random.Random(seed)
    figures = Counter(claims=claims)
    with fresh_namespace(server) as namespace:
        async with user_of(server, namespace) as user, AsyncExitStack() as stack:
            await user.pool(POOL, FIRST, LAST)
            chronicle = ClaimChronicle(user, PLAN)
            stage = stack.enter_context(replicas(server, namespace, chance, webhooks=webhooks))
            if webhooks:
                service = await stack.enter_async_context(webhook_service(server, namespace, stage.ready, chance))
            async with chronicle.watching():
                users = asyncio.create_task(_make_claims(chronicle, chance, claims, finalizers=not webhooks))
                await _fail_all(stage, chance)
                await users
                found = await user.until_settled(within_s=SETTLES_S)
                await chronicle.until_seen(found.addresses, within_s=SETTLES_S)
                findings = chronicle.findings(found.addresses)
            await _remove_all(chronicle)
            figures.update(connections=service.passed_on if webhooks else 0)
    assert not findings, "\n".join(map(str, findings[:20]))
    figures.update(served=len(found.claims), replicas=stage.started, address_changes=chronicle.witness.seen)
    return figures


async def _fail_all(stage: Replicas, chance: random.Random) -> None:
    faults = [stage.kill_leader, stage.freeze_leader, stage.restart_api_server, stage.kill_leader]
    for fault in chance.sample(faults, len(faults)):
        await asyncio.sleep(chance.uniform(0.2, 1.0))
        await fault()


async def _make_claims(chronicle: ClaimChronicle, chance: random.Random, claims: int, *, finalizers: bool) -> None:
    """Create claims of both kinds, and delete half of them; ``finalizers``: every other one has its own at once."""
    numbers = iter(range(claims))
    kinds = list(KINDS_OF_IP_POOLS.values())

    async def make() -> None:
        for number in numbers:
            is_kept = finalizers and chance.random() < 0.5
            life = await chronicle.create(chance.choice(kinds), f"c{number}", is_kept=is_kept)
            await asyncio.sleep(chance.uniform(0, LIVES_S))
            if number % 2:
                await chronicle.delete(life)

    await asyncio.gather(*(make() for _ in range(MAKERS)))


async def _remove_all(chronicle: ClaimChronicle) -> None:
    """Delete everything, and wait until nothing is left."""
    user = chronicle.user
    await user.delete_all(*(kind.claim for kind in KINDS_OF_IP_POOLS.values()), IP_POOL)
    await user.until_gone(within_s=SETTLES_S)


async def fire_rounds(seed: int, rounds: int) -> Counter[str]:
    """Play rounds on one server, with and without webhooks in turn, and print a line of each."""
    total: Counter[str] = Counter()
    with private_kube() as server:
        install(server)
        install_cluster_api(server, *IPAM)
        for number in range(1, rounds + 1):
            figures = await play_fire(server, seed + number, webhooks=not number % 2)
            print(f"  fire {number}/{rounds} (seed {seed + number}): {dict(figures)}", flush=True)
            total.update(figures)
    return total
