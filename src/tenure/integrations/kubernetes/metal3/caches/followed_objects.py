"""The pools, claims, addresses and clusters that the server has, and how they are found: by name, uid, pool or place.

It decides nothing and remembers nothing but the objects.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from tenure.integrations.kubernetes.metal3.caches.pool_groups import Group, PoolGroups
from tenure.integrations.kubernetes.metal3.objects.address_objects import (
    claim_name_of,
    owner_uids,
    pool_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, ClaimKind, Reference
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import (
    CLUSTER_API,
    IN_CLUSTER,
    METAL3,
    kind_named,
    kind_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_reading import reference_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER,
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    CLUSTER_API_VERSIONS,
    GROUP,
    IN_CLUSTER_POOL,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    is_paused_cluster,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.move_marks import MARKED, in_namespace, of_uid, with_marks
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId, Provider
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import IN_CLUSTER_POOLS, POOL_KINDS
from tenure.integrations.kubernetes.metal3.other_writers import MANAGERS, METAL3S_IPAM
from tenure.integrations.kubernetes.metal3.pool_book import object_key
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.discovered_group import DiscoveredGroup
from tenure.integrations.kubernetes.runtime.informer import Informer, drop_managed_fields
from tenure.integrations.kubernetes.runtime.informer_group import InformerGroup
from tenure.integrations.kubernetes.runtime.object_cache import Indexer
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, ResourceType, key_of, uid_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter


class KindCaches(NamedTuple):
    """The claims of a kind, and their addresses."""

    claims: Group
    addresses: Group


class FollowedObjects:
    """What the server has of the kinds that are followed. Cost: O(log n) a change, O(1) a look-up by an index."""

    def __init__(
        self, client: ApiClient, namespaces: Sequence[str], meter: RuntimeMeter,
        providers: Collection[Provider] = (Provider.METAL3,),
    ) -> None:  # fmt: skip
        """Follow objects of some namespaces, all without any; ``providers``: whose pools are followed."""
        self.namespaces = frozenset(namespaces)
        self._providers = providers

        def group(kind: ResourceType, indexers: dict[str, Indexer] | None = None) -> InformerGroup:
            # Metal3's kinds have one version. Of the others another version may be served.
            is_metal3s = kind.group == GROUP
            other = MANAGERS.get(pool_kind.provider) if (pool_kind := POOL_KINDS.get(kind.kind)) else None
            trim = METAL3S_IPAM.note_write if is_metal3s else other.note_write if other else drop_managed_fields
            more = partial(Informer, indexers=with_marks(indexers), trim=trim, meter=meter, empties=is_metal3s)
            return InformerGroup(namespaces if kind.namespaced else (), lambda name: more(client, kind, namespace=name))

        self.ip_pools = group(IP_POOL, {"cluster": _cluster_of_pool})
        of_claims: dict[str, Indexer] = {"uid": _uid, "cluster": _cluster_of_claim, "elsewhere": _pool_elsewhere}
        of_addresses: dict[str, Indexer] = {
            "claim": _claim_key, "owner": owner_uids, "pool": _pool_key,
        }  # fmt: skip

        def found(kind: ResourceType, indexers: dict[str, Indexer] | None = None) -> DiscoveredGroup:
            # Only the in-cluster provider's own webhook can convert its older version, so the older one is not read.
            versions = (kind.version,) if kind.kind in POOL_KINDS else CLUSTER_API_VERSIONS
            return DiscoveredGroup(client, kind.group, kind.plural, versions, lambda kind: group(kind, indexers))

        self.claims = group(IP_CLAIM, of_claims)
        self.addresses = group(IP_ADDRESS, of_addresses)
        self.cluster_api_claims = found(CLUSTER_API_CLAIM, of_claims)
        self.cluster_api_addresses = found(CLUSTER_API_ADDRESS, of_addresses)
        self.clusters = found(CLUSTER, {"paused": _place_of_paused})
        self.in_cluster_pools = {each: found(each) for each in self._in_cluster_types()}
        self.pools = PoolGroups(
            {IP_POOL.kind: self.ip_pools, **{kind.kind: group for kind, group in self.in_cluster_pools.items()}}
        )
        metal3s = KindCaches(self.claims, self.addresses)
        cluster_apis = KindCaches(self.cluster_api_claims, self.cluster_api_addresses)
        self._of: dict[ClaimKind, KindCaches] = {METAL3: metal3s, CLUSTER_API: cluster_apis, IN_CLUSTER: cluster_apis}
        # Without the third kind of claims, whose objects are Cluster API's: they would be walked twice.
        self.kinds = (metal3s, cluster_apis)
        """The caches of both groups, Metal3's first."""

    def _in_cluster_types(self) -> list[ResourceType]:
        """Return the in-cluster provider's kinds of pools that are followed.

        Those of the whole cluster cannot be read by an operator that has rights in single namespaces.
        """
        types = [each.type for each in IN_CLUSTER_POOLS if Provider.IN_CLUSTER in self._providers]
        return [each for each in types if each.namespaced or not self.namespaces]

    @property
    def _groups(self) -> dict[str, Group]:
        own = {"ippools": self.ip_pools, "ipclaims": self.claims, "ipaddresses": self.addresses}
        return {
            **(own if Provider.METAL3 in self._providers else {}),
            **{kind.plural: group for kind, group in self.in_cluster_pools.items()},
            "cluster-api claims": self.cluster_api_claims, "cluster-api addresses": self.cluster_api_addresses,
            "clusters": self.clusters,
        }  # fmt: skip

    @property
    def own(self) -> dict[ResourceType, InformerGroup]:
        """Return Metal3's kinds, without which there is nothing to serve."""
        return {IP_POOL: self.ip_pools, IP_CLAIM: self.claims, IP_ADDRESS: self.addresses}

    def not_ready(self) -> dict[str, str]:
        """Return the kinds that are not in the cache yet; without Metal3's kinds there is nothing to serve."""
        missing = {
            f"{name} in {namespace or 'the cluster'}": _why_unread(group)
            for name, group in self._groups.items()
            for namespace in group.unsynced()
        }
        needed: dict[ResourceType, Group] = dict(self.own) if Provider.METAL3 in self._providers else {}
        if IN_CLUSTER_POOL in self.in_cluster_pools:
            needed[IN_CLUSTER_POOL] = self.in_cluster_pools[IN_CLUSTER_POOL]
        gone = [kind.plural for kind, group in needed.items() if not group.unsynced() and not group.is_there]
        return missing | dict.fromkeys(gone, "the server does not have this kind: apply the definitions")

    @property
    def is_synced(self) -> bool:
        """Whether everything is in the caches that webhooks judge by; clusters are not among it."""
        return not any(group.unsynced() for group in self._groups.values() if group is not self.clusters)

    async def follow(self) -> None:
        """Follow the server until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for group in self._groups.values():
                tasks.create_task(group.run())
                tasks.create_task(group.compare_regularly())

    async def compare(self) -> None:
        """Read everything from the server itself, as a new leader does before its first pick (KP5)."""
        # First the lists: an informer that has none yet takes its kind for missing, and compares nothing.
        for group in self._groups.values():
            await group.wait_synced()
        await asyncio.gather(*(group.compare() for group in self._groups.values()))

    def followed_reference(self, claim: Object | None) -> Reference | None:
        """Return the pool that a claim is for, if its kind is followed here."""
        reference = reference_of(claim) if claim is not None else None
        is_followed = reference is not None and POOL_KINDS[reference.pool.kind].provider in self._providers
        return reference if is_followed else None

    def followed_pool(self, address: Object | None) -> PoolId | None:
        """Return the pool that an address belongs to, if its kind is followed here."""
        pool = pool_of(address) if address is not None else None
        return pool if pool is not None and POOL_KINDS[pool.kind].provider in self._providers else None

    def claims_of_kind(self, kind: ClaimKind) -> Group:
        """Return the claims of a kind."""
        return self._of[kind].claims

    def addresses_of_kind(self, kind: ClaimKind) -> Group:
        """Return the addresses of a kind."""
        return self._of[kind].addresses

    def claim_type(self, like: Object) -> ResourceType:
        """Return the type of the claim of an address, in the version that the server serves."""
        return self.claims_like(like).kind or kind_of(like).claim_type(like)

    def address_type(self, like: Object) -> ResourceType:
        """Return the type of the address of a claim, in the version that the server serves: not always the claim's."""
        return self.addresses_like(like).kind or kind_of(like).address_type(like)

    def claims_like(self, object: Object) -> Group:
        """Return the claims of the kind of a claim, or of an address."""
        return self._of[kind_of(object)].claims

    def addresses_like(self, object: Object) -> Group:
        """Return the addresses of the kind of an address, or of a claim."""
        return self._of[kind_of(object)].addresses

    def claim(self, id: ClaimId) -> Object | None:
        """Return a claim, or nothing."""
        return self._of[kind_named(id)].claims.get(id.key)

    def claim_of_uid(self, uid: str) -> Object | None:
        """Return the claim of a uid, or nothing."""
        return next(self._claims_by("uid", uid), None)

    def all_claims(self) -> Iterator[Object]:
        """Return all claims of both kinds."""
        return (claim for each in self.kinds for claim in each.claims)

    def claims_named(self, key: Key) -> list[Object]:
        """Return the claims of a namespace and name; where both kinds have one, Metal3's comes first."""
        found = (each.claims.get(key) for each in self.kinds)
        return [claim for claim in found if claim is not None]

    def claims_of_cluster(self, key: Key) -> list[Object]:
        """Return the claims that are for machines of a cluster."""
        return list(self._claims_by("cluster", "/".join(key)))

    def claims_elsewhere(self, pool: PoolId) -> list[Object]:
        """Return the claims for a pool that are in other namespaces than the pool."""
        return list(self._claims_by("elsewhere", "/".join(pool)))

    def _claims_by(self, index: str, value: str) -> Iterator[Object]:
        return (claim for each in self.kinds for claim in each.claims.by_index(index, value))

    def lives(self, uid: str) -> bool:
        """Return whether there is a claim of a uid."""
        return self.claim_of_uid(uid) is not None

    def is_claim_marked(self, uid: str) -> bool:
        """Return whether there is a claim of a uid, and it is about to be deleted for a move. O(1)."""
        return any(self._claims_by(MARKED, of_uid(uid)))

    def has_marks(self, namespace: str) -> bool:
        """Return whether a claim or an address of a namespace is about to be deleted for a move. O(1)."""
        place = in_namespace(namespace)
        return any(self._claims_by(MARKED, place)) or any(self._addresses_by(MARKED, place))

    def namesake(self, claim: Object) -> Object | None:
        """Return the address object that has the name of a claim."""
        return self.addresses_like(claim).get(key_of(claim))

    def addresses_for(self, claim: Object) -> list[Object]:
        """Return the address objects, of the claim's kind, that name a claim or are owned by it."""
        addresses = self.addresses_like(claim)
        found = {key_of(each): each for each in addresses.by_index("owner", uid_of(claim))}
        found |= {key_of(each): each for each in addresses.by_index("claim", "/".join(key_of(claim)))}
        return list(found.values())

    def addresses_owned(self, uid: str) -> list[Object]:
        """Return the address objects that a claim of a uid owns, whether it is there or not."""
        return self._addresses_by("owner", uid)

    def addresses_of(self, pool: PoolId) -> list[Object]:
        """Return the address objects of both kinds that name a pool. O(n) of these."""
        return self._addresses_by("pool", "/".join(pool))

    def _addresses_by(self, index: str, value: str) -> list[Object]:
        return [address for each in self.kinds for address in each.addresses.by_index(index, value)]

    def all_addresses(self) -> Iterator[Object]:
        """Return all address objects of both kinds."""
        return (address for each in self.kinds for address in each.addresses)

    def address_of_holder(self, holder: str) -> Object | None:
        """Return the address object that a holder of a book is."""
        kind = CLUSTER_API if holder.startswith(CLUSTER_API.holder_prefix) else METAL3
        return self._of[kind].addresses.get(object_key(holder))

    def is_cluster_paused(self, namespace: str, name: str) -> bool:
        """Return whether there is such a cluster, and it is paused."""
        cluster = self.clusters.get((namespace, name))
        return cluster is not None and is_paused_cluster(cluster)

    def has_paused_cluster(self, namespace: str) -> bool:
        """Return whether any cluster of a namespace is paused, as all of them are by a move. O(1)."""
        return bool(self.clusters.by_index("paused", namespace))

    def has_cluster(self, namespace: str, name: str) -> bool:
        """Return whether there is such a cluster."""
        return self.clusters.get((namespace, name)) is not None


def _why_unread(group: Group) -> str:
    return (group.unknown if isinstance(group, DiscoveredGroup) else "") or "not listed yet"


def _place_of_paused(cluster: Object) -> Iterable[str]:
    return (key_of(cluster)[0],) if is_paused_cluster(cluster) else ()


def _uid(object: Object) -> Iterable[str]:
    return (uid_of(object),)


def _claim_key(address: Object) -> Iterable[str]:
    return (f"{key_of(address)[0]}/{claim_name_of(address)}",)


def _pool_key(address: Object) -> Iterable[str]:
    pool = pool_of(address)
    return ("/".join(pool),) if pool else ()


def _pool_elsewhere(claim: Object) -> Iterable[str]:
    reference = reference_of(claim)
    return ("/".join(reference.pool),) if reference is not None and reference.is_elsewhere else ()


def _cluster_of_pool(pool: Object) -> Iterable[str]:
    name = text(pool, "spec", "clusterName")
    return (f"{key_of(pool)[0]}/{name}",) if name else ()


def _cluster_of_claim(claim: Object) -> Iterable[str]:
    name = kind_of(claim).cluster_of(claim)
    return (f"{key_of(claim)[0]}/{name}",) if name else ()
