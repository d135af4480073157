"""Addresses as messages write them: with their length, as BOSH does since 2025."""

from tenure.kernel.addresses import width
from tenure.kernel.ranges import Cidr


def written(position: int, prefix: int | None = None) -> str:
    """Write an address, or the block it begins: ``10.0.0.5/32``."""
    return str(Cidr(position, width(position) if prefix is None else prefix))
