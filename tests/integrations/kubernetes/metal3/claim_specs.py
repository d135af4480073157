"""What a user writes into a claim of either kind."""

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import METAL3
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL
from tenure.integrations.kubernetes.runtime.resource_types import Object

OUR_POOLS = {"apiGroup": IP_POOL.group, "kind": IP_POOL.kind}


def claim_spec(kind: ClaimKind, pool: str) -> Object:
    """Return the ``spec`` of a claim for an IPPool."""
    return {"pool": {"name": pool}} if kind is METAL3 else {"poolRef": {**OUR_POOLS, "name": pool}}
