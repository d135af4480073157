"""Oddities of an in-cluster provider's pool that are accepted with a warning."""

from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import GLOBAL_POOL, IN_CLUSTER_POOL, PREFIX_POOL
from tenure.integrations.kubernetes.runtime.resource_types import ResourceType
from tests.integrations.kubernetes.metal3.admission.admission_requests import an_object, warnings

NO_ADDRESS = (
    "spec.addresses: the pool has no address to hand out: each is excluded, the gateway, or reserved in its network "
    "(allocateReservedIPAddresses)"
)
NO_PREFIX = "spec.prefixes: the pool has no prefix to hand out, since it excludes a part of each"
EMPTY: list[tuple[ResourceType, dict[str, Any], str]] = [
    (IN_CLUSTER_POOL, {"addresses": ["10.0.0.1"], "prefix": 32}, NO_ADDRESS),
    (GLOBAL_POOL, {"addresses": ["10.0.0.0/31"], "prefix": 31}, NO_ADDRESS),
    (IN_CLUSTER_POOL, {"addresses": ["10.0.0.1"], "prefix": 24, "gateway": "10.0.0.1"}, NO_ADDRESS),
    (IN_CLUSTER_POOL, {"addresses": ["fd00::1"], "prefix": 64, "excludedAddresses": ["fd00::/64"]}, NO_ADDRESS),
    (PREFIX_POOL, {"prefixes": ["fd00::/63"], "excludedPrefixes": ["fd00::1", "fd00:0:0:1::1"]}, NO_PREFIX),
]


@pytest.mark.parametrize(("type", "spec", "warning"), EMPTY)
async def test_3_3_the_author_of_a_pool_that_gives_nothing_is_warned(
    type: ResourceType, spec: dict[str, Any], warning: str
) -> None:
    assert await warnings(an_object(type, "p", spec)) == [warning]


async def test_3_3_the_author_of_a_pool_that_gives_one_address_is_not_warned() -> None:
    spec = {"addresses": ["10.0.0.1"], "prefix": 32, "allocateReservedIPAddresses": True}

    assert await warnings(an_object(IN_CLUSTER_POOL, "p", spec)) == []
