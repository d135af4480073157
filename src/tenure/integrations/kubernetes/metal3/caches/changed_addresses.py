"""What a change of an address object means to the records of pools."""

from collections.abc import Iterable
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.address_rights import owner_of, was_told
from tenure.integrations.kubernetes.metal3.caches.departed_claims import DepartedClaims
from tenure.integrations.kubernetes.metal3.caches.followed_objects import FollowedObjects
from tenure.integrations.kubernetes.metal3.caches.pool_records import PoolRecords
from tenure.integrations.kubernetes.metal3.objects.address_objects import (
    claim_id_of,
    owner_uids,
    pool_of,
    position_of,
    range_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import own_address, reference_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import is_terminating
from tenure.integrations.kubernetes.metal3.objects.move_marks import is_marked
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import POOL_KINDS
from tenure.integrations.kubernetes.metal3.pool_book import LOST, Holder, holder_of
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.metal3.pool_status import foreign_entry
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of


@dataclass
class ChangedAddresses:
    """Enter changes of address objects into the records of their pools. O(log n) a change."""

    objects: FollowedObjects
    records: PoolRecords
    departed: DepartedClaims

    def enter(self, delta: Delta) -> None:
        """Let an object hold what it says in the pool that it names, and nothing in the pool that it named."""
        for pool in {self.objects.followed_pool(each) for each in (delta.before, delta.after)}:
            if pool is not None:
                self._enter_in(pool, delta.before, delta.after)
        self._object_came_or_went(delta)

    def _enter_in(self, pool: PoolId, before: Object | None, after: Object | None) -> None:
        """Enter a change of an object into a pool that it names, or named."""
        record = self.records.of(pool)
        holder = holder_of(after or before or {})
        there = after if after is not None and pool_of(after) == pool else None
        if there is None:
            record.addresses.pop(holder[1], None)
        else:
            record.addresses[holder[1]] = None
        # Before the object lets go: the address of a claim is never without a holder in between.
        if after is None and before is not None:
            self._keep_for_claim(pool, record, before)
        self._hold(record, holder, there)
        self._keep_owners(pool, record, before, there)
        entry = foreign_entry(there) if there is not None else None
        record.foreign.pop(holder[1], None)
        record.foreign |= {holder[1]: entry} if entry else {}
        for claim in self._claims_of(before, after):
            if self.objects.claim(claim) is not None:
                record.dirty.add(claim)
            self.records.index(pool, claim.key)
        record.is_status_due = True
        self.records.wake_or_tidy(pool)

    def _hold(self, record: PoolRecord, holder: Holder, address: Object | None) -> None:
        """Let a holder have what its object says; without the object, nothing."""
        position = position_of(address) if address is not None else None
        if record.book.position_of(holder) != position:
            # Not ``hold`` alone: only ``drop`` wakes the claims that wait for what is left.
            self.records.drop(record, holder)
            record.book.hold(holder, position)
        if record.book.hold_range(holder, range_of(address, record.book.spec) if address is not None else None):
            record.look_again()

    def _keep_for_claim(self, pool: PoolId, record: PoolRecord, gone: Object) -> None:
        """Keep an address for its claim whose object went by force, also before the claim named the address (KP9)."""
        claim = owner_of(gone, self.objects)
        if claim is None or is_terminating(claim) or is_marked(gone):
            return
        reference = reference_of(claim)
        is_its = uid_of(claim) in owner_uids(gone) and reference is not None and reference.pool == pool
        # An address that was picked here, and that the claim's status never named, can be exchanged, and is not kept.
        if is_its and was_told(claim, gone) and own_address(claim) in (None, position_of(gone)):
            record.book.hold((LOST, uid_of(claim)), position_of(gone))

    def _keep_owners(self, pool: PoolId, record: PoolRecord, before: Object | None, after: Object | None) -> None:
        """Note what an object means to its owners: one that is back is not lost, and what is gone is left by nobody."""
        for uid in owner_uids(after) if after is not None else ():
            self.records.drop(record, (LOST, uid))
        if after is not None and self.departed.is_left_by_force(after):
            self.records.note_left_by_force(after)
        if after is None and before is not None:
            record.left_by_force.discard(holder_of(before)[1])

    def _object_came_or_went(self, delta: Delta) -> None:
        """Free the name of an object that is gone; remember whose address was moved to another cluster (KD6)."""
        address = delta.after or delta.before or {}
        claim = claim_id_of(address)
        if delta.after is not None:
            self.departed.forget_moved_address(claim)
            return
        self.records.unblock(holder_of(address)[1])
        self._name_freed(address)
        # Only for a claim that is there: the note is forgotten with the claim, and would stay for ever without it.
        if is_marked(address) and self.objects.followed_pool(address) and self.objects.claim(claim) is not None:
            self.departed.note_moved_address(claim)

    def _name_freed(self, gone: Object) -> None:
        """Look again at the claim whose address would have the name of an object that is gone."""
        # By name, and not by owner: the object stood in the way of a claim that it did not belong to.
        namesake = self.objects.claims_like(gone).get(key_of(gone))
        reference = self.objects.followed_reference(namesake)
        if namesake is not None and reference is not None and POOL_KINDS[reference.pool.kind].named_by_claim:
            self.records.of(reference.pool).dirty.add(id_of(namesake))
            self.records.wake(reference.pool)

    def _claims_of(self, *addresses: Object | None) -> Iterable[ClaimId]:
        """Return the claims that an address concerns, by its name for them and by its owners."""
        for address in addresses:
            if address is None:
                continue
            yield claim_id_of(address)
            owners = (self.objects.claim_of_uid(uid) for uid in owner_uids(address))
            yield from (id_of(claim) for claim in owners if claim is not None)
