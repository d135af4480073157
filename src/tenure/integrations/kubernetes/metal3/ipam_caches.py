"""Caches of pools, claims, addresses and clusters, and for each pool the record that their changes keep up to date.

Every replica follows the server this way. So webhooks can judge on each of them, and a new leader has all of it.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tenure.integrations.kubernetes.metal3.address_rights import owner_of, was_told
from tenure.integrations.kubernetes.metal3.objects.address_objects import (
    claim_id_of,
    claim_name_of,
    owner_uids,
    pool_of,
    position_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, ClaimKind, Reference
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import (
    CLUSTER_API,
    IN_CLUSTER,
    METAL3,
    id_of,
    kind_named,
    kind_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_reading import own_address, reference_of
from tenure.integrations.kubernetes.metal3.objects.cooling_addresses import cooling_in, cooling_written
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER,
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    CLUSTER_API_VERSIONS,
    DELETE_FOR_MOVE,
    GROUP,
    IN_CLUSTER_POOL,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    PAUSED,
    WATCH_FILTER,
    annotations_of,
    field,
    finalizers_of,
    is_terminating,
    labels_of,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId, Provider
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import (
    IN_CLUSTER_POOLS,
    POOL_KINDS,
    pool_id_of,
    pool_kind_of,
)
from tenure.integrations.kubernetes.metal3.objects.pool_plan import NetworkPlan
from tenure.integrations.kubernetes.metal3.objects.pool_spec import EVERYWHERE, PoolReading, PoolSpec, read_subnet
from tenure.integrations.kubernetes.metal3.objects.remembered_addresses import (
    RememberedAddresses,
    remembered_in,
    remembered_written,
)
from tenure.integrations.kubernetes.metal3.objects.reservations import reserved_in
from tenure.integrations.kubernetes.metal3.other_writers import MANAGERS, METAL3S_IPAM
from tenure.integrations.kubernetes.metal3.pool_book import (
    CLAIM,
    COOLING,
    LEDGER,
    LOST,
    NAME,
    OBJECT,
    OF_CLAIMS,
    PICKED,
    RESERVED,
    Holder,
    cooling_holder,
    holder_of,
    object_key,
)
from tenure.integrations.kubernetes.metal3.pool_overlaps import PoolOverlaps
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.metal3.pool_status import foreign_entry
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.discovered_group import DiscoveredGroup
from tenure.integrations.kubernetes.runtime.informer import Handler, Informer, drop_managed_fields
from tenure.integrations.kubernetes.runtime.informer_group import InformerGroup
from tenure.integrations.kubernetes.runtime.object_cache import Delta, Indexer
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, ResourceType, key_of, uid_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tenure.integrations.kubernetes.runtime.terminating_namespaces import TerminatingNamespaces
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange

Wake = Callable[[PoolId], None]
"""Ask for a pass over a pool."""
Forget = Callable[[PoolId], None]
"""Take back what was asked for a pool of which nothing is left."""
Group = InformerGroup | DiscoveredGroup
REMEMBERED = 10_000
"""So many claims that are gone are remembered; in the time of a reservation fewer go."""


class KindCaches(NamedTuple):
    """The claims of a kind, and their addresses."""

    claims: Group
    addresses: Group


class PoolGroups:
    """The pools of all kinds that are followed, read as one; it costs what the cache of one kind costs."""

    def __init__(self, by_kind: Mapping[str, Group]) -> None:
        self.by_kind = by_kind
        """By the name of the kind."""

    def __iter__(self) -> Iterator[Object]:
        return (pool for group in self.by_kind.values() for pool in group)

    def __contains__(self, pool: PoolId) -> bool:
        return self.get(pool) is not None

    def get(self, pool: PoolId) -> Object | None:
        """Return a pool, or nothing; also where its kind is not served."""
        group = self.by_kind.get(pool.kind)
        return group.get(pool.key) if group is not None else None

    def by_index(self, name: str, value: str) -> list[Object]:
        """Return the pools that an indexer puts under a value."""
        return [pool for group in self.by_kind.values() for pool in group.by_index(name, value)]

    def on_change(self, handler: Handler) -> None:
        """Call a handler for every change of a pool from now on."""
        for group in self.by_kind.values():
            group.on_change(handler)

    def wrote(self, pool: Object) -> None:
        """Enter the answer to a write of this process."""
        self.by_kind[text(pool, "kind")].wrote(pool)

    def deleted(self, pool: Object, answer: Object) -> None:
        """Enter the deletion of a pool by this process, and the server's answer."""
        self.by_kind[text(pool, "kind")].deleted(pool, answer)


