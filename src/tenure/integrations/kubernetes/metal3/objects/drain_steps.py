"""The steps of a drain: which claims still hold addresses of a drained range, and for whom.

A drain takes nothing away. It ends by itself when the last claim there is deleted; then the range can be taken out of
the pool.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_id_of
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of, kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import text
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange

DRAINED = "Drained"
"""The condition of a pool with a drain: whether nobody holds an address there any more."""


class DrainStep(NamedTuple):
    """One address that is still held, as the status and the command list it."""

    address: str
    name: str
    """The IPAddress object; of another namespace than the pool's, with that, and so is the claim.

    Where the object is gone and the claim is not, it is what the claim's status names; empty if that names none.
    """
    kind: str
    claim: str
    """The claim that has the address, by kind and name."""
    owner: str
    """What owns the claim, such as a Metal3Data or a machine, by kind and name; empty if nothing does."""


def drain_step(pool: PoolId, address: Object, claim: Object | None) -> DrainStep:
    """Return an address object as a step of the plan of its pool."""
    id = claim_id_of(address)
    shown, owner = text(address, "spec", "address"), owner_text(claim) if claim is not None else ""
    return DrainStep(shown, pool.listed(key_of(address)), id.kind, pool.listed(id.key), owner)


def claim_step(pool: PoolId, claim: Object, position: int) -> DrainStep:
    """Return a claim as a step that keeps an address without an object, such as one that waits for its release."""
    id, given = id_of(claim), kind_of(claim).given(claim)
    name = pool.listed((id.namespace, given)) if given else ""
    return DrainStep(format_address(position), name, id.kind, pool.listed(id.key), owner_text(claim))


def owner_text(claim: Object) -> str:
    """Return what owns a claim: the controller among its owners, else the first."""
    owners = claim["metadata"].get("ownerReferences") or []
    chosen = next((each for each in owners if each.get("controller")), owners[0] if owners else None)
    return f"{text(chosen, 'kind')}/{text(chosen, 'name')}" if chosen is not None else ""


def drained_condition(left: int, ranges: Iterable[AddressRange], steps: Sequence[DrainStep]) -> tuple[str, str, str]:
    """Return status, reason and message of the condition."""
    where = ", ".join(map(str, ranges))
    if not left:
        return "True", "NothingHeld", f"nobody holds an address of {where}; it can be taken out of spec.pools"
    count = f"1 address of {where} is held" if left == 1 else f"{left} addresses of {where} are held"
    if not steps:
        return "False", "AddressesHeld", f"{count} by {'a claim that is' if left == 1 else 'claims that are'} going"
    named = ", ".join(f"{each.address} ({each.kind} {each.claim})" for each in steps[:3])
    more = f" and {left - len(steps[:3])} more" if left > len(steps[:3]) else ""
    return "False", "AddressesHeld", f"{count}: {named}{more}"
