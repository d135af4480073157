"""Claims that went lately, and why: what is still reserved for them or held by them is judged by that."""

from collections import OrderedDict

from tenure.integrations.kubernetes.metal3.objects.address_objects import owner_uids
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    finalizers_of,
    is_terminating,
)
from tenure.integrations.kubernetes.metal3.objects.move_marks import is_marked
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of

REMEMBERED = 10_000
"""The number of departed claims that are remembered: more than can go while one reservation lasts."""


class DepartedClaims:
    """Claims that went, as far as this process saw it. Every answer is O(1)."""

    def __init__(self) -> None:
        self._gone: OrderedDict[str, bool] = OrderedDict()
        """Uids of claims that went lately: what is still reserved for them is not. With whether they went by force, so
        that an address that is seen only now is released as well."""
        self._moved: OrderedDict[str, None] = OrderedDict()
        """Uids of claims that were deleted because they were moved: whatever a ledger holds for them lives on (E9)."""
        self._without_address: set[ClaimId] = set()
        """Claims whose address was deleted because it was moved to another cluster (KD6)."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._gone

    def note(self, claim: Object, *, is_kind_there: bool) -> None:
        """Note a claim that is gone. Without its definition, every claim is gone, and none was released."""
        self._gone[uid_of(claim)] = is_kind_there and _is_vanished(claim)
        if is_marked(claim):
            self._moved[uid_of(claim)] = None
        for remembered in (self._gone, self._moved):
            if len(remembered) > REMEMBERED:
                remembered.popitem(last=False)

    def came_back(self, uid: str) -> None:
        """Note that a claim is there after all."""
        self._gone.pop(uid, None)

    def forced_owners(self, address: Object) -> set[str]:
        """Return the uids of those owners of an address that went by force."""
        return {uid for uid in owner_uids(address) if self._gone.get(uid)}

    def was_moved(self, uid: str) -> bool:
        """Return whether a claim was deleted because it was moved to another cluster."""
        return uid in self._moved

    def note_moved_address(self, claim: ClaimId) -> None:
        """Note that the address of a claim was deleted because it was moved to another cluster."""
        self._without_address.add(claim)

    def forget_moved_address(self, claim: ClaimId) -> None:
        """Note that a claim has an address again, or is a new one."""
        self._without_address.discard(claim)

    def is_address_moved(self, claim: ClaimId) -> bool:
        """Return whether the address of a claim was deleted because it was moved to another cluster."""
        return claim in self._without_address


def _is_vanished(claim: Object) -> bool:
    """Return whether a claim that is gone had its finalizer, and its release was not asked for.

    A server that deletes an object without finalizers does not look again whether the object has got one meanwhile.
    """
    is_moved = is_marked(claim)
    return not is_moved and kind_of(claim).claim_finalizer in finalizers_of(claim) and not is_terminating(claim)
