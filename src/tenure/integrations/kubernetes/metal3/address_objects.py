"""IPAddress objects: their names, what they say, and to which pool and claim they belong."""

from collections.abc import Mapping
from typing import Any

from tenure.integrations.kubernetes.metal3.ipam_kinds import (
    ADDRESS_FINALIZER,
    CLUSTER_API_GROUP,
    GROUP,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    MADE_FOR,
    annotations_of,
    field,
    is_terminating,
    labels_of,
    text,
)
from tenure.integrations.kubernetes.metal3.pool_book import OBJECT, Holder
from tenure.integrations.kubernetes.metal3.pool_spec import PoolSpec
from tenure.integrations.kubernetes.runtime.patches import Step, finalizer_steps, guarded
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, ResourceType, key_of, uid_of
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import Invalid


def address_name(name_prefix: str, position: int) -> str:
    """Return the name that an address has: one for each address of a prefix, so creating it is the lock."""
    written = format_address(position).replace(":", "-").replace(".", "-")
    return f"{name_prefix}-{written}".rstrip("-")


def is_cluster_apis(address: Object) -> bool:
    """Return whether an address is of Cluster API's kind, which names its pool and claim in other fields."""
    return text(address, "apiVersion").startswith(f"{CLUSTER_API_GROUP}/")


def position_of(address: Object) -> int | None:
    """Return where an address object is; nothing, if its text is no address."""
    try:
        return parse_address(text(address, "spec", "address"))
    except Invalid:
        return None


def pool_of(address: Object) -> Key | None:
    """Return the IPPool that an address belongs to: judged by what it says, never by its name (KS3)."""
    namespace = key_of(address)[0]
    if is_cluster_apis(address):
        reference = field(address, "spec", "poolRef")
        if text(reference or {}, "apiGroup") != GROUP or text(reference, "kind") != IP_POOL.kind:
            return None
        return namespace, text(reference, "name")
    name = text(address, "spec", "pool", "name")
    return (namespace, name) if name else None


def claim_name_of(address: Object) -> str:
    """Return the name of the claim that an address is for."""
    path = ("spec", "claimRef", "name") if is_cluster_apis(address) else ("spec", "claim", "name")
    return text(address, *path)


def owner_uids(address: Object, kind: str = IP_CLAIM.kind) -> list[str]:
    """Return the uids of the owners of a kind."""
    owners = address["metadata"].get("ownerReferences") or ()
    return [text(owner, "uid") for owner in owners if text(owner, "kind") == kind]


def holder_of(address: Object) -> Holder:
    """Return an address object as a holder in the pool's book."""
    group = "cluster-api/" if is_cluster_apis(address) else ""
    return OBJECT, group + key_of(address)[1]


def is_made_here(address: Object) -> bool:
    """Return whether this operator, or its like in another cluster, made an address (KD7)."""
    return MADE_FOR in annotations_of(address)


def new_address(spec: PoolSpec, pool: Object, claim: Object, position: int) -> Object:
    """Return the object that gives an address to a claim."""
    namespace, claim_name = key_of(claim)
    options = spec.options_at(position)
    carried: dict[str, Any] = {
        "prefix": options.prefix,
        "gateway": options.gateway,
        "dnsServers": list(options.dns_servers),
    }
    return {
        "apiVersion": IP_ADDRESS.api_version,
        "kind": IP_ADDRESS.kind,
        "metadata": {
            "namespace": namespace,
            "name": address_name(spec.name_prefix, position),
            "labels": dict(labels_of(claim)),
            "annotations": {MADE_FOR: f"{namespace}/{claim_name}"},
            "finalizers": [ADDRESS_FINALIZER],
            "ownerReferences": _owners(pool, claim),
        },
        "spec": {
            "address": format_address(position),
            "pool": {"name": key_of(pool)[1], "namespace": namespace},
            "claim": {"name": claim_name, "namespace": namespace},
            **{name: value for name, value in carried.items() if value},
        },
    }


def completing_patch(address: Object, pool: Object | None, claim: Object) -> list[Step]:
    """Return a patch that gives an adopted address the finalizer and the owners it lacks; nothing if it has them.

    An owner of the same kind and name under another uid is one that was made again, or moved: its uid is mended, and
    the reference is not doubled (E10).
    """
    metadata = address["metadata"]
    before: list[Object] = metadata.get("ownerReferences") or []
    wanted = _owners(pool, claim)
    owners = [_mended(owner, wanted) for owner in before]
    known = {_kind_and_name(owner) for owner in before}
    owners += [owner for owner in wanted if _kind_and_name(owner) not in known]
    steps: list[Step] = []
    if owners != before:
        steps.append({"op": "add", "path": "/metadata/ownerReferences", "value": owners})
    if not is_terminating(address):
        steps += finalizer_steps(address, ADDRESS_FINALIZER)
    return guarded(address, *steps) if steps else []


def _owners(pool: Object | None, claim: Object) -> list[Object]:
    """Return the references to pool and claim, in this order, without a controller (C2)."""
    owners = [(IP_POOL, pool), (IP_CLAIM, claim)]
    return [_reference(kind, owner) for kind, owner in owners if owner is not None]


def _reference(kind: ResourceType, owner: Object) -> Object:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "name": key_of(owner)[1], "uid": uid_of(owner)}


def _kind_and_name(owner: Mapping[str, Any]) -> tuple[str, str]:
    return str(owner.get("kind")), str(owner.get("name"))


def _mended(owner: Object, wanted: list[Object]) -> Object:
    for each in wanted:
        if _kind_and_name(each) == _kind_and_name(owner):
            return {**owner, "apiVersion": each["apiVersion"], "uid": each["uid"]}
    return owner
