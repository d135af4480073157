"""Pools that belong to a cluster, pauses and filters: cases E of the conformance list, KD11."""

import time

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL, OWN_ADDRESS, PAUSED
from tenure.integrations.kubernetes.runtime.resource_types import uid_of
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.old_clusters import V1BETA1, cluster
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in, until


def test_e1_e10_a_pool_of_a_cluster_is_labelled_and_owned(clustered: Namespace) -> None:
    made = cluster(clustered, "c")
    old = {"apiVersion": "cluster.x-k8s.io/v1alpha4", "kind": "Cluster", "name": "c", "uid": "old"}
    clustered.pool("p", "10.0.0.1-10.0.0.9", clusterName="c")
    clustered.create(
        IP_POOL, "moved", {"namePrefix": "m", "clusterName": "c", "pools": [{"subnet": "10.1.0.0/24"}]},
        ownerReferences=[old],
    )  # fmt: skip
    clustered.claim("c1")
    clustered.served("c1")
    clustered.claim("c2", "moved")
    clustered.served("c2")
    metadata = (clustered.get(IP_POOL, "p") or {})["metadata"]
    assert metadata["labels"] == {"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/provider": "ipam-metal3"}
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner.get("controller")) == (
        "Cluster",
        "c",
        uid_of(made),
        False,
    )
    assert len((clustered.get(IP_POOL, "moved") or {})["metadata"]["ownerReferences"]) == 1


def test_6_17_a_pool_that_outlives_its_cluster_is_not_owned_and_goes_on_without_it(clustered: Namespace) -> None:
    def owners() -> list[str]:
        return [each["name"] for each in (clustered.get(IP_POOL, "p") or {})["metadata"].get("ownerReferences") or ()]

    cluster(clustered, "c")
    clustered.pool("p", "10.0.0.1-10.0.0.9", clusterName="c", tenure={"outlivesCluster": True})
    clustered.claim("c1")
    clustered.served("c1")
    assert owners() == []
    clustered.patch(IP_POOL, "p", {"spec": {"tenure": {"outlivesCluster": False}}})
    until(lambda: owners() == ["c"])
    clustered.patch(IP_POOL, "p", {"spec": {"tenure": {"outlivesCluster": True}}})
    until(lambda: owners() == [])
    clustered.delete(V1BETA1, "c")
    clustered.gone(V1BETA1, "c")
    clustered.claim("c2")
    assert (clustered.ip("c2"), clustered.ip("c1")) == ("10.0.0.2", "10.0.0.1")


def test_e2_nothing_is_given_before_the_cluster_is_there(clustered: Namespace) -> None:
    pool = clustered.pool("p", "10.0.0.1-10.0.0.9", clusterName="c")
    clustered.claim("c1")
    until(lambda: clustered.status().get("conditions"))
    assert clustered.status()["conditions"][0]["reason"] == "ClusterMissing"
    assert clustered.all(IP_ADDRESS) == []
    assert until(lambda: clustered.events(pool))[0]["reason"] == "ClusterMissing"
    cluster(clustered, "c")
    assert clustered.ip("c1") == "10.0.0.1"
    until(lambda: clustered.status()["conditions"][0]["reason"] == "Serving")


def versions(space: Namespace) -> list[str]:
    return [each["metadata"]["resourceVersion"] for kind in (IP_POOL, IP_CLAIM, IP_ADDRESS) for each in space.all(kind)]


