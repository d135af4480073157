"""Addresses as messages write them: with their length, as BOSH does since 2025."""

from tenure.integrations.bosh.model.address_diff import subnet_of
from tenure.integrations.bosh.model.document_model import CloudNetwork
from tenure.kernel.addressing.addresses import parse_address, width
from tenure.kernel.addressing.ranges import Cidr


def written(position: int, prefix: int | None = None) -> str:
    """Write an address, or the block it begins: ``10.0.0.5/32``."""
    return str(Cidr(position, width(position) if prefix is None else prefix))


def written_in(network: CloudNetwork | None, address: str) -> str:
    """Write an address of a network, or the block that it begins there: each subnet has a length of its own."""
    position = parse_address(address)
    subnet = None if network is None else subnet_of(network, position, None)
    return written(position, None if subnet is None else subnet.prefix)
