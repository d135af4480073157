"""The seed's own example objects, and the lines of the seed that no case names (KD1, KS1-KS6)."""

import time
from typing import Any

import pytest
import yaml

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL, PAUSED
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, uid_of
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import await_kind, create, plain_definition
from tests.integrations.kubernetes.metal3.cluster_api_user import ClusterApiUser
from tests.integrations.kubernetes.metal3.old_clusters import cluster, install_clusters
from tests.integrations.kubernetes.metal3.serving import Namespace, RefusedByServer, operator_in, until

POOL = """
apiVersion: ipam.metal3.io/v1alpha1
kind: IPPool
metadata:
  name: pool-1
spec:
  pools:
    - start: 192.168.0.10
      end: 192.168.0.15
      subnet: 192.168.0.0/24
      gateway: 192.168.0.1
      prefix: 24
    - start: 192.168.1.10
      end: 192.168.1.15
      subnet: 192.168.1.0/24
      gateway: 192.168.1.1
      prefix: 24
  gateway: 192.168.1.1
  prefix: 24
  preAllocations:
    "rendereddata-10": 192.168.0.9
    "rendereddata-9": 192.168.0.8
  namePrefix: "provisioning"
status:
  lastUpdated: "2020-04-02T06:36:09Z"
  allocations:
    "rendereddata-1": "192.168.0.11"
    "rendereddata-10": 192.168.0.9
    "rendereddata-9": 192.168.0.8
"""
ADDRESS = """
apiVersion: ipam.metal3.io/v1alpha1
kind: IPAddress
metadata:
  name: pool-1-192-168-0-11
spec:
  claim:
    Name: rendereddata-1
  Address: 192.168.0.11
  prefix: 24
  gateway: 192.168.0.1
  pool:
    Name: pool-1
status:
  ready: true
"""
CLAIM = """
apiVersion: ipam.metal3.io/v1alpha1
kind: IPClaim
metadata:
  name: rendereddata-1
spec:
  owner:
    name: rendereddata-1
  pool:
    name: pool-1
status:
  ipAddress:
    name: pool-1-192-168-0-11
  errorMessage: ""
"""


OWNERS = {
    ResourceType("infrastructure.cluster.x-k8s.io", "v1alpha4", "metal3clusters", "Metal3Cluster"): "cluster-1",
    ResourceType("metadata.metal3.io", "v1alpha1", "data", "Data"): "data-1",
}
"""What owns the seed's pool and its claim."""


def install_owners(kube: KubeServer) -> None:
    """Apply definitions of the owners."""
    documents = [plain_definition(kind.group, kind.version, kind.plural, kind.kind) for kind in OWNERS]
    for document in documents:
        create(kube, document)
    for document in documents:
        await_kind(kube, document)


def owned(text: str, *owners: Object, **spec: Any) -> str:
    """Return one of the seed's objects with its owners, whose uids are real."""
    document = yaml.safe_load(text)
    references = [
        {**{name: each[name] for name in ("apiVersion", "kind")}, "name": each["metadata"]["name"], "uid": uid_of(each)}
        for each in owners
    ]
    document["metadata"]["ownerReferences"] = references
    document["spec"] |= spec
    return yaml.safe_dump(document)


def owners_of(object: Object | None) -> list[tuple[str, str]]:
    return [(each["kind"], each["uid"]) for each in (object or {})["metadata"]["ownerReferences"]]


def test_kd1_the_seeds_objects_give_what_the_seed_describes(kube: KubeServer, unserved: Namespace) -> None:
    """With the corrections that KD1 allows: lower-case names, and owners with real uids.

    Nothing is given before the cluster is there (E2), so the claim gets no other address before the seed's is applied.
    """
    install_clusters(kube)
    install_owners(kube)
    with operator_in(kube, unserved.name, allow_outside=True):
        metal3_cluster, data = (unserved.create(kind, name, {}) for kind, name in OWNERS.items())
        (pool,) = unserved.apply(owned(POOL, metal3_cluster, clusterName="cluster-1"))
        (claim,) = unserved.apply(owned(CLAIM, data))
        (address,) = unserved.apply(owned(ADDRESS, pool, claim))
        assert address["spec"] == {
            "address": "192.168.0.11", "prefix": 24, "gateway": "192.168.0.1",
            "claim": {"name": "rendereddata-1"}, "pool": {"name": "pool-1"},
        }  # fmt: skip
        until(lambda: unserved.status("pool-1").get("conditions"))
        assert unserved.status("pool-1")["conditions"][0]["reason"] == "ClusterMissing"
        made = cluster(unserved, "cluster-1")
        served = unserved.served("rendereddata-1")
        assert served["metadata"]["name"] == "pool-1-192-168-0-11"
        assert owners_of(served) == [("IPPool", uid_of(pool)), ("IPClaim", uid_of(claim))]
        both = [("Metal3Cluster", uid_of(metal3_cluster)), ("Cluster", uid_of(made))]
        until(lambda: owners_of(unserved.get(IP_POOL, "pool-1")) == both)
        assert owners_of(unserved.get(IP_CLAIM, "rendereddata-1")) == [("Data", uid_of(data))]
        until(lambda: unserved.indexes("pool-1") == {"rendereddata-1": "192.168.0.11"})
        check_pre_allocations(unserved)


