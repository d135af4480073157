"""Which pools share addresses, against a plain comparison of all pairs."""

import random
import time
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec, read_pool_spec
from tenure.integrations.kubernetes.metal3.pool_overlaps import PoolOverlaps, overlap_text
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange, parse_range


def spec_of(*ranges: str, **more: Any) -> PoolSpec:
    entries = [dict(zip(("start", "end"), each.split("-"), strict=True)) for each in ranges]
    reading = read_pool_spec({"namePrefix": "p", "pools": entries, **more})
    assert reading.faults == []
    return reading.spec


def bound_to(network: str) -> dict[str, Any]:
    return {"tenure": {"ledger": {"network": network, "realm": "east", "secretName": "s"}}}


def on(network: str) -> dict[str, Any]:
    return {"tenure": {"network": network}}


@pytest.mark.parametrize("seed", range(10))
def test_whatever_pools_come_change_and_go_the_overlaps_are_those_of_all_pairs(seed: int) -> None:
    chance = random.Random(seed)
    overlaps, known = PoolOverlaps(), dict[PoolId, PoolSpec]()
    for _ in range(150):
        key = PoolId(chance.choice("nm"), chance.choice("abcdef"))
        if chance.random() < 0.3:
            overlaps.lay(key, None)
            known.pop(key, None)
        else:
            firsts = [chance.randrange(1, 200) for _ in range(chance.randrange(4))]
            ranges = [f"10.0.0.{each}-10.0.0.{min(each + chance.randrange(20), 254)}" for each in firsts]
            known[key] = spec_of(*ranges, **chance.choice(({}, {}, bound_to("lan"), on("lan"), on("dmz"))))
            overlaps.lay(key, known[key])
        for one in known:
            assert overlaps.others(one) == {
                other: common
                for other in sorted(known)
                if other != one
                and is_one_network(one, other, known)
                and (common := first_common(known[one], known[other]))
            }


def is_one_network(one: PoolId, other: PoolId, known: dict[PoolId, PoolSpec]) -> bool:
    named = known[one].network, known[other].network
    return named[0] == named[1] and (bool(named[0]) or one[0] == other[0])


def first_common(one: PoolSpec, other: PoolSpec) -> AddressRange | None:
    """Return the first run of addresses that two pools have in common."""
    if one.ledger is not None and other.ledger is not None:
        return None
    places = [place for span in one.spans() for place in range(span.first, span.last + 1)]
    shared = [place for place in places if other.entry_at(place) is not None]
    last = next((place for place in shared if place + 1 not in shared), 0)
    return AddressRange(shared[0], last) if shared else None


def test_a_pool_that_is_not_stored_yet_is_compared_as_it_would_be() -> None:
    overlaps = PoolOverlaps()
    overlaps.lay(PoolId("n", "a"), spec_of("10.0.0.1-10.0.0.9", "fd00::1-fd00::ff"))
    overlaps.lay(PoolId("n", "b"), spec_of("10.0.0.5-10.0.0.6"))
    wide = spec_of("10.0.0.0-10.0.0.255", "fd00::80-fd00::ffff")

    assert overlaps.others_of(PoolId("n", "new"), wide) == {
        PoolId("n", "a"): parse_range("10.0.0.1-10.0.0.9"), PoolId("n", "b"): parse_range("10.0.0.5-10.0.0.6"),
    }  # fmt: skip
    assert overlaps.others_of(PoolId("n", "a"), spec_of("10.0.0.1-10.0.0.4")) == {}
    assert overlaps.others_of(PoolId("other", "new"), wide) == {}


def test_an_address_that_is_set_aside_outside_of_the_ranges_counts() -> None:
    overlaps = PoolOverlaps()
    outside = spec_of("10.0.0.1-10.0.0.9", preAllocations={"c": "10.0.1.5"}, tenure={"outsidePreAllocations": "allow"})
    overlaps.lay(PoolId("n", "a"), outside)
    overlaps.lay(PoolId("n", "b"), spec_of("10.0.1.1-10.0.1.9"))

    assert overlaps.others(PoolId("n", "b")) == {PoolId("n", "a"): parse_range("10.0.1.5")}


def test_pools_on_one_network_of_a_ledger_do_not_collide() -> None:
    """The ledger gives each address once; a pool beside it, or on another network, may give it again."""
    overlaps = PoolOverlaps()
    for name, more in (("a", bound_to("lan")), ("b", bound_to("lan")), ("c", bound_to("dmz")), ("d", {})):
        overlaps.lay(PoolId("n", name), spec_of("10.0.0.1-10.0.0.9", **more))

    assert set(overlaps.others(PoolId("n", "a"))) == {PoolId("n", "c"), PoolId("n", "d")}


def test_6_5_pools_that_name_one_network_are_compared_across_namespaces_and_others_not_at_all() -> None:
    overlaps = PoolOverlaps()
    networks = {"n/a": on("vlan-7"), "m/b": on("vlan-7"), "n/c": on("vlan-8"), "n/d": {}, "m/e": {}}
    for name, more in networks.items():
        key = PoolId(*name.split("/"))
        overlaps.lay(key, spec_of("10.0.0.1-10.0.0.9", **more))
    assert {key: set(overlaps.others(key)) for key in (PoolId("n", "a"), PoolId("n", "c"), PoolId("n", "d"))} == {
        PoolId("n", "a"): {PoolId("m", "b")}, PoolId("n", "c"): set(), PoolId("n", "d"): set(),
    }  # fmt: skip

    overlaps.lay(PoolId("m", "b"), spec_of("10.0.0.1-10.0.0.9"))
    assert (overlaps.others(PoolId("n", "a")), set(overlaps.others(PoolId("m", "e")))) == ({}, {PoolId("m", "b")})


def test_five_pools_are_named_and_the_others_counted() -> None:
    others = {PoolId("n", f"p{number}"): parse_range(format_address(number)) for number in range(8)}

    assert overlap_text(PoolId("n", "p"), others).count("with IPPool p") == 5
    assert overlap_text(PoolId("m", "p"), others).count("with IPPool n/p") == 5
    assert "addresses with 3 more" in overlap_text(PoolId("n", "p"), others)
    assert overlap_text(PoolId("n", "p"), {}) == ""


def test_500_pools_of_the_same_addresses_are_compared_within_a_second() -> None:
    overlaps = PoolOverlaps()
    began = time.process_time()
    for number in range(500):
        overlaps.lay(PoolId("n", f"p{number}"), spec_of("10.0.0.1-10.0.0.200"))
    found = [overlaps.others(PoolId("n", f"p{number}")) for number in range(500)]

    assert {len(each) for each in found} == {499}
    assert time.process_time() - began < 1.0
