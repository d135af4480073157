"""Static IPs of groups: as many as instances, each once, each in a static pool that the group's AZs reach."""

from typing import Any

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind
from tests.integrations.bosh.documents.manifests import addresses, group, read_group, refused

MISMATCH = BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH
STATIC_IPS = "instance_groups[0].networks[0].static_ips"


def asking(*static_ips: str, network: str = "lab", **besides: Any) -> dict[str, Any]:
    """Write a group that asks for static IPs, with as many instances unless it is told otherwise."""
    return group({"name": network, "static_ips": list(static_ips)}, **{"instances": len(static_ips), **besides})


def test_c1_static_ips_keep_the_order_in_which_they_are_listed() -> None:
    listed = read_group(asking("172.20.5.14", "172.20.5.10 - 172.20.5.12", instances=4)).networks[0]

    assert addresses(listed) == ["172.20.5.14", "172.20.5.10", "172.20.5.11", "172.20.5.12"]


def test_static_ips_may_be_one_text() -> None:
    listed = read_group(group({"name": "lab", "static_ips": "172.20.5.10/31"}, instances=2)).networks[0]

    assert addresses(listed) == ["172.20.5.10", "172.20.5.11"]


def test_static_ips_of_nothing_are_not_asked_for() -> None:
    assert read_group(group({"name": "lab", "static_ips": None})).networks[0].static_ips is None


@pytest.mark.parametrize("instances", [1, 3])
def test_c2_as_many_static_ips_as_instances_are_needed(instances: int) -> None:
    message = f"Instance group 'app' has {instances} instances but was allocated 2 static IPs in network 'lab'"

    assert refused(asking("172.20.5.10", "172.20.5.11", instances=instances)) == [(MISMATCH, message, STATIC_IPS)]
    assert MISMATCH.value == 150002


def test_c2_no_static_ips_are_too_few() -> None:
    message = "Instance group 'app' has 1 instances but was allocated 0 static IPs in network 'lab'"

    assert refused(asking(instances=1)) == [(MISMATCH, message, STATIC_IPS)]


def test_c3_the_same_static_ip_twice_is_refused() -> None:
    message = "Instance group 'app' specifies static IP '172.20.5.10/32' more than once"

    assert refused(asking("172.20.5.10", "172.20.5.10")) == [
        (BoshErrorKind.JOB_INVALID_STATIC_IPS, message, f"{STATIC_IPS}[1]")
    ]
    assert (BoshErrorKind.JOB_INVALID_STATIC_IPS.title, BoshErrorKind.JOB_INVALID_STATIC_IPS.value) == (
        "JobInvalidStaticIPs",
        150009,
    )


def test_c3_a_range_over_another_is_one_fault() -> None:
    message = "Instance group 'app' specifies static IP '172.20.5.11-172.20.5.12' more than once"

    assert refused(asking("172.20.5.10-172.20.5.12", "172.20.5.11-172.20.5.12")) == [
        (BoshErrorKind.JOB_INVALID_STATIC_IPS, message, f"{STATIC_IPS}[1]")
    ]


@pytest.mark.parametrize("address", ["172.20.5.9", "172.20.5.1", "172.20.5.13", "192.0.2.1", "2001:db8::1"])
def test_c4_an_address_in_no_static_pool_is_refused(address: str) -> None:
    length = 128 if ":" in address else 32
    message = f"with network 'lab' declares static ip '{address}/{length}', which belongs to no subnet"

    assert refused(asking(address)) == [(MISMATCH, f"Instance group 'app' {message}", f"{STATIC_IPS}[0]")]


def test_c4_neighbours_in_no_static_pool_are_one_fault() -> None:
    found = refused(asking("172.20.5.8-172.20.5.15", instances=8))

    told = "Instance group 'app' with network 'lab' declares static ip '{}', which belongs to no subnet"
    assert found == [
        (MISMATCH, told.format("172.20.5.8-172.20.5.9"), f"{STATIC_IPS}[0]"),
        (MISMATCH, told.format("172.20.5.13/32"), f"{STATIC_IPS}[0]"),
        (MISMATCH, told.format("172.20.5.15/32"), f"{STATIC_IPS}[0]"),
    ]


