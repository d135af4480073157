"""What of a subnet may be drawn from when nobody asks for an address by name."""

from tenure.integrations.bosh.model.document_model import Network, Subnet
from tenure.kernel.addressing.addresses import width
from tenure.kernel.addressing.ranges import AddressRange, merge, subtract


def dynamic_ranges(subnet: Subnet) -> list[AddressRange]:
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


def has_pool(network: Network, az: str | None) -> bool:
    """Tell whether anything may be picked in a manual network for an AZ, whoever has it now."""
    return any(dynamic_ranges(subnet) for subnet in network.subnets if subnet.serves(az))
