"""The records of all pools: what is remembered of each, who holds what in it, and whom a change of that concerns."""

from collections.abc import Callable, Iterator, Mapping

from tenure.integrations.kubernetes.metal3.caches.followed_objects import FollowedObjects
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_id_of, pool_of, position_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of, kind_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import own_address, reference_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import PAUSED, annotations_of, text
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_plan import NetworkPlan
from tenure.integrations.kubernetes.metal3.objects.pool_spec import EVERYWHERE
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
    holder_of,
    object_key,
)
from tenure.integrations.kubernetes.metal3.pool_overlaps import PoolOverlaps
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, key_of, uid_of

Wake = Callable[[PoolId], None]
"""Ask for a pass over a pool."""
Forget = Callable[[PoolId], None]
"""Take back what was asked for a pool of which nothing is left."""


class PoolRecords:
    """What is remembered of pools. Every change of a holder is O(log n)."""

    def __init__(self, objects: FollowedObjects, wake: Wake, forget: Forget) -> None:
        self.wake = wake
        self._objects = objects
        self._forget = forget
        self._records: dict[PoolId, PoolRecord] = {}
        self._blocked: dict[str, set[PoolId]] = {}
        """Pools whose books have an address that cannot be given, by the holder of another pool that has its name."""
        self.overlaps = PoolOverlaps()

    def __iter__(self) -> Iterator[tuple[PoolId, PoolRecord]]:
        # A copy: what is done about a pool may forget its record, or begin that of another.
        return iter(list(self._records.items()))

    def of(self, pool: PoolId) -> PoolRecord:
        """Return what is remembered of a pool; one that is only claimed, and not there, has a record, too."""
        found = self._records.get(pool)
        if found is None:
            found = self._records[pool] = PoolRecord()
        return found

    def why_unseen(self, pool: PoolId) -> str:
        """Return why this operator must give nothing of a pool: it would not see all that the pool has given.

        An operator that works in single namespaces sees neither claims nor addresses of the others.
        """
        if not self._objects.namespaces:
            return ""
        if not pool.namespace:
            return "it is for all namespaces, and this operator works in single ones (--namespaces)"
        unseen = sorted(self.of(pool).book.spec.namespaces - self._objects.namespaces)
        names = ", ".join("all" if each == EVERYWHERE else each for each in unseen)
        where = "it is shared with namespaces in which this operator does not work (--namespaces)"
        return f"{where}: {names}" if names else ""

    def is_open_to(self, pool: PoolId, namespace: str) -> bool:
        """Return whether a pool may be claimed from a namespace: it is its own, or the pool names it, or all."""
        if pool.namespace in ("", namespace):
            return True
        record = self._records.get(pool)
        return record is not None and record.book.spec.is_shared_with(namespace)

    def own_of(self, claim: Object, pool: PoolId) -> int | None:
        """Return the address that a claim names as its own, and holds by that in a pool which it may have."""
        return own_address(claim) if self.is_open_to(pool, key_of(claim)[0]) else None

    def may_be_given(self, claim: Object) -> bool:
        """Return whether the object that a claim's status names may be that of its own address.

        A claim has an address of its own if it names one, or if its object went by force. A status that names an object
        of another address is forged, or was restored from a backup.
        """
        own = own_address(claim)
        if own is None and (reference := reference_of(claim)) is not None and reference.pool in self._records:
            own = self._records[reference.pool].book.position_of((LOST, uid_of(claim)))
        named = self._objects.addresses_like(claim).get((key_of(claim)[0], kind_of(claim).given(claim)))
        return own is not None and (named is None or position_of(named) == own)

    def claims_at(self, pool: PoolId, position: int) -> list[ClaimId]:
        """Return the claims that have an address of a pool, or are about to get it. O(1)."""
        record = self._records.get(pool)
        holders = record.book.holders_at(position) if record is not None else ()
        claims = (self._objects.claim_of_uid(uid) for sort, uid in holders if sort in OF_CLAIMS)
        return sorted({id_of(claim) for claim in claims if claim is not None})

    def addresses_at(self, pool: PoolId, position: int) -> list[Object]:
        """Return the address objects, of both kinds, that hold an address of a pool, or the prefix around it.

        O(1); in a pool of prefixes O(n) of the objects that hold several.
        """
        record = self._records.get(pool)
        holders = sorted(record.book.holders_at(position)) if record is not None else ()
        found = (self._objects.address_of_holder(name) for sort, name in holders if sort == OBJECT)
        return [each for each in found if each is not None]

    def is_pool_paused(self, pool: PoolId) -> bool:
        """Return whether a pool is paused, by itself or by its cluster (E3, E4)."""
        found, cluster = self._objects.pools.get(pool), self.of(pool).book.spec.cluster_name
        is_marked = found is not None and PAUSED in annotations_of(found)
        return is_marked or (bool(cluster) and self._objects.is_cluster_paused(pool[0], cluster))

    def is_cluster_missing(self, pool: PoolId) -> bool:
        """Return whether a pool names a cluster that is not there (E2); one that outlives its cluster needs none."""
        spec = self.of(pool).book.spec
        is_needed = bool(spec.cluster_name) and not spec.outlives_cluster
        return is_needed and not self._objects.has_cluster(pool[0], spec.cluster_name)

    def name_holder(self, pool: PoolId, holder: Holder) -> str:
        """Name a holder of an address for people."""
        sort, name = holder
        if sort in OF_CLAIMS:
            found = self._objects.claim_of_uid(name)
            return f"{id_of(found).kind} {pool.listed(key_of(found))}" if found else "a claim that is going"
        if sort == LEDGER:
            return f"{name} in the ledger"
        if sort == COOLING:
            record = self.of(pool)
            cooling = record.cooling.get(record.book.position_of(holder) or 0)
            return f"nobody until {cooling.until_text}: {cooling.claim} released it" if cooling else "nobody"
        address = self._objects.address_of_holder(name) if sort == OBJECT else None
        if address is None:
            return f"IPAddress {pool.listed(object_key(name))}"
        claim = claim_id_of(address)
        return f"{claim.kind} {pool.listed(claim.key)} (IPAddress {pool.listed(key_of(address))})"

    def status_due(self, pool: PoolId) -> None:
        """Ask for a look at a pool's status."""
        self.of(pool).is_status_due = True
        self.wake(pool)

    def tidy(self, pool: PoolId) -> bool:
        """Forget a pool of which nothing is left, unless a pass over it is under way; return whether it is."""
        record = self._records.get(pool)
        if record is None or self._objects.pools.get(pool) is not None or not record.is_idle:
            return record is None
        del self._records[pool]
        # On a replica that only follows no worker would ever take the key out of the queue.
        self._forget(pool)
        return True

    def wake_or_tidy(self, pool: PoolId) -> None:
        """Ask for a pass over a pool; a pool of which nothing is left needs none, also where nobody makes passes."""
        if not self.tidy(pool):
            self.wake(pool)

    def begin(self) -> None:
        """Look at everything, as a new leader does; picks of a former leadership that were not written are free."""
        for pool, record in self:
            self.tidy(pool)
            for holder in record.book.holders():
                if holder[0] == PICKED or (holder[0] in OF_CLAIMS and not self._objects.lives(holder[1])):
                    record.book.drop(holder)
            # Everything was compared with the server just now: a claim that is not known is not there.
            record.strangers.clear()
            record.is_status_due = True
        # A former leadership of this process may have taken from a claim what it names (``free``).
        for claim in self._objects.all_claims():
            reference = self._objects.followed_reference(claim)
            if reference is not None:
                record = self.of(reference.pool)
                record.book.hold((CLAIM, uid_of(claim)), self.own_of(claim, reference.pool))
                record.dirty.add(id_of(claim))
        for pool in list(self._records):
            self.wake(pool)

    def drop(self, record: PoolRecord, holder: Holder) -> None:
        """Let a holder go; an address that is free by that serves the claims that wait for it, and counts as free."""
        position = record.book.position_of(holder)
        record.book.drop(holder)
        if position is None:
            return
        record.freed(position)
        record.is_status_due = True
        for sort, uid in record.book.holders_at(position):
            claim = self._objects.claim_of_uid(uid) if sort in OF_CLAIMS else None
            if claim is not None and uid != holder[1]:
                record.dirty.add(id_of(claim))  # what stood in its way may be gone

    def free(self, record: PoolRecord, claim: Object) -> None:
        """Let a claim that waits and had no address hold none: not one that it names, nor one that is reserved for it.

        What is reserved for it cannot be given any more, or it would not wait: the pool or its wish was changed.
        """
        for sort in (CLAIM, RESERVED):
            self.drop(record, (sort, uid_of(claim)))

    def end_pick(self, record: PoolRecord, claim: Object) -> None:
        """Let a pick hold nothing: its address has a reservation or an object by now, or was not to be had."""
        self.drop(record, (PICKED, uid_of(claim)))

    def end_picks(self, record: PoolRecord) -> None:
        """Let no pick hold anything, at the end of a pass."""
        for holder in record.book.holders_of_sort(PICKED):
            self.drop(record, holder)

    def hold_in_ledger(self, pool: PoolId, holders: Mapping[Holder, int]) -> None:
        """Let exactly these owners of a ledger hold addresses of a pool; what is free by that serves waiting claims."""
        record = self.of(pool)
        for holder in record.book.holders_of_sort(LEDGER):
            if holders.get(holder) != record.book.position_of(holder):
                self.drop(record, holder)
        for holder, position in holders.items():
            if record.book.position_of(holder) != position:
                record.book.hold(holder, position)
                record.is_status_due = True
        self.wake(pool)

    def drop_in_ledger(self, pool: PoolId, holder: Holder) -> None:
        """Let an owner of a ledger hold nothing of a pool any more."""
        self.drop(self.of(pool), holder)
        self.wake(pool)

    def note_left_by_force(self, address: Object) -> None:
        """Note an address that a claim left which went by force; the next pass over its pool releases it."""
        pool = self._objects.followed_pool(address)
        if pool is not None:
            self.of(pool).left_by_force.add(holder_of(address)[1])
            self.wake(pool)

    def block_name(self, pool: PoolId, position: int, address: Object) -> None:
        """Do not pick an address whose object name another pool's object has, for as long as that is there."""
        name = holder_of(address)[1]
        self.of(pool).book.hold((NAME, name), position)
        self._blocked.setdefault(name, set()).add(pool)

    def unblock(self, name: str) -> None:
        """Let an address be picked again whose object name is free by now."""
        for pool in self._blocked.pop(name, ()):
            self.drop(self.of(pool), (NAME, name))
            self.wake_or_tidy(pool)

    def follow_plan(self, pool: PoolId, plan: NetworkPlan | None) -> None:
        """Let a pool have what the plan of its network in a ledger allows; nothing: that is not known."""
        self.of(pool).book.follow_plan(plan)
        self.note_overlaps(pool, is_there=self._objects.pools.get(pool) is not None)

    def note_overlaps(self, pool: PoolId, *, is_there: bool) -> None:
        """Note which addresses a pool has; pools that have some of these as well, or had, say so in their status."""
        before = self.overlaps.others(pool)
        self.overlaps.lay(pool, self.of(pool).book.spec if is_there else None)
        for other, _ in before.items() ^ self.overlaps.others(pool).items():
            self.status_due(other)

    def index(self, pool: PoolId, claim: Key) -> None:
        """Enter the address of a claim into the pool's list of them; only claims that exist are in it (KD1).

        A claim of another namespace than the pool's is listed with that. The list has room for one claim of a name;
        where both kinds have one, Metal3's is in it.
        """
        record, name = self.of(pool), pool.listed(claim)
        found = (self._indexed(pool, each) for each in self._objects.claims_named(claim))
        written = next((address for address in found if address), None)
        if record.indexes.get(name) == written:
            return
        if written is None:
            record.indexes.pop(name, None)
        else:
            record.indexes[name] = written
        record.is_status_due = True

    def _indexed(self, pool: PoolId, claim: Object) -> str:
        """Return the address of a claim for the pool's list; empty if there is none."""
        reference = self._objects.followed_reference(claim)
        if reference is None or reference.pool != pool:
            return ""
        own = own_address(claim)
        places = [
            (position_of(each) != own, text(each, "spec", "address"))
            for each in self._objects.addresses_like(claim).by_index("claim", "/".join(key_of(claim)))
            if pool_of(each) == pool
        ]
        return min(places)[1] if places else ""
