"""Pools, claims and addresses as one reading of the server, for people who ask; nothing is followed or written."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_id_of, pool_of, position_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of
from tenure.integrations.kubernetes.metal3.objects.cooling_addresses import cooling_in
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    CLUSTER_API_VERSIONS,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    field,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import pool_id_of
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolReading, read_pool_spec
from tenure.integrations.kubernetes.metal3.objects.remembered_addresses import remembered_in
from tenure.integrations.kubernetes.metal3.pool_book import PoolBook, cooling_holder, holder_of
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.discovery import find_kind
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import NotFound


@dataclass(frozen=True)
class ReadPools:
    """What a namespace, or the whole cluster, had when it was read."""

    pools: dict[PoolId, Object]
    addresses: list[Object]
    claims: dict[ClaimId, Object]

    def pool(self, key: PoolId) -> Object:
        """Return a pool; raise ``NotFound`` if there is none."""
        if key not in self.pools:
            raise NotFound(key.kind, key.path, field="pool")
        return self.pools[key]

    def addresses_of(self, key: PoolId) -> list[Object]:
        """Return the readable address objects of a pool, of both kinds, in the order of their addresses."""
        found = [each for each in self.addresses if pool_of(each) == key and position_of(each) is not None]
        return sorted(found, key=lambda each: (position_of(each) or 0, key_of(each)))

    def claim_of(self, address: Object) -> Object | None:
        """Return the claim that an address is for, or nothing."""
        return self.claims.get(claim_id_of(address))

    def book_of(self, key: PoolId, also_drained: tuple[AddressRange, ...] = ()) -> PoolBook:
        """Return what is free in a pool, by its address objects and by what it says that cools off.

        ``also_drained``: as if nothing were picked from there either.
        """
        book = PoolBook()
        spec, faults = self.spec_of(key)
        book.lay(PoolReading(replace(spec, drained=(*spec.drained, *also_drained)), faults))
        for address in self.addresses_of(key):
            book.hold(holder_of(address), position_of(address))
        for position, cooling in cooling_in(self.pools[key]).items():
            book.hold(cooling_holder(position, cooling.claim), position)
        book.remember(remembered_in(self.pools[key]))
        return book

    def spec_of(self, key: PoolId) -> PoolReading:
        """Return what a pool says."""
        return read_pool_spec(field(self.pools[key], "spec"))


async def read_pools(client: ApiClient, namespace: str = "") -> ReadPools:
    """Read everything of a namespace; without one, of the cluster. Pools come last: they were there all the while."""
    addresses = await _listed(client, IP_ADDRESS, namespace)
    claims = await _listed(client, IP_CLAIM, namespace)
    for kind, known in ((CLUSTER_API_ADDRESS, addresses), (CLUSTER_API_CLAIM, claims)):
        served = await find_kind(client, kind.group, kind.plural, CLUSTER_API_VERSIONS)
        if served is not None:
            known.extend(await _listed(client, served, namespace))
    pools = await _listed(client, IP_POOL, namespace)
    return ReadPools({pool_id_of(pool): pool for pool in pools}, addresses, _by_id(claims))


def _by_id(claims: Iterable[Object]) -> dict[ClaimId, Object]:
    return {id_of(claim): claim for claim in claims}


async def _listed(client: ApiClient, kind: ResourceType, namespace: str) -> list[Object]:
    """List objects; a list does not say what each of them is, so that is added."""
    objects, _ = await Informer(client, replace(kind), namespace=namespace).list_all()
    return [{"apiVersion": kind.api_version, "kind": kind.kind, **each} for each in objects]
