"""Storms of claims: many that live for a moment, and many that come and go."""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Iterable
from itertools import count

from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import METAL3
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.runtime.api_errors import ObjectExists
from tenure.integrations.kubernetes.runtime.resource_types import key_of
from tests.infrastructure.kube import KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.metal3.ipam_user import QUIET_S, IpamUser, user_of, witness
from tests.integrations.kubernetes.metal3.serving import operator_in

IN_FLIGHT = 12
"""Claims that live at the same time, at most."""
LIVES_S = 0.05
"""A short life: between creation and deletion."""
BYSTANDER = "bystander"


async def short_lives(user: IpamUser, controller: IpamController, rounds: int, seed: int) -> Counter[str]:
    """Create claims and delete each within 50 ms; return what was done. Whatever is left, lost or doubled is an error.

    A claim beside them keeps its address. The pool is smaller than the crowd, so some wait. Every other maker of
    claims uses one name again and again.
    """
    chance = random.Random(seed)
    await user.pool("p", "10.0.0.1", "10.0.0.8")
    await user.claim(BYSTANDER, "p")
    (before,) = (await user.until_settled(controller)).addresses
    numbers = iter(range(rounds))
    async with witness(user) as seen:
        await asyncio.gather(*(_make_claims(user, chance, numbers, maker) for maker in range(IN_FLIGHT)))
        ended = time.monotonic()
        found = await user.until_settled(controller)
        settled_s = time.monotonic() - ended - QUIET_S
    assert [key_of(each)[1] for each in found.claims] == [BYSTANDER]
    assert [each["metadata"]["uid"] for each in found.addresses] == [before["metadata"]["uid"]]
    await user.delete_all(IP_CLAIM, IP_POOL)
    await user.until_gone(controller)
    return Counter(rounds=rounds, address_changes=seen.seen, settled_ms=round(1000 * settled_s))


async def _make_claims(user: IpamUser, chance: random.Random, numbers: Iterable[int], maker: int) -> None:
    for number in numbers:
        name = f"again-{maker}" if maker % 2 else f"once-{number}"
        while True:
            with contextlib.suppress(ObjectExists):  # the former claim of this name is still going
                await user.claim(name, "p")
                break
            await asyncio.sleep(0.01)
        await asyncio.sleep(chance.uniform(0, LIVES_S))
        await user.delete(IP_CLAIM, name)


async def come_and_go(user: IpamUser, claims: int, seed: int, kind: ClaimKind = METAL3) -> None:
    """Create claims at random times, and delete half of them at others."""
    chance, numbers = random.Random(seed), count()
    living: list[str] = []

    async def live() -> None:
        while (number := next(numbers)) < claims:
            await user.claim_of(kind, f"c{number}", "p")
            living.append(f"c{number}")
            await asyncio.sleep(chance.uniform(0, 0.1))
            if number % 2:
                await user.delete(kind.claim, living.pop(chance.randrange(len(living))))

    await asyncio.gather(*(live() for _ in range(IN_FLIGHT)))


async def storm(server: KubeServer, rounds: int, seed: int, *, webhooks: bool) -> Counter[str]:
    """Run short lives in a namespace of their own; with webhooks every claim has its finalizer from the beginning."""
    with fresh_namespace(server) as namespace:
        async with user_of(server, namespace) as user:
            with contextlib.ExitStack() as stack:
                operator = operator_in(server, namespace, webhooks=webhooks)
                controller = await asyncio.to_thread(stack.enter_context, operator)
                try:
                    return await short_lives(user, controller, rounds, seed)
                finally:
                    await asyncio.to_thread(stack.close)


async def storms(seed: int, rounds: int) -> Counter[str]:
    """Run storms of fifty short lives each, with and without webhooks in turn, and print a line of each."""
    total: Counter[str] = Counter()
    with private_kube() as server:
        install(server)
        for number in range(1, rounds + 1):
            figures = await storm(server, 50, seed + number, webhooks=bool(number % 2))
            print(f"  storm {number}/{rounds} (seed {seed + number}): {dict(figures)}", flush=True)
            slowest = max(total["settled_ms"], figures["settled_ms"])
            total.update(figures)
            total["settled_ms"] = slowest
    return total
