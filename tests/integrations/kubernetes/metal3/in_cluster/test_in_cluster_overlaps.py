"""6.5: which pools of the in-cluster provider share addresses, and which only seem to."""

from typing import Any

from tenure.integrations.kubernetes.metal3.objects.in_cluster_spec import read_address_pool, read_prefix_pool
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IN_CLUSTER_POOL, PREFIX_POOL
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.integrations.kubernetes.metal3.pool_overlaps import PoolOverlaps
from tenure.kernel.addressing.ranges import AddressRange, parse_range

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
