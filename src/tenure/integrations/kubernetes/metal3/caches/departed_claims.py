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

    def note(self, claim: Object, *, is_kind_there: bool, is_paused: bool) -> None:
        """Note a claim that is gone. Without its definition, every claim is gone, and none was released."""
        self._gone[uid_of(claim)] = is_kind_there and _is_forced(claim, is_paused=is_paused)
        if is_marked(claim):
            self._moved[uid_of(claim)] = None
        for remembered in (self._gone, self._moved):
            if len(remembered) > REMEMBERED:
                remembered.popitem(last=False)

    def came_back(self, uid: str) -> None:
        """Note that a claim is there after all."""
        self._gone.pop(uid, None)

    def went_by_force(self, uid: str) -> bool:
        """Return whether a claim went by force."""
        return self._gone.get(uid, False)

    def is_left_by_force(self, address: Object) -> bool:
        """Return whether an owner of an address went by force."""
        return any(map(self.went_by_force, owner_uids(address)))

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


def _is_forced(claim: Object, *, is_paused: bool) -> bool:
    """Return whether a claim that is gone had its finalizer when it was seen last, so that it left its address.

    Somebody took the finalizer away; or the server deleted the claim while it got one, for which it does not look
    again. A claim that was Terminating was to be released, unless a cluster is paused: then somebody may be moving it
    by hand, without a mark.
    """
    if is_marked(claim) or kind_of(claim).claim_finalizer not in finalizers_of(claim):
        return False
    return not (is_paused and is_terminating(claim))
