"""The two kinds of claims that a pool serves, and which of them an object is of."""

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, ClaimKind
from tenure.integrations.kubernetes.metal3.objects.cluster_api_claims import ClusterApiClaims
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLUSTER_API_GROUP, text
from tenure.integrations.kubernetes.metal3.objects.metal3_claims import Metal3Claims
from tenure.integrations.kubernetes.runtime.resource_types import Object

METAL3: ClaimKind = Metal3Claims()
CLUSTER_API: ClaimKind = ClusterApiClaims()
CLAIM_KINDS = {"metal3": METAL3, "capi": CLUSTER_API}
"""By the name of the controller that serves them (KD12)."""


def kind_of(object: Object) -> ClaimKind:
    """Return the kind that a claim or an address is of."""
    return CLUSTER_API if text(object, "apiVersion").startswith(f"{CLUSTER_API_GROUP}/") else METAL3


def kind_named(id: ClaimId) -> ClaimKind:
    """Return the kind that a claim is of."""
    return CLUSTER_API if id.kind == CLUSTER_API.claim.kind else METAL3


def id_of(claim: Object) -> ClaimId:
    """Return which claim it is."""
    return kind_of(claim).id_of(claim)