def check_pre_allocations(space: Namespace) -> None:
    """Check what the seed's pool gives to claims that it names, and to another one."""
    listed = {"rendereddata-1": "192.168.0.11", "rendereddata-10": "192.168.0.9", "rendereddata-9": "192.168.0.8"}
    for name in ("rendereddata-10", "rendereddata-9"):
        space.claim(name, "pool-1")
        fixed = space.served(name)
        assert fixed["metadata"]["name"] == f"provisioning-{listed[name].replace('.', '-')}"
        found = [fixed["spec"][field] for field in ("address", "prefix", "gateway")]
        assert found == [listed[name], 24, "192.168.1.1"]
    space.claim("another", "pool-1")
    assert space.ip("another") == "192.168.0.10"
    until(lambda: space.indexes("pool-1") == {**listed, "another": "192.168.0.10"})


def test_kd2_the_allocations_of_the_seeds_text_are_stored_as_pre_allocations(served: Namespace) -> None:
    """Its example calls them preAllocations, its text calls the field allocations."""
    text = POOL.replace("preAllocations", "allocations").replace("192.168.0.9", "192.168.0.12")
    (pool,) = served.apply(text.partition("status:")[0].replace("192.168.0.8", "192.168.0.13"))
    assert "allocations" not in pool["spec"]
    assert pool["spec"]["preAllocations"] == {"rendereddata-10": "192.168.0.12", "rendereddata-9": "192.168.0.13"}
    served.claim("rendereddata-9", "pool-1")
    assert served.ip("rendereddata-9") == "192.168.0.13"


def owner(kind: str, name: str, uid: str) -> Object:
    """Write a reference to an owner of a kind that the operator does not know; nothing collects objects here."""
    return {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "name": name, "uid": uid}


def test_kd1_the_owners_of_the_seeds_objects_stay_and_the_cluster_joins_them(clustered: Namespace) -> None:
    made = cluster(clustered, "cluster-1")
    foreign = owner("Metal3Cluster", "cluster-1", "1-2-3")
    spec = {"namePrefix": "p", "clusterName": "cluster-1", "pools": [{"start": "10.0.0.1", "end": "10.0.0.9"}]}
    pool = clustered.create(IP_POOL, "p", spec, ownerReferences=[foreign])
    data = owner("Metal3Data", "data-1", "4-5-6")
    claim = clustered.claim("c", ownerReferences=[data], annotations={PAUSED: ""})
    both = [
        {"apiVersion": each["apiVersion"], "kind": each["kind"], "name": each["metadata"]["name"], "uid": uid_of(each)}
        for each in (pool, claim)
    ]
    clustered.address("hand", "10.0.0.5", "c", ownerReferences=both)
    clustered.patch(IP_CLAIM, "c", {"metadata": {"annotations": {PAUSED: None}}})
    assert clustered.ip("c") == "10.0.0.5"

    found = until(lambda: _owners(clustered, IP_POOL, "p")[1:])
    assert _owners(clustered, IP_POOL, "p")[0] == foreign
    assert [(each["kind"], each["uid"]) for each in found] == [("Cluster", uid_of(made))]
    assert _owners(clustered, IP_CLAIM, "c") == [data]
    assert _owners(clustered, IP_ADDRESS, "hand") == both


def _owners(space: Namespace, kind: ResourceType, name: str) -> list[Object]:
    owners: list[Object] = (space.get(kind, name) or {})["metadata"]["ownerReferences"]
    return owners


def test_kd9_without_the_switch_the_seeds_pool_is_refused_with_its_reason(served: Namespace) -> None:
    with pytest.raises(RefusedByServer, match=r"spec\.preAllocations.*out of bonds") as refused:
        served.apply(POOL)
    assert refused.value.code == 422


