"""Ports as their clients are told of them."""

from typing import Any

from tests.integrations.neutron.stage.deployment import Book, Deployment
from tests.integrations.neutron.stage.settings import Answer

SMALL = "10.0.0.0/29"
"""A block with five addresses for ports: 10.0.0.2 to 10.0.0.6."""


def book_of(*answers: Answer) -> Book:
    """Write the book that ports should make, by what their clients were told."""
    ports = [answer.body["port"] for answer in answers]
    return {fixed["ip_address"]: f"port/{port['id']}" for port in ports for fixed in port["fixed_ips"]}


def number_of(answer: Answer) -> str:
    """Return the number of a port."""
    return str(answer.body["port"]["id"])


def address_of(answer: Answer) -> str:
    """Return the one address of a port."""
    [address] = book_of(answer)
    return address


def change_of(**fields: Any) -> dict[str, Any]:
    """Describe a change of a port."""
    return {"port": fields}


def fill(deployment: Deployment, network: str) -> list[Answer]:
    """Make ports until there is no address left in a small subnet."""
    ports = [deployment.server.port(network) for _ in range(5)]
    assert [port.status for port in ports] == [201] * 5
    assert deployment.server.port(network).status == 409
    return ports
