"""Cluster API's claims on an IPPool: cases F of the conformance list, C11, C16, C17, and what Metal3's claims have."""

import time
from collections.abc import Iterator, Sequence
from datetime import datetime

import pytest

from tenure.integrations.kubernetes.metal3.caches import followed_objects
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS_FINALIZER,
    CLUSTER_API_CLAIM,
    CLUSTER_API_CLAIM_FINALIZER,
    IP_CLAIM,
    IP_POOL,
    MADE_FOR,
    MOVE,
    OWN_ADDRESS,
    PAUSED,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.discovered_group import DiscoveredGroup, MakeGroup
from tenure.integrations.kubernetes.runtime.resource_types import CUSTOM_RESOURCE_DEFINITION, uid_of
from tests.infrastructure.kube import KubeServer, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import IPAM, definitions, install_cluster_api
from tests.integrations.kubernetes.metal3.claim_specs import OUR_POOLS
from tests.integrations.kubernetes.metal3.cluster_api_user import ClusterApiUser, ready
from tests.integrations.kubernetes.metal3.old_clusters import V1BETA1, cluster
from tests.integrations.kubernetes.metal3.serving import Namespace, RefusedByServer, operator_in, until


@pytest.fixture
def user(served: Namespace) -> ClusterApiUser:
    """Give a user of a served namespace."""
    return ClusterApiUser(served)


def test_kd6_a_claim_has_the_label_by_which_clusterctl_moves_it(user: ClusterApiUser) -> None:
    """From the webhook; where it is missing, as on claims from before, from the operator. Its address needs none."""
    user.space.pool("p", "10.0.0.10-10.0.0.12", prefix=24)
    made = user.claim("c1", labels={"mine": "yes"})
    assert made["metadata"]["labels"] == {"mine": "yes", MOVE: ""}
    until(lambda: OWN_ADDRESS in user.get("c1")["metadata"].get("annotations", {}))
    user.space.patch(CLUSTER_API_CLAIM, "c1", {"metadata": {"labels": None}})

    until(lambda: MOVE in (user.get("c1")["metadata"].get("labels") or {}))
    assert MOVE not in user.served("c1")["metadata"]["labels"]


def test_f1_f5_a_claim_gets_an_address_object_of_its_own_kind(user: ClusterApiUser) -> None:
    pool = user.space.pool("p", "10.0.0.10-10.0.0.12", prefix=24, gateway="10.0.0.1")
    claim = user.claim("c1", labels={"mine": "yes"})
    address = user.served("c1")

    assert address["metadata"]["name"] == "p-10-0-0-10"
    assert address["metadata"]["labels"] == {"mine": "yes"}
    assert address["metadata"]["finalizers"] == [CLUSTER_API_ADDRESS_FINALIZER]
    assert address["metadata"]["annotations"][MADE_FOR] == f"{user.space.name}/c1"
    assert address["spec"] == {
        "address": "10.0.0.10", "prefix": 24, "gateway": "10.0.0.1", "claimRef": {"name": "c1"},
        "poolRef": {**OUR_POOLS, "name": "p"},
    }  # fmt: skip
    assert address["metadata"]["ownerReferences"] == [
        {
            "apiVersion": IP_POOL.api_version, "kind": "IPPool", "name": "p", "uid": uid_of(pool),
            "controller": False, "blockOwnerDeletion": True,
        },
        {
            "apiVersion": CLUSTER_API_CLAIM.api_version, "kind": "IPAddressClaim", "name": "c1", "uid": uid_of(claim),
            "controller": True, "blockOwnerDeletion": True,
        },
    ]  # fmt: skip
    kept = until(lambda: user.get("c1") if OWN_ADDRESS in user.get("c1")["metadata"].get("annotations", {}) else None)
    assert kept["metadata"]["finalizers"] == [CLUSTER_API_CLAIM_FINALIZER]
    assert kept["metadata"]["annotations"][OWN_ADDRESS] == "10.0.0.10"
    condition = ready(kept)
    assert condition["reason"]
    assert condition["observedGeneration"] == kept["metadata"]["generation"]
    assert datetime.fromisoformat(condition["lastTransitionTime"])
    until(lambda: user.space.indexes() == {"c1": "10.0.0.10"})


