"""Addresses of both families as positions on one line of integers.

A *position* is the integer of a tagged key: byte 4 and four bytes for IPv4, byte 6 and sixteen bytes for IPv6.
Positions of one family are consecutive, the families never meet, and ``key(position)`` sorts as the position does,
so ranges, free sets and stores need no case for the family.
"""

import enum
import ipaddress

from tenure.kernel.digits import read_digits
from tenure.kernel.errors import Invalid

V4_BASE = 4 << 32
V6_BASE = 6 << 128


class Family(enum.StrEnum):
    """The family of an address, as callers write it."""

    IPV4 = "ipv4"
    IPV6 = "ipv6"


AddressLike = str | ipaddress.IPv4Address | ipaddress.IPv6Address


FAMILY_NAMES = {Family.IPV4: "IPv4", Family.IPV6: "IPv6"}
"""How families are written for people."""


def is_v6(position: int) -> bool:
    """Tell the family of a position."""
    return position >= V6_BASE


def family_of(position: int) -> Family:
    """Return the family of a position."""
    return Family.IPV6 if position >= V6_BASE else Family.IPV4


def width(position: int) -> int:
    """Return the number of bits of the position's family: 32 or 128."""
    return 128 if position >= V6_BASE else 32


def family_name(position: int) -> str:
    """Name the family for people."""
    return FAMILY_NAMES[family_of(position)]


def family_span(position: int) -> tuple[int, int]:
    """Return the first and last position of the family."""
    return (V6_BASE, V6_BASE + (1 << 128) - 1) if position >= V6_BASE else (V4_BASE, V4_BASE + (1 << 32) - 1)


def parse_address(value: AddressLike, *, field: str = "address") -> int:
    """Turn an address in text (or of the standard library) into its position."""
    # An interface is an address with a length, which must not get lost; as text it is refused.
    if isinstance(value, ipaddress.IPv4Interface | ipaddress.IPv6Interface):
        value = str(value)
    # ``ip_address`` also reads numbers and packed bytes, which no caller means.
    if isinstance(value, str):
        try:
            parsed = ipaddress.ip_address(value)
        except ValueError:
            raise Invalid(f"{field}: {value[:80]!r} is not an IPv4 or IPv6 address", field=field) from None
    elif isinstance(value, ipaddress.IPv4Address | ipaddress.IPv6Address):
        parsed = value
    else:
        raise Invalid(f"{field}: an address in text is needed, not {type(value).__name__}", field=field)
    if parsed.version == 4:
        return V4_BASE + int(parsed)
    if parsed.scope_id is not None:
        raise Invalid(f"{field}: {str(parsed)[:80]!r} carries a zone, which the ledger cannot hold", field=field)
    return V6_BASE + int(parsed)


def parse_unit(value: AddressLike, *, field: str = "address") -> tuple[int, int | None]:
    """Turn ``address`` or ``address/length`` into a position, and the length that was said, if one was.

    Which length is right, only the plan says: ``plan_model.check_unit_length``.
    """
    if isinstance(value, ipaddress.IPv4Interface | ipaddress.IPv6Interface):
        value = str(value)
    if not isinstance(value, str) or "/" not in value:
        return parse_address(value, field=field), None
    address, _, said = value.partition("/")
    place = parse_address(address, field=field)
    length = read_digits(said)
    if length is None or length > width(place):
        reason = f"{said[:80]!r} is not a length of {family_name(place)}, which is a number up to {width(place)}"
        raise Invalid(f"{field}: {reason}", field=field)
    return place, length


def named_unit_text(place: int, length: int | None) -> str:
    """Write what ``parse_unit`` read."""
    return format_address(place) if length is None else f"{format_address(place)}/{length}"


def format_address(position: int) -> str:
    """Write a position in its canonical text."""
    # By hand, without an object of ``ipaddress``: every answer writes addresses.
    if position < V6_BASE:
        _, a, b, c, d = position.to_bytes(5, "big")
        return f"{a}.{b}.{c}.{d}"
    return ipaddress.IPv6Address(position - V6_BASE).compressed


def unit_text(first: int, last: int) -> str:
    """Write what is handed out as one: an address, or a prefix with its length."""
    text = format_address(first)
    return text if first == last else f"{text}/{width(first) - (last - first).bit_length()}"


def key(position: int) -> bytes:
    """Encode a position so that bytes sort as positions do."""
    return position.to_bytes(5 if position < V6_BASE else 17, "big")


def position(encoded: bytes) -> int:
    """Decode what ``key`` encoded."""
    return int.from_bytes(encoded, "big")
