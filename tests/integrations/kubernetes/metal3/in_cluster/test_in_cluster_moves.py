"""Pause and move of the in-cluster provider's pools and claims, as of Metal3's (KD6, KD11). No server is needed."""

import copy

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    IN_CLUSTER_POOL,
    MOVE,
    OWN_ADDRESS,
    PAUSED,
    annotations_of,
    labels_of,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tests.integrations.kubernetes.metal3.in_cluster.in_cluster_passes import InClusterStage

pytestmark = pytest.mark.usefixtures("skipped_time")


def pause(stage: InClusterStage, is_paused: bool) -> None:
    marks = {PAUSED: ""} if is_paused else {}
    stage.change(IN_CLUSTER_POOL, "p", lambda pool: pool["metadata"].update(annotations=marks))


def carried(stage: InClusterStage, plural: str, name: str) -> Object:
    """Return what clusterctl takes along of an object: all but its uid, its owners' uids and its status."""
    kept = copy.deepcopy(stage.objects[plural, name])
    names = ("annotations", "labels", "finalizers")
    return {"spec": kept["spec"], "metadata": {each: kept["metadata"].get(each) for each in names}}


async def test_e4_a_paused_pool_gives_nothing_and_lets_its_claims_name_what_they_have() -> None:
    stage = InClusterStage()
    stage.make_pool("10.0.0.10-10.0.0.19")
    pause(stage, True)
    stage.ask("waits")
    await stage.settle()
    assert stage.given() == {}

    pause(stage, False)
    await stage.settle()
    assert stage.given() == {"waits": "10.0.0.10"}


@pytest.mark.parametrize("is_address_first", [True, False])
async def test_kd6_a_claim_that_is_moved_keeps_its_address_whatever_arrives_first(is_address_first: bool) -> None:
    source = InClusterStage()
    source.make_pool("10.0.0.10-10.0.0.19")
    for name in ("before", "moves"):
        source.ask(name)
    await source.settle()
    pause(source, True)
    await source.settle()
    claim, address = carried(source, "ipaddressclaims", "moves"), carried(source, "ipaddresses", "moves")
    assert annotations_of(claim)[OWN_ADDRESS] == "10.0.0.11"
    assert MOVE in labels_of(claim)

    target = InClusterStage()
    target.make_pool("10.0.0.10-10.0.0.19")
    target.ask("other")
    if is_address_first:
        target.put(CLUSTER_API_ADDRESS, "moves", address["spec"], **address["metadata"])
    target.put(CLUSTER_API_CLAIM, "moves", claim["spec"], **claim["metadata"])
    await target.settle()
    assert target.given() == {"other": "10.0.0.10", "moves": "10.0.0.11"}
    target.ask("next")
    await target.settle()
    assert target.given()["next"] == "10.0.0.12"