def test_f1_a_pool_without_prefix_and_gateway_serves_as_metal3_does(user: ClusterApiUser) -> None:
    user.space.pool("p", "10.0.0.10-10.0.0.12")
    user.claim("c1")

    assert user.served("c1")["spec"]["prefix"] == 0
    assert "gateway" not in user.served("c1")["spec"]
    assert "no prefix" in ready(user.get("c1"))["message"]


def test_f2_c16_c17_a_full_pool_is_a_condition_until_there_is_space(
    user: ClusterApiUser,
) -> None:
    user.space.pool("p", "10.0.0.1-10.0.0.1")
    user.claim("c1")
    user.served("c1")
    user.claim("c2")
    assert user.unserved("c2", "PoolExhausted") == "Exhausted IP Pools"
    assert ready(user.get("c2"))["observedGeneration"] == user.get("c2")["metadata"]["generation"]
    user.claim("c3", annotations={"ipAddress": "10.9.9.9"})
    assert "out of range" in user.unserved("c3", "AllocationFailed")
    user.claim("c4", "none")
    assert user.unserved("c4", "PoolNotReady") == "IPPool none does not exist; the claim is served as soon as it does"

    user.delete("c1")
    assert user.ip("c2") == "10.0.0.1"
    user.space.gone(user.claims, "c1")
    user.space.pool("none", "10.5.0.1-10.5.0.1")
    assert user.ip("c4") == "10.5.0.1"


