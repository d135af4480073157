"""What an IPClaim may say: cases B1 to B3, KP3, and an address that came with a copied text."""

from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.claim_kinds import IN_CLUSTER, kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    BLOCK_MOVE,
    CLAIM_FINALIZER,
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    GLOBAL_POOL,
    IP_CLAIM,
    OWN_ADDRESS,
    PICKED_FOR,
)
from tests.integrations.kubernetes.metal3.admission.admission_requests import (
    NAMESPACE,
    View,
    a_claim,
    a_cluster_api_address,
    an_address,
    an_object,
    changed,
    errors,
    mutated,
    warnings,
)

INVALID = 'IPClaim.ipam.metal3.io "c" is invalid: '


@pytest.mark.parametrize(
    "reference",
    [
        {"name": "p"},
        {"name": "p", "kind": "IPPool", "apiVersion": "ipam.metal3.io/v1alpha1", "namespace": "m3"},
        {"name": "p", "apiVersion": "ipam.metal3.io/v1beta7"},
        {"name": "p", "apiVersion": "v1"},
    ],
)
async def test_a_claim_for_our_pool_gets_its_finalizer(reference: dict[str, str]) -> None:
    """KP3: also where there is no such pool yet (C30), whatever apiVersion says: Metal3 does not look at it."""
    claim, _ = await mutated(changed(a_claim(), pool=reference))

    assert claim["metadata"]["finalizers"] == [CLAIM_FINALIZER]
    assert claim["metadata"]["annotations"] == {BLOCK_MOVE: ""}  # until it names its address (KD6)


@pytest.mark.parametrize(
    "reference",
    [
        {},
        {"name": "p", "kind": "InClusterIPPool"},
        {"name": "p", "namespace": "other"},
    ],
)
async def test_a_claim_for_a_pool_that_is_not_ours_is_left_alone(reference: dict[str, str]) -> None:
    """KP3."""
    _, decision = await mutated(changed(a_claim(), pool=reference))

    assert decision.patch == []


async def test_a_claim_that_names_another_kind_of_pools_is_accepted_with_a_warning() -> None:
    """Nobody might serve it, and it has no status that says so."""
    said = await warnings(changed(a_claim(), pool={"name": "p", "kind": "InClusterIPPool"}))

    assert said == [
        "spec.pool.kind: this operator leaves the claim alone: an IPClaim asks an IPPool, and InClusterIPPool is none"
    ]


async def test_a_claim_that_is_not_served_and_a_changed_one_get_no_finalizer() -> None:
    """KD6: a finalizer that somebody took away is not put back by an update."""
    _, unserved = await mutated(a_claim(), view=View(served=False))
    _, update = await mutated(a_claim(), a_claim())

    assert (unserved.patch, update.patch) == ([], [])


KEPT = {OWN_ADDRESS: "10.0.0.12", PICKED_FOR: "a-uid", "mine": "stays"}
ORIGINAL = an_object(IP_CLAIM, "original", {"pool": {"name": "p"}}, uid="a-uid")
HOLDERS = [
    an_address("p-10-0-0-12", "10.0.0.12", "original"),
    a_cluster_api_address("p-10-0-0-12", "10.0.0.12", "original"),
]


@pytest.mark.parametrize("holder", HOLDERS, ids=["metal3", "cluster-api"])
async def test_a_copied_claim_loses_the_address_of_its_original(holder: dict[str, Any]) -> None:
    claim, decision = await mutated(a_claim(annotations=KEPT), view=View([holder], claims=[ORIGINAL]))

    assert claim["metadata"]["annotations"] == {"mine": "stays", BLOCK_MOVE: ""}
    (warning,) = decision.warnings
    assert f"IPAddress p-10-0-0-12 holds 10.0.0.12 for {kind_of(holder).claim.kind} original" in warning