@pytest.mark.parametrize("paused", ["cluster", "pool"])
def test_e3_e4_while_paused_no_object_of_the_pool_changes(clustered: Namespace, paused: str) -> None:
    """Whatever users do meanwhile: claims come and go, a status is forged, and finalizers and owners are removed."""

    def pause(is_paused: bool) -> None:
        if paused == "pool":
            clustered.patch(IP_POOL, "p", {"metadata": {"annotations": {PAUSED: "" if is_paused else None}}})
        else:
            clustered.patch(V1BETA1, "c", {"spec": {"paused": is_paused}})

    cluster(clustered, "c")
    clustered.pool("p", "10.0.0.1-10.0.0.9", clusterName="c")
    for name in ("c1", "c2"):
        clustered.claim(name)
        clustered.served(name)
    until(lambda: len(clustered.indexes()) == 2 and not clustered.status().get("reserving"))
    address = clustered.served("c1")
    until(lambda: OWN_ADDRESS in (clustered.get(IP_CLAIM, "c2") or {})["metadata"].get("annotations", {}))
    pause(True)
    time.sleep(0.3)
    clustered.claim("c3")
    clustered.claim("going")
    for name in ("c2", "going"):
        clustered.delete(IP_CLAIM, name)
    clustered.patch(IP_CLAIM, "c1", {"status": {"address": None}}, "status")
    clustered.patch(IP_ADDRESS, "p-10-0-0-1", {"metadata": {"finalizers": None, "ownerReferences": None}})
    clustered.patch(IP_POOL, "p", {"status": {"indexes": {"x": "10.0.0.9"}}}, "status")
    before = versions(clustered)
    time.sleep(0.7)
    assert versions(clustered) == before
    assert len(before) == 7
    pause(False)
    given = clustered.ip("c3")
    for name in ("c2", "going"):
        clustered.gone(IP_CLAIM, name)
    mended = until(lambda: each if "finalizers" in (each := clustered.served("c1"))["metadata"] else None)
    for name in ("uid", "finalizers", "ownerReferences"):
        assert mended["metadata"][name] == address["metadata"][name]
    until(lambda: clustered.indexes() == {"c1": "10.0.0.1", "c3": given})


def test_kd10_kd11_one_paused_cluster_does_not_stop_a_shared_pool_and_its_claims_keep_their_place(
    clustered: Namespace,
) -> None:
    """What came after the paused claim is served before it, but only for as long as it is paused."""
    cluster(clustered, "still", paused=True)
    cluster(clustered, "busy")
    clustered.pool("p", "10.0.0.1-10.0.0.1")
    name = "cluster.x-k8s.io/cluster-name"
    clustered.claim("c1", labels={name: "still"})
    clustered.claim("c2", labels={name: "busy"})
    assert clustered.ip("c2") == "10.0.0.1"
    clustered.claim("c3", labels={name: "busy"})
    assert clustered.message("c3", "E") == "Exhausted IP Pools"
    assert "status" not in (clustered.get(IP_CLAIM, "c1") or {})
    clustered.patch(V1BETA1, "still", {"spec": {"paused": False}})
    assert clustered.message("c1", "E") == "Exhausted IP Pools"
    clustered.delete(IP_CLAIM, "c2")
    assert clustered.ip("c1") == "10.0.0.1"
    assert clustered.message("c3") == "Exhausted IP Pools"
    clustered.delete(IP_CLAIM, "c1")
    assert clustered.ip("c3") == "10.0.0.1"


def test_e6_a_pool_goes_although_its_cluster_is_gone(clustered: Namespace) -> None:
    cluster(clustered, "c")
    clustered.pool("p", "10.0.0.1-10.0.0.9", clusterName="c")
    clustered.claim("c1")
    clustered.served("c1")
    clustered.delete(V1BETA1, "c")
    clustered.delete(IP_POOL, "p")
    clustered.delete(IP_CLAIM, "c1")
    clustered.gone(IP_POOL, "p")


def test_e7_objects_without_the_label_are_left_alone(kube: KubeServer, unserved: Namespace) -> None:
    label = {"cluster.x-k8s.io/watch-filter": "x"}
    with operator_in(kube, unserved.name, watch_filter="x"):
        entries = {"namePrefix": "p", "pools": [{"start": "10.0.0.1", "end": "10.0.0.9"}]}
        unserved.create(IP_POOL, "other", entries)
        unserved.create(IP_POOL, "p", entries, labels=label)
        other = unserved.claim("other", "other", labels=label)
        plain = unserved.claim("plain")
        assert "finalizers" not in plain["metadata"]
        unserved.claim("c1", labels=label)
        assert unserved.ip("c1") == "10.0.0.1"
        time.sleep(0.3)
        for before in (other, plain):
            after = unserved.get(IP_CLAIM, before["metadata"]["name"])
            assert after is not None
            assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
