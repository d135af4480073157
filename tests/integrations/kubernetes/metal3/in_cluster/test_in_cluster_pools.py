"""Section 3.3: the in-cluster provider's pools, its published examples included, on a real API server with webhooks."""

from typing import Any

import pytest
import yaml

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    GLOBAL_POOL,
    GLOBAL_PREFIX_POOL,
    IN_CLUSTER_ADDRESS_FINALIZER,
    IN_CLUSTER_CLAIM_FINALIZER,
    IN_CLUSTER_POOL,
    IN_CLUSTER_POOL_FINALIZER,
    PREFIX_POOL,
    SKIPS_DELETE_CHECK,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import IN_CLUSTER_POOLS
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, uid_of
from tests.integrations.kubernetes.metal3.in_cluster.in_cluster_stage import PoolUser, fresh_name, module, ready
from tests.integrations.kubernetes.metal3.serving import RefusedByServer, until

TYPES = {each.type.kind: each.type for each in IN_CLUSTER_POOLS}
FIRST_OF = {
    "10.0.0.2-10.0.0.254": "10.0.0.2", "10.0.0.0/24": "10.0.0.2", "fd00::/48": "fd00::",
    "reserved": "10.0.0.0",
}  # fmt: skip
"""What the first claim gets, by the first entry of a published pool."""


def published() -> list[Object]:
    """Return the pools of the provider's first page and of its samples, as they are published."""
    blocks = (module() / "README.md").read_text("utf-8").split("```yaml\n")[1:]
    samples = sorted((module() / "config" / "samples").glob("ipam_v1alpha2_*.yaml"))
    texts = [*(block.split("```")[0] for block in blocks), *(path.read_text("utf-8") for path in samples)]
    return [document for each in texts for document in yaml.safe_load_all(each) if document]


@pytest.mark.parametrize("number", range(6))
def test_3_3_every_published_pool_applies_unchanged_and_serves(user: PoolUser, number: int) -> None:
    pool = published()[number]
    type, name = TYPES[pool["kind"]], pool["metadata"]["name"]
    user.space.ask("POST", type.path(user.space.name) + "?fieldValidation=Strict", pool)
    claim = yaml.safe_load((module() / "config" / "samples" / "claim.yaml").read_text("utf-8"))
    claim["spec"]["poolRef"] |= {"kind": type.kind, "name": name}
    user.space.ask("POST", f"/apis/{claim['apiVersion']}/namespaces/{user.space.name}/ipaddressclaims", claim)

    entry = (pool["spec"].get("addresses") or pool["spec"]["prefixes"])[0]
    is_reserved = pool["spec"].get("allocateReservedIPAddresses", False)
    assert user.ip("my-claim") == FIRST_OF["reserved" if is_reserved else entry]
    user.release("my-claim")
    user.space.ask("DELETE", type.path(user.space.name, name))
    user.space.gone(type, name)


def test_3_3_a_claim_gets_an_address_of_its_own_name_and_all_say_that_they_are_ready(user: PoolUser) -> None:
    pool = user.pool("p", "10.0.0.10-10.0.0.12", gateway="10.0.0.1")
    claim = user.claim("c1", "p")
    address = user.served("c1")

    assert pool["metadata"]["finalizers"] == [IN_CLUSTER_POOL_FINALIZER]
    assert claim["metadata"]["finalizers"] == [IN_CLUSTER_CLAIM_FINALIZER]
    assert address["metadata"]["finalizers"] == [IN_CLUSTER_ADDRESS_FINALIZER]
    assert address["metadata"]["name"] == "c1"
    assert address["spec"] == {
        "address": "10.0.0.10", "prefix": 24, "gateway": "10.0.0.1", "claimRef": {"name": "c1"},
        "poolRef": {"apiGroup": IN_CLUSTER_POOL.group, "kind": "InClusterIPPool", "name": "p"},
    }  # fmt: skip
    flags = {
        each["kind"]: (each["uid"], each["controller"], each["blockOwnerDeletion"])
        for each in address["metadata"]["ownerReferences"]
    }
    assert flags == {"InClusterIPPool": (uid_of(pool), False, True), "IPAddressClaim": (uid_of(claim), True, True)}
    until(lambda: user.counts("p") == {"total": 3, "free": 2, "used": 1, "outOfRange": 0})
    assert until(lambda: ready(user.read(IN_CLUSTER_POOL, "p")))["reason"] == "Serving"


