"""Static networks that share a nic_group: all addresses of a NIC come from subnets with equal cloud properties."""

from tenure.integrations.bosh.placement import place
from tests.integrations.bosh.placement.builders import (
    config,
    group,
    manual,
    on,
    present,
    refusal,
    static,
    stays,
    subnet,
)

SITE = config(
    manual(
        "m",
        subnet("10.1.1.0/24", "10.1.1.10-10.1.1.99", azs=["z1"], vlan=11),
        subnet("10.1.2.0/24", "10.1.2.10-10.1.2.99", azs=["z1"], vlan=12),
    ),
    manual(
        "n",
        subnet("10.2.1.0/24", "10.2.1.10-10.2.1.99", azs=["z1"], vlan=11),
        subnet("10.2.2.0/24", "10.2.2.10-10.2.2.99", azs=["z1"], vlan=12),
    ),
)
FLAT = config(
    manual("m", subnet("10.1.1.0/24", "10.1.1.10-10.1.1.99", vlan=11)),
    manual("n", subnet("10.2.2.0/24", "10.2.2.10-10.2.2.99", vlan=12)),
)


def test_i12_an_added_networks_address_is_on_the_subnet_of_its_sibling() -> None:
    instances = [present(0, "z1", m="10.1.1.10"), present(1, "z1", m="10.1.2.10")]
    wanted = group(
        2,
        on("m", "10.1.1.10", "10.1.2.10", nic_group="1"),
        on("n", "10.2.2.10", "10.2.1.10", nic_group="1"),
        azs=["z1"],
    )

    placement = place(wanted, SITE, instances)

    assert static(placement, "n") == {0: "10.2.1.10", 1: "10.2.2.10"}
    assert stays(placement) == {0: "uuid-0", 1: "uuid-1"}


def test_i12_without_an_address_on_the_siblings_subnet_it_is_refused() -> None:
    wanted = group(1, on("m", "10.1.1.10", nic_group="1"), on("n", "10.2.2.10", nic_group="1"), azs=["z1"])

    assert refusal(wanted, SITE, [present(0, "z1", m="10.1.1.10")]) == (
        "NetworkReservationError",
        130010,
        "Failed to find a static IP for network 'n' on a matching subnet in nic_group '1' in availability zone 'z1'",
    )


def test_i12_a_message_without_az_where_none_is_to_blame() -> None:
    wanted = group(1, on("m", "10.1.1.10", nic_group="1"), on("n", "10.2.2.10", nic_group="1"))

    assert refusal(wanted, FLAT)[2] == (
        "Failed to find a static IP for network 'n' on a matching subnet in nic_group '1'"
    )


def test_i12_addresses_on_subnets_that_do_not_match_any_more_are_refused() -> None:
    wanted = group(1, on("m", "10.1.1.10", nic_group="1"), on("n", "10.2.2.10", nic_group="1"), azs=["z1"])

    assert "in nic_group '1'" in refusal(wanted, SITE, [present(0, "z1", m="10.1.1.10", n="10.2.2.10")])[2]


def test_new_instances_get_matching_addresses_though_the_first_listed_does_not_match() -> None:
    wanted = group(
        2,
        on("m", "10.1.1.10", "10.1.2.10", nic_group="1"),
        on("n", "10.2.2.10", "10.2.1.10", nic_group="1"),
        azs=["z1"],
    )

    placement = place(wanted, SITE, [])

    assert static(placement, "m") == {0: "10.1.1.10", 1: "10.1.2.10"}
    assert static(placement, "n") == {0: "10.2.1.10", 1: "10.2.2.10"}


def test_networks_of_different_nic_groups_need_not_match() -> None:
    wanted = group(1, on("m", "10.1.1.10", nic_group="1"), on("n", "10.2.2.10", nic_group="2"), azs=["z1"])

    assert static(place(wanted, SITE, []), "n") == {0: "10.2.2.10"}


def test_an_instance_takes_the_subnet_on_which_all_others_find_a_place() -> None:
    # Who holds p could take either subnet of m and n; only vlan 12 is left after the other one.
    site = config(*SITE.networks.values(), manual("p", subnet("10.3.0.0/24", "10.3.0.10-10.3.0.99", azs=["z1"])))
    instances = [present(0, "z1", p="10.3.0.10"), present(1, "z1", p="10.3.0.11", m="10.1.1.10")]
    wanted = group(
        2,
        on("p", "10.3.0.10", "10.3.0.11"),
        on("m", "10.1.1.10", "10.1.2.10", nic_group="1"),
        on("n", "10.2.1.10", "10.2.2.10", nic_group="1"),
        azs=["z1"],
    )

    placement = place(wanted, site, instances)

    assert static(placement, "m") == {0: "10.1.2.10", 1: "10.1.1.10"}
    assert static(placement, "n") == {0: "10.2.2.10", 1: "10.2.1.10"}


def test_what_fails_for_other_reasons_is_not_blamed_on_the_nic_group() -> None:
    site = config(
        manual(
            "m",
            subnet("10.1.1.0/24", "10.1.1.10-10.1.1.99", azs=["z1"], vlan=11),
            subnet("10.1.2.0/24", "10.1.2.10-10.1.2.99", azs=["z2"], vlan=11),
        ),
        manual(
            "n",
            subnet("10.2.1.0/24", "10.2.1.10-10.2.1.99", azs=["z1"], vlan=11),
            subnet("10.2.2.0/24", "10.2.2.10-10.2.2.99", azs=["z2"], vlan=11),
        ),
    )
    wanted = group(1, on("m", "10.1.1.10", nic_group="1"), on("n", "10.2.2.10", nic_group="1"), azs=["z1", "z2"])

    assert refusal(wanted, site)[0] == "InstanceGroupNetworkInstanceIpMismatch"
