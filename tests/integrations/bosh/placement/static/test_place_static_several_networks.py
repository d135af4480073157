"""Placing by static addresses on several networks: each must have one for every instance, in the instance's AZ."""

import pytest

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
)

EVENLY = (
    "InstanceGroupNetworkInstanceIpMismatch",
    150002,
    "Failed to evenly distribute static IPs between zones for instance group 'app'",
)
EXISTING = (
    "NetworkReservationError",
    130010,
    "Failed to distribute static IPs to satisfy existing instance reservations",
)
SITE = config(
    manual(
        "m",
        subnet("10.1.1.0/24", "10.1.1.10-10.1.1.99", azs=["z1"]),
        subnet("10.1.2.0/24", "10.1.2.10-10.1.2.99", azs=["z2"]),
        subnet("10.1.3.0/24", "10.1.3.10-10.1.3.99", azs=["z1", "z2"]),
    ),
    manual(
        "n",
        subnet("10.2.1.0/24", "10.2.1.10-10.2.1.99", azs=["z1"]),
        subnet("10.2.2.0/24", "10.2.2.10-10.2.2.99", azs=["z2"]),
        subnet("10.2.3.0/24", "10.2.3.10-10.2.3.99", azs=["z1", "z2"]),
    ),
)
BOTH = ["z1", "z2"]


def test_further_networks_follow_the_first_ones_order() -> None:
    wanted = group(2, on("m", "10.1.2.10", "10.1.1.10"), on("n", "10.2.1.10", "10.2.2.10"), azs=BOTH)

    placement = place(wanted, SITE, [])

    assert where(placement) == [(1, "z1"), (0, "z2")]
    assert static(placement, "m") == {0: "10.1.2.10", 1: "10.1.1.10"}
    assert static(placement, "n") == {0: "10.2.2.10", 1: "10.2.1.10"}


def test_c16_networks_that_cannot_have_the_same_number_in_each_az_are_refused() -> None:
    wanted = group(2, on("m", "10.1.1.10", "10.1.2.10"), on("n", "10.2.1.10", "10.2.1.11"), azs=BOTH)

    assert refusal(wanted, SITE) == EVENLY


def test_what_can_be_had_in_several_azs_goes_where_the_other_network_needs_it() -> None:
    wanted = group(2, on("m", "10.1.3.10", "10.1.3.11"), on("n", "10.2.2.10", "10.2.2.11"), azs=BOTH)

    assert where(place(wanted, SITE, [])) == [(0, "z2"), (1, "z2")]


def test_an_existing_instance_gets_an_address_of_its_az_on_a_new_network() -> None:
    instances = [present(0, "z1", m="10.1.1.10"), present(1, "z2", m="10.1.2.10")]
    wanted = group(2, on("m", "10.1.1.10", "10.1.2.10"), on("n", "10.2.2.10", "10.2.3.10"), azs=BOTH)

    placement = place(wanted, SITE, instances)

    assert static(placement, "n") == {0: "10.2.3.10", 1: "10.2.2.10"}
    assert stays(placement) == {0: "uuid-0", 1: "uuid-1"}


def test_an_existing_instance_without_an_address_on_a_new_network_is_refused() -> None:
    wanted = group(1, on("m", "10.1.3.10"), on("n", "10.2.2.10"), azs=BOTH)

    assert refusal(wanted, SITE, [present(0, "z1", m="10.1.3.10")]) == EXISTING


def test_holders_who_cannot_all_be_served_are_refused() -> None:
    instances = [present(0, "z1", m="10.1.3.10"), present(1, "z1", m="10.1.3.11")]
    wanted = group(2, on("m", "10.1.3.10", "10.1.3.11"), on("n", "10.2.1.10", "10.2.2.10"), azs=BOTH)

    assert refusal(wanted, SITE, instances) == EXISTING


def test_an_instance_goes_if_one_network_has_nothing_for_its_az() -> None:
    wanted = group(1, on("m", "10.1.3.10"), on("n", "10.2.2.10"), azs=BOTH)

    placement = place(wanted, SITE, [present(0, "z1", m="10.1.1.99")])

    assert (where(placement), gone(placement)) == ([(1, "z2")], [0])


def test_an_instance_goes_rather_than_leave_others_without_a_place() -> None:
    # In z1 both networks have an address that is free, but m's is needed in z2 for n's second one.
    wanted = group(2, on("m", "10.1.1.10", "10.1.3.10"), on("n", "10.2.1.10", "10.2.2.10"), azs=BOTH)
    instances = [present(0, "z1", m="10.1.1.10", n="10.2.1.10"), present(1, "z1", m="10.1.1.99", n="10.2.1.99")]

    placement = place(wanted, SITE, instances)

    assert (where(placement), gone(placement)) == ([(0, "z1"), (2, "z2")], [1])


def test_of_two_who_hold_one_wanted_address_each_the_last_goes() -> None:
    instances = [present(0, "z1", m="10.1.1.10", n="10.2.1.99"), present(1, "z1", m="10.1.1.99", n="10.2.1.10")]

    placement = place(group(1, on("m", "10.1.1.10"), on("n", "10.2.1.10"), azs=BOTH), SITE, instances)

    assert (stays(placement), gone(placement)) == ({0: "uuid-0"}, [1])


def test_three_networks_with_an_address_of_their_own_az_each() -> None:
    # Each network needs one instance in an AZ of its own; which AZ comes first by name must not decide.
    azs = ["z1", "z2", "z3", "z4"]
    networks = [
        manual(
            name,
            subnet(f"10.{number}.0.0/24", f"10.{number}.0.10", azs=[own]),
            subnet(f"10.{number}.1.0/24", f"10.{number}.1.10-10.{number}.1.99", azs=azs),
        )
        for number, (name, own) in enumerate([("a", "z2"), ("b", "z3"), ("c", "z4")])
    ]
    listed = [
        on(name, f"10.{number}.0.10", f"10.{number}.1.10", f"10.{number}.1.11")
        for number, name in enumerate(["a", "b", "c"])
    ]

    assert where(place(group(3, *listed, azs=azs), config(*networks), [])) == [(0, "z2"), (1, "z3"), (2, "z4")]


@pytest.mark.timeout(60)
def test_a_thousand_instances_on_two_networks_are_placed_at_once() -> None:
    site = config(
        manual("m", subnet("10.1.0.0/16", "10.1.0.10-10.1.99.99", azs=["z1", "z2", "z3"])),
        manual("n", *(subnet(f"10.2{az}.0.0/16", f"10.2{az}.0.10-10.2{az}.99.99", azs=[f"z{az}"]) for az in "123")),
    )
    first = [f"10.1.{1 + number // 200}.{number % 200}" for number in range(999)]
    second = [f"10.2{1 + number % 3}.{1 + number // 200}.{number % 200}" for number in range(999)]

    placement = place(group(999, on("m", *first), on("n", *second), azs=["z1", "z2", "z3"]), site, [])

    assert [where(placement)[number] for number in (0, 333, 666)] == [(0, "z1"), (1, "z2"), (2, "z3")]