def test_3_3_a_full_pool_is_a_waiting_room_and_what_is_released_serves_the_first(user: PoolUser) -> None:
    user.pool("p", "10.0.0.10")
    user.claim("c1", "p")
    assert user.ip("c1") == "10.0.0.10"
    user.claim("c2", "p")
    assert user.unserved("c2", "PoolExhausted")
    until(lambda: ready(user.read(IN_CLUSTER_POOL, "p")).get("reason") == "Exhausted")
    user.release("c1")

    assert user.ip("c2") == "10.0.0.10"
    user.claim("c3", "nowhere")
    assert "InClusterIPPool nowhere does not exist" in user.unserved("c3", "PoolNotReady")
    user.pool("nowhere", "10.0.0.10", addressReuseGracePeriodSeconds=0)
    assert user.ip("c3") == "10.0.0.10"


BAD: list[tuple[ResourceType, dict[str, Any], str]] = [
    (IN_CLUSTER_POOL, {"addresses": [], "prefix": 24}, "spec.addresses: Invalid value: []: addresses is required"),
    (GLOBAL_POOL, {"addresses": ["x"], "prefix": 24}, 'spec.addresses: Invalid value: "x": provided address is not'),
    (IN_CLUSTER_POOL, {"addresses": ["10.0.0.1", "fd00::1"], "prefix": 24}, "are of mixed IP families"),
    (IN_CLUSTER_POOL, {"addresses": ["10.0.0.1", "10.0.1.1"], "prefix": 24}, "a different subnet than others"),
    (
        IN_CLUSTER_POOL,
        {"addresses": ["10.0.0.1"], "prefix": 24, "addressReuseGracePeriodSeconds": 1 << 40},
        "spec.addressReuseGracePeriodSeconds: Invalid value: 1099511627776: addressReuseGracePeriodSeconds must",
    ),
    (PREFIX_POOL, {"prefixes": ["10.0.0.0/8"]}, "only IPv6 prefixes are supported"),
    (GLOBAL_PREFIX_POOL, {"prefixes": ["fd00::/72"]}, "must be <= allocationPrefixLength (64)"),
]


@pytest.mark.parametrize(("type", "spec", "reason"), BAD)
def test_3_3_what_cannot_be_served_is_refused_with_field_and_reason(
    user: PoolUser, type: ResourceType, spec: dict[str, Any], reason: str
) -> None:
    with pytest.raises(RefusedByServer) as refused:
        user.create(type, "bad", spec)

    assert refused.value.code == 422
    assert reason in str(refused.value)
    assert user.read(type, "bad") == {}


def test_3_3_a_change_that_takes_addresses_from_claims_is_refused_and_so_is_the_deletion(user: PoolUser) -> None:
    user.pool("p", "10.0.0.10-10.0.0.19")
    for name in ("c1", "c2"):
        user.claim(name, "p")
        user.served(name)
    for spec in ({"addresses": ["10.0.0.12-10.0.0.19"]}, {"excludedAddresses": ["10.0.0.8/29"]}):
        with pytest.raises(RefusedByServer) as refused:
            user.space.patch(IN_CLUSTER_POOL, "p", {"spec": spec})
        assert refused.value.code == 400
        assert "pool addresses do not contain allocated addresses: [10.0.0.10-10.0.0.11]" in str(refused.value)
    with pytest.raises(RefusedByServer, match="Pool has IPAddresses allocated") as kept:
        user.space.delete(IN_CLUSTER_POOL, "p")
    assert kept.value.code == 400
    user.space.patch(IN_CLUSTER_POOL, "p", {"metadata": {"annotations": {SKIPS_DELETE_CHECK: ""}}})
    user.space.delete(IN_CLUSTER_POOL, "p")

    user.claim("c3", "p")
    assert "is being deleted" in user.unserved("c3", "PoolNotReady")
    user.release("c1", "c2", "c3")
    user.space.gone(IN_CLUSTER_POOL, "p")