class IpamCaches:
    """What is known of the server. Cost: O(log n) a change; O(n log n) when a pool's ``spec`` changes."""

    def __init__(
        self, client: ApiClient, namespaces: Sequence[str], meter: RuntimeMeter, wake: Wake,
        forget: Forget = lambda pool: None, terminating: TerminatingNamespaces | None = None,
        providers: Collection[Provider] = (Provider.METAL3,),
    ) -> None:  # fmt: skip
        """Follow objects of some namespaces, all without any; ``providers``: whose pools are followed."""
        self._namespaces = frozenset(namespaces)
        self._providers = providers
        self._wake = wake
        self._forget = forget
        self.terminating = terminating if terminating is not None else TerminatingNamespaces()
        self._records: dict[PoolId, PoolRecord] = {}
        self._blocked: dict[str, set[PoolId]] = {}
        """Pools whose books have an address that cannot be given, by the holder of another pool that has its name."""
        self.overlaps = PoolOverlaps()
        self._moved: set[ClaimId] = set()
        """Claims whose address was deleted because it was moved to another cluster (KD6)."""
        self._moved_claims: OrderedDict[str, None] = OrderedDict()
        """Uids of claims that were deleted because they were moved: whatever a ledger holds for them lives on (E9)."""
        self._gone: OrderedDict[str, bool] = OrderedDict()
        """Uids of claims that went lately: what is still reserved for them is not. With whether they went by force, so
        that an address that is seen only now is released as well."""

        def group(kind: ResourceType, indexers: dict[str, Indexer] | None = None) -> InformerGroup:
            # Metal3's kinds have one version. Of the others another version may be served.
            is_metal3s = kind.group == GROUP
            other = MANAGERS.get(pool_kind.provider) if (pool_kind := POOL_KINDS.get(kind.kind)) else None
            trim = METAL3S_IPAM.note_write if is_metal3s else other.note_write if other else drop_managed_fields
            more = partial(Informer, indexers=indexers, trim=trim, meter=meter, empties=is_metal3s)
            return InformerGroup(namespaces if kind.namespaced else (), lambda name: more(client, kind, namespace=name))

        self.ip_pools = group(IP_POOL, {"cluster": _cluster_of_pool})
        of_claims: dict[str, Indexer] = {"uid": _uid, "cluster": _cluster_of_claim, "elsewhere": _pool_elsewhere}
        of_addresses: dict[str, Indexer] = {
            "claim": _claim_key, "owner": owner_uids, "pool": _pool_key, "place": _place_key,
        }  # fmt: skip

        def found(kind: ResourceType, indexers: dict[str, Indexer] | None = None) -> DiscoveredGroup:
            versions = (kind.version,) if kind.kind in POOL_KINDS else CLUSTER_API_VERSIONS
            return DiscoveredGroup(client, kind.group, kind.plural, versions, lambda kind: group(kind, indexers))

        self.claims = group(IP_CLAIM, of_claims)
        self.addresses = group(IP_ADDRESS, of_addresses)
        self.cluster_api_claims = found(CLUSTER_API_CLAIM, of_claims)
        self.cluster_api_addresses = found(CLUSTER_API_ADDRESS, of_addresses)
        self.clusters = found(CLUSTER)
        self.in_cluster_pools = {each: found(each) for each in self._in_cluster_types()}
        self.pools = PoolGroups(
            {IP_POOL.kind: self.ip_pools, **{kind.kind: group for kind, group in self.in_cluster_pools.items()}}
        )
        metal3s = KindCaches(self.claims, self.addresses)
        cluster_apis = KindCaches(self.cluster_api_claims, self.cluster_api_addresses)
        self._of: dict[ClaimKind, KindCaches] = {METAL3: metal3s, CLUSTER_API: cluster_apis, IN_CLUSTER: cluster_apis}
        self._kinds = (metal3s, cluster_apis)
        self.pools.on_change(self._pool_changed)
        for each in self._kinds:
            each.claims.on_change(self._claim_changed)
            each.addresses.on_change(self._address_changed)
        self.clusters.on_change(self._cluster_changed)

    def _in_cluster_types(self) -> list[ResourceType]:
        """Return the in-cluster provider's kinds of pools that are followed.

        Those of the whole cluster cannot be read by an operator that has rights in single namespaces.
        """
        types = [each.type for each in IN_CLUSTER_POOLS if Provider.IN_CLUSTER in self._providers]
        return [each for each in types if each.namespaced or not self._namespaces]

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
        for group in self._groups.values():
            await group.wait_synced()
        await asyncio.gather(*(group.compare() for group in self._groups.values()))

    def record(self, pool: PoolId) -> PoolRecord:
        """Return what is remembered of a pool; one that is only claimed, and not there, has a record, too."""
        found = self._records.get(pool)
        if found is None:
            found = self._records[pool] = PoolRecord()
        return found

    def records(self) -> Iterator[tuple[PoolId, PoolRecord]]:
        """Return all records."""
        return iter(list(self._records.items()))

    def why_unseen(self, pool: PoolId) -> str:
        """Return why this operator must give nothing of a pool: it would not see all that the pool has given.

        An operator that works in single namespaces sees neither claims nor addresses of the others.
        """
        if not self._namespaces:
            return ""
        if not pool.namespace:
            return "it is for all namespaces, and this operator works in single ones (--namespaces)"
        unseen = sorted(self.record(pool).book.spec.namespaces - self._namespaces)
        names = ", ".join("all" if each == EVERYWHERE else each for each in unseen)
        where = "it is shared with namespaces in which this operator does not work (--namespaces)"
        return f"{where}: {names}" if names else ""

    def is_open_to(self, pool: PoolId, namespace: str) -> bool:
        """Return whether a pool may be claimed from a namespace: it is its own, or the pool names it, or all."""
        if pool.namespace in ("", namespace):
            return True
        record = self._records.get(pool)
        return record is not None and record.book.spec.is_shared_with(namespace)

    def namesake(self, claim: Object) -> Object | None:
        """Return the address object that has the name of a claim."""
        return self.addresses_like(claim).get(key_of(claim))

    def _reference_of(self, claim: Object | None) -> Reference | None:
        """Return the pool that a claim is for, if its kind is followed here."""
        reference = reference_of(claim) if claim is not None else None
        is_followed = reference is not None and POOL_KINDS[reference.pool.kind].provider in self._providers
        return reference if is_followed else None

    def _pool_of(self, address: Object | None) -> PoolId | None:
        """Return the pool that an address belongs to, if its kind is followed here."""
        pool = pool_of(address) if address is not None else None
        return pool if pool is not None and POOL_KINDS[pool.kind].provider in self._providers else None

    def _own_of(self, claim: Object, pool: PoolId) -> int | None:
        """Return the address that a claim names as its own, and holds by that in a pool which it may have."""
        return own_address(claim) if self.is_open_to(pool, key_of(claim)[0]) else None

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
        return next((claim for each in self._kinds for claim in each.claims.by_index("uid", uid)), None)

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

    def addresses_at(self, pool: PoolId, position: int) -> list[Object]:
        """Return the address objects of both kinds that hold an address of a pool. O(1)."""
        return self._addresses_by("place", _place(pool, position))

    def _addresses_by(self, index: str, value: str) -> list[Object]:
        return [address for each in self._kinds for address in each.addresses.by_index(index, value)]

    def all_addresses(self) -> Iterator[Object]:
        """Return all address objects of both kinds."""
        return (address for each in self._kinds for address in each.addresses)

    def claims_at(self, pool: PoolId, position: int) -> list[ClaimId]:
        """Return the claims that have an address of a pool, or are about to get it. O(1)."""
        record = self._records.get(pool)
        holders = record.book.holders_at(position) if record is not None else ()
        claims = (self.claim_of_uid(uid) for sort, uid in holders if sort in OF_CLAIMS)
        return sorted({id_of(claim) for claim in claims if claim is not None})

    def lives(self, uid: str) -> bool:
        """Return whether there is a claim of a uid."""
        return self.claim_of_uid(uid) is not None

    def is_cluster_paused(self, namespace: str, name: str) -> bool:
        """Return whether there is such a cluster, and it is paused."""
        cluster = self.clusters.get((namespace, name))
        return cluster is not None and _is_paused(cluster)

    def has_cluster(self, namespace: str, name: str) -> bool:
        """Return whether there is such a cluster."""
        return self.clusters.get((namespace, name)) is not None

    def is_pool_paused(self, pool: PoolId) -> bool:
        """Return whether a pool is paused, by itself or by its cluster (E3, E4)."""
        found, cluster = self.pools.get(pool), self.record(pool).book.spec.cluster_name
        is_marked = found is not None and PAUSED in annotations_of(found)
        return is_marked or (bool(cluster) and self.is_cluster_paused(pool[0], cluster))

    def is_cluster_missing(self, pool: PoolId) -> bool:
        """Return whether a pool names a cluster that is not there (E2); one that outlives its cluster needs none."""
        spec = self.record(pool).book.spec
        is_needed = bool(spec.cluster_name) and not spec.outlives_cluster
        return is_needed and not self.has_cluster(pool[0], spec.cluster_name)

    def name_holder(self, pool: PoolId, holder: Holder) -> str:
        """Name a holder of an address for people."""
        sort, name = holder
        if sort in OF_CLAIMS:
            found = self.claim_of_uid(name)
            return f"{id_of(found).kind} {key_of(found)[1]}" if found else "a claim that is going"
        if sort == LEDGER:
            return f"{name} in the ledger"
        if sort == COOLING:
            record = self.record(pool)
            cooling = record.cooling.get(record.book.position_of(holder) or 0)
            return f"nobody until {cooling.until_text}: {cooling.claim} released it" if cooling else "nobody"
        address = self._object_of(name) if sort == OBJECT else None
        if address is None:
            return f"IPAddress {object_key(name)[1]}"
        return f"{kind_of(address).claim.kind} {claim_name_of(address)} (IPAddress {key_of(address)[1]})"

    def _object_of(self, holder: str) -> Object | None:
        """Return the address object that a holder of a book is."""
        kind = CLUSTER_API if holder.startswith(CLUSTER_API.holder_prefix) else METAL3
        return self._of[kind].addresses.get(object_key(holder))

    def status_due(self, pool: PoolId) -> None:
        """Ask for a look at a pool's status."""
        self.record(pool).is_status_due = True
        self._wake(pool)

    def tidy(self, pool: PoolId) -> bool:
        """Forget a pool of which nothing is left, unless a pass over it is under way; return whether it is."""
        record = self._records.get(pool)
        if record is None or self.pools.get(pool) is not None or not record.is_idle:
            return record is None
        del self._records[pool]
        self._forget(pool)
        return True

    def _wake_or_tidy(self, pool: PoolId) -> None:
        """Ask for a pass over a pool; a pool of which nothing is left needs none, also where nobody makes passes."""
        if not self.tidy(pool):
            self._wake(pool)

    def has_own(self, claim: Object) -> bool:
        """Return whether a claim has an address of its own: it names one, or its object went by force."""
        reference = reference_of(claim)
        record = self._records.get(reference.pool) if reference is not None else None
        lost = record.book.position_of((LOST, uid_of(claim))) if record is not None else None
        return own_address(claim) is not None or lost is not None

    def free(self, record: PoolRecord, claim: Object) -> None:
        """Let a claim that waits for any address hold none: not one that it names, nor one that is reserved for it.

        What is reserved for it cannot be given any more, or the claim would not wait: the pool was changed.
        """
        for sort in (CLAIM, RESERVED):
            self._drop(record, (sort, uid_of(claim)))

    def end_pick(self, record: PoolRecord, claim: Object) -> None:
        """Let a pick hold nothing: its address has a reservation or an object by now, or was not to be had."""
        self._drop(record, (PICKED, uid_of(claim)))

    def end_picks(self, record: PoolRecord) -> None:
        """Let no pick hold anything, at the end of a pass."""
        for holder in record.book.holders_of_sort(PICKED):
            self._drop(record, holder)

    def begin(self) -> None:
        """Look at everything, as a new leader does; picks of a former leadership that were not written are free."""
        for pool, record in self.records():
            self.tidy(pool)
            for holder in (each for sort in OF_CLAIMS for each in record.book.holders_of_sort(sort)):
                if holder[0] == PICKED or not self.lives(holder[1]):
                    record.book.drop(holder)
            record.strangers.clear()
            record.is_status_due = True
        for claim in (claim for each in self._kinds for claim in each.claims):
            reference = self._reference_of(claim)
            if reference is not None:
                record = self.record(reference.pool)
                record.book.hold((CLAIM, uid_of(claim)), self._own_of(claim, reference.pool))
                record.dirty.add(id_of(claim))
        for pool in list(self._records):
            self._wake(pool)

    def was_moved(self, uid: str) -> bool:
        """Return whether a claim was deleted because it was moved to another cluster, as far as this process saw it."""
        return uid in self._moved_claims

    def hold_in_ledger(self, pool: PoolId, holders: Mapping[Holder, int]) -> None:
        """Let exactly these owners of a ledger hold addresses of a pool; what is free by that serves waiting claims."""
        record = self.record(pool)
        for holder in record.book.holders_of_sort(LEDGER):
            if holders.get(holder) != record.book.position_of(holder):
                self._drop(record, holder)
        for holder, position in holders.items():
            if record.book.position_of(holder) != position:
                record.book.hold(holder, position)
                record.is_status_due = True
        self._wake(pool)

    def drop_in_ledger(self, pool: PoolId, holder: Holder) -> None:
        """Let an owner of a ledger hold nothing of a pool any more."""
        self._drop(self.record(pool), holder)
        self._wake(pool)

    def is_moved(self, claim: ClaimId) -> bool:
        """Return whether the address of a claim was deleted because it was moved to another cluster."""
        return claim in self._moved

    def block_name(self, pool: PoolId, position: int, address: Object) -> None:
        """Do not pick an address whose object name another pool's object has, for as long as that is there."""
        name = holder_of(address)[1]
        self.record(pool).book.hold((NAME, name), position)
        self._blocked.setdefault(name, set()).add(pool)

    def _pool_changed(self, delta: Delta) -> None:
        before, after = delta.before, delta.after
        pool = pool_id_of(after or before or {})
        record = self.record(pool)
        self._note_new(delta)
        if after is None or before is None or before.get("spec") != after.get("spec"):
            shared = record.book.spec.namespaces
            record.book.lay(
                PoolReading(PoolSpec(), []) if after is None else pool_kind_of(after).read(after.get("spec"))
            )
            self._note_overlaps(pool, is_there=after is not None)
            if shared != record.book.spec.namespaces:
                self._hold_elsewhere(pool, record)
            for address in self.addresses_of(pool) if record.book.spec.unit > 1 else ():
                record.book.hold_range(holder_of(address), _range_of(address, record.book.spec))
        self._reserve(record, reserved_in(after) if after else {})
        self._cool(record, before, after)
        if after is None or before is None or remembered_written(before) != remembered_written(after):
            record.book.remember(remembered_in(after) if after is not None else RememberedAddresses())
        if after is None or before is None or _concerns_claims(before, after):
            record.look_again()
        record.is_status_due = True
        self._wake_or_tidy(pool)

    def _hold_elsewhere(self, pool: PoolId, record: PoolRecord) -> None:
        """Let claims of other namespaces hold the addresses that they name, if the pool serves them by now."""
        for claim in (claim for each in self._kinds for claim in each.claims.by_index("elsewhere", "/".join(pool))):
            self._drop(record, (CLAIM, uid_of(claim)))
            record.book.hold((CLAIM, uid_of(claim)), self._own_of(claim, pool))

    def follow_plan(self, pool: PoolId, plan: NetworkPlan | None) -> None:
        """Let a pool have what the plan of its network in a ledger allows; nothing: that is not known."""
        self.record(pool).book.follow_plan(plan)
        self._note_overlaps(pool, is_there=self.pools.get(pool) is not None)

    def _note_overlaps(self, pool: PoolId, *, is_there: bool) -> None:
        """Note which addresses a pool has; pools that have some of these as well, or had, say so in their status."""
        before = self.overlaps.others(pool)
        self.overlaps.lay(pool, self.record(pool).book.spec if is_there else None)
        for other, _ in before.items() ^ self.overlaps.others(pool).items():
            self.status_due(other)

    def _note_new(self, delta: Delta) -> None:
        """Note that a namespace takes new objects: if it was being deleted, it is another one by now."""
        if delta.after is not None and (delta.before is None or uid_of(delta.before) != uid_of(delta.after)):
            self.terminating.took(delta.key[0])

    def _cool(self, record: PoolRecord, before: Object | None, after: Object | None) -> None:
        """Let exactly those addresses cool off that a pool lists; what is free by that serves claims that wait."""
        if before is not None and after is not None and cooling_written(before) == cooling_written(after):
            return
        record.cooling = cooling_in(after) if after is not None else {}
        cooling = {cooling_holder(position, each.claim): position for position, each in record.cooling.items()}
        for holder in record.book.holders_of_sort(COOLING):
            if holder not in cooling:
                self._drop(record, holder)
        for holder, position in cooling.items():
            record.book.hold(holder, position)

    def _reserve(self, record: PoolRecord, reserved: dict[str, int]) -> None:
        """Let reservations hold their addresses, also of claims that are not known: their watch may be behind."""
        for holder in record.book.holders_of_sort(RESERVED):
            if holder[1] not in reserved:
                self._drop(record, holder)
                record.strangers.pop(holder[1], None)
        for uid, position in reserved.items():
            if record.book.position_of((RESERVED, uid)) == position or uid in self._gone:
                continue
            record.book.hold((RESERVED, uid), position)
            claim = self.claim_of_uid(uid)
            if claim is None:
                record.strangers[uid] = time.monotonic()
            elif record.is_in_line(id_of(claim)):
                record.dirty.add(id_of(claim))  # another leader has reserved it an address, which it need not wait for

    def _claim_changed(self, delta: Delta) -> None:
        before, after = delta.before, delta.after
        id = id_of(after or before or {})
        left, joined = self._reference_of(before), self._reference_of(after)
        is_same = before is not None and after is not None and uid_of(before) == uid_of(after) and joined == left
        if before is not None and left is not None and not is_same:
            self._claim_left(left.pool, id, before, after)
        self._note_new(delta)
        if before is None:
            self._moved.discard(id)
        if after is not None and joined is not None:
            record = self.record(joined.pool)
            self._gone.pop(uid_of(after), None)
            record.strangers.pop(uid_of(after), None)
            position = self._own_of(after, joined.pool)
            if record.book.position_of((CLAIM, uid_of(after))) != position:
                self._drop(record, (CLAIM, uid_of(after)))
                record.book.hold((CLAIM, uid_of(after)), position)
                record.is_status_due = True
            record.dirty.add(id)
            self._index(joined.pool, id.key)
            self._wake(joined.pool)

    def _claim_left(self, pool: PoolId, id: ClaimId, before: Object, after: Object | None) -> None:
        """Let a claim that is gone, or is another one by now, hold nothing of a pool any more."""
        record = self.record(pool)
        if after is None or uid_of(after) != uid_of(before):
            # Without its definition, every claim is gone, and none was released.
            self._gone[uid_of(before)] = self.claims_like(before).is_there and _is_vanished(before, after)
            if DELETE_FOR_MOVE in annotations_of(before):
                self._moved_claims[uid_of(before)] = None
            for remembered in (self._gone, self._moved_claims):
                if len(remembered) > REMEMBERED:
                    remembered.popitem(last=False)
            for address in self.addresses_owned(uid_of(before)):
                self._note_left(address)
        for sort in OF_CLAIMS:
            self._drop(record, (sort, uid_of(before)))
        record.forget(id)
        self._moved.discard(id)
        self._index(pool, id.key)
        self._wake_or_tidy(pool)

    def _note_left(self, address: Object) -> None:
        """Note an address whose claim went by force, for the next pass."""
        pool = self._pool_of(address)
        left = {uid for uid in owner_uids(address) if self._gone.get(uid)}
        if pool is not None and left:
            self.record(pool).vanished |= left
            self._wake(pool)

    def _address_changed(self, delta: Delta) -> None:
        before, after = delta.before, delta.after
        pools = {self._pool_of(each) for each in (before, after)} - {None}
        for pool in pools:
            assert pool is not None
            record = self.record(pool)
            is_in = after is not None and pool_of(after) == pool
            holder = holder_of(after or before or {})
            (record.addresses.add if is_in else record.addresses.discard)(holder[1])
            position = position_of(after) if is_in and after is not None else None
            if after is None and before is not None:
                self._keep_for_claim(pool, record, before)
            if record.book.position_of(holder) != position:
                self._drop(record, holder)
                record.book.hold(holder, position)
            record.book.hold_range(holder, _range_of(after, record.book.spec) if is_in and after is not None else None)
            self._keep_owners(pool, record, before, after if is_in else None)
            entry = foreign_entry(after) if is_in and after is not None else None
            record.foreign.pop(holder[1], None)
            record.foreign |= {holder[1]: entry} if entry else {}
            for claim in self._claims_of(before, after):
                if self.claim(claim) is not None:
                    record.dirty.add(claim)
                self._index(pool, claim.key)
            record.is_status_due = True
            self._wake_or_tidy(pool)
        self._object_came_or_went(delta)

    def _keep_for_claim(self, pool: PoolId, record: PoolRecord, gone: Object) -> None:
        """Keep an address for its claim whose object went by force, also before the claim named the address (KP9)."""
        claim = owner_of(gone, self)
        if claim is None or is_terminating(claim) or DELETE_FOR_MOVE in annotations_of(gone):
            return
        reference = reference_of(claim)
        is_its = uid_of(claim) in owner_uids(gone) and reference is not None and reference.pool == pool
        if is_its and was_told(claim, gone) and own_address(claim) in (None, position_of(gone)):
            record.book.hold((LOST, uid_of(claim)), position_of(gone))

    def _keep_owners(self, pool: PoolId, record: PoolRecord, before: Object | None, after: Object | None) -> None:
        """Note what an object means to its owners: one that is back is not lost, and what is gone is left by nobody."""
        for uid in owner_uids(after) if after is not None else ():
            self._drop(record, (LOST, uid))
        if after is not None:
            self._note_left(after)
        for uid in owner_uids(before) if before is not None else ():
            if uid in record.vanished and not any(pool_of(each) == pool for each in self.addresses_owned(uid)):
                record.vanished.discard(uid)

    def _object_came_or_went(self, delta: Delta) -> None:
        """Free the name of an object that is gone; remember whose address was moved to another cluster (KD6)."""
        address = delta.after or delta.before or {}
        claim = claim_id_of(address)
        if delta.after is not None:
            self._moved.discard(claim)
            return
        self._unblock(holder_of(address)[1])
        self._name_freed(address)
        if DELETE_FOR_MOVE in annotations_of(address) and self._pool_of(address) and self.claim(claim) is not None:
            self._moved.add(claim)

    def _name_freed(self, gone: Object) -> None:
        """Look again at the claim whose address would have the name of an object that is gone."""
        namesake = self.claims_like(gone).get(key_of(gone))
        reference = self._reference_of(namesake)
        if namesake is not None and reference is not None and POOL_KINDS[reference.pool.kind].named_by_claim:
            self.record(reference.pool).dirty.add(id_of(namesake))
            self._wake(reference.pool)

    def _cluster_changed(self, delta: Delta) -> None:
        """Look again at the pools and claims of a cluster that came, went, was paused or goes on."""
        if _standing(delta.before) == _standing(delta.after):
            return
        name = "/".join(delta.key)
        pools = {pool_id_of(pool) for pool in self.ip_pools.by_index("cluster", name)}
        for claim in (claim for each in self._kinds for claim in each.claims.by_index("cluster", name)):
            reference = self._reference_of(claim)
            if reference is not None:
                self.record(reference.pool).dirty.add(id_of(claim))
                pools.add(reference.pool)
        for pool in pools:
            self.record(pool).look_again()
            self.status_due(pool)

    def _drop(self, record: PoolRecord, holder: Holder) -> None:
        """Let a holder go; an address that is free by that serves the claims that wait for it, and counts as free."""
        position = record.book.position_of(holder)
        record.book.drop(holder)
        if position is None:
            return
        record.freed(position)
        record.is_status_due = True
        for sort, uid in record.book.holders_at(position):
            claim = self.claim_of_uid(uid) if sort in OF_CLAIMS else None
            if claim is not None and uid != holder[1]:
                record.dirty.add(id_of(claim))  # what stood in its way may be gone

    def _unblock(self, name: str) -> None:
        for pool in self._blocked.pop(name, ()):
            self._drop(self.record(pool), (NAME, name))
            self._wake_or_tidy(pool)

    def _claims_of(self, *addresses: Object | None) -> Iterable[ClaimId]:
        """Return the claims that an address concerns, by its name for them and by its owners."""
        for address in addresses:
            if address is None:
                continue
            yield claim_id_of(address)
            owners = (self.claim_of_uid(uid) for uid in owner_uids(address))
            yield from (id_of(claim) for claim in owners if claim is not None)

    def _index(self, pool: PoolId, claim: Key) -> None:
        """Enter the address of a claim into the pool's list of them; only claims that exist are in it (KD1).

        A claim of another namespace than the pool's is listed with that. The list has room for one claim of a name;
        where both kinds have one, Metal3's is in it.
        """
        record, name = self.record(pool), pool.listed(claim)
        found = (self._indexed(pool, each.claims.get(claim)) for each in self._kinds)
        written = next((address for address in found if address), None)
        if record.indexes.get(name) == written:
            return
        if written is None:
            record.indexes.pop(name, None)
        else:
            record.indexes[name] = written
        record.is_status_due = True

    def _indexed(self, pool: PoolId, claim: Object | None) -> str:
        """Return the address of a claim for the pool's list; empty if there is none."""
        reference = self._reference_of(claim)
        if claim is None or reference is None or reference.pool != pool:
            return ""
        own = own_address(claim)
        places = [
            (position_of(each) != own, text(each, "spec", "address"))
            for each in self.addresses_like(claim).by_index("claim", "/".join(key_of(claim)))
            if pool_of(each) == pool
        ]
        return min(places)[1] if places else ""