def test_ks1_an_address_is_ruled_out_on_a_living_pool_in_three_ways(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.6")
    served.claim("c1")
    assert served.ip("c1") == "10.0.0.1"
    served.address("by-hand", "10.0.0.2", "nobody")
    entries = [{"start": "10.0.0.1", "end": "10.0.0.2"}, {"start": "10.0.0.4", "end": "10.0.0.6"}]
    served.patch(IP_POOL, "p", {"spec": {"pools": entries, "preAllocations": {"no-one": "10.0.0.4"}}})
    given = []
    for name in ("c2", "c3"):
        served.claim(name)
        given.append(served.ip(name))
    assert given == ["10.0.0.5", "10.0.0.6"]
    served.claim("c4")
    assert served.message("c4", "E") == "Exhausted IP Pools"
    assert served.ip("c1") == "10.0.0.1"


def test_ks3_a_pool_made_again_with_another_prefix_keeps_every_lease(kube: KubeServer, unserved: Namespace) -> None:
    with operator_in(kube, unserved.name):
        unserved.pool("p", "10.0.0.1-10.0.0.3")
        unserved.claim("c1")
        before = unserved.served("c1")
        unserved.delete(IP_POOL, "p")
        unserved.patch(IP_POOL, "p", {"metadata": {"finalizers": None}})
        unserved.gone(IP_POOL, "p")
        unserved.pool("p", "10.0.0.1-10.0.0.3", namePrefix="other")
        unserved.claim("c2")
        assert unserved.served("c2")["metadata"]["name"] == "other-10-0-0-2"
        assert unserved.served("c1")["metadata"]["uid"] == before["metadata"]["uid"]
        until(lambda: unserved.indexes() == {"c1": "10.0.0.1", "c2": "10.0.0.2"})


def test_ks3_an_address_of_cluster_api_counts_as_well(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.2")
    user = ClusterApiUser(served, "v1beta1")
    user.address("theirs", "10.0.0.1", "x")
    until(lambda: (served.status().get("addresses") or {}).get("used") == 1)
    served.claim("c1")
    assert served.ip("c1") == "10.0.0.2"
    served.claim("c2")
    assert served.message("c2", "E") == "Exhausted IP Pools"
    served.delete(user.addresses, "theirs")
    assert served.ip("c2") == "10.0.0.1"


def test_ks6_the_seeds_default_is_random_by_option(kube: KubeServer, unserved: Namespace) -> None:
    with operator_in(kube, unserved.name, default_strategy="random"):
        assert unserved.pool("p", "10.0.0.1-10.0.0.9")["spec"]["allocationStrategy"] == "random"
        unserved.claim("c1")
        released = unserved.ip("c1")
        unserved.delete(IP_CLAIM, "c1")
        unserved.gone(IP_CLAIM, "c1")
        for number in range(8):
            unserved.claim(f"d{number}")
        assert released not in {unserved.ip(f"d{number}") for number in range(8)}
        unserved.claim("last")
        assert unserved.ip("last") == released


def test_a_conflict_is_logged_counted_and_solved_by_the_next_pick(
    kube: KubeServer, unserved: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    """Another pool of the prefix takes the name between the pick and the creation; events of the claim say so, too."""
    caplog.set_level("INFO")
    unserved.pool("p", "10.0.0.1-10.0.0.3")
    with operator_in(kube, unserved.name, webhooks=False) as controller:
        time.sleep(0.2)
        passes = controller.passes
        create = passes.giving.claims.create_address

        async def late(*words: object) -> object:
            passes.giving.claims.create_address = create  # type: ignore[method-assign]
            unserved.address("p-10-0-0-1", "172.16.0.1", "other", "other-pool")
            return await create(*words)  # type: ignore[arg-type]

        passes.giving.claims.create_address = late  # type: ignore[assignment, method-assign]
        claim = unserved.claim("c1")
        assert unserved.ip("c1") == "10.0.0.2"
        assert controller.meter.conflicts == 1
        assert [each["metadata"]["name"] for each in unserved.all(IP_ADDRESS)] == ["p-10-0-0-1", "p-10-0-0-2"]
        until(lambda: len(unserved.events(claim)) == 2)
        assert {each["reason"]: (each["type"], each["note"]) for each in unserved.events(claim)} == {
            "Conflict": ("Warning", "10.0.0.1 is not to be had: IPAddress p-10-0-0-1 is there already"),
            "Served": ("Normal", "IPAddress p-10-0-0-2 has 10.0.0.2"),
        }
    assert f"IPPool {unserved.name}/p: 10.0.0.1 is not to be had: the name p-10-0-0-1 is taken" in caplog.messages
