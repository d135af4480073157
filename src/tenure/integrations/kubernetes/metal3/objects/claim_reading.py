"""What a claim says: which pool it is for, which address it has or asks for, when it arrived."""

import enum
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.objects.claim_kind import Reference
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    OWN_ADDRESS,
    PICKED_FOR,
    PROPAGATION_FINALIZERS,
    WISHED_ADDRESS,
    annotations_of,
    finalizers_of,
    text,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.errors import Invalid

CONFLICTING_WISHES = "PreAllocation and requested ip address are conflicting"


def reference_of(claim: Object) -> Reference | None:
    """Return the pool that a claim is for; nothing if it names none, or something that is no IPPool."""
    return kind_of(claim).reference_of(claim)


def arrival_of(claim: Object) -> tuple[str, str]:
    """Return what claims are served in the order of (KD10)."""
    return text(claim, "metadata", "creationTimestamp"), key_of(claim)[1]


def foreign_finalizers(claim: Object) -> list[str]:
    """Return the finalizers of others that still use the claim; the garbage collector's do not count (KD5)."""
    own = {kind_of(claim).claim_finalizer, *PROPAGATION_FINALIZERS}
    return [each for each in finalizers_of(claim) if each not in own]


class WishKind(enum.Enum):
    """Why a claim wants one address and no other."""

    PRE_ALLOCATED = "pre-allocated"
    REQUESTED = "requested"


@dataclass(frozen=True)
class AddressWish:
    """The address that a claim wants."""

    kind: WishKind
    position: int


def own_address(claim: Object) -> int | None:
    """Return the address that was picked for a claim, here or where it was moved from; rubbish counts as none."""
    try:
        return parse_address(annotations_of(claim).get(OWN_ADDRESS, ""))
    except Invalid:
        return None


def is_fit_to_move(claim: Object, position: int | None) -> bool:
    """Return whether a claim says all that a move to another cluster needs: the address that it has, and a label."""
    return own_address(claim) == position and not kind_of(claim).lacks_label(claim)


def is_picked_here(claim: Object) -> bool:
    """Return whether the claim's own address was picked for this very claim, and not for the one it was moved from."""
    return annotations_of(claim).get(PICKED_FOR) == uid_of(claim)


def was_served(claim: Object) -> bool:
    """Return whether the claim's status names an address."""
    return bool(kind_of(claim).given(claim))


def wish_of(claim: Object, pre_allocated: int | None) -> AddressWish | str | None:
    """Return the address that a claim or its pool asks for, nothing for any, or why the wish makes no sense."""
    annotated = annotations_of(claim).get(WISHED_ADDRESS)
    asked = annotated or text(claim, "spec", "tenure", "address")
    if asked:
        try:
            position = parse_address(asked)
        except Invalid:
            place = f"{WISHED_ADDRESS} annotation" if annotated else "spec.tenure.address"
            return f'Invalid {place} "{asked[:100]}": not a valid IP address'
        if pre_allocated not in (None, position):
            return CONFLICTING_WISHES
        if pre_allocated is None:
            return AddressWish(WishKind.REQUESTED, position)
    return None if pre_allocated is None else AddressWish(WishKind.PRE_ALLOCATED, pre_allocated)
