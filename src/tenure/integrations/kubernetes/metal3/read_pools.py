"""Pools, claims and addresses as one reading of the server, for people who ask; nothing is followed or written."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from tenure.integrations.kubernetes.metal3.objects.address_objects import (
    claim_id_of,
    named_position,
    pool_of,
    position_of,
    range_of,
)
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
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId, PoolKind
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import METAL3_POOLS, POOL_KINDS, pool_id_of, read_pool
from tenure.integrations.kubernetes.metal3.objects.pool_spec import EVERYWHERE, PoolReading, PoolSpec
from tenure.integrations.kubernetes.metal3.objects.remembered_addresses import remembered_in
from tenure.integrations.kubernetes.metal3.pool_book import NAME, PoolBook, cooling_holder, holder_of
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError
from tenure.integrations.kubernetes.runtime.discovery import find_kind, is_served
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import Invalid, NotFound


@dataclass(frozen=True)
class ReadPools:
    """What a namespace, or the whole cluster, had when it was read."""

    pools: dict[PoolId, Object]
    addresses: list[Object]
    claims: dict[ClaimId, Object]
    unread: dict[str, str] = field(default_factory=dict)
    """Kinds of pools that may not be read, with the reason."""

    def pool(self, key: PoolId) -> Object:
        """Return a pool; raise ``NotFound`` if there is none."""
        if key not in self.pools:
            raise NotFound(key.kind, key.path, field="pool")
        return self.pools[key]

    def pool_named(self, name: str) -> PoolId:
        """Return the pool of a name; raise ``NotFound`` if there is none, ``Invalid`` if several kinds have one."""
        found = sorted(key for key in self.pools if key.name == name)
        if not found:
            kinds = " and ".join(f"{kind}s" for kind in self.unread)
            raise NotFound("pool", name, hint=f"{kinds} cannot be read with your rights" if kinds else "", field="pool")
        if len(found) > 1:
            names = ", ".join(f"{key.kind}/{key.name}" for key in found)
            raise Invalid(f"several pools have this name: name one of {names}", field="pool")
        return found[0]

    def addresses_of(self, key: PoolId) -> list[Object]:
        """Return the readable address objects of a pool, of both kinds, in the order of their addresses."""
        found = [each for each in self.addresses if pool_of(each) == key and position_of(each) is not None]
        return sorted(found, key=lambda each: (position_of(each) or 0, key_of(each)))

    def is_open_to(self, key: PoolId, namespace: str) -> bool:
        """Return whether a pool serves claims of a namespace: its own, those it names, or all."""
        return key.namespace in ("", namespace) or self.spec_of(key).spec.is_shared_with(namespace)

    def claim_of(self, address: Object) -> Object | None:
        """Return the claim that an address is for, or nothing."""
        return self.claims.get(claim_id_of(address))

    def names_taken(self, key: PoolId) -> dict[int, Object]:
        """Return the objects that have the names which addresses of a pool would get, by these addresses.

        They hold something else, so the operator gives no such address to anybody, for as long as they are there.
        """
        spec, found = self.spec_of(key).spec, dict[int, Object]()
        if POOL_KINDS[key.kind].named_by_claim:
            return found
        for each in self.addresses:
            namespace, name = key_of(each)
            position = named_position(spec.name_prefix, name) if self.is_open_to(key, namespace) else None
            is_its = pool_of(each) == key and position_of(each) == position
            if position is not None and not is_its and spec.entry_at(position) is not None:
                found[position] = each
        return found

    def book_of(self, key: PoolId, also_drained: tuple[AddressRange, ...] = ()) -> PoolBook:
        """Return what is free in a pool, by its address objects, by their names and by what it says that cools off.

        ``also_drained``: as if nothing were picked from there either.
        """
        book = PoolBook()
        spec, faults = self.spec_of(key)
        book.lay(PoolReading(replace(spec, drained=(*spec.drained, *also_drained)), faults))
        for address in self.addresses_of(key):
            book.hold(holder_of(address), position_of(address))
            book.hold_range(holder_of(address), range_of(address, spec))
        for position, named in self.names_taken(key).items():
            book.hold((NAME, holder_of(named)[1]), position)
        for position, cooling in cooling_in(self.pools[key]).items():
            book.hold(cooling_holder(position, cooling.claim), position)
        book.remember(remembered_in(self.pools[key]))
        return book

    def spec_of(self, key: PoolId) -> PoolReading:
        """Return what a pool says."""
        return read_pool(self.pools[key])


async def read_pools(
    client: ApiClient, namespace: str = "", kinds: Sequence[PoolKind] = (METAL3_POOLS,),
    is_asked: Callable[[PoolId, PoolSpec], bool] = lambda pool, spec: False,
) -> ReadPools:  # fmt: skip
    """Read the pools of a namespace, those of the whole cluster, and their claims and addresses there.

    Without a namespace, those of all are read. Of pools that the question is about (``is_asked``), claims and addresses
    of other namespaces are read as well, where the pool serves these. A kind that may not be read is noted; raise
    ``ApiError`` if that is so of all. Pools are read again at the end: they were there all the while, and an address
    that was released meanwhile cools off in them.
    """
    pools, unread = await _read_kinds(client, kinds, namespace)
    namespaces = _namespaces(pools, namespace, is_asked)
    types = [IP_ADDRESS, IP_CLAIM] if any(text(pool, "kind") == IP_POOL.kind for pool in pools) else []
    for kind in (CLUSTER_API_ADDRESS, CLUSTER_API_CLAIM):
        served = await find_kind(client, kind.group, kind.plural, CLUSTER_API_VERSIONS)
        types += [served] if served is not None else []
    addresses, claims = list[Object](), list[Object]()
    for type in types:
        known = addresses if type.kind in (IP_ADDRESS.kind, CLUSTER_API_ADDRESS.kind) else claims
        for each in namespaces:
            known.extend(await _listed(client, type, each))
    pools, unread = await _read_kinds(client, kinds, namespace)
    return ReadPools({pool_id_of(pool): pool for pool in pools}, addresses, _by_id(claims), unread)


async def _read_kinds(
    client: ApiClient, kinds: Sequence[PoolKind], namespace: str
) -> tuple[list[Object], dict[str, str]]:
    """Return the pools of a namespace and of the whole cluster, and why some kinds of them may not be read."""
    served = [each.type for each in kinds if len(kinds) == 1 or await is_served(client, each.type)]
    served = served or [kinds[0].type]  # the server says that it is not there
    pools, refused = list[Object](), dict[str, ApiError]()
    for type in served:
        try:
            pools += await _listed(client, type, namespace if type.namespaced else "")
        except ApiError as error:
            if error.status != 403:
                raise
            refused[type.kind] = error
    if len(refused) == len(served):
        raise next(iter(refused.values()))
    return pools, {kind: error.message for kind, error in refused.items()}


def _namespaces(pools: list[Object], namespace: str, is_asked: Callable[[PoolId, PoolSpec], bool]) -> list[str]:
    """Return in which namespaces claims and addresses are read; the empty one is all of them."""
    found = {namespace}
    for pool in pools:
        id, spec = pool_id_of(pool), read_pool(pool).spec
        if is_asked(id, spec):
            found |= {id.namespace, *("" if each == EVERYWHERE else each for each in spec.namespaces)}
    return [""] if "" in found else sorted(found)


def _by_id(claims: Iterable[Object]) -> dict[ClaimId, Object]:
    return {id_of(claim): claim for claim in claims}


async def _listed(client: ApiClient, kind: ResourceType, namespace: str) -> list[Object]:
    """List objects; a list does not say what each of them is, so that is added."""
    objects, _ = await Informer(client, kind, namespace=namespace).list_all()
    return [{"apiVersion": kind.api_version, "kind": kind.kind, **each} for each in objects]
