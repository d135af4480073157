"""What a user writes into a claim of each kind."""

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import IN_CLUSTER, METAL3
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IN_CLUSTER_POOL, IP_POOL
from tenure.integrations.kubernetes.runtime.resource_types import Object

OUR_POOLS, IN_CLUSTER_POOLS = ({"apiGroup": each.group, "kind": each.kind} for each in (IP_POOL, IN_CLUSTER_POOL))


def claim_spec(kind: ClaimKind, pool: str) -> Object:
    """Return the ``spec`` of a claim for an IPPool, or for a pool of the in-cluster provider's."""
    pools = IN_CLUSTER_POOLS if kind is IN_CLUSTER else OUR_POOLS
    return {"pool": {"name": pool}} if kind is METAL3 else {"poolRef": {**pools, "name": pool}}
