"""Cluster API's claims on pools of the in-cluster provider: the same kinds, with that provider's finalizers."""

from tenure.integrations.kubernetes.metal3.objects.cluster_api_claims import ClusterApiClaims
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    IN_CLUSTER_ADDRESS_FINALIZER,
    IN_CLUSTER_CLAIM_FINALIZER,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import Provider


class InClusterClaims(ClusterApiClaims):
    """Claims that the in-cluster provider's manager would serve, and whose addresses it could take back."""

    claim_finalizer, address_finalizer = IN_CLUSTER_CLAIM_FINALIZER, IN_CLUSTER_ADDRESS_FINALIZER
    provider = Provider.IN_CLUSTER