def _why_unread(group: Group) -> str:
    return (group.unknown if isinstance(group, DiscoveredGroup) else "") or "not listed yet"


def _is_vanished(before: Object, after: Object | None) -> bool:
    """Return whether a claim went although it had its finalizer and its release was not asked for.

    A server that deletes an object without finalizers does not look again whether the object has got one meanwhile.
    """
    is_gone = after is None or uid_of(after) != uid_of(before)
    is_moved = DELETE_FOR_MOVE in annotations_of(before)
    was_kept = kind_of(before).claim_finalizer in finalizers_of(before) and not is_terminating(before)
    return is_gone and not is_moved and was_kept


def _concerns_claims(before: Object, after: Object) -> bool:
    """Return whether a change of a pool may change what is decided about its claims; ours do not."""
    if before.get("spec") != after.get("spec") or is_terminating(before) != is_terminating(after):
        return True
    is_marked = [[name in annotations_of(each) for name in (PAUSED, DELETE_FOR_MOVE)] for each in (before, after)]
    return is_marked[0] != is_marked[1] or labels_of(before).get(WATCH_FILTER) != labels_of(after).get(WATCH_FILTER)


def _standing(cluster: Object | None) -> tuple[str, bool] | None:
    """Return what counts of a cluster: which it is, and whether it is paused."""
    if cluster is None:
        return None
    return uid_of(cluster), _is_paused(cluster)


