"""Questions that a plan answers by itself."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.addressing.ranges import Cidr, parse_cidr
from tenure.kernel.errors import NotFound
from tenure.kernel.plan import edits
from tenure.kernel.plan.plan_model import (
    Configuration,
    KeepBack,
    Network,
    Subnet,
    address_text,
    usual_keep_back,
)
from tests.kernel.plans import net1, network

base = parse_address("10.0.0.0")


@st.composite
def blocks(draw: st.DrawFn) -> Subnet:
    """Draw a small subnet in 10.0.0.0/26, so that blocks often lie over each other."""
    prefix = draw(st.integers(26, 32))
    size = 1 << (32 - prefix)
    first = base + draw(st.integers(0, 64 // size - 1)) * size
    return Subnet(Cidr(first, prefix), "u", unit=draw(st.integers(max(prefix, 30), 32)))


@given(st.lists(blocks(), max_size=6))
def test_units_are_mixed_exactly_where_blocks_of_different_unit_lie_over_each_other(subnets: list[Subnet]) -> None:
    networks = {str(n): Network(n, str(n), "u", subnets=(subnet,)) for n, subnet in enumerate(subnets)}
    pairs = combinations(subnets, 2)

    mixed = any(a.unit != b.unit and a.cidr.range.overlaps(b.cidr.range) for a, b in pairs)

    assert Configuration(1, "s", 1, networks).mixed_units == mixed


@given(blocks(), st.integers(0, 63))
def test_the_unit_at_a_position_holds_it_and_lies_in_the_block(subnet: Subnet, offset: int) -> None:
    place = subnet.cidr.first + offset % subnet.cidr.range.size
    unit = subnet.unit_at(place)

    assert place in unit
    assert unit.size == subnet.unit_size
    assert subnet.cidr.range.covers(unit)


@pytest.mark.parametrize(
    ("cidr", "unit", "kept"),
    [
        ("192.0.2.0/24", 32, "network broadcast gateway"),
        ("192.0.2.0/30", 32, "network broadcast gateway"),
        ("192.0.2.0/31", 32, "gateway"),
        ("192.0.2.0/32", 32, "gateway"),
        ("2001:db8::/64", 128, "network gateway"),
        ("2001:db8::/127", 128, "gateway"),
        ("2001:db8::/48", 64, "gateway"),
        ("192.0.2.0/24", 28, "gateway"),
    ],
)
def test_what_a_block_usually_keeps_back(cidr: str, unit: int, kept: str) -> None:
    assert usual_keep_back(parse_cidr(cidr), unit) == {KeepBack(word) for word in kept.split()}


def test_a_subnet_says_which_positions_it_keeps_back_and_why() -> None:
    subnet = network(net1(edits.ModifySubnet(network="net1", subnet="subnet1", keep_back=list(KeepBack)))).subnet("u1")

    assert set(subnet.kept_back()) == {
        (parse_address("192.0.2.0"), KeepBack.NETWORK),
        (parse_address("192.0.2.1"), KeepBack.GATEWAY),
        (parse_address("192.0.2.255"), KeepBack.BROADCAST),
        (parse_address("192.0.2.255"), KeepBack.LAST),
    }


def test_unknown_names_are_told_by_kind() -> None:
    plan = net1()

    for look, kind in (
        (lambda: plan.network("x"), "network"),
        (lambda: network(plan).subnet("x"), "subnet"),
        (lambda: network(plan).pools_named("x"), "pool"),
    ):
        with pytest.raises(NotFound) as refusal:
            look()
        assert (refusal.value.kind, refusal.value.name, refusal.value.field) == (kind, "x", kind)


def test_addresses_are_written_for_people() -> None:
    assert address_text(None) is None
    assert address_text(base) == "10.0.0.0"