async def test_a_copy_of_a_claim_that_is_gone_or_was_moved_here_loses_its_address() -> None:
    """The IPAddress still has the owner that the copy names, or the original names the uid that it had elsewhere."""
    moved = an_object(IP_CLAIM, "original", {"pool": {"name": "p"}}, uid="here", annotations=KEPT)
    owners = [{"kind": IP_CLAIM.kind, "name": "original", "uid": "a-uid"}]
    owned = {**HOLDERS[0], "metadata": {**HOLDERS[0]["metadata"], "ownerReferences": owners}}
    for view in (View(HOLDERS[:1], claims=[moved]), View([owned])):
        claim, _ = await mutated(a_claim(annotations=KEPT), view=view)

        assert claim["metadata"]["annotations"] == {"mine": "stays", BLOCK_MOVE: ""}


@pytest.mark.parametrize("marks", [KEPT, {OWN_ADDRESS: "10.0.0.12"}], ids=["picked", "adopted"])
async def test_kd6_a_claim_that_was_moved_here_keeps_an_address_that_another_claim_has(marks: dict[str, str]) -> None:
    """It waits for that: its machine runs with it. No claim of this cluster has the uid that it was picked for."""
    other = an_object(IP_CLAIM, "original", {"pool": {"name": "p"}}, uid="another", annotations={PICKED_FOR: "another"})
    claim, decision = await mutated(a_claim(annotations=marks), view=View(HOLDERS, claims=[other]))

    assert (claim["metadata"]["annotations"], decision.warnings) == (marks, [])


async def test_a_claim_that_was_copied_into_another_namespace_loses_the_address_of_its_original() -> None:
    """It has the name of its original; of a pool that serves both namespaces it would wait for that one to go."""
    reference = {"apiGroup": GLOBAL_POOL.group, "kind": GLOBAL_POOL.kind, "name": "p"}
    spec = {"address": "10.0.0.12", "prefix": 24, "poolRef": reference, "claimRef": {"name": "c"}}
    holder = an_object(CLUSTER_API_ADDRESS, "c", spec, namespace="team-a")
    copy, own = (
        an_object(CLUSTER_API_CLAIM, "c", {"poolRef": reference}, annotations=KEPT, namespace=namespace)
        for namespace in (NAMESPACE, "team-a")
    )
    original = {**own, "metadata": {**own["metadata"], "uid": "a-uid"}}
    claim, decision = await mutated(copy, view=View([holder], kinds=(IN_CLUSTER,), claims=[original]))
    kept, _ = await mutated(own, view=View([holder], kinds=(IN_CLUSTER,)))

    assert claim["metadata"]["annotations"] == {"mine": "stays", BLOCK_MOVE: ""}
    assert "holds 10.0.0.12 for IPAddressClaim team-a/c" in "".join(decision.warnings)
    assert kept["metadata"]["annotations"] == KEPT


async def test_a_claim_whose_name_the_server_will_make_up_is_judged_like_others() -> None:
    claim = a_claim(annotations=KEPT)
    claim["metadata"] = {"generateName": "c-", "annotations": KEPT}

    stored, _ = await mutated(claim, view=View(HOLDERS, claims=[ORIGINAL]))

    assert stored["metadata"]["finalizers"] == [CLAIM_FINALIZER]
    assert stored["metadata"]["annotations"] == {"mine": "stays", BLOCK_MOVE: ""}


@pytest.mark.parametrize(
    "addresses",
    [
        [],
        [an_address("p-10-0-0-12", "10.0.0.12", "c")],
        [an_address("q-10-0-0-12", "10.0.0.12", "original", pool="q")],
        [an_address("p-10-0-0-13", "10.0.0.13", "original")],
    ],
)
async def test_a_claim_that_was_moved_keeps_its_address(addresses: list[dict[str, Any]]) -> None:
    """KD6: claims arrive before their addresses, or after them."""
    claim, decision = await mutated(a_claim(annotations=KEPT), view=View(addresses))

    assert claim["metadata"]["annotations"] == KEPT
    assert decision.warnings == []


@pytest.mark.parametrize("pool", [{}, {"name": ""}, None])
async def test_a_claim_names_a_pool(pool: object) -> None:
    """B1."""
    assert await errors(changed(a_claim(), pool=pool)) == f'{INVALID}spec.pool.name: Invalid value: "": cannot be empty'


OTHER_REFERENCES = [{"name": "q"}, {"name": "p", "namespace": "x"}, {"name": "p", "kind": "IPPool"}]