def _is_paused(cluster: Object) -> bool:
    return field(cluster, "spec", "paused") is True or PAUSED in annotations_of(cluster)


def _uid(object: Object) -> Iterable[str]:
    return (uid_of(object),)


def _claim_key(address: Object) -> Iterable[str]:
    return (f"{key_of(address)[0]}/{claim_name_of(address)}",)


def _pool_key(address: Object) -> Iterable[str]:
    pool = pool_of(address)
    return ("/".join(pool),) if pool else ()


def _place(pool: PoolId, position: int) -> str:
    return f"{'/'.join(pool)}/{position}"


def _place_key(address: Object) -> Iterable[str]:
    pool, position = pool_of(address), position_of(address)
    return (_place(pool, position),) if pool and position is not None else ()


def _pool_elsewhere(claim: Object) -> Iterable[str]:
    reference = reference_of(claim)
    return ("/".join(reference.pool),) if reference is not None and reference.is_elsewhere else ()


def _range_of(address: Object, spec: PoolSpec) -> AddressRange | None:
    """Return what an object holds that is larger than a unit of its pool of prefixes; nothing, if it is not."""
    position, length = position_of(address), field(address, "spec", "prefix")
    if spec.unit == 1 or position is None or not isinstance(length, int) or not 0 <= length <= 128:
        return None
    subnet = read_subnet(f"{format_address(position)}/{length}", "", [])
    return subnet.block if subnet is not None and subnet.block.size > spec.unit else None


def _cluster_of_pool(pool: Object) -> Iterable[str]:
    name = text(pool, "spec", "clusterName")
    return (f"{key_of(pool)[0]}/{name}",) if name else ()


def _cluster_of_claim(claim: Object) -> Iterable[str]:
    name = kind_of(claim).cluster_of(claim)
    return (f"{key_of(claim)[0]}/{name}",) if name else ()
