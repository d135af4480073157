"""Addresses that are nobody's, as a leader finds them. No server is needed."""

from typing import cast

from tenure.integrations.kubernetes.metal3.ipam_meter import IpamMeter
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import ADDRESS_FINALIZER, IP_ADDRESS, MADE_FOR
from tenure.integrations.kubernetes.metal3.orphan_watch import OrphanWatch
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tests.integrations.kubernetes.metal3.pass_stage import NAMESPACE, Stage


def watch_of(stage: Stage) -> OrphanWatch:
    """Return a watch that releases what is ours at its first look."""
    return OrphanWatch(stage.caches, stage.passes.giving.claims, cast(EventRecorder, stage), IpamMeter(), 0.0)


def left_by(stage: Stage, claim: str, **metadata: str) -> None:
    """Leave an address of ours whose claim is gone."""
    stage.address("left", "10.0.0.1", claim)
    owner = {"kind": "IPClaim", "name": claim, "uid": "of a claim that is gone"}
    marks = {"annotations": {MADE_FOR: f"{NAMESPACE}/{claim}"}, "ownerReferences": [owner]}
    head = {**marks, "finalizers": [ADDRESS_FINALIZER], **metadata}
    stage.change(IP_ADDRESS, "left", lambda each: each["metadata"].update(head))


async def test_kd8_an_address_that_goes_with_a_former_claim_is_let_go_also_where_the_claim_is_there_again() -> None:
    stage = Stage()
    stage.pool()
    left_by(stage, "c", deletionTimestamp="2026-01-01T00:00:00Z")
    stage.claim("c")
    await watch_of(stage).look()

    assert stage.given() == {}


async def test_an_address_whose_claim_is_for_another_pool_by_now_is_nobodys() -> None:
    stage = Stage()
    stage.pool()
    left_by(stage, "c")
    stage.claim("c", pool="q")
    watch = watch_of(stage)
    await watch.look()

    assert [each["name"] for each in watch.of_pool((NAMESPACE, "p"))] == ["left"]
    assert stage.given() == {}


async def test_an_address_is_not_released_where_the_server_knows_a_claim_for_it() -> None:
    """The watch of claims is behind: it has not brought the claim that may adopt the address."""
    stage = Stage()
    stage.pool()
    left_by(stage, "c")
    stage.claim("c")
    stage.caches.claims._informers[""].empty()
    await watch_of(stage).look()

    assert stage.given() == {"left": "10.0.0.1"}
