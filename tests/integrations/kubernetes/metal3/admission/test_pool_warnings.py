"""Oddities of an IPPool that are accepted with a warning: KS5 and others."""

from typing import Any

import pytest

from tests.integrations.kubernetes.metal3.admission.admission_requests import a_pool, a_range, warnings

SUBNET = {"subnet": "10.0.0.0/24"}
INSIDE = a_range("10.0.0.10", "10.0.0.19", **SUBNET)


ODD_POOLS: list[tuple[dict[str, Any], str]] = [
    (a_pool({"start": "10.0.1.1", **SUBNET}), "spec.pools[0].start: 10.0.1.1 lies outside subnet 10.0.0.0/24"),
    (
        a_pool(a_range("10.0.0.250", "10.0.1.5", **SUBNET)),
        "spec.pools[0].end: 10.0.1.5 lies outside subnet 10.0.0.0/24; addresses outside",
    ),
    (a_pool({**INSIDE, "prefix": 16}), "spec.pools[0]: prefix 16 is not the length of subnet 10.0.0.0/24"),
    (a_pool(a_range("10.0.0.1", "10.0.0.9"), prefix=33), "spec.pools[0]: prefix 33 is more than an IPv4 address has"),
    (a_pool(INSIDE, prefix=16), "spec.pools[0]: prefix 16 is not the length of subnet 10.0.0.0/24"),
    (a_pool({**INSIDE, "gateway": "10.1.0.1"}), "spec.pools[0]: gateway 10.1.0.1 lies outside subnet 10.0.0.0/24"),
    (a_pool(INSIDE, gateway="10.1.0.1"), "spec.pools[0]: gateway 10.1.0.1 lies outside subnet 10.0.0.0/24"),
    (
        a_pool(INSIDE, gateway="10.0.0.12"),
        "spec.pools[0]: 10.0.0.12 is a gateway and is kept back; no claim gets it",
    ),
    (
        a_pool(INSIDE, {"subnet": "fd00::/64"}, a_range("10.0.0.15", "10.0.0.16")),
        "spec.pools[2]: overlaps spec.pools[0]; the first entry of an address has it",
    ),
    (
        a_pool(INSIDE, gateway="10.0.0.12", preAllocations={"a": "10.0.0.12"}),
        "spec.preAllocations.a: 10.0.0.12 is a gateway of the pool",
    ),
    (
        a_pool(INSIDE, preAllocations={"RenderedData-1": "10.0.0.12"}),
        "spec.preAllocations.RenderedData-1: no claim can have that name",
    ),
    (a_pool(), "spec.pools: the pool has no address to hand out"),
    (a_pool({"subnet": "10.0.0.5/32"}), "spec.pools: the pool has no address to hand out"),
]


@pytest.mark.parametrize(("pool", "warning"), ODD_POOLS)
async def test_an_odd_pool_is_accepted_with_a_warning(pool: dict[str, Any], warning: str) -> None:
    """KS5."""
    found = await warnings(pool)

    assert [each for each in found if each.startswith(warning)]


USUAL_POOLS: list[dict[str, Any]] = [
    a_pool({**INSIDE, "prefix": 24, "gateway": "10.0.0.1"}),
    a_pool(INSIDE, a_range("10.0.0.20", "10.0.0.29", **SUBNET), gateway="10.0.0.1", prefix=24),
    a_pool({"subnet": "10.0.0.0/24", "gateway": "10.0.0.1"}, tenure={"reservedAddresses": "give"}),
    a_pool(tenure={"external": True}),
    a_pool(tenure={"ledger": {"network": "machines", "realm": "east", "secretName": "tenure-ledger"}}),
    a_pool(a_range("10.0.0.10", "10.0.0.19"), gateway="192.0.2.1"),
]


@pytest.mark.parametrize("pool", USUAL_POOLS)
async def test_a_usual_pool_gives_no_warning(pool: dict[str, Any]) -> None:
    assert await warnings(pool) == []


async def test_an_update_that_leaves_an_odd_spec_as_it_is_gives_no_warning() -> None:
    assert await warnings(a_pool(), a_pool()) == []


async def test_no_more_warnings_are_given_than_a_server_shows() -> None:
    found = await warnings(a_pool(*[INSIDE] * 50))

    assert len(found) == 10
    assert found[-1] == "and 40 more warnings"
