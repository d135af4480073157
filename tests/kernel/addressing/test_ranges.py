"""Ranges and blocks, against plain sets."""

import ipaddress
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.kernel.addressing import ranges as ranges_module
from tenure.kernel.addressing.addresses import V4_BASE, parse_address
from tenure.kernel.addressing.ranges import (
    AddressRange,
    Cidr,
    merge,
    parse_cidr,
    parse_range,
    sized_range,
    subtract,
    subtract_each,
)
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown
from tests.kernel.strategies import cidrs, ranges

small = ranges(AddressRange(V4_BASE, V4_BASE + 40))


def addresses(*pieces: AddressRange) -> set[int]:
    return {place for piece in pieces for place in range(piece.first, piece.last + 1)}


@given(ranges())
def test_the_text_of_a_range_reads_back_as_the_range(whole: AddressRange) -> None:
    assert parse_range(str(whole)) == whole
    assert parse_range(whole.text) == whole


@given(cidrs())
def test_a_block_reads_back_and_spans_what_the_standard_library_says(block: Cidr) -> None:
    network = ipaddress.ip_network(str(block))

    assert parse_cidr(str(block)) == parse_cidr(network) == block
    assert parse_range(str(block)) == parse_range(network) == block.range
    assert block.last == parse_address(str(network[-1]))
    assert block.range.size == network.num_addresses


@given(ranges())
def test_start_and_size_give_the_range(whole: AddressRange) -> None:
    start = str(AddressRange(whole.first, whole.first))

    assert sized_range(start, whole.size) == whole
    assert parse_range(f"{start}+{whole.size}") == whole


@given(small, small)
def test_covers_overlaps_and_contains_are_those_of_sets(one: AddressRange, other: AddressRange) -> None:
    assert one.covers(other) == (addresses(one) >= addresses(other))
    assert one.overlaps(other) == bool(addresses(one) & addresses(other))
    assert (other.first in one) == (other.first in addresses(one))


@given(small, small)
def test_minus_is_the_difference_of_sets_in_at_most_two_pieces(one: AddressRange, other: AddressRange) -> None:
    pieces = one.minus(other)

    assert addresses(*pieces) == addresses(one) - addresses(other)
    assert len(pieces) <= 2


@given(st.lists(small, max_size=8))
def test_merge_is_the_union_in_order_without_touching_pieces(pieces: list[AddressRange]) -> None:
    merged = merge(pieces)

    assert addresses(*merged) == addresses(*pieces)
    assert all(one.last + 1 < other.first for one, other in pairwise(merged))


@given(small, st.lists(small, max_size=6).map(merge))
def test_subtract_is_the_difference_of_sets_in_order(whole: AddressRange, holes: list[AddressRange]) -> None:
    left = list(subtract(whole, holes))

    assert addresses(*left) == addresses(whole) - addresses(*holes)
    assert left == sorted(left)


@given(st.lists(small, max_size=6), st.lists(small, max_size=6))
def test_each_of_several_ranges_loses_what_the_holes_cover(
    wholes: list[AddressRange], holes: list[AddressRange]
) -> None:
    for whole, left in subtract_each(wholes, holes):
        assert left == list(subtract(whole, merge(holes)))


def test_several_ranges_look_only_at_the_holes_that_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[AddressRange] = []

    def looking(whole: AddressRange, holes: Iterable[AddressRange]) -> Iterator[AddressRange]:
        return subtract(whole, (looked.append(hole) or hole for hole in holes))  # type: ignore[func-returns-value]

    monkeypatch.setattr(ranges_module, "subtract", looking)
    every_second = [AddressRange(V4_BASE + place, V4_BASE + place) for place in range(0, 4000, 2)]
    pairs = list(subtract_each(every_second, every_second))

    assert len(pairs) == 2000
    assert len(looked) <= 2 * 2000


def test_merge_never_joins_the_two_families() -> None:
    top, bottom = parse_range("255.255.255.255"), parse_range("::")

    assert merge([bottom, top]) == [top, bottom]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("192.0.2.110-192.0.2.120", "192.0.2.110", "192.0.2.120"),
        (" 192.0.2.1 - 192.0.2.2 ", "192.0.2.1", "192.0.2.2"),
        ("10.0.0.100", "10.0.0.100", "10.0.0.100"),
        ("10.0.0.64/27", "10.0.0.64", "10.0.0.95"),
        ("10.0.0.250+6", "10.0.0.250", "10.0.0.255"),
        ("2001:db8::10-2001:db8::ff", "2001:db8::10", "2001:db8::ff"),
        ("::/0", "::", "ffff:" * 7 + "ffff"),
    ],
)
def test_a_range_may_be_written_four_ways(text: str, first: str, last: str) -> None:
    assert parse_range(text) == AddressRange(parse_address(first), parse_address(last))


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "-",
        "+",
        "/",
        "192.0.2.9-192.0.2.1",
        "192.0.2.1-2001:db8::1",
        "garbage",
        "192.0.2.1-",
        "192.0.2.1+0",
        "192.0.2.1+-1",
        "192.0.2.1+1.5",
        "255.255.255.255+2",
        "::+" + "9" * 39,
        "::+" + "9" * 5000,
        "192.0.2.1/24",
        "192.0.2.0/33",
        "192.0.2.0/" + "9" * 5000,
        "fe80::%1/64",
        "1/1/1",
        "\ud800/8",
        "/" * 100_000,
        None,
        7,
        True,
        1.5,
        b"192.0.2.1",
        ["192.0.2.1"],
        {},
    ],
    ids=shown,
)
def test_what_is_not_a_range_is_refused_with_its_field(wrong: object) -> None:
    with pytest.raises(Invalid, match="pool") as refusal:
        parse_range(wrong, field="pool")  # type: ignore[arg-type]

    assert refusal.value.field == "pool"
    assert len(str(refusal.value)) < 600


@pytest.mark.parametrize("wrong", ["192.0.2.0", "192.0.2.1/24", "x/24", None, 24, b"192.0.2.0/24"], ids=shown)
def test_what_is_not_a_block_is_refused_with_its_field(wrong: object) -> None:
    with pytest.raises(Invalid) as refusal:
        parse_cidr(wrong)  # type: ignore[arg-type]

    assert refusal.value.field == "cidr"


@pytest.mark.parametrize(("first", "last"), [("192.0.2.2", "192.0.2.1"), ("192.0.2.1", "::1")])
def test_a_wrong_range_cannot_be_made(first: str, last: str) -> None:
    with pytest.raises(Invalid):
        AddressRange(parse_address(first), parse_address(last))
