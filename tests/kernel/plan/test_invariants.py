"""The final state judged, and what a new plan asks of holdings."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import Cidr, parse_range
from tenure.kernel.errors import Overlap
from tenure.kernel.plan import edits
from tenure.kernel.plan.apply_edit import edited
from tenure.kernel.plan.invariants import judge, lost_ground, new_gateways
from tenure.kernel.plan.plan_model import Configuration, Network, Pool, Reserved, Subnet
from tests.kernel.plans import net1, network, planned

base = parse_address("10.0.0.0")


def lost(old: Configuration, *steps: edits.Edit) -> list[str]:
    return [str(piece.range) for piece in lost_ground(old, planned(*steps, on=old))]


def test_edits_may_pass_through_states_that_would_be_refused_by_themselves() -> None:
    swapped = planned(
        edits.AddSubnet(network="net1", cidr="192.0.2.0/25", name="new", uuid="u3"),
        edits.RemoveSubnet(network="net1", subnet="subnet1"),
        on=net1(),
    )

    assert [str(subnet.cidr) for subnet in network(swapped).subnets] == ["10.0.0.0/24", "192.0.2.0/25"]


def test_pools_and_reserved_ranges_outside_their_subnet_are_found() -> None:
    good = net1()
    outside = parse_range("172.16.0.1-172.16.0.2")
    for broken in ({"pools": (Pool(outside),)}, {"reserved": (Reserved(outside),)}):
        subnets = (replace(network(good).subnets[0], **broken), network(good).subnets[1])

        with pytest.raises(Overlap):
            judge(replace(good, networks={"net1": replace(network(good), subnets=subnets)}))


def test_the_second_of_two_new_pools_is_told_to_overlap_the_first() -> None:
    plan = edited(net1(), edits.AddPool(network="net1", range="10.0.0.1-10.0.0.9", name="a"))
    plan = edited(plan, edits.AddPool(network="net1", range="10.0.0.9-10.0.0.12", name="b"))

    with pytest.raises(Overlap) as refusal:
        judge(plan)
    assert {refusal.value.first[:6], refusal.value.second[:6]} == {"pool a", "pool b"}


@pytest.mark.parametrize(
    ("edit", "pieces"),
    [
        (edits.ModifySubnet(network="net1", subnet="subnet1", cidr="192.0.2.0/25"), ["192.0.2.128-192.0.2.255"]),
        (edits.ModifySubnet(network="net1", subnet="subnet1", cidr="192.0.2.0/23"), []),
        (edits.RemoveSubnet(network="net1", subnet="subnet2"), ["10.0.0.0-10.0.0.255"]),
        (edits.RemoveNetwork(network="net1"), ["192.0.2.0-192.0.2.255", "10.0.0.0-10.0.0.255"]),
        (edits.RemovePool(network="net1", pool="pool1"), []),
        (edits.ModifyNetwork(network="net1", name="other"), []),
        (edits.Reserve(network="net1", range="192.0.2.10"), []),
    ],
)
def test_lost_ground_is_what_a_network_no_longer_covers(edit: edits.Edit, pieces: list[str]) -> None:
    assert lost(net1(), edit) == pieces


def test_a_block_that_is_replaced_by_its_halves_loses_nothing() -> None:
    halves = [edits.AddSubnet(network="net1", cidr=f"10.0.0.{low}/25", uuid=f"h{low}") for low in (128, 0)]

    assert lost(net1(), edits.RemoveSubnet(network="net1", subnet="subnet2"), *halves) == []


def test_a_block_that_hands_out_another_unit_is_lost_ground() -> None:
    again = edits.AddSubnet(network="net1", cidr="10.0.0.0/24", unit=28, uuid="u3")

    assert lost(net1(), edits.RemoveSubnet(network="net1", subnet="subnet2"), again) == ["10.0.0.0-10.0.0.255"]


def test_a_network_that_takes_over_the_block_of_another_does_not_keep_its_ground() -> None:
    other = edits.AddNetwork(network="net2")
    block = edits.AddSubnet(network="net2", cidr="10.0.0.0/24", uuid="u3")
    remove = edits.RemoveSubnet(network="net1", subnet="subnet2")

    assert lost(net1(other, block), remove) == ["10.0.0.0-10.0.0.255"]


@st.composite
def tilings(draw: st.DrawFn) -> Configuration:
    """Draw one network of disjoint /29s in a /26, some of unit 32 and some of unit 30."""
    places = draw(st.lists(st.integers(0, 7), unique=True, max_size=8))
    subnets = [Subnet(Cidr(base + 8 * n, 29), f"u{n}", unit=draw(st.sampled_from([30, 32]))) for n in places]
    return Configuration(1, "s", 1, {"n": Network(1, "n", "u", subnets=tuple(subnets))})


@given(tilings(), tilings())
def test_lost_ground_is_exact_address_by_address(old: Configuration, new: Configuration) -> None:
    def covered(plan: Configuration) -> set[tuple[int, int]]:
        blocks = plan.network("n").subnets
        return {(place, s.unit) for s in blocks for place in range(s.cidr.first, s.cidr.last + 1)}

    gone = {place for piece in lost_ground(old, new) for place in range(piece.range.first, piece.range.last + 1)}

    assert gone == {place for place, _ in covered(old) - covered(new)}


def test_only_gateways_that_are_new_are_asked_about() -> None:
    old = net1()
    new = planned(
        edits.ModifySubnet(network="net1", subnet="subnet1", gateway="192.0.2.40"),
        edits.AddSubnet(network="net1", cidr="10.1.0.0/24", gateway="10.1.0.1", uuid="u3"),
        edits.AddSubnet(network="net1", cidr="10.2.0.0/24", gateway="10.2.0.1", uuid="u4", keep_back=[]),
        on=old,
    )

    assert [format_address(place) for place in new_gateways(old, new)] == ["192.0.2.40", "10.1.0.1"]
    assert list(new_gateways(new, new)) == []
