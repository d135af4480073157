"""Names of address objects, and to whom they belong."""

import pytest

from tenure.integrations.kubernetes.metal3.objects.address_objects import address_name, named_position, pool_of
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.kernel.addressing.addresses import parse_address


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("192.168.0.11", "prov-192-168-0-11"),
        ("2001:db8::1", "prov-2001-db8--1"),
        ("2001:db8::", "prov-2001-db8"),
        ("::1", "prov---1"),
        ("fd00:0:0:1::5", "prov-fd00-0-0-1--5"),
        ("FD00::00FF", "prov-fd00--ff"),
    ],
)
def test_c20_c21_an_address_has_one_name(address: str, name: str) -> None:
    assert address_name("prov", parse_address(address)) == name
    assert named_position("prov", name) == parse_address(address)


@pytest.mark.parametrize(
    "name", ["prov", "prov-", "prov-web", "other-192-168-0-11", "prov-192-168-0-011", "prov-FD00--1"]
)
def test_a_name_that_is_made_of_no_address_is_none_of_an_address(name: str) -> None:
    assert named_position("prov", name) is None


@pytest.mark.parametrize(
    ("reference", "pool"),
    [
        ({"apiGroup": "ipam.metal3.io", "kind": "IPPool", "name": "p"}, PoolId("n", "p")),
        (
            {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "p"},
            PoolId("n", "p", "InClusterIPPool"),
        ),
        (
            {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "GlobalInClusterIPPool", "name": "p"},
            PoolId("", "p", "GlobalInClusterIPPool"),
        ),
        ({"apiGroup": "ipam.metal3.io", "kind": "InClusterIPPool", "name": "p"}, None),
        ({"apiGroup": "ipam.example.org", "kind": "OtherPool", "name": "p"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_ks3_an_address_of_cluster_api_counts_where_it_names_a_pool_that_is_known(
    reference: object, pool: object
) -> None:
    metadata = {"namespace": "n", "name": "a"}
    address = {"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "metadata": metadata, "spec": {"poolRef": reference}}
    assert pool_of(address) == pool
