"""What holds for every placement, whatever the group and its instances."""

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import assume, given, target
from hypothesis import strategies as st

from tenure.integrations.bosh.model.bosh_errors import Refused
from tenure.integrations.bosh.model.document_model import CloudSubnet
from tenure.integrations.bosh.placement import Placement, Present, place
from tests.integrations.bosh.placement.builders import settled
from tests.integrations.bosh.placement.strategies import Case, balanced_cases, static_cases

CASES = balanced_cases() | static_cases()


def placed(case: Case) -> Placement | str:
    """Place, or return why not."""
    try:
        return place(case.group, case.config, case.present)
    except Refused as refusal:
        return str(refusal.fault)


def found(case: Case) -> Placement:
    """Place what can be placed."""
    placement = placed(case)
    target(float(isinstance(placement, Placement)))
    assume(isinstance(placement, Placement))
    assert isinstance(placement, Placement)
    return placement


@given(CASES)
def test_nobody_is_lost_or_doubled(case: Case) -> None:
    placement = found(case)

    known = [each.present for each in placement.placed if each.present is not None]
    assert sorted(each.uuid for each in [*known, *placement.obsolete]) == sorted(each.uuid for each in case.present)
    assert len(placement.placed) == case.group.instances


@given(CASES)
def test_no_two_instances_have_one_index_and_known_ones_keep_theirs(case: Case) -> None:
    placement = found(case)

    indexes = [each.index for each in placement.placed] + [each.index for each in placement.obsolete]
    assert len(set(indexes)) == len(indexes)
    assert all(each.present is None or each.present.index == each.index for each in placement.placed)


@given(CASES)
def test_known_instances_keep_their_az_and_all_stand_in_wanted_ones(case: Case) -> None:
    placement = found(case)

    assert all(each.present is None or each.present.az == each.az for each in placement.placed)
    assert {each.az for each in placement.placed} <= set(case.group.azs or (None,))


@given(CASES)
def test_all_are_told_by_az_and_index(case: Case) -> None:
    placement = found(case)

    assert [each.index for each in placement.placed] == [
        each.index for each in sorted(placement.placed, key=lambda each: (each.az or "", each.index))
    ]


@given(balanced_cases(pins=False))
def test_azs_differ_by_at_most_one_where_nothing_holds_instances(case: Case) -> None:
    counts = Counter(each.az for each in found(case).placed)
    numbers = [counts[az] for az in case.group.azs or (None,)]

    assert max(numbers) - min(numbers) <= 1


@given(balanced_cases(pins=False))
def test_an_instance_goes_only_if_its_az_is_full_enough(case: Case) -> None:
    placement = found(case)
    counts = Counter(each.az for each in placement.placed)
    kept = Counter(each.az for each in placement.placed if each.present is not None)

    assert all(counts[each.az] == kept[each.az] for each in placement.obsolete)


@given(CASES)
def test_placing_again_changes_nothing(case: Case) -> None:
    placement = found(case)

    again = place(case.group, case.config, settled(placement))

    assert again.obsolete == ()
    assert [(each.index, each.az, dict(each.static)) for each in again.placed] == [
        (each.index, each.az, dict(each.static)) for each in placement.placed
    ]


@given(CASES, st.randoms(use_true_random=False))
def test_the_order_in_which_instances_are_told_does_not_matter(case: Case, chance: Random) -> None:
    shuffled = list(case.present)
    chance.shuffle(shuffled)

    assert placed(Case(case.group, case.config, [_turned(each) for each in shuffled])) == placed(case)


def _turned(instance: Present) -> Present:
    """Tell an instance's networks in another order."""
    return replace(instance, addresses=dict(reversed(list(instance.addresses.items()))))


@given(static_cases())
def test_every_static_ip_is_given_once_in_its_az(case: Case) -> None:
    placement = found(case)

    for wish in case.group.networks:
        given_out = [each.static[wish.name] for each in placement.placed]
        assert sorted(given_out) == sorted(wish.static_ips or ())
        for each in placement.placed:
            assert _subnet(case, wish.name, each.static[wish.name]).serves(each.az)


@given(static_cases())
def test_addresses_of_one_nic_group_are_on_matching_subnets(case: Case) -> None:
    placement = found(case)

    siblings = [wish.name for wish in case.group.networks if wish.nic_group is not None]
    for each in placement.placed:
        properties = [_subnet(case, name, each.static[name]).cloud_properties for name in siblings]
        assert all(one == properties[0] for one in properties)


@given(static_cases())
def test_who_stays_keeps_a_listed_address(case: Case) -> None:
    for each in found(case).placed:
        for wish in case.group.networks:
            held = set(() if each.present is None else each.present.addresses.get(wish.name, ()))
            assert not held & set(wish.static_ips or ()) or each.static[wish.name] in held


def _subnet(case: Case, name: str, position: int) -> CloudSubnet:
    [found] = [
        subnet
        for subnet in case.config.networks[name].subnets
        if subnet.range is not None and position in subnet.range.range
    ]
    return found