def test_3_3_a_global_pool_serves_claims_of_one_name_in_all_namespaces(user: PoolUser, neighbour: PoolUser) -> None:
    name = fresh_name()
    user.pool(name, "10.0.0.10-10.0.0.19", type=GLOBAL_POOL)
    for each in (user, neighbour):
        each.claim("c1", name, GLOBAL_POOL)
    given = {each.ip("c1") for each in (user, neighbour)}

    assert given == {"10.0.0.10", "10.0.0.11"}
    until(lambda: user.counts(name, GLOBAL_POOL) == {"total": 10, "free": 8, "used": 2, "outOfRange": 0})
    with pytest.raises(RefusedByServer, match="Pool has IPAddresses allocated"):
        user.space.ask("DELETE", GLOBAL_POOL.path(name=name))
    for each in (user, neighbour):
        each.release("c1")
    user.space.ask("DELETE", GLOBAL_POOL.path(name=name))
    until(lambda: user.read(GLOBAL_POOL, name) == {})


def test_3_3_a_global_pool_of_prefixes_serves_all_namespaces_and_counts_what_is_out_of_its_range(
    user: PoolUser, neighbour: PoolUser
) -> None:
    name, type = fresh_name(), GLOBAL_PREFIX_POOL
    user.create(type, name, {"prefixes": ["fd00::/62"]})
    for each in (user, neighbour):
        each.claim("c1", name, type)
    given = {each.ip("c1") for each in (user, neighbour)}
    reference = {"apiGroup": type.group, "kind": type.kind, "name": name}
    outside = {"address": "fd09::", "prefix": 64, "poolRef": reference, "claimRef": {"name": "nobody"}}
    user.create(CLUSTER_API_ADDRESS, "outside", outside)

    assert given == {"fd00::", "fd00:0:0:1::"}
    until(lambda: user.counts(name, type) == {"total": 4, "free": 2, "used": 3, "outOfRange": 1})
    user.space.delete(CLUSTER_API_ADDRESS, "outside")
    for each in (user, neighbour):
        each.release("c1")
    until(lambda: user.counts(name, type) == {"total": 4, "free": 4, "used": 0, "outOfRange": 0})
    user.space.ask("DELETE", type.path(name=name))
    until(lambda: user.read(type, name) == {})


def test_3_3_an_address_that_the_pool_does_not_give_is_out_of_its_range(user: PoolUser) -> None:
    """Made by hand outside of it, or excluded where the webhook could not say no: neither takes a free one away."""
    user.pool("p", "10.0.0.10-10.0.0.13", excludedAddresses=["10.0.0.11"])
    reference = {"apiGroup": IN_CLUSTER_POOL.group, "kind": IN_CLUSTER_POOL.kind, "name": "p"}
    for name, address in (("outside", "10.0.0.99"), ("excluded", "10.0.0.11")):
        spec = {"address": address, "prefix": 24, "poolRef": reference, "claimRef": {"name": "nobody"}}
        user.create(CLUSTER_API_ADDRESS, name, spec)
    user.claim("c1", "p")

    assert user.ip("c1") == "10.0.0.10"
    until(lambda: user.counts("p") == {"total": 3, "free": 2, "used": 3, "outOfRange": 2})


