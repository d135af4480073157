"""What a change of a claim means to the records of pools."""

from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.caches.departed_claims import DepartedClaims
from tenure.integrations.kubernetes.metal3.caches.followed_objects import FollowedObjects
from tenure.integrations.kubernetes.metal3.caches.pool_records import PoolRecords
from tenure.integrations.kubernetes.metal3.objects.address_objects import is_made_here, owner_uids
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.pool_book import CLAIM, OF_CLAIMS
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of


@dataclass
class ChangedClaims:
    """Enter changes of claims into the records of their pools."""

    objects: FollowedObjects
    records: PoolRecords
    departed: DepartedClaims

    def enter(self, delta: Delta) -> None:
        """Let a claim leave the pool that it was for, and join the pool that it is for."""
        before, after = delta.before, delta.after
        id = id_of(after or before or {})
        left, joined = self.objects.followed_reference(before), self.objects.followed_reference(after)
        is_same = before is not None and after is not None and uid_of(before) == uid_of(after) and joined == left
        # Left before joined: of a claim that was made again, leaving would forget by name what joining notes.
        if before is not None and left is not None and not is_same:
            self._leave(left.pool, id, before, after)
        if before is None:
            self.departed.forget_moved_address(id)
        if after is not None and joined is not None:
            self._join(joined.pool, id, after)

    def _join(self, pool: PoolId, id: ClaimId, claim: Object) -> None:
        """Let a claim hold the address that it names as its own, and be looked at."""
        record, uid = self.records.of(pool), uid_of(claim)
        self.departed.came_back(uid)
        record.strangers.pop(uid, None)
        position = self.records.own_of(claim, pool)
        if record.book.position_of((CLAIM, uid)) != position:
            self.records.drop(record, (CLAIM, uid))
            record.book.hold((CLAIM, uid), position)
            record.is_status_due = True
        record.dirty.add(id)
        self.records.index(pool, id.key)
        self.records.wake(pool)

    def _note_departed(self, claim: Object) -> None:
        """Note a claim that is gone, and which addresses it left by force.

        Of those that only name the claim, one that was made for it and that no claim owns is its own as well: the
        garbage collector may have been here before.
        """
        is_paused = self.objects.has_paused_cluster(key_of(claim)[0])
        self.departed.note(claim, is_kind_there=self.objects.claims_like(claim).is_there, is_paused=is_paused)
        if not self.departed.went_by_force(uid_of(claim)):
            return
        for address in self.objects.addresses_for(claim):
            owners = owner_uids(address)
            if uid_of(claim) in owners or (not owners and is_made_here(address)):
                self.records.note_left_by_force(address)

    def _leave(self, pool: PoolId, id: ClaimId, before: Object, after: Object | None) -> None:
        """Let a claim that is gone, or is another one by now, hold nothing of a pool any more."""
        record, uid = self.records.of(pool), uid_of(before)
        # A claim that only changed its pool has not departed.
        if after is None or uid_of(after) != uid:
            self._note_departed(before)
        for sort in OF_CLAIMS:
            self.records.drop(record, (sort, uid))
        record.forget(id)
        self.departed.forget_moved_address(id)
        self.records.index(pool, id.key)
        self.records.wake_or_tidy(pool)
