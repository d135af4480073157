"""Static addresses over AZs, held against all ways there are: what can be placed is placed, and as evenly as can be."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import CloudSubnet, GroupNetwork
from tenure.integrations.bosh.placement import place
from tenure.integrations.bosh.placement.static.flow import meet
from tests.integrations.bosh.placement.strategies import Case, static_cases
from tests.profiles import examples

Counts = frozenset[tuple[Hashable, int]]
"""How many instances there are in each place."""


def counts_of(places: Iterable[Hashable]) -> Counts:
    return frozenset(Counter(places).items())


def homes(case: Case, wish: GroupNetwork) -> list[CloudSubnet]:
    """Find the subnet of each static address."""
    subnets = case.config.networks[wish.name].subnets
    ranges = [(each.range.range, each) for each in subnets if each.range is not None]
    return [subnet for position in wish.static_ips or () for block, subnet in ranges if position in block]


def ways(case: Case, wish: GroupNetwork, *, with_kinds: bool) -> set[Counts]:
    """List all numbers that a network can reach in each AZ, or in each AZ and kind of subnet."""
    found = homes(case, wish)
    kinds = [subnet.cloud_properties["vlan"] if with_kinds else None for subnet in found]
    return {counts_of(zip(azs, kinds, strict=True)) for azs in product(*(subnet.azs or () for subnet in found))}


def without_kinds(counts: Counts) -> Counts:
    summed = Counter[Hashable]()
    for place_, number in counts:
        assert isinstance(place_, tuple)
        summed[(place_[0], None)] += number
    return frozenset(summed.items())


def all_ways(case: Case) -> set[Counts]:
    """List all numbers in each AZ that every network can reach."""
    siblings = [wish for wish in case.group.networks if wish.nic_group is not None]
    others = [wish for wish in case.group.networks if wish.nic_group is None]
    reached = [ways(case, wish, with_kinds=False) for wish in others]
    if siblings:
        matching = set.intersection(*(ways(case, wish, with_kinds=True) for wish in siblings))
        reached.append({without_kinds(counts) for counts in matching})
    return set.intersection(*reached)


def check_that_what_can_be_placed_is_placed(case: Case) -> None:
    possible = all_ways(case)
    if possible:
        assert counts_of((each.az, None) for each in place(case.group, case.config, case.present).placed) in possible
        return
    with pytest.raises(Refused) as caught:
        place(case.group, case.config, case.present)
    assert caught.value.kind in (
        BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH,
        BoshErrorKind.NETWORK_RESERVATION_ERROR,
    )


@given(static_cases(networks=2, azs=4, fresh=True))
@settings(max_examples=examples(3))
def test_what_two_networks_can_place_is_placed(case: Case) -> None:
    check_that_what_can_be_placed_is_placed(case)


@given(static_cases(networks=4, azs=3, nic_groups=False, fresh=True))
@settings(max_examples=examples(3))
def test_what_many_networks_can_place_in_three_azs_is_placed(case: Case) -> None:
    check_that_what_can_be_placed_is_placed(case)


@given(static_cases(networks=1, azs=4, instances=6, fresh=True))
def test_one_network_is_spread_as_evenly_as_its_addresses_allow(case: Case) -> None:
    counts = counts_of((each.az, None) for each in place(case.group, case.config, []).placed)

    assert unevenness(counts) == min(unevenness(each) for each in all_ways(case))


def unevenness(counts: Counts) -> int:
    return sum(number * number for _, number in counts)


@given(static_cases(networks=2, azs=3, nic_groups=False))
@settings(max_examples=examples(3))
def test_an_instance_goes_only_if_not_all_could_be_placed_with_it(case: Case) -> None:
    case = replace(case, present=[replace(each, addresses={}) for each in case.present])
    possible = all_ways(case)
    if not possible:
        return

    placement = place(case.group, case.config, case.present)

    kept = Counter(each.az for each in placement.placed if each.present is not None)
    for instance in placement.obsolete:
        wanted = kept + Counter([instance.az])
        assert not any(all(dict(counts).get((az, None), 0) >= wanted[az] for az in wanted) for counts in possible)


SUPPLIES = st.lists(st.sets(st.integers(0, 3), min_size=1).map(lambda spots: tuple(sorted(spots))), max_size=4)


@given(SUPPLIES, SUPPLIES, st.lists(st.integers(0, 2), min_size=4, max_size=4))
@settings(max_examples=examples(5))
def test_two_supplies_meet_if_both_can_reach_the_same_numbers_above_the_floor(
    left: list[tuple[int, ...]], right: list[tuple[int, ...]], floor: list[int]
) -> None:
    common = {counts_of(spots) for spots in product(*left)} & {counts_of(spots) for spots in product(*right)}
    above = [counts for counts in common if all(dict(counts).get(spot, 0) >= floor[spot] for spot in range(4))]

    assert meet(Counter(left), Counter(right), floor) is bool(above)
