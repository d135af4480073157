"""Ranges of addresses: first and last, both included."""

import ipaddress
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tenure.kernel.addressing.addresses import (
    V4_BASE,
    V6_BASE,
    AddressLike,
    family_name,
    family_span,
    format_address,
    is_v6,
    parse_address,
    width,
)
from tenure.kernel.digits import read_digits
from tenure.kernel.errors import Invalid

NetworkLike = str | ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True, order=True)
class AddressRange:
    """First and last position of one family, first <= last."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if is_v6(self.first) != is_v6(self.last):
            raise Invalid(f"range mixes IPv4 and IPv6: {self}", field="range")
        if self.first > self.last:
            raise Invalid(f"range runs backwards: {self}", field="range")

    def __str__(self) -> str:
        if self.first == self.last:
            return format_address(self.first)
        return f"{format_address(self.first)}-{format_address(self.last)}"

    @property
    def size(self) -> int:
        """Count the addresses."""
        return self.last - self.first + 1

    def __contains__(self, position: int) -> bool:
        return self.first <= position <= self.last

    def covers(self, other: "AddressRange") -> bool:
        """Tell whether the other lies wholly inside."""
        return self.first <= other.first and other.last <= self.last

    def overlaps(self, other: "AddressRange") -> bool:
        """Tell whether the two share an address."""
        return self.first <= other.last and other.first <= self.last

    def minus(self, other: "AddressRange") -> list["AddressRange"]:
        """Return what is left of this range without the other: none, one or two pieces."""
        if not self.overlaps(other):
            return [self]
        left = [AddressRange(self.first, other.first - 1)] if self.first < other.first else []
        right = [AddressRange(other.last + 1, self.last)] if other.last < self.last else []
        return left + right

    @property
    def text(self) -> str:
        """Write the range as people do: one address, or first-last."""
        return str(self)


@dataclass(frozen=True, slots=True, order=True)
class Cidr:
    """A block of addresses that share a prefix."""

    first: int
    prefix: int

    def __str__(self) -> str:
        return f"{format_address(self.first)}/{self.prefix}"

    @property
    def last(self) -> int:
        """Return the highest position of the block."""
        return self.first | ((1 << (width(self.first) - self.prefix)) - 1)

    @property
    def range(self) -> AddressRange:
        """Return the block as a range."""
        return AddressRange(self.first, self.last)


def parse_cidr(value: NetworkLike, *, field: str = "cidr") -> Cidr:
    """Turn ``192.0.2.0/24`` into a block; host bits set are an error, not a guess."""
    # ``ip_network`` reads a bare address as a block of one, which a forgotten length seldom means.
    if isinstance(value, str) and "/" not in value:
        raise Invalid(f"{field}: {value[:80]!r} has no prefix length; write it as address/length", field=field)
    if not isinstance(value, str | ipaddress.IPv4Network | ipaddress.IPv6Network):
        raise Invalid(f"{field}: a block in text is needed, not {type(value).__name__}", field=field)
    try:
        network = ipaddress.ip_network(value)
    except ValueError as error:
        raise Invalid(
            f"{field}: {str(value)[:80]!r} is not an address block ({str(error)[:160]})", field=field
        ) from None
    if network.version == 6 and network.network_address.scope_id is not None:
        raise Invalid(f"{field}: {str(value)[:80]!r} carries a zone, which the ledger cannot hold", field=field)
    base = V4_BASE if network.version == 4 else V6_BASE
    return Cidr(base + int(network.network_address), network.prefixlen)


def parse_range(value: "str | AddressLike | NetworkLike | AddressRange", *, field: str = "range") -> AddressRange:
    """Turn one address, ``first-last``, a block, or ``start+size`` into a range."""
    if isinstance(value, AddressRange):
        return value
    if isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network):
        return parse_cidr(value, field=field).range
    if not isinstance(value, str):
        position = parse_address(value, field=field)
        return AddressRange(position, position)
    if "/" in value:
        return parse_cidr(value.strip(), field=field).range
    if "-" in value:
        first_text, _, last_text = value.partition("-")
        first = parse_address(first_text.strip(), field=field)
        return _checked(first, parse_address(last_text.strip(), field=field), field)
    if "+" in value:
        start, _, size = value.partition("+")
        return sized_range(start.strip(), _whole_number(size.strip(), field), field=field)
    position = parse_address(value.strip(), field=field)
    return AddressRange(position, position)


def sized_range(start: AddressLike, size: int, *, field: str = "range") -> AddressRange:
    """Build the range of ``size`` addresses from ``start`` on."""
    first = parse_address(start, field=field)
    if size < 1:
        raise Invalid(f"{field}: a range holds at least one address, not {size}", field=field)
    if size > (1 << 128) or first + size - 1 > family_span(first)[1]:
        raise Invalid(
            f"{field}: {size} addresses from {format_address(first)} run past the end of {family_name(first)}",
            field=field,
        )
    return AddressRange(first, first + size - 1)


def merge(ranges: Iterable[AddressRange]) -> list[AddressRange]:
    """Sort the ranges and join those that touch or overlap."""
    merged: list[AddressRange] = []
    for piece in sorted(ranges):
        if merged and piece.first <= merged[-1].last + 1 and is_v6(piece.first) == is_v6(merged[-1].first):
            merged[-1] = AddressRange(merged[-1].first, max(merged[-1].last, piece.last))
        else:
            merged.append(piece)
    return merged


def subtract(whole: AddressRange, holes: Iterable[AddressRange]) -> Iterator[AddressRange]:
    """Yield what is left of ``whole`` without the holes, which are sorted and disjoint."""
    start = whole.first
    for hole in holes:
        if hole.last < start:
            continue
        if hole.first > whole.last:
            break
        if hole.first > start:
            yield AddressRange(start, hole.first - 1)
        start = hole.last + 1
    if start <= whole.last:
        yield AddressRange(start, whole.last)


def subtract_each(
    wholes: Iterable[AddressRange], holes: Iterable[AddressRange]
) -> Iterator[tuple[AddressRange, list[AddressRange]]]:
    """Yield each range with what is left of it without the holes, in whatever order. O((wholes + holes) · log holes).

    To call ``subtract`` for each range would be quadratic: it goes through all holes before the range.
    """
    ordered = merge(holes)
    lasts = [hole.last for hole in ordered]
    for whole in wholes:
        nearby = range(bisect_left(lasts, whole.first), len(ordered))
        yield whole, list(subtract(whole, (ordered[place] for place in nearby)))


def _checked(first: int, last: int, field: str) -> AddressRange:
    if is_v6(first) != is_v6(last):
        raise Invalid(f"{field}: first and last address are of different families", field=field)
    if first > last:
        raise Invalid(f"{field}: {format_address(first)} lies above {format_address(last)}", field=field)
    return AddressRange(first, last)


def _whole_number(text: str, field: str) -> int:
    number = read_digits(text)
    if number is None:
        raise Invalid(f"{field}: {text[:40]!r} is not a number of addresses", field=field)
    return number
