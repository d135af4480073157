"""6.4: an IPPool that other namespaces claim from, and an operator that does not see all of them."""

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL, OWN_ADDRESS
from tenure.integrations.kubernetes.runtime.resource_types import uid_of
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.in_cluster.in_cluster_stage import PoolUser
from tests.integrations.kubernetes.metal3.serving import Namespace, RefusedByServer, operator_in, until


def claim(space: Namespace, name: str, owner: Namespace, **metadata: object) -> dict[str, object]:
    """Create a claim on the pool ``p`` of another namespace."""
    return space.create(IP_CLAIM, name, {"pool": {"name": "p", "namespace": owner.name}}, **metadata)


def test_6_4_claims_of_the_named_namespaces_are_served_and_others_are_not(user: PoolUser, neighbour: PoolUser) -> None:
    home, other = user.space, neighbour.space
    home.pool("p", "10.0.0.1-10.0.0.9", preAllocations={"c2": "10.0.0.5", f"{other.name}/c3": "10.0.0.7"})
    home.claim("c1")
    assert home.ip("c1") == "10.0.0.1"
    claim(other, "c1", home, annotations={OWN_ADDRESS: "10.0.0.2"})
    assert "does not name this one" in other.message("c1", "IPPool p is in another namespace")
    home.claim("next")
    assert home.ip("next") == "10.0.0.2"  # what a claim that may not have it names is free
    spec = {"address": "10.0.0.3", "pool": {"name": "p", "namespace": home.name}, "claim": {"name": "x"}}
    with pytest.raises(RefusedByServer, match="does not serve namespace"):
        other.create(IP_ADDRESS, "forged", spec)
    other.delete(IP_CLAIM, "c1")
    other.gone(IP_CLAIM, "c1")

    home.patch(IP_POOL, "p", {"spec": {"tenure": {"namespaces": [other.name]}}})
    for name in ("c1", "c2", "c3"):
        claim(other, name, home)
    assert [other.ip(name) for name in ("c1", "c2", "c3")] == ["10.0.0.3", "10.0.0.4", "10.0.0.7"]
    address = other.served("c1")
    assert address["metadata"]["namespace"] == other.name
    assert [each["kind"] for each in address["metadata"]["ownerReferences"]] == ["IPClaim"]
    assert address["spec"]["pool"] == {"name": "p", "namespace": home.name}
    until(lambda: home.indexes().get(f"{other.name}/c1") == "10.0.0.3")
    assert home.indexes()["c1"] == "10.0.0.1"
    home.delete(IP_POOL, "p")
    for name in ("c1", "next"):
        home.delete(IP_CLAIM, name)
        home.gone(IP_CLAIM, name)
    assert home.get(IP_POOL, "p") is not None  # it waits for the claims of the other namespace
    for name in ("c1", "c2", "c3"):
        other.delete(IP_CLAIM, name)
    home.gone(IP_POOL, "p")
    assert other.all(IP_ADDRESS) == []


def test_6_4_a_pool_that_stops_sharing_takes_nothing_away(user: PoolUser, neighbour: PoolUser) -> None:
    home, other = user.space, neighbour.space
    home.pool("p", "10.0.0.1-10.0.0.9", tenure={"namespaces": ["*"]})
    claim(other, "c1", home)
    before = other.served("c1")
    home.patch(IP_POOL, "p", {"spec": {"tenure": {"namespaces": None}}})
    claim(other, "c2", home)
    assert other.message("c2", "IPPool p is in another namespace")
    home.claim("c1")

    assert home.ip("c1") == "10.0.0.2"
    assert uid_of(other.served("c1")) == uid_of(before)
    other.delete(IP_CLAIM, "c1")
    other.gone(IP_CLAIM, "c1")
    assert other.all(IP_ADDRESS) == []


def test_6_4_an_operator_of_single_namespaces_gives_nothing_of_a_pool_that_others_claim_from(kube: KubeServer) -> None:
    """It does not see what the others have been given; it serves again when the pool names only what it sees."""
    with fresh_namespace(kube) as home, fresh_namespace(kube) as seen, fresh_namespace(kube) as unseen:
        spaces = Namespace(kube, home), Namespace(kube, seen)
        with operator_in(kube, home, seen):
            spaces[0].pool("p", "10.0.0.1-10.0.0.9", tenure={"namespaces": [seen, unseen]})
            claim(spaces[1], "c1", spaces[0])
            message = spaces[1].message("c1", "IPPool p: it is shared with namespaces in which this operator does not")
            assert message.endswith(f": {unseen}")
            until(lambda: "NamespacesUnseen" in [each["reason"] for each in spaces[0].status().get("conditions", ())])

            spaces[0].patch(IP_POOL, "p", {"spec": {"tenure": {"namespaces": [seen]}}})
            assert spaces[1].ip("c1") == "10.0.0.1"
