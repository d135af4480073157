"""Addresses without a claim: the grace, and the second look at the server itself (D10)."""

import asyncio
import copy
from typing import cast

import pytest

from tenure.integrations.kubernetes.metal3.ipam_meter import IpamMeter
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import ADDRESS_FINALIZER, IP_ADDRESS, IP_CLAIM, MADE_FOR
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.orphan_watch import TURN, OrphanWatch
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tests.integrations.kubernetes.metal3.pass_stage import NAMESPACE, Stage

pytestmark = pytest.mark.usefixtures("skipped_time")

GRACE_S = 0.1


class Orphanage:
    """A pool with an address that was made here, and whose claim the watch does not know."""

    def __init__(self, grace_s: float = 0.0) -> None:
        self.stage = Stage()
        self.stage.pool()
        spec = {"address": "10.0.0.1", "pool": {"name": "p"}, "claim": {"name": "c"}}
        words = {"annotations": {MADE_FOR: f"{NAMESPACE}/c"}, "finalizers": [ADDRESS_FINALIZER]}
        self.stage.put(IP_ADDRESS, "ours", spec, **words)
        claims, events = self.stage.passes.giving.claims, cast(EventRecorder, self.stage)
        self.watch = OrphanWatch(self.stage.caches, claims, events, IpamMeter(), grace_s)

    @property
    def is_there(self) -> bool:
        """Return whether the address is still there."""
        return ("ipaddresses", "ours") in self.stage.objects

    def unseen_claim(self) -> Object:
        """Create the claim, which the watch does not bring yet."""
        other = Stage()
        return copy.deepcopy(other.claim("c"))


async def test_d10_an_address_is_reported_at_once_and_released_after_its_grace() -> None:
    place = Orphanage(GRACE_S)
    await place.watch.look()
    await place.watch.look()
    assert (place.is_there, place.stage.events) == (True, ["Orphaned"])
    await asyncio.sleep(GRACE_S)
    await place.watch.look()

    assert (place.is_there, place.watch.meter.orphans_released) == (False, 1)


async def test_d10_a_claim_that_only_the_server_knows_of_keeps_its_address() -> None:
    """The cache is behind; when the claim is really gone, the address goes."""
    place = Orphanage()
    place.stage.objects["ipclaims", "c"] = place.unseen_claim()
    await place.watch.look()
    assert (place.is_there, place.stage.writes) == (True, [])
    place.stage.remove(IP_CLAIM, "c")
    await place.watch.look()

    assert not place.is_there


async def test_d10_an_address_that_has_changed_since_it_was_seen_is_looked_at_again() -> None:
    place = Orphanage()
    place.stage.change(IP_ADDRESS, "ours", lambda each: each["metadata"].update(labels={"a": "b"}), is_seen=False)
    await place.watch.look()
    assert (place.is_there, place.stage.writes) == (True, [])
    await place.watch.look()

    assert not place.is_there


async def test_d10_an_address_whose_claim_comes_within_the_grace_is_no_orphan_any_more() -> None:
    place = Orphanage(GRACE_S)
    await place.watch.look()
    place.stage.claim("c")
    await asyncio.sleep(GRACE_S)
    await place.watch.look()

    assert (place.is_there, place.watch.orphans) == (True, {})
    place.stage.remove(IP_CLAIM, "c")
    await place.watch.look()
    assert place.is_there, "its grace begins again"


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

    assert [each["name"] for each in watch.of_pool(PoolId(NAMESPACE, "p"))] == ["left"]
    assert stage.given() == {}


async def test_an_address_is_not_released_where_the_server_knows_a_claim_for_it() -> None:
    """The watch of claims is behind: it has not brought the claim that may adopt the address."""
    stage = Stage()
    stage.pool()
    left_by(stage, "c")
    stage.claim("c")
    stage.caches.objects.claims._informers[""].empty()
    await watch_of(stage).look()

    assert stage.given() == {"left": "10.0.0.1"}


@pytest.mark.parametrize(("is_orphaned", "turns"), [(False, 3), (True, 6)])
async def test_other_work_has_its_turns_while_many_addresses_are_looked_at(is_orphaned: bool, turns: int) -> None:
    """Such as the renewal of the Lease. Nothing is released, so no answer of a server is waited for."""
    stage = Stage()
    stage.pool()
    if not is_orphaned:
        stage.claim("c")
    for number in range(3 * TURN):
        stage.address(f"hand{number}", f"10.0.{number // 256}.{number % 256}", "c")
    had = 0

    async def other_work() -> None:
        nonlocal had
        while True:
            had += 1
            await asyncio.sleep(0)

    work, watch = asyncio.create_task(other_work()), watch_of(stage)
    looked_at = await watch.look()
    work.cancel()

    assert (looked_at, len(watch.orphans)) == (3 * TURN, 3 * TURN * is_orphaned)
    assert had >= turns
