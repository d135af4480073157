"""IPAddress objects: their names, what they say, and to which pool and claim they belong."""

from collections.abc import Mapping
from typing import Any

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    MADE_FOR,
    annotations_of,
    field,
    is_terminating,
    labels_of,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import POOL_KINDS, pool_id_of
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec, position_in, read_subnet
from tenure.integrations.kubernetes.runtime.patches import Step, finalizer_steps, guarded
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange


def address_name(name_prefix: str, position: int) -> str:
    """Return the name that an address has: one for each address of a prefix, so creating it is the lock."""
    written = format_address(position).replace(":", "-").replace(".", "-")
    return f"{name_prefix}-{written}".rstrip("-")


def named_position(name_prefix: str, name: str) -> int | None:
    """Return the address that a name is made of; nothing, if it is made of none."""
    if not name.startswith(f"{name_prefix}-"):
        return None
    written = name.removeprefix(f"{name_prefix}-")
    groups = written.replace("-", ":")
    # A name ends without the hyphens of an address that ends in colons.
    for guess in (written.replace("-", "."), groups, f"{groups}:", f"{groups}::"):
        position = position_in(guess)
        if position is not None and address_name(name_prefix, position) == name:
            return position
    return None


def object_name(pool: PoolId, spec: PoolSpec, claim: Object, position: int) -> str:
    """Return the name that the object of an address has when a claim gets it."""
    is_claims = POOL_KINDS[pool.kind].named_by_claim
    return key_of(claim)[1] if is_claims else address_name(spec.name_prefix, position)


def position_of(address: Object) -> int | None:
    """Return where an address object is; nothing, if its text is no address."""
    return position_in(text(address, "spec", "address"))


def pool_of(address: Object) -> PoolId | None:
    """Return the pool that an address belongs to: judged by what it says, never by its name (KS3)."""
    return kind_of(address).pool_of(address)


def range_of(address: Object, spec: PoolSpec) -> AddressRange | None:
    """Return what an object holds that is larger than a unit of its pool of prefixes; nothing, if it is not."""
    position, length = position_of(address), field(address, "spec", "prefix")
    if not spec.gives_prefixes or position is None or not isinstance(length, int) or not 0 <= length <= 128:
        return None
    subnet = read_subnet(f"{format_address(position)}/{length}", "", [])
    return subnet.block if subnet is not None and subnet.block.size > spec.unit else None


def claim_name_of(address: Object) -> str:
    """Return the name of the claim that an address is for."""
    return kind_of(address).claim_of(address)


def claim_id_of(address: Object) -> ClaimId:
    """Return the claim that an address is for."""
    return ClaimId(kind_of(address).claim.kind, key_of(address)[0], claim_name_of(address))


def owner_uids(address: Object) -> list[str]:
    """Return the uids of the claims that own an address."""
    kind = kind_of(address).claim.kind
    owners = address["metadata"].get("ownerReferences") or ()
    return [text(owner, "uid") for owner in owners if text(owner, "kind") == kind]


def is_made_here(address: Object) -> bool:
    """Return whether this operator, or its like in another cluster, made an address (KD7)."""
    return MADE_FOR in annotations_of(address)


def claim_names_of(address: Object) -> set[str]:
    """Return the names of all claims that an address may belong to: the one that it is for, and its owners."""
    kind = kind_of(address).claim.kind
    owners = address["metadata"].get("ownerReferences") or ()
    return {claim_name_of(address), *(text(owner, "name") for owner in owners if text(owner, "kind") == kind)} - {""}


def new_address(spec: PoolSpec, pool: Object, claim: Object, position: int, type: ResourceType | None = None) -> Object:
    """Return the object that gives an address to a claim; without a type, in the version of the claim."""
    kind = kind_of(claim)
    id = kind.id_of(claim)
    type = type or kind.address_type(claim)
    return {
        "apiVersion": type.api_version,
        "kind": type.kind,
        "metadata": {
            "namespace": id.namespace,
            "name": object_name(pool_id_of(pool), spec, claim, position),
            # Without what only claims need: an address is moved with its pool.
            "labels": {name: value for name, value in labels_of(claim).items() if name != kind.move_label},
            "annotations": {MADE_FOR: f"{id.namespace}/{id.name}"},
            "finalizers": [kind.address_finalizer],
            "ownerReferences": kind.owners(pool, claim),
        },
        "spec": kind.address_fields(pool_id_of(pool), id, format_address(position), spec.options_at(position)),
    }


def completing_patch(address: Object, pool: Object | None, claim: Object) -> list[Step]:
    """Return a patch that gives an adopted address the finalizer and the owners it lacks; nothing if it has them.

    An owner of the same kind and name under another uid is one that was made again, or moved: its uid is mended, and
    the reference is not doubled (E10).
    """
    metadata = address["metadata"]
    before: list[Object] = metadata.get("ownerReferences") or []
    wanted = kind_of(claim).owners(pool, claim)
    names = {_kind_and_name(owner) for owner in wanted}
    if any(owner.get("controller") for owner in before if _kind_and_name(owner) not in names):
        # Only one owner may be the controller, and another has said that it is.
        wanted = [{**owner, "controller": False} if owner.get("controller") else owner for owner in wanted]
    owners = [_mended(owner, wanted) for owner in before]
    known = {_kind_and_name(owner) for owner in before}
    owners += [owner for owner in wanted if _kind_and_name(owner) not in known]
    steps: list[Step] = []
    if owners != before:
        steps.append({"op": "add", "path": "/metadata/ownerReferences", "value": owners})
    # The server refuses a new finalizer on an object that is being deleted.
    if not is_terminating(address):
        steps += finalizer_steps(address, kind_of(address).address_finalizer)
    return guarded(address, *steps) if steps else []


def _kind_and_name(owner: Mapping[str, Any]) -> tuple[str, str]:
    return str(owner.get("kind")), str(owner.get("name"))


def _mended(owner: Object, wanted: list[Object]) -> Object:
    for each in wanted:
        if _kind_and_name(each) == _kind_and_name(owner):
            return {**owner, **each}
    return owner
