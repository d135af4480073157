"""Which addresses of a subnet are picked automatically, and which may be asked for by name (static)."""

from bisect import bisect_right
from collections.abc import Iterable

from tenure.integrations.bosh.model.document_model import CloudNetwork, CloudSubnet
from tenure.kernel.addressing.addresses import width
from tenure.kernel.addressing.ranges import AddressRange, merge, subtract


def restricted_ranges(
    whole: AddressRange, reserved: Iterable[AddressRange], own: Iterable[AddressRange], single: Iterable[int]
) -> list[AddressRange]:
    """Merge what nobody gets of a range: what is reserved, single addresses, and the allocator's own inside it."""
    # own_addresses is written once for the whole site: a range of it may reach beyond this subnet.
    inside = [
        AddressRange(max(each.first, whole.first), min(each.last, whole.last)) for each in own if each.overlaps(whole)
    ]
    return merge([*reserved, *inside, *(AddressRange(place, place) for place in single)])


def dynamic_ranges(subnet: CloudSubnet) -> list[AddressRange]:
    """Return what may be picked of a manual subnet, lowest first: whole blocks of its prefix, side by side.

    Restricted and static addresses are left out, each with the whole block that it lies in. A subnet without a range
    has nothing to pick here.
    """
    if subnet.range is None:
        return []
    block = 1 << (width(subnet.range.first) - subnet.prefix)
    free = subtract(subnet.range.range, merge([*subnet.restricted, *subnet.static]))
    # Positions of a family begin at a multiple of every block, so aligned means a multiple.
    bounds = [(-(-piece.first // block) * block, (piece.last + 1) // block * block - 1) for piece in free]
    return [AddressRange(first, last) for first, last in bounds if first <= last]


def has_pool(network: CloudNetwork, az: str | None) -> bool:
    """Tell whether anything may be picked in a manual network for an AZ, whoever has it now."""
    return any(dynamic_ranges(subnet) for subnet in network.subnets if subnet.serves(az))


class StaticPools:
    """Finds the subnet in whose static pool an address is. Cost: O(log n) of n static ranges."""

    def __init__(self, network: CloudNetwork) -> None:
        pieces = [(piece, subnet) for subnet in network.subnets for piece in merge(subnet.static)]
        # Subnets of one manual network do not overlap, so at most one piece has an address.
        self._pieces = sorted(pieces, key=lambda pair: pair[0])
        self._firsts = [piece.first for piece, _ in self._pieces]

    def subnet_of(self, position: int) -> CloudSubnet | None:
        """Return the subnet, if there is one."""
        at = bisect_right(self._firsts, position) - 1
        if at < 0:
            return None
        piece, subnet = self._pieces[at]
        return subnet if position in piece else None
