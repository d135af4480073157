"""What the in-cluster provider's pools say: which addresses and prefixes they give, and what is refused."""

from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.in_cluster_spec import read_address_pool, read_prefix_pool
from tenure.kernel.addressing.addresses import parse_address


def given(spec: dict[str, Any]) -> list[str]:
    reading = read_address_pool(spec)
    assert reading.faults == []
    return [str(each) for of_entry in reading.spec.runs() for each in of_entry]


@pytest.mark.parametrize(
    ("spec", "ranges"),
    [
        ({"addresses": ["10.0.0.0/24"], "prefix": 24, "gateway": "10.0.0.1"}, ["10.0.0.2-10.0.0.254"]),
        (
            {"addresses": ["10.0.0.0/24"], "prefix": 24, "gateway": "10.0.0.1", "allocateReservedIPAddresses": True},
            ["10.0.0.0", "10.0.0.2-10.0.0.255"],
        ),
        (
            {
                "addresses": ["10.0.0.2-10.0.0.254"], "prefix": 24, "gateway": "10.0.0.1",
                "excludedAddresses": ["10.0.0.3-10.0.1.6", "10.0.0.10", "10.0.0.192/26"],
            },
            ["10.0.0.2"],
        ),
        (
            {"addresses": ["10.0.2.2", "10.0.2.1", "10.0.1.10-10.0.1.12", "10.0.0.128/31"], "prefix": 22},
            ["10.0.0.128-10.0.0.129", "10.0.1.10-10.0.1.12", "10.0.2.1-10.0.2.2"],
        ),
        ({"addresses": ["10.0.0.77/30"], "prefix": 24}, ["10.0.0.76-10.0.0.79"]),
        ({"addresses": ["fd00::/126"], "prefix": 64}, ["fd00::1-fd00::3"]),
    ],
)  # fmt: skip
def test_3_3_the_pool_gives_its_addresses_without_edges_exclusions_and_gateway_the_lowest_first(
    spec: dict[str, Any], ranges: list[str]
) -> None:
    assert given(spec) == ranges


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({"prefix": 24}, "spec.addresses", "addresses is required"),
        ({"addresses": [], "prefix": 24}, "spec.addresses", "addresses is required"),
        ({"addresses": "10.0.0.1", "prefix": 24}, "spec.addresses", "must be a list"),
        ({"addresses": ["banana"], "prefix": 24}, "spec.addresses", "is not a valid IP, range, nor CIDR"),
        ({"addresses": ["10.0.0.9-10.0.0.1"], "prefix": 24}, "spec.addresses", "is not a valid IP, range, nor CIDR"),
        ({"addresses": ["10.0.0.1+5"], "prefix": 24}, "spec.addresses", "is not a valid IP, range, nor CIDR"),
        ({"addresses": [7], "prefix": 24}, "spec.addresses", "is not a valid IP, range, nor CIDR"),
        ({"addresses": ["10.0.0.1", "fd00::1"], "prefix": 24}, "spec.addresses", "are of mixed IP families"),
        ({"addresses": ["10.0.0.1"], "prefix": 24, "gateway": "fd00::1"}, "spec.gateway", "are of mixed IP families"),
        ({"addresses": ["10.0.0.1"], "prefix": 24, "gateway": "x"}, "spec.gateway", "is not a valid IP address"),
        (
            {"addresses": ["10.0.0.1"], "prefix": 24, "excludedAddresses": ["fd00::1"]},
            "spec.excludedAddresses", "addresses and excluded addresses are of mixed IP families",
        ),
        ({"addresses": ["10.0.0.1"], "prefix": 24, "excludedAddresses": ["x"]}, "spec.excludedAddresses", "nor CIDR"),
        ({"addresses": ["10.0.0.1"]}, "spec.prefix", "a valid prefix is required"),
        (
            {"addresses": ["10.0.0.1"], "prefix": 24, "addressReuseGracePeriodSeconds": -1},
            "spec.addressReuseGracePeriodSeconds", "must not be negative",
        ),
        (
            {"addresses": ["10.0.0.1"], "prefix": 24, "addressReuseGracePeriodSeconds": 1 << 31},
            "spec.addressReuseGracePeriodSeconds", "must be at most 2147483647",
        ),
        ({"addresses": ["10.0.0.1"], "prefix": 33}, "spec.prefix", "provided prefix is not valid"),
        (
            {"addresses": ["10.0.0.1", "10.0.1.1"], "prefix": 24},
            "spec.addresses", "provided address belongs to a different subnet than others",
        ),
    ],
)  # fmt: skip
def test_3_3_a_pool_that_cannot_be_served_is_refused_with_field_and_reason(
    spec: dict[str, Any], field: str, reason: str
) -> None:
    faults = read_address_pool(spec).faults

    assert any(each.field == field and reason in each.reason for each in faults), faults


def test_3_3_a_prefix_pool_gives_prefixes_of_one_length_and_leaves_out_what_is_excluded_in_part() -> None:
    spec = {"prefixes": ["fd01::/62", "fd00::/63"], "excludedPrefixes": ["fd01:0:0:1::5"], "gateway": "fd00::1"}
    read = read_prefix_pool(spec).spec

    assert (read.size, read.options.prefix, read.unit) == (6, 64, 1 << 64)
    assert [str(each) for of_entry in read.runs() for each in of_entry] == [
        "fd00::-fd00::1:ffff:ffff:ffff:ffff",
        "fd01::-fd01::ffff:ffff:ffff:ffff",
        "fd01:0:0:2::-fd01::3:ffff:ffff:ffff:ffff",
    ]
    assert read.gives(parse_address("fd00::"))
    assert not read.gives(parse_address("fd01:0:0:1::"))


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({}, "spec.prefixes", "prefixes is required"),
        ({"prefixes": ["fd00::"]}, "spec.prefixes", "provided entry is not a valid IPv6 CIDR"),
        ({"prefixes": ["10.0.0.0/8"]}, "spec.prefixes", "only IPv6 prefixes are supported"),
        ({"prefixes": ["fd00::1/48"]}, "spec.prefixes", "CIDR must be network-aligned"),
        ({"prefixes": ["fd00::/65"]}, "spec.prefixes", "CIDR prefix length must be <= allocationPrefixLength (64)"),
        (
            {"prefixes": ["fd00::/48"], "allocationPrefixLength": 129},
            "spec.allocationPrefixLength",
            "between 1 and 128",
        ),
        ({"prefixes": ["fd00::/48"], "excludedPrefixes": ["x"]}, "spec.excludedPrefixes", "is not a valid IP, range"),
        ({"prefixes": ["fd00::/48"], "excludedPrefixes": ["10.0.0.1"]}, "spec.excludedPrefixes", "only IPv6 excluded"),
        ({"prefixes": ["fd00::/48"], "gateway": "10.0.0.1"}, "spec.gateway", "provided gateway must be IPv6"),
    ],
)
def test_3_3_a_prefix_pool_that_cannot_be_served_is_refused_with_field_and_reason(
    spec: dict[str, Any], field: str, reason: str
) -> None:
    faults = read_prefix_pool(spec).faults

    assert any(each.field == field and reason in each.reason for each in faults), faults
