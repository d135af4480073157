"""Placing without static addresses: evenly over the AZs, and nobody moves who need not."""

import pytest

from tenure.integrations.bosh.placement import place
from tests.integrations.bosh.placement.builders import (
    config,
    gone,
    group,
    ignored,
    manual,
    on,
    present,
    stays,
    subnet,
    where,
    with_disk,
    without_vm,
)

FLAT = config(manual("lab", subnet("172.20.5.0/28")))
ZONED = config(manual("lab", subnet("172.20.5.0/28", azs=["z1", "z2", "z3"])))
LAB = on("lab")
ALL = ["z1", "z2", "z3"]


def test_new_instances_go_to_the_azs_one_after_the_other() -> None:
    placement = place(group(4, LAB, azs=ALL), ZONED, [])

    assert where(placement) == [(0, "z1"), (3, "z1"), (1, "z2"), (2, "z3")]
    assert set(stays(placement).values()) == {None}


def test_the_order_in_which_a_group_lists_its_azs_does_not_matter() -> None:
    assert place(group(4, LAB, azs=["z3", "z1", "z2"]), ZONED, []) == place(group(4, LAB, azs=ALL), ZONED, [])


def test_a_group_without_azs_has_instances_without() -> None:
    assert where(place(group(2, LAB), FLAT, [])) == [(0, None), (1, None)]


def test_d22_scaling_down_takes_the_highest_index() -> None:
    placement = place(group(2, LAB), FLAT, [present(0), present(2), present(1)])

    assert stays(placement) == {0: "uuid-0", 1: "uuid-1"}
    assert gone(placement) == [2]


def test_d22_a_lost_vm_does_not_cost_an_instance_its_place() -> None:
    assert gone(place(group(2, LAB), FLAT, [without_vm(present(0)), present(1), present(2)])) == [2]


def test_scaling_down_takes_from_the_az_that_has_most() -> None:
    placement = place(group(2, LAB, azs=["z1", "z2"]), ZONED, [present(0, "z1"), present(1, "z1"), present(2, "z2")])

    assert where(placement) == [(0, "z1"), (2, "z2")]
    assert gone(placement) == [1]


def test_who_has_a_disk_stays_before_lower_indexes_without() -> None:
    placement = place(group(1, LAB), FLAT, [present(0), with_disk(present(1))])

    assert (stays(placement), gone(placement)) == ({1: "uuid-1"}, [0])


def test_disks_hold_instances_in_their_az_however_full_it_is() -> None:
    instances = [with_disk(present(index, "z1")) for index in range(3)]

    placement = place(group(4, LAB, azs=["z1", "z2"]), ZONED, instances)

    assert where(placement) == [(0, "z1"), (1, "z1"), (2, "z1"), (3, "z2")]


def test_of_more_disks_than_instances_low_indexes_stay() -> None:
    instances = [with_disk(present(1, "z1")), with_disk(present(0, "z1")), with_disk(present(2, "z2"))]

    assert gone(place(group(2, LAB, azs=["z1", "z2"]), ZONED, instances)) == [2]


def test_without_disks_instances_leave_an_az_that_has_too_many() -> None:
    placement = place(group(3, LAB, azs=ALL), ZONED, [present(0, "z1"), present(1, "z1"), present(2, "z1")])

    assert where(placement) == [(0, "z1"), (3, "z2"), (4, "z3")]
    assert gone(placement) == [1, 2]


def test_of_equally_full_azs_one_with_an_instance_comes_first() -> None:
    placement = place(group(1, LAB, azs=ALL), ZONED, [present(5, "z3")])

    assert stays(placement) == {5: "uuid-5"}


def test_d16_a_replaced_az_makes_a_new_instance_with_an_index_of_its_own() -> None:
    placement = place(group(1, LAB, azs=["z2"]), ZONED, [present(0, "z1")])

    assert (where(placement), stays(placement), gone(placement)) == ([(1, "z2")], {1: None}, [0])


def test_d16_a_disk_does_not_hold_an_instance_in_an_az_that_is_not_wanted() -> None:
    assert gone(place(group(1, LAB, azs=["z2"]), ZONED, [with_disk(present(0, "z1"))])) == [0]


def test_an_instance_without_az_does_not_become_one_of_a_group_with_azs() -> None:
    assert gone(place(group(1, LAB, azs=["z1"]), ZONED, [present(0)])) == [0]


def test_an_instance_of_an_az_does_not_become_one_of_a_group_without() -> None:
    assert gone(place(group(1, LAB), FLAT, [present(0, "z1")])) == [0]


def test_d15_a_subnet_that_leaves_an_az_moves_no_instance() -> None:
    shared = subnet("172.20.5.0/28", azs=["z1", "z2"])
    before = config(manual("lab", shared, subnet("172.20.6.0/28", azs=["z2"])))
    after = config(manual("lab", subnet("172.20.5.0/28", azs=["z1"]), subnet("172.20.6.0/28", azs=["z2"])))
    instances = [present(0, "z1", lab="172.20.5.2"), present(1, "z2", lab="172.20.5.3")]
    wanted = group(2, LAB, azs=["z1", "z2"])

    assert place(wanted, after, instances) == place(wanted, before, instances)
    assert stays(place(wanted, after, instances)) == {0: "uuid-0", 1: "uuid-1"}


def test_a_new_index_is_the_lowest_that_nobody_has() -> None:
    placement = place(group(4, LAB), FLAT, [present(1), present(4)])

    assert stays(placement) == {0: None, 1: "uuid-1", 2: None, 4: "uuid-4"}


def test_an_ignored_instance_stays_however_high_its_index() -> None:
    placement = place(group(1, LAB), FLAT, [present(0), ignored(present(7, lab="172.20.5.2"))])

    assert (stays(placement), gone(placement)) == ({7: "uuid-7"}, [0])


def test_an_ignored_instance_counts_in_its_az() -> None:
    instance = ignored(present(0, "z1", lab="172.20.5.2"))

    assert where(place(group(2, LAB, azs=["z1", "z2"]), ZONED, [instance])) == [(0, "z1"), (1, "z2")]


@pytest.mark.parametrize("instances", [0, 1, 5])
def test_a_group_gets_as_many_instances_as_it_asks_for(instances: int) -> None:
    placement = place(group(instances, LAB, azs=ALL), ZONED, [present(index, "z1") for index in range(3)])

    assert len(placement.placed) == instances