@pytest.mark.parametrize("reference", OTHER_REFERENCES)
async def test_the_pool_of_a_claim_cannot_be_modified(reference: dict[str, str]) -> None:
    """B2."""
    found = await errors(changed(a_claim(), pool=reference), a_claim())

    assert found.startswith(f"{INVALID}spec.pool: Invalid value: {{")
    assert found.endswith("}: cannot be modified")


async def test_other_parts_of_the_reference_may_change() -> None:
    """B2: as in Metal3, which does not look at them."""
    after = changed(a_claim(), pool={"name": "p", "apiVersion": "ipam.metal3.io/v1alpha1"})

    assert await errors(after, a_claim()) == ""


RUBBISH = ["banana", "10.0.0.1/24", "fe80::1%eth0", "::ffff:10.0.0.1", "10.0.0.01", " "]


@pytest.mark.parametrize("name", ["ipAddress", OWN_ADDRESS])
@pytest.mark.parametrize("value", RUBBISH)
async def test_an_annotation_that_is_no_address_is_refused(name: str, value: str) -> None:
    """B3."""
    rubbish = a_claim(annotations={name: value})

    assert (await errors(rubbish)).startswith(f'{INVALID}metadata.annotations.{name}: Invalid value: "{value}": is')
    assert await errors(rubbish, a_claim()) != ""
    assert await errors(changed(rubbish, x="y"), rubbish) == ""


async def test_an_empty_annotation_asks_for_nothing() -> None:
    """B3: as in Metal3."""
    assert await errors(a_claim(annotations={"ipAddress": ""})) == ""


async def test_a_claim_for_a_pool_in_another_namespace_is_accepted() -> None:
    """C28: the controller says on the claim that it is not served."""
    assert await errors(changed(a_claim(), pool={"name": "p", "namespace": "other"})) == ""


async def test_an_address_may_be_asked_for_by_a_field() -> None:
    assert await errors(a_claim(tenure={"address": "10.0.0.5"})) == ""
    assert await errors(a_claim(tenure={"address": "fd00::5"}, annotations={"ipAddress": "FD00:0::5"})) == ""
    assert "spec.tenure.address: Invalid value" in await errors(a_claim(tenure={"address": "banana"}))


async def test_field_and_annotation_that_ask_for_two_addresses_are_refused() -> None:
    asking = a_claim(tenure={"address": "10.0.0.5"})
    both = {**asking, "metadata": {**asking["metadata"], "annotations": {"ipAddress": "10.0.0.6"}}}

    assert "spec.tenure.address" in await errors(both)
    assert "10.0.0.6; write only one" in await errors(both, asking)
    assert await errors(both, both) == ""


async def test_6_10_ranges_are_read_and_an_address_must_lie_in_them() -> None:
    inside = {"ranges": ["10.0.0.0/24", "fd00::1"], "address": "10.0.0.7"}

    assert await errors(a_claim(tenure=inside, annotations={"ipAddress": "10.0.0.7"})) == ""
    assert "spec.tenure.ranges[1]: Invalid value" in await errors(a_claim(tenure={"ranges": ["10.0.0.1", "x"]}))
    outside = a_claim(tenure={"ranges": ["10.0.0.0/24"]}, annotations={"ipAddress": "10.0.1.1"})
    assert "metadata.annotations.ipAddress: Invalid value" in await errors(outside)
    assert "lies outside of spec.tenure.ranges" in await errors(a_claim(tenure={**inside, "address": "10.0.1.1"}))


async def test_what_a_claim_asked_for_cannot_be_modified() -> None:
    asking = a_claim(tenure={"address": "10.0.0.5"})

    for after in (a_claim(), a_claim(tenure={"address": "10.0.0.6"})):
        assert "spec.tenure: Invalid value" in await errors(after, asking)
    assert await errors(asking, a_claim()) == ""


async def test_a_claim_that_was_invalid_before_the_webhook_came_can_be_cleaned_up() -> None:
    before = changed(a_claim(annotations={"ipAddress": "banana"}, tenure={"ranges": ["x"]}), pool={})
    after = {**before, "metadata": {**before["metadata"], "finalizers": []}}

    assert await errors(after, before) == ""
