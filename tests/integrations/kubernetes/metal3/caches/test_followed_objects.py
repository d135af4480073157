"""How followed objects are found. No server is needed."""

from dataclasses import replace

from tenure.integrations.kubernetes.metal3.objects.address_objects import new_address
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLUSTER_API_ADDRESS, CLUSTER_API_CLAIM
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.kernel.addressing.addresses import parse_address
from tests.integrations.kubernetes.metal3.pass_stage import NAMESPACE, Stage


def test_an_address_is_made_in_the_version_of_addresses_also_where_claims_are_served_in_another() -> None:
    stage = Stage()
    head = {"apiVersion": CLUSTER_API_CLAIM.api_version, "kind": CLUSTER_API_CLAIM.kind}
    claim = {**head, "metadata": {"namespace": NAMESPACE, "name": "c", "uid": "c"}, "spec": {}}
    stage.caches.objects.cluster_api_addresses.kind = replace(CLUSTER_API_ADDRESS, version="v1beta1")
    type = stage.caches.objects.address_type(claim)
    made = new_address(PoolSpec(name_prefix="p"), stage.pool(), claim, parse_address("10.0.0.1"), type)

    assert made["apiVersion"] == "ipam.cluster.x-k8s.io/v1beta1"
    owners = [(each["kind"], each["apiVersion"]) for each in made["metadata"]["ownerReferences"]]
    assert ("IPAddressClaim", "ipam.cluster.x-k8s.io/v1beta2") in owners
