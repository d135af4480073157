"""A pool of which 20,000 addresses are held, on a real server: every pick is right, also those of the next leader.

Three of four addresses were made by hand, so that each pick must find a gap; claims of both kinds take the others, more
of them than ``status.indexes`` has room for.
"""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Awaitable, Iterable

import pytest

from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_id_of
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import KINDS_OF_IP_POOLS, id_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    IP_POOL,
    STORED_INDEXES,
    WHOLE_AGAIN,
    mapping,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.reservations import reserved_in
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, Object, key_of, uid_of
from tests.infrastructure.kube import KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import IPAM, install_cluster_api
from tests.integrations.kubernetes.metal3.ipam_user import Found, IpamUser, user_of
from tests.integrations.kubernetes.metal3.operator_replica import replica

pytestmark = [pytest.mark.proof, pytest.mark.one_worker("private-kube")]

HELD = 20_000
CLAIMS = STORED_INDEXES + 200
MORE = 100
"""Claims that come when the leader is killed."""
REPLICAS = ("one", "two")
KINDS = list(KINDS_OF_IP_POOLS.values())
FIRST = int(ipaddress.ip_address("10.0.0.1"))
AT_ONCE = 64
WITHIN_S = 900.0


def address(number: int) -> str:
    return str(ipaddress.ip_address(FIRST + number))


def is_by_hand(number: int) -> bool:
    return number < HELD and number % 4 != 0


async def all_done(work: Iterable[Awaitable[object]]) -> None:
    """Do things, so many at once."""
    left = iter(work)

    async def some() -> None:
        for each in left:
            await each

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


async def used(user: IpamUser, count: int) -> Object:
    """Wait until the pool's status counts so many addresses, and nothing is reserved or waits; return the pool."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            pool = await user.client.get(IP_POOL.path(user.namespace, "p"))
            counts = mapping(pool, "status", "tenure", "addresses")
            if (counts.get("used"), counts.get("waiting")) == (count, 0) and not reserved_in(pool):
                return pool
            await asyncio.sleep(1.0)


def given(found: Found) -> dict[str, tuple[str, str]]:
    """Return what each claim has: the text of the address, and the uid of its object. None is there twice."""
    texts = Counter(text(each, "spec", "address") for each in found.addresses)
    assert [each for each, count in texts.items() if count > 1] == []
    addresses = {claim_id_of(each): each for each in found.addresses}
    return {
        key_of(claim)[1]: (text(addresses[id_of(claim)], "spec", "address"), uid_of(addresses[id_of(claim)]))
        for claim in found.claims
    }


async def test_kd4_kp5_picks_are_right_and_indexes_come_back_with_20_000_held_and_a_killed_leader() -> None:
    with private_kube() as server:
        install(server)
        install_cluster_api(server, *IPAM)
        with fresh_namespace(server) as namespace:
            async with user_of(server, namespace) as user:
                await fill_and_take_over(server, user)


async def fill_and_take_over(server: KubeServer, user: IpamUser) -> None:
    await user.pool("p", "10.0.0.1", "10.0.255.254")
    by_hand = [number for number in range(HELD) if is_by_hand(number)]
    await all_done(user.address(f"hand-{each}", address(each), f"nobody-{each}", "p") for each in by_hand)
    free = (number for number in range(2**16 - 2) if not is_by_hand(number))
    lease = f"large-{user.namespace}"
    with (
        replica(server, user.namespace, lease, "one") as one,
        replica(server, user.namespace, lease, "two") as two,
    ):
        await all_done(user.claim_of(KINDS[each % 2], f"c{each}", "p") for each in range(CLAIMS))
        pool = await used(user, len(by_hand) + CLAIMS)
        before = given(await user.find())
        assert sorted(each for each, _ in before.values()) == sorted(address(next(free)) for _ in range(CLAIMS))
        assert bool(mapping(pool, "status", "indexes")) is (CLAIMS <= STORED_INDEXES)

        holder = server.ask("GET", LEASE.path("tenure-system", lease))["spec"]["holderIdentity"]
        dict(zip(REPLICAS, (one, two), strict=True))[holder].kill()
        await all_done(user.claim_of(KINDS[each % 2], f"more{each}", "p") for each in range(MORE))
        await used(user, len(by_hand) + CLAIMS + MORE)
        after = given(await user.find())
        assert {name: after[name] for name in before} == before, "no claim lost what it had"
        more = [after[f"more{each}"][0] for each in range(MORE)]
        assert sorted(more) == sorted(address(next(free)) for _ in range(MORE))

        going = range(min(WHOLE_AGAIN, CLAIMS // 2), CLAIMS)
        await all_done(user.delete(KINDS[each % 2].claim, f"c{each}") for each in going)
        pool = await used(user, len(by_hand) + CLAIMS + MORE - len(going))
        left = given(await user.find())
        assert left == {name: what for name, what in after.items() if name[0] != "c" or int(name[1:]) not in going}
        await all_done(user.delete(KINDS[each % 2].claim, f"more{each}") for each in range(MORE))
        pool = await used(user, len(by_hand) + CLAIMS - len(going))
        truth = {name: what[0] for name, what in left.items() if not name.startswith("more")}
        assert mapping(pool, "status", "indexes") == truth, "whole again"
