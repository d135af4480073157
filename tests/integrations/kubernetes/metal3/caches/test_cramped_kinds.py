"""KD4: a definition that has no room for ours, and is replaced by one that has, while the operator runs."""

from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.caches.cramped_kinds import TRIED_AGAIN_S
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import COOLING_LIST, IP_CLAIM, IP_POOL, annotations_of
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tests.integrations.kubernetes.metal3.pass_stage import NAMESPACE, Stage

pytestmark = pytest.mark.usefixtures("skipped_time")


class CrampedStage(Stage):
    """A server whose definition of pools lacks our fields."""

    has_room = False

    async def patch(self, kind: ResourceType, object: Object, patch: Any, **how: Any) -> Object:
        if kind is IP_POOL and isinstance(patch, dict) and not self.has_room:
            patch = {**patch, "status": {name: each for name, each in patch["status"].items() if name != "tenure"}}
        return await super().patch(kind, object, patch, **how)

    def ours(self, pool: str) -> Object:
        """Return what a pool says in our part of its status."""
        said: Object = self.objects["ippools", pool].get("status", {}).get("tenure", {})
        return said

    async def look_after(self, after_s: float) -> None:
        """Let time pass, and let happen what was asked for."""
        Stage.skipped_s += after_s
        await self.settle()


async def cramped_with_two_pools() -> CrampedStage:
    """Return a stage with two pools, an address in use and one that cools off."""
    stage = CrampedStage()
    stage.pool(tenure={"coolingSeconds": 3600})
    stage.pool("10.0.1.1", "10.0.1.9", name="q", namePrefix="q")
    for name in ("a", "b"):
        stage.claim(name)
    await stage.settle()
    stage.change(IP_CLAIM, "a", lambda claim: claim["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    await stage.settle()
    return stage


async def test_kd4_what_has_no_room_in_the_status_is_in_annotations() -> None:
    stage = await cramped_with_two_pools()

    assert (stage.ours("p"), stage.ours("q")) == ({}, {})
    assert "10.0.0.1" in annotations_of(stage.objects["ippools", "p"])[COOLING_LIST]


async def test_kd4_pools_say_all_again_some_minutes_after_their_definition_has_room() -> None:
    """Nobody has to start the operator again, and no claim has to come."""
    stage = await cramped_with_two_pools()
    stage.has_room = True
    await stage.look_after(TRIED_AGAIN_S)

    ready = [stage.ours(pool)["conditions"][0]["reason"] for pool in "pq"]
    assert ready == ["Serving", "Serving"]
    assert [each["address"] for each in stage.ours("p")["cooling"]] == ["10.0.0.1"]
    assert COOLING_LIST not in annotations_of(stage.objects["ippools", "p"])
    assert stage.caches.records.of(PoolId(NAMESPACE, "p")).book.free == 7


async def test_kd4_a_definition_that_stays_as_it_is_costs_a_write_of_a_single_pool() -> None:
    stage = await cramped_with_two_pools()
    await stage.look_after(1.0)
    stage.writes.clear()
    await stage.look_after(TRIED_AGAIN_S)

    assert [write[:2] for write in stage.writes] == [("PATCH", "ippools")]
    assert "10.0.0.1" in annotations_of(stage.objects["ippools", "p"])[COOLING_LIST]
