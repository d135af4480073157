"""Many claims: what waits costs nothing, what is read before the first pick, and a lease that no burst loses."""

import asyncio
from collections import Counter
from collections.abc import Mapping

from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLAIM_KINDS, METAL3
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import Loader
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, Object, ResourceType, key_of, version_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.ipam_user import IpamUser, user_of
from tests.integrations.kubernetes.metal3.operator_replica import TIMES
from tests.integrations.kubernetes.metal3.serving import Namespace, OperatorThread, operator_in, settings_for
from tests.scale import runs

WAITING = runs(200, 1000, 1000)
BURST = runs(300, 1000, 1000)
POOLS = runs(60, 500, 500)
WITHIN_S = 60.0


async def until_served(user: IpamUser, count: int) -> None:
    """Wait until so many claims have their addresses."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            claims = await user.all_of(METAL3.claim)
            if sum(bool(METAL3.given(each)) for each in claims) >= count:
                return
            await asyncio.sleep(0.2)


async def test_kp12_claims_that_wait_cost_no_writes(kube: KubeServer) -> None:
    """Of both kinds: each gets its message once; then nothing is written, until there is space."""
    with fresh_namespace(kube) as namespace, operator_in(kube, namespace):
        async with user_of(kube, namespace) as user:
            await user.pool("p", "10.0.0.1", "10.0.0.1")
            await user.claim("first", "p")
            await until_served(user, 1)
            kinds = list(CLAIM_KINDS.values())
            await asyncio.gather(
                *(user.claim_of(kinds[number % 2], f"w{number}", "p") for number in range(WAITING)),
            )
            before = await _when_quiet(user)
            await asyncio.sleep(2)
            assert await _versions(user) == before
            await user.delete(METAL3.claim, "first")
            async with asyncio.timeout(WITHIN_S):
                while not await _is_served(user, "w0"):  # noqa: ASYNC110 - a server is asked
                    await asyncio.sleep(0.05)


async def _when_quiet(user: IpamUser) -> Mapping[tuple[str, str], int]:
    """Return the versions of everything as soon as they stay the same for a while."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            before = await _versions(user)
            await asyncio.sleep(1)
            if await _versions(user) == before:
                return before


async def _versions(user: IpamUser) -> Mapping[tuple[str, str], int]:
    found = await user.find()
    return {(each["kind"], key_of(each)[1]): version_of(each) for each in [*found.pools, *found.claims]}


async def _is_served(user: IpamUser, name: str) -> bool:
    claims = {key_of(each)[1]: each for each in await user.all_of(METAL3.claim)}
    return bool(METAL3.given(claims[name]))


class ReadingClient(ApiClient):
    """A client that notes which lists were read before the first address was created."""

    def __init__(self, load: Loader, meter: RuntimeMeter, lists: Counter[str]) -> None:
        super().__init__(load, meter=meter)
        self._lists = lists
        self._has_written = False

    async def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = "application/json") -> Object:
        """Read, and note a list that names no version: it is consistent."""
        if query and "limit" in query and not query.get("resourceVersion") and not self._has_written:
            self._lists[path.rsplit("/", 1)[1] + path.split("/")[2]] += 1
        return await super().get(path, query, accept)

    async def create(self, kind: ResourceType, object: Object) -> Object:
        """Create, and note that addresses are being given."""
        self._has_written = self._has_written or kind.plural == METAL3.address.plural
        return await super().create(kind, object)


def test_kp5_everything_is_read_again_between_the_lease_and_the_first_pick(kube: KubeServer) -> None:
    """A list for the caches, and one more, consistent, when it leads: pools, both kinds of claims and addresses."""
    with fresh_namespace(kube) as name:
        space = Namespace(kube, name)
        space.pool("p", "10.0.0.1-10.0.0.9")
        space.claim("c1")
        lists: Counter[str] = Counter()
        thread = OperatorThread(
            kube, settings_for(kube, name), make_client=lambda load, meter: ReadingClient(load, meter, lists)
        )
        thread.start()
        try:
            assert space.ip("c1") == "10.0.0.1"
        finally:
            thread.stop()
    kinds = [IP_POOL, *(type for kind in CLAIM_KINDS.values() for type in (kind.claim, kind.address))]
    assert {kind.full_name: lists[kind.plural + kind.group] for kind in kinds} == dict.fromkeys(
        (kind.full_name for kind in kinds), 2
    )


async def test_kp11_a_burst_of_claims_does_not_lose_the_lease(kube: KubeServer) -> None:
    """The lease has a session of its own; all claims are served by the one leader."""
    with fresh_namespace(kube) as namespace, operator_in(kube, namespace, lease_times=TIMES) as controller:
        async with user_of(kube, namespace) as user:
            await user.pool("p", "10.0.0.1", "10.0.15.254")
            await asyncio.gather(*(user.claim(f"c{number}", "p") for number in range(BURST)))
            await until_served(user, BURST)
            found = await user.until_settled(controller, within_s=WITHIN_S)
            lease = await user.client.get(LEASE.path("tenure-system", controller._lease._name))
            assert controller._lease.leads
            assert lease["spec"].get("leaseTransitions", 0) == 0, "it was lost, and taken again"

    assert len(found.addresses) == BURST


async def test_many_pools_are_served_side_by_side(kube: KubeServer) -> None:
    """Each with claims of both kinds."""
    with fresh_namespace(kube) as namespace, operator_in(kube, namespace) as controller:
        async with user_of(kube, namespace) as user:
            await asyncio.gather(*(user.pool(f"p{number}", "10.0.0.1", "10.0.0.4") for number in range(POOLS)))
            await asyncio.gather(
                *(
                    user.claim_of(kind, f"c{number}", f"p{number}")
                    for number in range(POOLS)
                    for kind in CLAIM_KINDS.values()
                )
            )
            found = await user.until_settled(controller, within_s=WITHIN_S)

    assert len(found.addresses) == 2 * POOLS