def test_3_3_kd18_a_prefix_pool_gives_each_claim_a_prefix_of_its_length_and_no_other(user: PoolUser) -> None:
    spec = {"prefixes": ["fd00::/62"], "excludedPrefixes": ["fd00:0:0:1::5"], "gateway": "fd00::1"}
    user.create(PREFIX_POOL, "p", spec)
    user.claim("c1", "p", PREFIX_POOL)
    address = user.served("c1")
    reference = {"apiGroup": PREFIX_POOL.group, "kind": PREFIX_POOL.kind, "name": "p"}
    by_hand = {"address": "fd00:0:0:2::", "poolRef": reference, "claimRef": {"name": "x"}}

    assert [address["spec"][each] for each in ("address", "prefix", "gateway")] == ["fd00::", 64, "fd00::1"]
    with pytest.raises(RefusedByServer, match="prefixes of length 64, and no others"):
        user.create(CLUSTER_API_ADDRESS, "wide", {**by_hand, "prefix": 63})
    with pytest.raises(RefusedByServer, match="allocationPrefixLength is immutable") as fixed:
        user.space.patch(PREFIX_POOL, "p", {"spec": {"allocationPrefixLength": 65}})
    assert fixed.value.code == 400
    user.create(CLUSTER_API_ADDRESS, "by-hand", {**by_hand, "prefix": 64})
    user.claim("c2", "p", PREFIX_POOL)
    assert user.ip("c2") == "fd00:0:0:3::"
    until(lambda: user.counts("p", PREFIX_POOL) == {"total": 3, "free": 0, "used": 3, "outOfRange": 0})
    with pytest.raises(RefusedByServer, match=r"become non-allocatable: \[fd00::\]"):
        user.space.patch(PREFIX_POOL, "p", {"spec": {"excludedPrefixes": ["fd00::/63"]}})


def test_6_8_in_its_grace_period_an_address_is_kept_and_its_claim_is_not(user: PoolUser) -> None:
    user.pool("p", "10.0.0.10-10.0.0.11", addressReuseGracePeriodSeconds=3600)
    user.claim("c1", "p")
    assert user.ip("c1") == "10.0.0.10"
    user.release("c1")
    assert user.read(CLUSTER_API_ADDRESS, "c1") == {}
    user.claim("c2", "p")
    assert user.ip("c2") == "10.0.0.11"
    user.claim("c3", "p")
    user.unserved("c3", "PoolExhausted")

    user.space.patch(IN_CLUSTER_POOL, "p", {"spec": {"addressReuseGracePeriodSeconds": None}})
    assert user.ip("c3") == "10.0.0.10"


def test_a_name_that_another_object_has_is_waited_for(user: PoolUser) -> None:
    user.pool("p", "10.0.0.10-10.0.0.12")
    reference = {"apiGroup": IN_CLUSTER_POOL.group, "kind": IN_CLUSTER_POOL.kind, "name": "other"}
    by_hand = {"address": "10.9.0.1", "prefix": 24, "poolRef": reference, "claimRef": {"name": "nobody"}}
    user.create(CLUSTER_API_ADDRESS, "c1", by_hand)
    user.claim("c1", "p")
    assert "IPAddress c1 is there already" in user.unserved("c1", "AllocationFailed")
    user.space.delete(CLUSTER_API_ADDRESS, "c1")

    assert user.ip("c1") == "10.0.0.10"


def test_kp9_an_address_that_was_removed_by_force_is_made_again(user: PoolUser) -> None:
    user.pool("p", "10.0.0.10-10.0.0.12")
    user.claim("c1", "p")
    before = user.served("c1")
    user.space.delete(CLUSTER_API_ADDRESS, "c1")
    user.space.patch(CLUSTER_API_ADDRESS, "c1", {"metadata": {"finalizers": None}})

    again = until(lambda: _other(user.read(CLUSTER_API_ADDRESS, "c1"), before))
    assert text(again, "spec", "address") == "10.0.0.10"
    assert user.read(CLUSTER_API_CLAIM, "c1")["status"]["addressRef"] == {"name": "c1"}


def _other(found: Object, before: Object) -> Object | None:
    return found if found and uid_of(found) != uid_of(before) else None
