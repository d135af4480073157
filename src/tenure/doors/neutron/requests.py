"""Requests that say for whom: Neutron's own do not name the port, and the ledger wants to know."""

from typing import Any

from neutron.ipam import requests as ipam_req

PORT, NOBODY = "port", ""


class OwnedAddressRequestFactory(ipam_req.AddressRequestFactory):  # type: ignore[misc]  # Neutron has no types
    """Makes the requests that Neutron's factory makes, and notes the port on each."""

    @classmethod
    def get_request(cls, context: Any, port: Any, ip_dict: Any) -> Any:
        """Make the request for one address of a port; the port is a dictionary, an object or a row."""
        request = super().get_request(context, port, ip_dict)
        request.owner = owner_of(port)
        return request


def owner_of(port: Any) -> str:
    """Name the owner of a port's addresses."""
    number = port.get("id") if isinstance(port, dict) else getattr(port, "id", None)
    return f"{PORT}/{number}" if number else NOBODY