def test_a_static_ip_in_another_az_is_refused() -> None:
    message = (
        "Instance group 'app' declares static ip '172.20.7.8/32'"
        " which does not belong to any of the instance group's availability zones."
    )

    assert refused(asking("172.20.6.8", "172.20.7.8", network="zoned", azs=["z1"])) == [
        (BoshErrorKind.JOB_STATIC_IPS_FROM_INVALID_AVAILABILITY_ZONE, message, f"{STATIC_IPS}[1]")
    ]
    assert BoshErrorKind.JOB_STATIC_IPS_FROM_INVALID_AVAILABILITY_ZONE.value == 150007


def test_c14_static_ips_may_all_be_in_one_of_the_azs() -> None:
    listed = read_group(asking("172.20.6.8", "172.20.6.9", network="zoned", azs=["z1", "z2"])).networks[0]

    assert addresses(listed) == ["172.20.6.8", "172.20.6.9"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("172.20.5.12-172.20.5.10", "Invalid IP range format: 172.20.5.12-172.20.5.10"),
        ("lab", "Invalid IP or CIDR format: lab"),
    ],
)
def test_what_is_no_address_is_refused_and_not_counted(text: str, message: str) -> None:
    assert refused(asking("172.20.5.10", text, instances=3)) == [
        (BoshErrorKind.NETWORK_INVALID_IP_RANGE_FORMAT, message, f"{STATIC_IPS}[1]")
    ]


def test_static_ips_on_an_unknown_network_are_counted_all_the_same() -> None:
    found = refused(asking("172.20.5.10", network="nowhere", instances=2))

    assert [(kind, place) for kind, _, place in found] == [
        (BoshErrorKind.JOB_UNKNOWN_NETWORK, "instance_groups[0].networks[0].name"),
        (MISMATCH, STATIC_IPS),
    ]


def test_more_static_ips_than_can_be_kept_one_by_one_are_refused() -> None:
    allowed = asking("10.9.0.0-10.9.255.254", network="wide", instances=65535)
    assert read_group(allowed).networks[0].static_ips is not None

    for text, count in (("10.8.0.0/15", 131072), ("2001:db8::/32", 1 << 96)):
        message = f"Instance group 'app' asks for {count} static IPs in network 'wide', at most 65536 are read"
        assert refused(asking(text, network="wide")) == [(BoshErrorKind.GENERIC, message, STATIC_IPS)]


def test_i7_a_static_ip_on_a_network_with_a_prefix_is_the_base_address_of_a_block() -> None:
    message = "Static IP '10.10.0.72/32' of network 'blocks' is no base address of prefix '28'"

    assert addresses(read_group(asking("10.10.0.80", "10.10.0.64", network="blocks")).networks[0]) == [
        "10.10.0.80",
        "10.10.0.64",
    ]
    assert refused(asking("10.10.0.64", "10.10.0.72", network="blocks")) == [
        (BoshErrorKind.NETWORK_PREFIX_STATIC_IP_NOT_BASE_ADDRESS, message, f"{STATIC_IPS}[1]")
    ]
    assert BoshErrorKind.NETWORK_PREFIX_STATIC_IP_NOT_BASE_ADDRESS.value == 160015


@pytest.mark.parametrize("text", ["10.10.0.64/27", "10.10.0.64-10.10.0.95", "10.10.0.64-10.10.0.80"])
def test_a_range_of_whole_blocks_stands_for_their_base_addresses(text: str) -> None:
    listed = read_group(asking(text, network="blocks", instances=2)).networks[0]

    assert addresses(listed) == ["10.10.0.64", "10.10.0.80"]


def test_c4_blocks_in_no_static_pool_are_told_with_their_length() -> None:
    told = "Instance group 'app' with network 'blocks' declares static ip '{}', which belongs to no subnet"

    assert refused(asking("10.10.0.32", "10.10.0.112-10.10.0.144", network="blocks", instances=4)) == [
        (MISMATCH, told.format("10.10.0.32/28"), f"{STATIC_IPS}[0]"),
        (MISMATCH, told.format("10.10.0.128-10.10.0.144"), f"{STATIC_IPS}[1]"),
    ]
