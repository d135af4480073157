"""Users of a namespace, many at once, and the judges of what they find: do pools, claims and addresses agree?"""

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.address_objects import (
    claim_id_of,
    claim_name_of,
    owner_uids,
    pool_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import (
    IN_CLUSTER,
    KINDS_OF_IP_POOLS,
    METAL3,
    id_of,
    kind_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_reading import blocks_move, reference_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER,
    CLUSTER_NAME,
    IP_ADDRESS,
    IP_POOL,
    OWN_ADDRESS,
    SKIPS_DELETE_CHECK,
    annotations_of,
    finalizers_of,
    is_terminating,
    labels_of,
    mapping,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.move_marks import is_marked
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import pool_id_of, pool_kind_of
from tenure.integrations.kubernetes.metal3.objects.reservations import reserved_in
from tenure.integrations.kubernetes.metal3.pool_book import CLAIM, OBJECT, OF_CLAIMS, holder_of
from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ObjectMissing
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.kubernetes.runtime.informer import Handler, Informer
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of, uid_of, version_of
from tenure.kernel.addressing.addresses import parse_address
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.claim_specs import claim_spec

WITHIN_S = 10.0
"""Everything is settled so soon after the last fault or the last request."""
QUIET_S = 0.3
"""What is settled is looked at again after this time, which is longer than a status may be late."""


class UserClient(ApiClient):
    """A client that deletes as people do: whatever has become of the object since it was read."""

    async def delete_any(self, path: str) -> Object:
        """Delete the object at a path."""
        return await self._ask("DELETE", path)


@dataclass
class Found:
    """All objects of a namespace, freshly listed."""

    pools: list[Object]
    claims: list[Object]
    addresses: list[Object]

    def __len__(self) -> int:
        return len(self.pools) + len(self.claims) + len(self.addresses)


@dataclass
class IpamUser:
    """A user of one namespace, with all rights."""

    client: UserClient
    namespace: str
    has_counts: bool = True
    """Whether the definition of pools has room for ours; Metal3's has none (KD3)."""
    pools: ResourceType = IP_POOL
    """The kind of pools: Metal3's, or InClusterIPPool."""

    async def create(self, kind: ResourceType, name: str, spec: Object, **metadata: object) -> Object:
        """Create an object."""
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        body = {**head, "metadata": {"name": name, "namespace": self.namespace, **metadata}, "spec": spec}
        return await self.client.create(kind, body)

    async def pool(self, name: str, first: str, last: str, **spec: object) -> Object:
        """Create a pool of one range."""
        if self.pools is IP_POOL:
            entries = [{"start": first, "end": last}]
            return await self.create(self.pools, name, {"namePrefix": name, "pools": entries, **spec})
        listed = {"addresses": [f"{first}-{last}"], "prefix": 24}
        # It may be deleted together with its claims.
        return await self.create(self.pools, name, {**listed, **spec}, annotations={SKIPS_DELETE_CHECK: ""})

    async def claim(self, name: str, pool: str, **metadata: object) -> Object:
        """Create an IPClaim."""
        return await self.claim_of(METAL3, name, pool, **metadata)

    async def claim_of(self, kind: ClaimKind, name: str, pool: str, **metadata: object) -> Object:
        """Create a claim of a kind."""
        return await self.create(kind.claim, name, claim_spec(kind, pool), **metadata)

    async def address(self, name: str, address: str, claim: str, pool: str) -> Object:
        """Create an address by hand."""
        if self.pools is IP_POOL:
            spec: Object = {"address": address, "pool": {"name": pool}, "claim": {"name": claim}}
            return await self.create(IP_ADDRESS, name, spec)
        spec = {"address": address, "prefix": 24, **claim_spec(IN_CLUSTER, pool), "claimRef": {"name": claim}}
        return await self.create(IN_CLUSTER.address, name, spec)

    async def annotate(self, kind: ResourceType, name: str, annotations: dict[str, str | None]) -> None:
        """Set annotations, or remove them."""
        await self._patch(kind, name, {"metadata": {"annotations": annotations}})

    async def annotations(self, kind: ResourceType, name: str) -> Mapping[str, str]:
        """Read the annotations of an object."""
        return annotations_of(await self.client.get(kind.path(self.namespace, name)))

    async def delete(self, kind: ResourceType, name: str) -> None:
        """Delete an object, whatever has become of it since it was created; one that is gone is passed over."""
        with contextlib.suppress(ObjectMissing):
            await self.client.delete_any(kind.path(self.namespace, name))

    async def remove_by_force(self, kind: ResourceType, name: str) -> None:
        """Take all finalizers away from an object, and delete it."""
        await self.delete(kind, name)
        with contextlib.suppress(ObjectMissing):
            await self._patch(kind, name, {"metadata": {"finalizers": None}})

    async def all_of(self, kind: ResourceType) -> list[Object]:
        """List all objects of a kind; a kind that the server does not have has none."""
        try:
            items: list[Object] = (await self.client.get(kind.path(self.namespace)))["items"]
        except ApiError as error:
            if error.status != 404:
                raise
            return []
        return [{"apiVersion": kind.api_version, "kind": kind.kind, **each} for each in items]

    async def find(self) -> Found:
        """List everything, of both kinds of claims."""
        claims = [each.claim for each in KINDS_OF_IP_POOLS.values()]
        addresses = [each.address for each in KINDS_OF_IP_POOLS.values()]
        pools, *others = await asyncio.gather(*(self.all_of(kind) for kind in (self.pools, *claims, *addresses)))
        return Found(pools, list(chain(*others[: len(claims)])), list(chain(*others[len(claims) :])))

    async def delete_all(self, *kinds: ResourceType) -> None:
        """Delete all objects of some kinds, all at once."""
        for kind in kinds:
            await asyncio.gather(*(self.delete(kind, key_of(each)[1]) for each in await self.all_of(kind)))

    async def until_settled(self, *controllers: IpamController, within_s: float = WITHIN_S) -> Found:
        """Wait until everything agrees, and still does a moment later; return what was found."""
        deadline = time.monotonic() + within_s
        is_sure = False
        while True:
            began = time.monotonic()
            found = await self.find()
            faults = [fault for each in controllers or (None,) for fault in disagreements(found, each, self.has_counts)]
            if not faults and is_sure:
                return found
            assert not faults or time.monotonic() < deadline, "\n".join(faults)
            is_sure = not faults
            # A look at much costs the server as much as the work that is waited for.
            await asyncio.sleep(max(0.05, 2 * (time.monotonic() - began)) if faults else QUIET_S)

    async def until_gone(self, *controllers: IpamController, within_s: float = WITHIN_S) -> float:
        """Wait until nothing is left, in the server and in the books; return how long it took."""
        began = time.monotonic()
        while left := await self._left(*controllers):
            assert time.monotonic() - began < within_s, left
            await asyncio.sleep(0.05)
        return time.monotonic() - began

    async def _left(self, *controllers: IpamController) -> list[str]:
        found = await self.find()
        objects = [*found.pools, *found.claims, *found.addresses]
        books = [
            f"{record.book.held} held in the book of {pool}"
            for each in controllers
            for pool, record in each.caches.records
            if record.book.held
        ]
        return [f"{each['kind']} {key_of(each)[1]} {each['metadata']}" for each in objects] + books

    async def _patch(self, kind: ResourceType, name: str, body: Object) -> None:
        object = {"metadata": {"namespace": self.namespace, "name": name}}
        await self.client.patch(kind, object, body, content_type=MERGE_PATCH)


def disagreements(found: Found, controller: IpamController | None, has_counts: bool = True) -> list[str]:
    """Return what is not as it should be when every claim is served and nothing is going on."""
    objects = [*found.pools, *found.claims, *found.addresses]
    going = [f"{each['kind']} {key_of(each)[1]} is stuck" for each in objects if is_terminating(each)]
    going += [f"{each['kind']} {key_of(each)[1]} has the mark of a move" for each in objects if is_marked(each)]
    claims, addresses = defaultdict[PoolId | None, list[Object]](list), defaultdict[PoolId | None, list[Object]](list)
    for claim in found.claims:
        reference = reference_of(claim)
        claims[reference.pool if reference else None].append(claim)
    for address in found.addresses:
        addresses[pool_of(address)].append(address)
    of_pools = [
        fault
        for pool in found.pools
        for fault in _pool_faults(pool, claims[pool_id_of(pool)], addresses[pool_id_of(pool)], controller, has_counts)
    ]
    return going + of_pools


def _pool_faults(
    pool: Object, claims: list[Object], addresses: list[Object], controller: IpamController | None, has_counts: bool
) -> Iterator[str]:
    name = key_of(pool)[1]
    for address, count in Counter(text(each, "spec", "address") for each in addresses).items():
        if count > 1:
            yield f"{name}: {address} is there {count} times"
    for claim in claims:
        yield from _claim_faults(claim, [each for each in addresses if claim_id_of(each) == id_of(claim)])
    known = {id_of(each) for each in claims}
    yield from (f"{key_of(each)[1]} has no claim" for each in addresses if claim_id_of(each) not in known)
    if reserved_in(pool):
        yield f"{name}: reservations are left: {reserved_in(pool)}"
    # Of two claims of one name, Metal3's is listed.
    in_order = sorted(addresses, key=lambda each: kind_of(each) is METAL3)
    truth = {claim_name_of(each): text(each, "spec", "address") for each in in_order}
    if not pool_kind_of(pool).counts_addresses and mapping(pool, "status", "indexes") != truth:
        yield f"{name}: status.indexes is {mapping(pool, 'status', 'indexes')}, the truth is {truth}"
    counts = mapping(pool, "status", "tenure", "addresses")
    counted = (counts.get("used") or 0) + (counts.get("outside") or 0)
    if has_counts and (counted != len(addresses) or counts.get("waiting")):
        yield f"{name}: status counts {counts}, and there are {len(addresses)}"
    if cluster := text(pool, "spec", "clusterName"):
        yield from _cluster_faults(pool, cluster)
    if controller is not None:
        yield from _book_faults(pool, claims, addresses, controller)


def _cluster_faults(pool: Object, cluster: str) -> Iterator[str]:
    """Yield what is wrong between a pool and its cluster, which is there (E1)."""
    owners = [each["name"] for each in pool["metadata"].get("ownerReferences") or () if each["kind"] == CLUSTER.kind]
    if owners != [cluster] or labels_of(pool).get(CLUSTER_NAME) != cluster:
        yield f"{key_of(pool)[1]}: its cluster is {cluster}, and it has {owners} and {labels_of(pool)}"


def _claim_faults(claim: Object, own: list[Object]) -> Iterator[str]:
    name = key_of(claim)[1]
    if len(own) != 1:
        yield f"{name} has {len(own)} addresses: {[key_of(each)[1] for each in own]}"
        return
    (address,) = own
    kind = kind_of(claim)
    if kind.served(claim, address, has_room=False) is not None:
        yield f"{name} says {claim.get('status')}, and has {key_of(address)[1]}"
    if annotations_of(claim).get(OWN_ADDRESS) != text(address, "spec", "address"):
        yield f"{name} is noted to have {annotations_of(claim).get(OWN_ADDRESS)}"
    if blocks_move(claim):
        yield f"{name} has its address, and a move would wait for it"
    if kind.claim_finalizer not in finalizers_of(claim) or kind.address_finalizer not in finalizers_of(address):
        yield f"{name} or its address has no finalizer"
    if owner_uids(address) != [uid_of(claim)]:
        yield f"{key_of(address)[1]} is owned by {owner_uids(address)}, and not by {name} alone"


def _book_faults(
    pool: Object, claims: list[Object], addresses: list[Object], controller: IpamController
) -> Iterator[str]:
    book = controller.caches.records.of(pool_id_of(pool)).book
    own = {uid_of(each): annotations_of(each).get(OWN_ADDRESS, "") for each in claims}
    listed = {holder_of(each): parse_address(text(each, "spec", "address")) for each in addresses}
    listed |= {(CLAIM, uid): parse_address(address) for uid, address in own.items() if address}
    sorts = (OBJECT, *OF_CLAIMS)
    noted = {holder: book.position_of(holder) for holder in book.holders() if holder[0] in sorts}
    if differing := noted.items() ^ listed.items():
        yield f"{key_of(pool)[1]}: only the book, or only a fresh list, has {sorted(map(str, differing))[:10]}"


@contextlib.asynccontextmanager
async def user_of(
    server: KubeServer, namespace: str, *, has_counts: bool = True, pools: ResourceType = IP_POOL
) -> AsyncIterator[IpamUser]:
    """Give a user of a namespace."""
    async with UserClient(from_kubeconfig(str(server.kubeconfig())), agent="user") as client:
        yield IpamUser(client, namespace, has_counts, pools)


FOREVER = 2**63
"""A version that no object reaches."""


@dataclass
class AddressWitness:
    """Sees every change of a namespace, and notes what must never have been, not even for a moment."""

    breaches: list[str] = field(default_factory=list)
    seen: int = 0

    def __post_init__(self) -> None:
        self._at: dict[tuple[object, ...], set[str]] = {}
        self._spans: dict[tuple[object, ...], dict[str, tuple[int, int]]] = {}
        """For each place the objects of both kinds, with the first and the last version in which each was seen."""

    def address_changed(self, delta: Delta) -> None:
        """Note an address that two objects of a pool have: of one kind, at once."""
        self.seen += 1
        if delta.before is not None:
            self._at[_place(delta.before), kind_of(delta.before)].discard(uid_of(delta.before))
        if delta.after is not None:
            place, uid, version = _place(delta.after), uid_of(delta.after), version_of(delta.after)
            holders = self._at.setdefault((place, kind_of(delta.after)), set())
            holders.add(uid)
            if len(holders) > 1:
                self.breaches.append(f"{place} was there {len(holders)} times")
            spans = self._spans.setdefault(place, {})
            spans[uid] = (spans.get(uid, (version,))[0], version)

    @property
    def living(self) -> set[str]:
        """The uids of all objects that are there."""
        return {uid for holders in self._at.values() for uid in holders}

    def judge_kinds(self) -> None:
        """Note an address that objects of two kinds had: two watches have no order, but their versions have."""
        living = self.living
        for place, spans in self._spans.items():
            ordered = sorted((first, FOREVER if uid in living else last) for uid, (first, last) in spans.items())
            for (_, last), (first, _) in pairwise(ordered):
                if first < last:
                    self.breaches.append(f"{place} had an object until {last} at least, and another one from {first}")

    def claim_changed(self, delta: Delta) -> None:
        """Note a living claim that was given an address, and then another."""
        before, after = delta.before, delta.after
        if before is None or after is None or uid_of(before) != uid_of(after):
            return
        former, given = (kind_of(each).given(each) for each in (before, after))
        if former and given != former:
            self.breaches.append(f"{delta.key[1]} had {former}, and then {given or 'none'}")


def _place(address: Object) -> tuple[object, ...]:
    return pool_of(address), text(address, "spec", "address")


@contextlib.asynccontextmanager
async def witness(user: IpamUser, *on_claim: Handler) -> AsyncIterator[AddressWitness]:
    """Watch a namespace for as long as the block, with others that look at claims; a breach at its end is an error."""
    seen = AddressWitness()
    async with following(user, [seen.claim_changed, *on_claim], [seen.address_changed]):
        yield seen
    seen.judge_kinds()
    assert not seen.breaches, "\n".join(seen.breaches)


@contextlib.asynccontextmanager
async def following(user: IpamUser, on_claim: Sequence[Handler], on_address: Sequence[Handler]) -> AsyncIterator[None]:
    """Call handlers for every change of claims and addresses of both kinds, for as long as the block."""
    informers = []
    for kind in KINDS_OF_IP_POOLS.values():
        for type, handlers in ((kind.address, on_address), (kind.claim, on_claim)):
            informers.append(Informer(user.client, type, namespace=user.namespace))
            for handler in handlers:
                informers[-1].on_change(handler)
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    for informer in informers:
        await informer.synced.wait()
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
