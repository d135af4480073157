"""Addresses of a pool: their canonical spelling, and lists as VM_POOL_IPS has them."""

import ipaddress
from typing import Any

import pytest

from tenure.integrations.vmpool.state.ip_list import canonical_ip, check_ip, check_pool_ips, read_ip_list
from tenure.kernel.errors import Invalid

WRONG: list[Any] = [
    "", " 10.0.0.1", "10.0.0.1 ", "010.0.0.1", "10.0.0.256", "10.0.0", "10.0.0.0/24", "999.1.1.1", "invalid-ip",
    "1.2.3.4%eth0", "fe80::1%", "invalid IP", "１0.0.0.1", "10.0.0.1-10.0.0.2", 5, None, b"10.0.0.1", [],
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:DB8:0:0::0001", "2001:db8::1"),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
        ("::FFFF:a00:1", "::ffff:10.0.0.1"),
        ("::ffff:10.0.0.1%eth0", "::ffff:10.0.0.1%eth0"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("fe80::1%eth-0", "fe80::1%eth-0"),
        ("::", "::"),
        *[(wrong, None) for wrong in WRONG],
    ],
)
def test_case_33_an_address_has_one_spelling(text: Any, spelled: str | None) -> None:
    assert canonical_ip(text) == spelled


def test_an_address_that_a_caller_names_may_be_an_object() -> None:
    assert check_ip(ipaddress.ip_address("2001:DB8::1")) == "2001:db8::1"
    with pytest.raises(Invalid, match=r'^ip: invalid IP address: "x"') as caught:
        check_ip("x")
    assert caught.value.field == "ip"


def test_case_4_an_entry_that_is_no_address_is_named() -> None:
    with pytest.raises(Invalid, match=r'^invalid IP address: "invalid-ip"') as caught:
        check_pool_ips(["192.168.1.10", "invalid-ip"])

    assert caught.value.field == "pool_ips"


def test_case_3_a_pool_has_addresses() -> None:
    with pytest.raises(Invalid, match=r"^pool IPs cannot be empty$"):
        check_pool_ips([])


@pytest.mark.parametrize("twice", [("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:DB8:0::1")])
def test_case_6_vd7_a_list_with_an_address_twice_is_refused(twice: tuple[str, str]) -> None:
    with pytest.raises(Invalid, match="is there twice"):
        check_pool_ips(["10.0.0.9", *twice])


@pytest.mark.parametrize("value", ["10.0.0.1", None, 5, {"10.0.0.1"}, [5], [None]])
def test_what_is_no_list_of_addresses_is_refused(value: Any) -> None:
    with pytest.raises(Invalid) as caught:
        check_pool_ips(value)

    assert caught.value.field == "pool_ips"


def test_case_71_blanks_and_empty_entries_are_skipped() -> None:
    assert read_ip_list("192.168.1.1, ,10.0.0.1,  ").ips == ("192.168.1.1", "10.0.0.1")


def test_case_72_a_range_is_cut_and_that_is_said() -> None:
    found = read_ip_list("10.1.1.1,192.168.1.1-192.168.1.11,10.1.1.4", max_range_ips=10)

    assert len(found.ips) == 12
    assert found.ips[10:] == ("192.168.1.10", "10.1.1.4")
    [remark] = found.remarks
    assert "only the first 10" in remark
    assert "MAX_RANGE_IPS" in remark


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.5-10.0.0.5", "10.0.0.5-10.0.0.4", "999.0.0.1-999.0.0.9", "999.0.0.1", "invalid-ip", "10.0.0.0/30",
        "10.0.0.01", "10.0.0.1 - 10.0.0.3", "10.0.0.1-", "-10.0.0.1", "10.0.0.1-2", "10.0.0.1-10.0.0.2-10.0.0.3",
        "10.0.0.1-2001:db8::5", "fe80::1%eth0-fe80::5%eth0", "::ffff:10.0.0.1-2001:db8::1", "10.0.0.1;10.0.0.2", "a-b",
    ],
)  # fmt: skip
def test_case_74_what_is_no_list_is_refused_and_named(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_ip_list(f"10.9.9.9,{text}")

    assert caught.value.field == "VM_POOL_IPS"
    assert "VM_POOL_IPS" in caught.value.message


def test_case_75_nothing_is_no_address() -> None:
    assert read_ip_list("").ips == ()


def test_vd7_an_address_that_is_there_again_counts_once_in_the_order_of_the_list() -> None:
    found = read_ip_list("10.0.0.3,10.0.0.1-10.0.0.4,2001:DB8::1,2001:db8::1,10.0.0.3")

    assert found.ips == ("10.0.0.3", "10.0.0.1", "10.0.0.2", "10.0.0.4", "2001:db8::1")
    assert len(found.remarks) == 3


def test_ranges_of_both_families_and_of_mapped_addresses() -> None:
    text = "2001:db8::fffe-2001:db8::1:1,::ffff:10.0.0.1-::ffff:10.0.0.2"

    assert read_ip_list(text).ips == (
        "2001:db8::fffe", "2001:db8::ffff", "2001:db8::1:0", "2001:db8::1:1", "::ffff:10.0.0.1", "::ffff:10.0.0.2",
    )  # fmt: skip


def test_a_huge_range_costs_no_more_than_what_is_taken_of_it() -> None:
    assert len(read_ip_list("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").ips) == 100


def test_a_list_of_huge_ranges_ends_early() -> None:
    text = ",".join(f"{first}.0.0.0-{first}.255.255.255" for first in range(1, 250))
    with pytest.raises(Invalid, match="more than 65536 addresses"):
        read_ip_list(text, max_range_ips=65_536)


@pytest.mark.parametrize("most", [0, -1, True, "5", None, 1.5, 65_537, 10**9])
def test_the_limit_of_ranges_is_a_number_from_1_on(most: Any) -> None:
    with pytest.raises(Invalid) as caught:
        read_ip_list("10.0.0.1", max_range_ips=most)

    assert caught.value.field == "max_range_ips"
