"""What a pool says of claims of other namespaces, which may have the names of claims of its own."""

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLAIM_FINALIZER, IP_CLAIM, IP_POOL
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
