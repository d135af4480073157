"""The kinds of claims that pools serve, and which of them an object is of."""

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, ClaimKind
from tenure.integrations.kubernetes.metal3.objects.cluster_api_claims import ClusterApiClaims
from tenure.integrations.kubernetes.metal3.objects.in_cluster_claims import InClusterClaims
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLUSTER_API_GROUP, text
from tenure.integrations.kubernetes.metal3.objects.metal3_claims import Metal3Claims
from tenure.integrations.kubernetes.metal3.objects.pool_kind import Provider
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import IN_CLUSTER_POOLS, POOL_KINDS
from tenure.integrations.kubernetes.runtime.resource_types import Object

METAL3: ClaimKind = Metal3Claims()
CLUSTER_API: ClaimKind = ClusterApiClaims()
IN_CLUSTER: ClaimKind = InClusterClaims()
KINDS_OF_IP_POOLS = {"metal3": METAL3, "capi": CLUSTER_API}
"""Those that an IPPool serves, by the name of their controller: each has objects of its own."""
CLAIM_KINDS = {**KINDS_OF_IP_POOLS, "in-cluster": IN_CLUSTER}
"""By the name of the controller that serves them (KD12)."""

_OF_CLUSTER_API = f"{CLUSTER_API_GROUP}/"
_IN_CLUSTER_KINDS = frozenset(each.type.kind for each in IN_CLUSTER_POOLS)


def kind_of(object: Object) -> ClaimKind:
    """Return the kind that a claim or an address is of; of Cluster API's two, the pool that it names decides."""
    if not text(object, "apiVersion").startswith(_OF_CLUSTER_API):
        return METAL3
    named = text(object, "spec", "poolRef", "kind")
    if named in _IN_CLUSTER_KINDS and text(object, "spec", "poolRef", "apiGroup") == CLUSTER_API_GROUP:
        return IN_CLUSTER
    return CLUSTER_API


def kind_named(id: ClaimId) -> ClaimKind:
    """Return the kind that a claim is of, as far as its name says: that of the objects, whatever pool it is for."""
    return CLUSTER_API if id.kind == CLUSTER_API.claim.kind else METAL3


def id_of(claim: Object) -> ClaimId:
    """Return which claim it is."""
    return kind_of(claim).id_of(claim)


def provider_of(object: Object) -> Provider:
    """Return whose manager would look after a pool, a claim or an address, if ours did not."""
    pool = POOL_KINDS.get(text(object, "kind"))
    return kind_of(object).provider if pool is None else pool.provider
