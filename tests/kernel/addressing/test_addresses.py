"""Addresses: one canonical text, one key, one order."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.kernel.addressing.addresses import (
    family_name,
    family_span,
    format_address,
    is_v6,
    key,
    parse_address,
    parse_unit,
    position,
    width,
)
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown
from tests.kernel.strategies import positions


@given(positions)
def test_the_text_of_an_address_reads_back_as_the_address(place: int) -> None:
    assert parse_address(format_address(place)) == place


@given(positions)
def test_the_text_is_the_canonical_one_of_the_standard_library(place: int) -> None:
    text = format_address(place)

    assert text == str(ipaddress.ip_address(text))


@given(positions, positions)
def test_keys_sort_as_positions_do_in_both_families(one: int, other: int) -> None:
    assert (key(one) < key(other)) == (one < other)
    assert (key(one) == key(other)) == (one == other)


@given(positions)
def test_a_key_decodes_to_its_position(place: int) -> None:
    assert position(key(place)) == place


@given(st.ip_addresses())
def test_addresses_of_the_standard_library_are_read_as_their_text_is(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    place = parse_address(address)

    assert place == parse_address(str(address))
    assert is_v6(place) == (address.version == 6)
    assert width(place) == address.max_prefixlen
    assert family_name(place) == f"IPv{address.version}"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("::ffff:192.0.2.1", "::ffff:c000:201"),
        ("::", "::"),
        ("0.0.0.0", "0.0.0.0"),  # noqa: S104 - an address, not a socket
        ("255.255.255.255", "255.255.255.255"),
    ],
)
def test_addresses_are_written_one_way(text: str, canonical: str) -> None:
    assert format_address(parse_address(text)) == canonical


@pytest.mark.parametrize("text", ["0.0.0.0", "255.255.255.255", "::", "ffff:" * 7 + "ffff"])  # noqa: S104
def test_the_ends_of_a_family_are_its_span(text: str) -> None:
    assert parse_address(text) in family_span(parse_address(text))


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        " ",
        "1.2.3",
        "1.2.3.4.5",
        "01.2.3.4",
        "1.2.3.256",
        "١.2.3.4",
        ":::",
        "fe80::1%eth0",
        "1.2.3.4/32",
        "\ud800",
        None,
        5,
        5.0,
        True,
        b"1.2.3.4",
        [],
        {},
        "9" * 100_000,
    ],
    ids=shown,
)
def test_what_is_not_an_address_is_refused_with_its_field(wrong: object) -> None:
    with pytest.raises(Invalid, match="gateway") as refusal:
        parse_address(wrong, field="gateway")  # type: ignore[arg-type]

    assert refusal.value.field == "gateway"
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("text", ["192.0.2.1", "192.0.2.1/0", "192.0.2.1/32", "2001:db8::/64", "2001:db8::/0128"])
def test_the_length_that_is_said_with_an_address_is_read_with_it(text: str) -> None:
    address, _, length = text.partition("/")

    assert parse_unit(text) == (parse_address(address), int(length) if length else None)


@pytest.mark.parametrize("length", ["", "33", "-1", "+8", "1_0", " 8", "٨", "8/8", "1" * 5000, "0" * 5000], ids=shown)
def test_what_is_not_a_length_is_refused_with_its_field(length: str) -> None:
    with pytest.raises(Invalid, match="is not a length of IPv4") as refusal:
        parse_unit(f"192.0.2.1/{length}", field="gateway")

    assert refusal.value.field == "gateway"
    assert len(str(refusal.value)) < 400
