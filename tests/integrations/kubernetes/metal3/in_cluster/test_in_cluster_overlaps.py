"""6.5: which pools of the in-cluster provider share addresses, and which only seem to."""

from dataclasses import replace
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.in_cluster_spec import read_address_pool, read_prefix_pool
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    GLOBAL_POOL,
    IN_CLUSTER_POOL,
    NETWORK,
    PREFIX_POOL,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.integrations.kubernetes.metal3.pool_overlaps import PoolOverlaps
from tenure.kernel.addressing.ranges import AddressRange, parse_range
from tests.integrations.kubernetes.metal3.admission.admission_requests import View, an_object, warnings
from tests.integrations.kubernetes.metal3.in_cluster.in_cluster_passes import InClusterStage

pytestmark = pytest.mark.usefixtures("skipped_time")

WHOLE, SPLIT, FULL = (PoolId("n", name, IN_CLUSTER_POOL.kind) for name in ("whole", "split", "full"))


def addresses(*listed: str, **more: Any) -> PoolSpec:
    reading = read_address_pool({"addresses": list(listed), "prefix": 24, **more})
    assert reading.faults == []
    return reading.spec


def prefixes(*listed: str, **more: Any) -> PoolSpec:
    reading = read_prefix_pool({"prefixes": list(listed), **more})
    assert reading.faults == []
    return reading.spec


def overlaps_of(pools: dict[PoolId, PoolSpec]) -> dict[PoolId, dict[PoolId, AddressRange]]:
    """Return what each pool shares with which other, without those that share nothing."""
    overlaps = PoolOverlaps()
    for key, spec in pools.items():
        overlaps.lay(key, spec)
    return {key: found for key in pools if (found := overlaps.others(key))}


def test_6_5_what_a_pool_excludes_it_shares_with_nobody() -> None:
    whole = addresses("10.0.0.0/24", excludedAddresses=["10.0.0.100-10.0.0.150"])
    assert overlaps_of({WHOLE: whole, SPLIT: addresses("10.0.0.100-10.0.0.150")}) == {}

    shared = overlaps_of({WHOLE: whole, FULL: addresses("10.0.0.90-10.0.0.110")})
    assert shared == {
        WHOLE: {FULL: parse_range("10.0.0.90-10.0.0.99")},
        FULL: {WHOLE: parse_range("10.0.0.90-10.0.0.99")},
    }


def test_6_5_a_prefix_of_which_a_part_is_excluded_is_not_shared_at_all() -> None:
    one, other = (PoolId("n", name, PREFIX_POOL.kind) for name in "ab")
    whole = prefixes("fd00::/62", excludedPrefixes=["fd00:0:0:1::5"])

    assert overlaps_of({one: whole, other: prefixes("fd00:0:0:1::/64")}) == {}
    shared = overlaps_of({one: whole, other: prefixes("fd00::/63")})
    assert shared[other] == {one: parse_range("fd00::/64")}


def test_6_5_a_pool_of_the_whole_cluster_meets_the_pools_of_every_namespace() -> None:
    """Its claims are in any of them; pools of two namespaces are compared only where both name a network."""
    everywhere = PoolId("", "everywhere", GLOBAL_POOL.kind)
    other = PoolId("m", "other", IN_CLUSTER_POOL.kind)
    metal3s = PoolId("k", "metal3s")
    spec = addresses("10.0.0.10-10.0.0.19")
    found = overlaps_of({WHOLE: spec, everywhere: spec, other: spec, metal3s: spec})

    assert {key: set(others) for key, others in found.items()} == {
        everywhere: {WHOLE, other, metal3s}, WHOLE: {everywhere}, other: {everywhere}, metal3s: {everywhere},
    }  # fmt: skip


def test_6_5_what_a_pool_of_the_whole_cluster_shares_is_known_anew_after_each_change() -> None:
    everywhere, other = PoolId("", "everywhere", GLOBAL_POOL.kind), PoolId("m", "other", IN_CLUSTER_POOL.kind)
    overlaps, spec = PoolOverlaps(), addresses("10.0.0.10-10.0.0.19")
    overlaps.lay(WHOLE, spec)
    overlaps.lay(everywhere, spec)
    assert (set(overlaps.others(everywhere)), set(overlaps.others(WHOLE))) == ({WHOLE}, {everywhere})

    overlaps.lay(other, spec)
    overlaps.lay(WHOLE, None)
    assert (set(overlaps.others(everywhere)), set(overlaps.others(other))) == ({other}, {everywhere})
    overlaps.lay(everywhere, replace(spec, network="dmz"))
    assert (overlaps.others(everywhere), overlaps.others(other)) == ({}, {})
    overlaps.lay(other, replace(spec, network="dmz"))
    assert (set(overlaps.others(everywhere)), set(overlaps.others(other))) == ({other}, {everywhere})


async def test_6_5_pools_say_what_they_share_and_an_annotation_says_that_it_is_wanted() -> None:
    stage = InClusterStage()
    for name in ("p", "q"):
        stage.make_pool("10.0.0.10-10.0.0.19", name=name)
    await stage.settle()
    assert {name: shared(stage, name) for name in "pq"} == {
        "p": "it shares 10.0.0.10-10.0.0.19 with InClusterIPPool q: each may give an address that the other has given",
        "q": "it shares 10.0.0.10-10.0.0.19 with InClusterIPPool p: each may give an address that the other has given",
    }

    for pool, shares in (("p", False), ("q", True)):
        stage.change(IN_CLUSTER_POOL, pool, lambda each: each["metadata"].update(annotations={NETWORK: "vlan-7"}))
        await stage.settle()
        assert {bool(shared(stage, name)) for name in "pq"} == {shares}


def shared(stage: InClusterStage, pool: str) -> str:
    """Return what a pool says that it shares; empty if nothing."""
    conditions = stage.objects["inclusterippools", pool]["status"]["conditions"]
    return next((each["message"] for each in conditions if each["type"] == "Overlapping"), "")


async def test_6_5_the_webhook_warns_of_what_is_shared_in_the_network_of_the_annotation() -> None:
    asked = list[PoolSpec]()

    class Asked(View):
        def overlap_of(self, pool: PoolId, spec: PoolSpec) -> str:
            asked.append(spec)
            return "it shares"

    pool = an_object(IN_CLUSTER_POOL, "p", {"addresses": ["10.0.0.1"], "prefix": 24}, annotations={NETWORK: "vlan-7"})
    assert await warnings(pool, view=Asked()) == ["spec.addresses: it shares"]
    assert [each.network for each in asked] == ["vlan-7"]
