"""Whom a pool names as holders of what is drained, also where another namespace has claims of the same names."""

import pytest

from tenure.integrations.kubernetes.metal3.objects.drain_steps import drained_condition
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLAIM_FINALIZER, IP_CLAIM, IP_POOL, PAUSED
from tenure.kernel.addressing.ranges import parse_range
from tests.integrations.kubernetes.metal3.pass_stage import NAMESPACE, POOL, Stage

pytestmark = pytest.mark.usefixtures("skipped_time")


async def test_6_4_a_shared_pool_says_whose_claims_hold_what_is_drained_or_wanted() -> None:
    stage = Stage()
    stage.pool(tenure={"namespaces": ["team-b"]})
    reference = {"pool": {"name": "p", "namespace": NAMESPACE}}
    stage.put(IP_CLAIM, "c", reference, namespace="team-b", finalizers=[CLAIM_FINALIZER])
    await stage.settle()
    stage.change(
        IP_POOL, "p", lambda pool: pool["spec"].update(
            preAllocations={"w": "10.0.0.1"}, tenure={"namespaces": ["team-b"], "drain": ["10.0.0.1"]}
        ),
    )  # fmt: skip
    stage.claim("w")
    await stage.settle()

    assert stage.status("w")["errorMessage"] == "Pre-allocated IP 10.0.0.1 is held by IPClaim team-b/c"
    status = stage.objects["ippools", "p"]["status"]["tenure"]
    (step,) = status["drain"]["holders"]
    assert (step["claim"], step["name"]) == ("team-b/c", "team-b/p-10-0-0-1")
    (drained,) = (each["message"] for each in status["conditions"] if each["type"] == "Drained")
    assert "10.0.0.1 (IPClaim team-b/c)" in drained
    assert stage.caches.records.of(POOL).book.draining


async def test_6_11_a_claim_that_is_being_deleted_is_named_while_it_keeps_an_address_without_an_object() -> None:
    """As it does while the ledger does not answer; here it is paused instead."""
    stage = Stage()
    stage.pool(tenure={"drain": ["10.0.0.1"]})
    stage.claim("c", own="10.0.0.1", deletionTimestamp="2026-01-01T00:00:00Z")
    stage.change(IP_CLAIM, "c", lambda claim: claim["metadata"]["annotations"].update({PAUSED: ""}))
    await stage.settle()

    status = stage.objects["ippools", "p"]["status"]["tenure"]
    holder = {"address": "10.0.0.1", "name": "", "kind": "IPClaim", "claim": "c", "owner": ""}
    assert status["drain"] == {"left": 1, "holders": [holder]}
    (drained,) = (each["message"] for each in status["conditions"] if each["type"] == "Drained")
    assert drained == "1 address of 10.0.0.1 is held: 10.0.0.1 (IPClaim c)"


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (1, "1 address of 10.0.0.1 is held by a claim that is going"),
        (2, "2 addresses of 10.0.0.1 are held by claims that are going"),
    ],
)
def test_6_11_what_nobody_is_known_to_hold_is_counted_in_a_whole_sentence(left: int, message: str) -> None:
    assert drained_condition(left, [parse_range("10.0.0.1")], ()) == ("False", "AddressesHeld", message)
