"""Requests that say for whom and where: Neutron's own name neither the port nor the network, and we want to know."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from neutron.ipam import requests as ipam_req

from tenure.integrations.neutron.space_mapping import SubnetLocation
from tenure.kernel.addressing.addresses import parse_address

PORT, UNNAMED = "port", "unnamed"


@dataclass(frozen=True, slots=True)
class WantedAddress:
    """An address that is wanted: this one, or any (the lowest, where that is said), and by whom."""

    owner: str
    place: int | None = None
    lowest: bool = False


def wanted(request: Any) -> WantedAddress:
    """Read a request. Whatever asks for no address by name wants any; some callers hand over a bare class."""
    owner = getattr(request, "owner", None) or f"{UNNAMED}/{uuid4()}"
    if isinstance(request, ipam_req.SpecificAddressRequest):
        return WantedAddress(owner, parse_address(str(request.address)))
    lowest = ipam_req.PreferNextAddressRequest
    asked = request if isinstance(request, type) else type(request)
    return WantedAddress(owner, lowest=issubclass(asked, lowest))


class OwnedAddressRequestFactory(ipam_req.AddressRequestFactory):  # type: ignore[misc]  # Neutron has no types
    """Makes the requests that Neutron's factory makes, and notes the port on each."""

    @classmethod
    def get_request(cls, context: Any, port: Any, ip_dict: Any) -> Any:
        """Make the request for one address of a port; the port is a dictionary, an object or a row."""
        request = super().get_request(context, port, ip_dict)
        number = port.get("id") if isinstance(port, dict) else getattr(port, "id", None)
        if number:
            request.owner = owner_of(number)
        return request


def owner_of(port: str) -> str:
    """Name the owner of a port's addresses, as the driver's table has it."""
    return f"{PORT}/{port}"


def port_of(owner: str) -> str | None:
    """Return the number of the port that an owner is, if it is one."""
    kind, _, number = owner.partition("/")
    return number if kind == PORT else None


class SitedSubnetRequestFactory(ipam_req.SubnetRequestFactory):  # type: ignore[misc]  # Neutron has no types
    """Makes the requests that Neutron's factory makes, and notes on each where the subnet is."""

    @classmethod
    def get_request(cls, context: Any, subnet: Any, subnetpool: Any) -> Any:
        """Make the request for a subnet."""
        request = super().get_request(context, subnet, subnetpool)
        pool = subnetpool["id"] if subnetpool else None
        scope = subnetpool["address_scope_id"] if subnetpool else None
        request.site = SubnetLocation(subnet.get("network_id"), scope, pool)
        # Without this, "no gateway" and "the gateway is not spoken of" look the same in a request.
        request.tells_gateway = "gateway_ip" in subnet
        return request
