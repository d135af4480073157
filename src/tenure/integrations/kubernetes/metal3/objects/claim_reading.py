"""What a claim says: which pool it is for, which address it has or asks for, when it arrived."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.objects.claim_kind import Reference
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    BLOCK_MOVE,
    OWN_ADDRESS,
    PICKED_FOR,
    PROPAGATION_FINALIZERS,
    WISHED_ADDRESS,
    annotations_of,
    field,
    finalizers_of,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_spec import position_in
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange, parse_range
from tenure.kernel.errors import Invalid

CONFLICTING_WISHES = "PreAllocation and requested ip address are conflicting"
CONFLICTING_RANGES = "The address that is asked for lies outside of spec.tenure.ranges"


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
    """By Metal3's annotation, so that Metal3's words say why it is not to be had; scripts may look for them."""
    SPECIFIED = "specified"
    """By ``spec.tenure.address`` alone, which is ours."""


@dataclass(frozen=True)
class AddressWish:
    """The address that a claim wants."""

    kind: WishKind
    position: int


@dataclass(frozen=True)
class RangeWish:
    """Where the address of a claim must lie; the ranges are used in their order."""

    ranges: tuple[AddressRange, ...]

    def __contains__(self, position: int) -> bool:
        return any(position in each for each in self.ranges)

    def __str__(self) -> str:
        return ", ".join(map(str, self.ranges))


def own_address(claim: Object) -> int | None:
    """Return the address that was picked for a claim, here or where it was moved from; rubbish counts as none."""
    return position_in(text(claim, "metadata", "annotations", OWN_ADDRESS))


def is_fit_to_move(claim: Object, position: int | None) -> bool:
    """Return whether a claim says all that a move to another cluster needs: the address that it has, and a label."""
    is_named = own_address(claim) == position and not blocks_move(claim)
    return is_named and not kind_of(claim).lacks_label(claim)


def blocks_move(claim: Object) -> bool:
    """Return whether a move waits for the claim: new claims have that mark until they name their address."""
    return BLOCK_MOVE in annotations_of(claim)


def is_named_first(claim: Object, position: int) -> bool:
    """Return whether a claim is to name an address before it is given: a move did not wait for it, and may go on."""
    return is_picked_here(claim) and own_address(claim) != position and not blocks_move(claim)


def is_picked_here(claim: Object) -> bool:
    """Return whether the claim's own address was picked for this very claim, and not for the one it was moved from."""
    return annotations_of(claim).get(PICKED_FOR) == uid_of(claim)


def was_served(claim: Object) -> bool:
    """Return whether the claim's status names an address."""
    return bool(kind_of(claim).given(claim))


def wish_of(claim: Object, pre_allocated: int | None) -> AddressWish | RangeWish | str | None:
    """Return what a claim or its pool asks for, nothing for any address, or why the wish makes no sense.

    The annotation, ``spec.tenure.address`` and the pool's pre-allocation name one address: the same, if there are
    several of them, and one that lies in ``spec.tenure.ranges``, if there are any.
    """
    asked: dict[WishKind, int] = {}
    for kind, place, written in _written_addresses(claim):
        try:
            asked[kind] = parse_address(written)
        except Invalid:
            return f'Invalid {place} "{written[:100]}": not a valid IP address'
    try:
        ranges = claim_ranges(claim)
    except Invalid as error:
        return f"Invalid spec.tenure.ranges: {error}"
    if pre_allocated is not None:
        # First, and so the kind of the wish: a pre-allocation alone may lie outside of the entries (A10).
        asked = {WishKind.PRE_ALLOCATED: pre_allocated, **asked}
    if len(set(asked.values())) > 1:
        return CONFLICTING_WISHES
    if not asked:
        return RangeWish(ranges) if ranges else None
    kind, position = next(iter(asked.items()))
    if ranges and not any(position in each for each in ranges):
        return f"{CONFLICTING_RANGES}: {format_address(position)}"
    return AddressWish(kind, position)


def claim_ranges(claim: Object) -> tuple[AddressRange, ...]:
    """Return where the address of a claim must lie; nothing: anywhere. Raise ``Invalid`` for what is no range."""
    written = field(claim, "spec", "tenure", "ranges")
    return tuple(parse_range(str(each)) for each in written) if isinstance(written, list) else ()


def _written_addresses(claim: Object) -> Iterator[tuple[WishKind, str, str]]:
    """Yield each address that a claim asks for, behind how it does so and where."""
    if annotated := annotations_of(claim).get(WISHED_ADDRESS):
        yield WishKind.REQUESTED, f"{WISHED_ADDRESS} annotation", annotated
    if written := text(claim, "spec", "tenure", "address"):
        yield WishKind.SPECIFIED, "spec.tenure.address", written
