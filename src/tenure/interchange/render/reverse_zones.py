"""Where reverse zones begin: at octets for IPv4, at nibbles for IPv6, and by RFC 2317 below an octet."""

from tenure.kernel.addressing.addresses import V4_BASE, V6_BASE, is_v6
from tenure.kernel.addressing.ranges import Cidr


def reverse_labels(position: int) -> list[str]:
    """Write an address as the labels of its reverse name, least significant first."""
    if is_v6(position):
        return list(f"{position - V6_BASE:032x}"[::-1])
    return [str(octet) for octet in (position - V4_BASE).to_bytes(4, "little")]


def zone_name(first: int, prefix: int) -> str:
    """Name the zone of a block whose prefix lies on a boundary."""
    step, root = (4, "ip6.arpa") if is_v6(first) else (8, "in-addr.arpa")
    labels = reverse_labels(first)
    return ".".join([*labels[len(labels) - prefix // step :], root])


def is_classless(cidr: Cidr) -> bool:
    """Tell whether a block is smaller than the smallest zone that can be delegated by itself (RFC 2317)."""
    return not is_v6(cidr.first) and cidr.prefix > 24


def zones_of(cidr: Cidr) -> list[tuple[str, Cidr]]:
    """Cut a block into zones: each with the block that it answers for.

    A prefix between two boundaries becomes the zones of the next longer one: a /22 is four zones of a /24.
    Below an octet an IPv4 block is one zone by RFC 2317; below a nibble an IPv6 block shares the zone of its /124.
    """
    if is_classless(cidr):
        octet = (cidr.first - V4_BASE) & 0xFF
        parent = zone_name(cidr.first, 24)
        return [(f"{octet}/{cidr.prefix}.{parent}", cidr)]
    step, bits = (4, 128) if is_v6(cidr.first) else (8, 32)
    # A zone of a single address would leave no label for its record.
    prefix = min(-(-cidr.prefix // step) * step, bits - step)
    size = 1 << (bits - prefix)
    start = cidr.first & ~(size - 1)
    return [(zone_name(first, prefix), Cidr(first, prefix)) for first in range(start, cidr.last + 1, size)]


def owner_label(position: int, zone: str) -> str:
    """Write an address's name relative to its zone."""
    labels = reverse_labels(position)
    if "/" in zone:
        return labels[0]
    depth = 0 if zone in ("ip6.arpa", "in-addr.arpa") else zone.count(".") - 1
    return ".".join(labels[: len(labels) - depth])