def test_f2_conditions_of_others_stay(user: ClusterApiUser) -> None:
    user.claim("c1")
    user.unserved("c1", "PoolNotReady")
    other = {
        "type": "Theirs", "status": "True", "reason": "Any", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    user.space.patch(
        user.claims, "c1", [{"op": "add", "path": "/status/conditions/-", "value": other}], "status", patch="json"
    )
    user.space.pool("p", "10.0.0.1-10.0.0.9")
    user.served("c1")

    assert other in user.get("c1")["status"]["conditions"]


@pytest.mark.parametrize(
    "reference",
    [
        {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "p"},
        {"apiGroup": "ipam.metal3.io", "kind": "OtherPool", "name": "p"},
        {"apiGroup": "ipam.example.org", "kind": "IPPool", "name": "p"},
    ],
    ids=["in-cluster", "another kind", "another group"],
)
def test_f4_a_claim_for_a_pool_of_others_is_not_touched(user: ClusterApiUser, reference: dict[str, str]) -> None:
    user.space.pool("p", "10.0.0.1-10.0.0.9")
    made = user.space.create(user.claims, "theirs", {"poolRef": reference}, annotations={"ipAddress": "node-7"})
    assert "finalizers" not in made["metadata"]
    user.claim("ours")
    user.served("ours")
    user.space.create(
        user.addresses,
        "theirs",
        {"address": "10.0.0.2", "prefix": 24, "poolRef": reference, "claimRef": {"name": "theirs"}},
    )
    time.sleep(0.5)

    found = user.get("theirs")
    assert found == {**made, "metadata": found["metadata"]}
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    user.claim("second")
    assert user.ip("second") == "10.0.0.2", "an address of another provider's pool is not one of ours"


@pytest.mark.parametrize("by", ["clusterName", "label"])
def test_f6_a_claim_waits_for_its_own_cluster_and_rests_while_that_is_paused(clustered: Namespace, by: str) -> None:
    user = ClusterApiUser(clustered)
    user.space.pool("p", "10.0.0.1-10.0.0.9")
    label = {"cluster.x-k8s.io/cluster-name": "blue"}
    made = user.claim("c1", labels=label) if by == "label" else user.claim("c1", cluster="blue")
    user.claim("other")
    assert user.ip("other") == "10.0.0.1", "a cluster that is missing does not stop the pool for others (KD11)"
    time.sleep(0.3)
    assert user.get("c1")["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]

    cluster(clustered, "blue", paused=True)
    time.sleep(0.5)
    assert not user.get("c1").get("status")
    clustered.patch(V1BETA1, "blue", {"spec": {"paused": False}})
    assert user.ip("c1") == "10.0.0.2"

    clustered.patch(V1BETA1, "blue", {"metadata": {"annotations": {PAUSED: ""}}})
    time.sleep(0.3)
    user.delete("c1")
    time.sleep(0.5)
    assert user.get("c1")["metadata"]["deletionTimestamp"]
    clustered.delete(V1BETA1, "blue")
    clustered.gone(user.claims, "c1")
    clustered.gone(user.addresses, "p-10-0-0-2")


def test_a_claim_without_a_cluster_rests_while_the_pools_cluster_is_paused(clustered: Namespace) -> None:
    user = ClusterApiUser(clustered)
    cluster(clustered, "blue", paused=True)
    clustered.pool("p", "10.0.0.1-10.0.0.9", clusterName="blue")
    user.claim("c1")
    time.sleep(0.5)
    assert not user.get("c1").get("status")
    clustered.patch(V1BETA1, "blue", {"spec": {"paused": False}})
    assert user.ip("c1") == "10.0.0.1"


def test_a_claim_and_a_pool_are_paused_by_their_own_annotation(user: ClusterApiUser) -> None:
    user.space.pool("p", "10.0.0.1-10.0.0.9")
    user.claim("c1", annotations={PAUSED: ""})
    user.claim("c2")
    user.served("c2")
    assert not user.get("c1").get("status")
    user.space.patch(user.claims, "c1", {"metadata": {"annotations": {PAUSED: None}}})
    assert user.ip("c1") == "10.0.0.2"
    user.space.patch(IP_POOL, "p", {"metadata": {"annotations": {PAUSED: ""}}})
    time.sleep(0.3)
    user.claim("c3")
    time.sleep(0.3)
    assert not user.get("c3").get("status")
    user.space.patch(IP_POOL, "p", {"metadata": {"annotations": {PAUSED: None}}})
    assert user.ip("c3") == "10.0.0.3"


def test_c11_c12_c15_pre_allocations_and_wishes_count_for_both_kinds(user: ClusterApiUser) -> None:
    user.space.pool("p", "10.0.0.1-10.0.0.9", preAllocations={"c9": "10.0.0.7"})
    user.claim("c9")
    assert user.ip("c9") == "10.0.0.7"
    user.claim("c5", annotations={"ipAddress": "10.0.0.5"})
    assert user.ip("c5") == "10.0.0.5"
    user.space.claim("c9")
    assert user.space.message("c9", "Pre").startswith("Pre-allocated IP 10.0.0.7 is held by IPAddressClaim c9")
    user.delete("c9")
    assert user.space.ip("c9") == "10.0.0.7"
    with pytest.raises(RefusedByServer, match=r"metadata\.annotations\.ipAddress"):
        user.claim("bad", annotations={"ipAddress": "banana"})


def test_two_claims_of_one_name_are_two_claims(user: ClusterApiUser) -> None:
    user.space.pool("p", "10.0.0.1-10.0.0.9")
    user.space.claim("twin")
    user.claim("twin")
    assert {user.space.ip("twin"), user.ip("twin")} == {"10.0.0.1", "10.0.0.2"}
    kept = user.ip("twin")
    user.space.delete(IP_CLAIM, "twin")
    user.space.gone(IP_CLAIM, "twin")
    until(lambda: user.space.indexes() == {"twin": kept})
    assert user.ip("twin") == kept


def test_ks2_ks3_addresses_made_by_hand_are_respected_and_adopted(user: ClusterApiUser) -> None:
    user.space.pool("p", "10.0.0.1-10.0.0.9")
    user.address("ruled-out", "10.0.0.1", "nobody")
    user.address("mine", "10.0.0.4", "c1")
    user.claim("c1")
    adopted = user.served("c1")
    assert adopted["metadata"]["name"] == "mine"
    until(lambda: _kept(user, "mine")[1] == [CLUSTER_API_ADDRESS_FINALIZER])
    pool, claim = user.served("c1")["metadata"]["ownerReferences"]
    assert (pool["controller"], pool["blockOwnerDeletion"]) == (False, True)
    assert (claim["controller"], claim["blockOwnerDeletion"]) == (True, True)
    user.space.claim("c2")
    assert user.space.ip("c2") == "10.0.0.2"
    with pytest.raises(RefusedByServer, match="is held by IPAddress p-10-0-0-2 for IPClaim c2"):
        user.address("second", "10.0.0.2", "any")


def test_kp9_what_is_removed_by_force_comes_back(user: ClusterApiUser) -> None:
    user.space.pool("p", "10.0.0.1-10.0.0.9")
    user.claim("c1")
    before = user.served("c1")
    until(lambda: OWN_ADDRESS in (user.get("c1")["metadata"].get("annotations") or {}))
    user.space.patch(user.addresses, "p-10-0-0-1", {"metadata": {"finalizers": None, "ownerReferences": None}})
    until(lambda: _kept(user, "p-10-0-0-1") == (before["metadata"]["ownerReferences"], [CLUSTER_API_ADDRESS_FINALIZER]))
    until(lambda: _removed(user, "p-10-0-0-1"))
    until(lambda: uid_of(user.space.get(user.addresses, "p-10-0-0-1") or before) != uid_of(before))
    again = user.served("c1")
    assert (again["spec"], uid_of(again) != uid_of(before)) == (before["spec"], True)
    user.space.patch(user.claims, "c1", {"status": {"addressRef": {"name": "forged"}}}, "status")
    until(lambda: user.get("c1")["status"]["addressRef"]["name"] == "p-10-0-0-1")


def test_d1_d2_d4_an_address_goes_with_its_claim_and_not_before(user: ClusterApiUser) -> None:
    user.space.pool("p", "10.0.0.1-10.0.0.9")
    user.claim("c1", finalizers=["example.org/in-use"])
    user.served("c1")
    user.space.delete(user.addresses, "p-10-0-0-1")
    user.delete("c1")
    time.sleep(0.3)
    assert user.space.get(user.addresses, "p-10-0-0-1")
    finalizers = [each for each in user.get("c1")["metadata"]["finalizers"] if each != "example.org/in-use"]
    user.space.patch(user.claims, "c1", {"metadata": {"finalizers": finalizers}})
    user.space.gone(user.claims, "c1")
    assert user.space.get(user.addresses, "p-10-0-0-1") is None
    until(lambda: user.space.indexes() == {})


@pytest.mark.parametrize(("chosen", "ours", "theirs"), [("metal3", True, False), ("capi", False, True)])
def test_kd12_only_the_kinds_that_are_chosen_are_served(
    kube: KubeServer, unserved: Namespace, chosen: str, ours: bool, theirs: bool
) -> None:
    """What the other kind holds is held all the same."""
    user = ClusterApiUser(unserved)
    unserved.pool("p", "10.0.0.1-10.0.0.9")
    unserved.address("by-hand", "10.0.0.1", "any")
    user.address("by-hand", "10.0.0.2", "any")
    with operator_in(kube, unserved.name, controllers=(chosen,)):
        made = {"metal3": unserved.claim("c1"), "capi": user.claim("c1")}
        assert {name for name, claim in made.items() if claim["metadata"].get("finalizers")} == {chosen}
        assert (unserved.ip if ours else user.ip)("c1") == "10.0.0.3"
        time.sleep(0.3)
        assert bool((unserved.get(IP_CLAIM, "c1") or {}).get("status")) is ours
        assert bool(user.get("c1").get("status")) is theirs


class SoonDiscovered(DiscoveredGroup):
    """A kind that is looked for every half second, so that a test need not wait for ten."""

    def __init__(self, client: ApiClient, group: str, plural: str, versions: Sequence[str], make: MakeGroup) -> None:
        super().__init__(client, group, plural, versions, make, looks_every_s=0.5)


@pytest.fixture
def older_kube(monkeypatch: pytest.MonkeyPatch) -> Iterator[KubeServer]:
    """Give a server without Cluster API's kinds, which are soon found; its tests are of the group ``private-kube``."""
    monkeypatch.setattr(followed_objects, "DiscoveredGroup", SoonDiscovered)
    with private_kube() as server:
        install(server)
        yield server


@pytest.mark.one_worker("private-kube")
@pytest.mark.parametrize("version", ["v1beta1", pytest.param("v1alpha1", marks=pytest.mark.proof)])
def test_kp6_an_older_server_is_served_in_its_version_once_its_kinds_come(older_kube: KubeServer, version: str) -> None:
    """The operator starts without Cluster API's definitions."""
    space = Namespace(older_kube, "default")
    user = ClusterApiUser(space, version)
    with operator_in(older_kube, "default"):
        space.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
        space.claim("c1")
        assert space.ip("c1") == "10.0.0.1"
        install_cluster_api(older_kube, *IPAM, only=version)
        user.claim("c1")
        address = user.served("c1")
        assert address["spec"]["address"] == "10.0.0.2"
        assert address["apiVersion"] == f"ipam.cluster.x-k8s.io/{version}"
        assert address["metadata"]["ownerReferences"][1]["apiVersion"] == f"ipam.cluster.x-k8s.io/{version}"
        user.claim("c2", annotations={"ipAddress": "10.9.9.9"})
        assert "out of range" in user.unserved("c2", "AllocationFailed")
        assert ready(user.get("c2"))["severity"] == "Warning"
        user.delete("c1")
        space.gone(user.claims, "c1")
        assert space.get(user.addresses, "p-10-0-0-2") is None


@pytest.mark.one_worker("private-kube")
def test_kp6_a_version_that_is_not_served_any_more_frees_nothing(older_kube: KubeServer) -> None:
    """An upgrade of Cluster API: what was read in the former version is held until the next one is read."""
    space = Namespace(older_kube, "default")
    old, new = ClusterApiUser(space, "v1beta1"), ClusterApiUser(space, "v1beta2")
    install_cluster_api(older_kube, *IPAM, only="v1beta1")
    with operator_in(older_kube, "default", webhooks=False) as controller:
        space.pool("p", "10.0.0.1-10.0.0.3", prefix=24)
        old.claim("c1")
        address = old.served("c1")
        assert address["spec"]["address"] == "10.0.0.1"
        for document in definitions(*IPAM):
            versions = [{**each, "storage": each["name"] == "v1beta1"} for each in document["spec"]["versions"]]
            served = [{**each, "served": each["name"] != "v1beta1"} for each in versions]
            space.patch(CUSTOM_RESOURCE_DEFINITION, document["metadata"]["name"], {"spec": {"versions": served}})
        for name, ip in (("m1", "10.0.0.2"), ("m2", "10.0.0.3")):
            space.claim(name)
            assert space.ip(name) == ip
        space.claim("m3")
        space.message("m3", "Exhausted")
        objects = controller.caches.objects
        until(lambda: objects.addresses_of(PoolId("default", "p"))[-1]["apiVersion"].endswith("v1beta2"))
        assert uid_of(new.served("c1")) == uid_of(address)
        new.delete("c1")
        assert space.ip("m3") == "10.0.0.1"
        space.gone(new.claims, "c1")


def _kept(user: ClusterApiUser, name: str) -> tuple[object, object]:
    metadata = (user.space.get(user.addresses, name) or {"metadata": {}})["metadata"]
    return metadata.get("ownerReferences"), metadata.get("finalizers")


def _removed(user: ClusterApiUser, name: str) -> bool:
    """Remove an address whatever keeps it; the operator may put its finalizer back in between."""
    user.space.delete(user.addresses, name)
    user.space.patch(user.addresses, name, {"metadata": {"finalizers": None}})
    return True
