"""Placing by static addresses on one network: who has one keeps it, new ones take them in the order listed."""

from tenure.integrations.bosh.placement import place
from tests.integrations.bosh.placement.builders import (
    config,
    gone,
    group,
    manual,
    on,
    present,
    refusal,
    static,
    stays,
    subnet,
    where,
    with_disk,
    without_vm,
)

FLAT = config(manual("lab", subnet("172.20.5.0/28", "172.20.5.8-172.20.5.14")))
TWO = config(
    manual(
        "lab",
        subnet("172.20.5.0/28", "172.20.5.8-172.20.5.14", azs=["z1"]),
        subnet("172.20.6.0/28", "172.20.6.8-172.20.6.14", azs=["z2"]),
    )
)
BOTH = config(manual("lab", subnet("172.20.5.0/28", "172.20.5.8-172.20.5.14", azs=["z1", "z2"])))
TEN, ELEVEN, TWELVE, THIRTEEN = (f"172.20.5.{number}" for number in (10, 11, 12, 13))


def test_c1_new_instances_take_static_ips_in_the_order_listed() -> None:
    placement = place(group(2, on("lab", TEN, ELEVEN)), FLAT, [])

    assert static(placement, "lab") == {0: TEN, 1: ELEVEN}
    assert static(place(group(2, on("lab", ELEVEN, TEN)), FLAT, []), "lab") == {0: ELEVEN, 1: TEN}


def test_c6_listing_static_ips_in_another_order_changes_nothing() -> None:
    instances = [present(0, lab=TEN), present(1, lab=ELEVEN)]

    placement = place(group(2, on("lab", ELEVEN, TEN)), FLAT, instances)

    assert static(placement, "lab") == {0: TEN, 1: ELEVEN}
    assert stays(placement) == {0: "uuid-0", 1: "uuid-1"}


def test_c7_a_changed_static_ip_moves_only_who_had_it() -> None:
    instances = [present(0, lab=TEN), present(1, lab=ELEVEN)]

    placement = place(group(2, on("lab", TEN, TWELVE)), FLAT, instances)

    assert static(placement, "lab") == {0: TEN, 1: TWELVE}
    assert (stays(placement), gone(placement)) == ({0: "uuid-0", 1: "uuid-1"}, [])


def test_a_static_ip_that_moves_to_another_az_makes_a_new_instance_there() -> None:
    instances = [present(0, "z1", lab=TEN), present(1, "z2", lab="172.20.6.10")]

    placement = place(group(2, on("lab", TEN, ELEVEN), azs=["z1", "z2"]), TWO, instances)

    assert static(placement, "lab") == {0: TEN, 2: ELEVEN}
    assert (where(placement), gone(placement)) == ([(0, "z1"), (2, "z1")], [1])


def test_c14_static_ips_of_one_az_put_all_instances_there() -> None:
    placement = place(group(2, on("lab", TEN, ELEVEN), azs=["z1", "z2"]), TWO, [])

    assert where(placement) == [(0, "z1"), (1, "z1")]


def test_c15_new_instances_go_to_the_az_that_has_fewest() -> None:
    instances = [present(0, "z1", lab=TEN), present(1, "z1", lab=ELEVEN)]

    placement = place(group(4, on("lab", TEN, ELEVEN, TWELVE, THIRTEEN), azs=["z1", "z2"]), BOTH, instances)

    assert where(placement) == [(0, "z1"), (1, "z1"), (2, "z2"), (3, "z2")]
    assert static(placement, "lab") == {0: TEN, 1: ELEVEN, 2: TWELVE, 3: THIRTEEN}


def test_static_ips_of_several_azs_are_spread_as_they_are_listed() -> None:
    placement = place(group(4, on("lab", TEN, ELEVEN, TWELVE, THIRTEEN), azs=["z1", "z2"]), BOTH, [])

    assert where(placement) == [(0, "z1"), (2, "z1"), (1, "z2"), (3, "z2")]


def test_c17_a_static_ip_that_left_the_instances_az_is_refused() -> None:
    only_z1 = config(manual("lab", subnet("172.20.5.0/28", "172.20.5.8-172.20.5.14", azs=["z1"])))

    assert refusal(group(1, on("lab", TEN), azs=["z1"]), only_z1, [present(4, "z2", lab=TEN)]) == (
        "NetworkReservationError",
        130010,
        f"Existing instance 'app/4' is using IP '{TEN}/32' in availability zone 'z2'",
    )


def test_a_static_ip_is_kept_when_its_network_is_renamed() -> None:
    instances = [present(0, old=ELEVEN), present(1, old=TEN)]

    assert static(place(group(2, on("lab", TEN, ELEVEN)), FLAT, instances), "lab") == {0: ELEVEN, 1: TEN}


def test_scaling_down_keeps_who_has_what_is_still_listed() -> None:
    placement = place(group(1, on("lab", ELEVEN)), FLAT, [present(0, lab=TEN), present(1, lab=ELEVEN)])

    assert (stays(placement), gone(placement)) == ({1: "uuid-1"}, [0])


def test_of_several_listed_addresses_the_carried_one_is_kept() -> None:
    placement = place(group(2, on("lab", TEN, ELEVEN)), FLAT, [present(0, lab=(ELEVEN, TEN))])

    assert static(placement, "lab") == {0: ELEVEN, 1: TEN}


def test_who_has_a_vm_takes_an_address_before_who_has_none() -> None:
    instances = [without_vm(present(0, lab=TWELVE)), present(1, lab=THIRTEEN)]

    placement = place(group(1, on("lab", TEN)), FLAT, instances)

    assert (stays(placement), gone(placement)) == ({1: "uuid-1"}, [0])


def test_who_has_a_disk_takes_an_address_before_who_has_none() -> None:
    instances = [present(0, lab=TWELVE), without_vm(with_disk(present(1, lab=THIRTEEN)))]

    assert gone(place(group(1, on("lab", TEN)), FLAT, instances)) == [0]


def test_an_address_that_two_hold_goes_to_who_has_a_vm() -> None:
    instances = [without_vm(present(0, lab=TEN)), present(1, lab=TEN)]

    assert static(place(group(2, on("lab", TEN, ELEVEN)), FLAT, instances), "lab") == {0: ELEVEN, 1: TEN}


def test_one_who_stays_takes_what_leaves_enough_for_the_others() -> None:
    flexible = config(
        manual(
            "lab",
            subnet("172.20.5.0/28", "172.20.5.8-172.20.5.14", azs=["z1", "z2"]),
            subnet("172.20.6.0/28", "172.20.6.8-172.20.6.14", azs=["z1"]),
        )
    )
    instances = [present(0, "z1"), present(1, "z2")]

    placement = place(group(2, on("lab", TEN, "172.20.6.10"), azs=["z1", "z2"]), flexible, instances)

    assert static(placement, "lab") == {0: "172.20.6.10", 1: TEN}
    assert stays(placement) == {0: "uuid-0", 1: "uuid-1"}


def test_a_network_without_static_ips_has_no_part_in_it() -> None:
    both = config(*FLAT.networks.values(), manual("other", subnet("172.20.7.0/28")))

    placement = place(group(1, on("other"), on("lab", TEN)), both, [])

    assert [each.static.keys() for each in placement.placed] == [{"lab"}]


def test_a_group_of_none_lets_all_go() -> None:
    assert gone(place(group(0, on("lab")), FLAT, [present(0, lab=TEN), present(1, lab=ELEVEN)])) == [0, 1]
