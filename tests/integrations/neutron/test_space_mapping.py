"""Neutron shares a plan with others where its configuration says so: what anybody holds there, nobody else gets."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

import tenure
from tests.integrations.neutron.stage.deployment import REALM, Deployment
from tests.integrations.neutron.stage.kinds import with_one_ledger
from tests.integrations.neutron.stage.ports import SMALL, address_of, book_of, number_of
from tests.integrations.neutron.stage.server import Server

pytestmark = pytest.mark.halved

MAC = "fa:16:3e:00:00:01"
OF_MAC = "2001:db8::f816:3eff:fe00:1"
AUTOMATIC = {"ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"}

ALL = {f"10.0.0.{number}" for number in range(2, 7)}


@contextmanager
def sharing(deployment: Deployment, how: str, *numbers: str) -> Iterator[tuple[Server, str]]:
    """Give a server that maps what has these numbers to one space, and the space."""
    space = f"site-{uuid4()}"
    mapped = ",".join(f"{number}:{space}" for number in numbers)
    with deployment.one_more(tenure={how: mapped}) as server:
        yield server, space


def subnet_in(server: Server, network: str, **fields: object) -> str:
    """Make a small subnet through one server."""
    made = server.subnet(network, SMALL, **fields)
    assert made.status == 201, made
    return str(made.body["subnet"]["id"])


def other_network(deployment: Deployment, space: str) -> tuple[tenure.Ledger, str]:
    """Let another orchestrator plan the same block in a space."""
    assert deployment.ledger is not None
    name = f"other-{uuid4()}"
    deployment.ledger.add_network(name, space=space)
    deployment.ledger.add_subnet(name, SMALL)
    deployment.ledger.add_pool(name, "10.0.0.2-10.0.0.6")
    return deployment.ledger, name


def hold_in(deployment: Deployment, space: str, block: str, address: str) -> None:
    """Let another orchestrator hold an address in a space."""
    assert deployment.ledger is not None
    name = f"other-{uuid4()}"
    deployment.ledger.add_network(name, space=space)
    deployment.ledger.add_subnet(name, block)
    deployment.ledger.allocate(name, owner="instance/x", address=address)


def subnet_pool(deployment: Deployment, scope: str | None = None) -> str:
    """Make a subnet pool, perhaps in an address scope."""
    pool = {"name": "p", "prefixes": ["10.0.0.0/16"], "min_prefixlen": 29, "address_scope_id": scope}
    made = deployment.server.request("POST", "subnetpools", {"subnetpool": pool})
    assert made.status == 201, made
    return str(made.body["subnetpool"]["id"])


def address_scope(deployment: Deployment) -> str:
    """Make an address scope."""
    made = deployment.server.request("POST", "address-scopes", {"address_scope": {"name": "s", "ip_version": 4}})
    assert made.status == 201, made
    return str(made.body["address_scope"]["id"])


@with_one_ledger
def test_two_networks_in_one_space_never_have_the_same_address(deployment: Deployment) -> None:
    networks = [deployment.server.network() for _ in range(2)]
    with sharing(deployment, "space_of_network", *networks) as (server, _):
        subnets = [subnet_in(server, network) for network in networks]
        ports = [server.port(networks[number % 2]) for number in range(5)]
        late = [server.port(network) for network in networks]
        named = server.port(networks[1], address_of(ports[0]))

    assert set(book_of(*ports)) == ALL
    assert [port.status for port in (*late, named)] == [409, 409, 409]
    assert deployment.held(subnets[0]) | deployment.held(subnets[1]) == book_of(*ports)


@with_one_ledger
def test_what_another_orchestrator_holds_is_never_handed_out(deployment: Deployment) -> None:
    network = deployment.server.network()
    with sharing(deployment, "space_of_network", network) as (server, space):
        ledger, name = other_network(deployment, space)
        ledger.allocate(name, owner="instance/x", address="10.0.0.4")
        subnet = subnet_in(server, network)
        named = server.port(network, "10.0.0.4")
        ports = [server.port(network) for _ in range(5)]

    assert named.status == 409
    assert [port.status for port in ports] == [201] * 4 + [409]
    assert set(deployment.held(subnet)) == ALL - {"10.0.0.4"}


@with_one_ledger
def test_what_neutron_holds_another_orchestrator_never_gets(deployment: Deployment) -> None:
    network = deployment.server.network()
    with sharing(deployment, "space_of_network", network) as (server, space):
        ledger, name = other_network(deployment, space)
        subnet_in(server, network)
        made = server.port(network, "10.0.0.4")
        got = {ledger.allocate(name, owner=f"instance/{number}").address for number in range(4)}
        with pytest.raises(tenure.AddressInUse):
            ledger.allocate(name, owner="instance/y", address="10.0.0.4")

    assert made.status == 201
    assert got == ALL - {"10.0.0.4"}


@with_one_ledger
def test_what_is_let_go_can_be_had_by_the_other_side(deployment: Deployment) -> None:
    network = deployment.server.network()
    with sharing(deployment, "space_of_network", network) as (server, space):
        ledger, name = other_network(deployment, space)
        subnet = subnet_in(server, network)
        made = server.port(network, "10.0.0.4")
        server.delete_port(number_of(made))
        held = ledger.allocate(name, owner="instance/x", address="10.0.0.4")
        ledger.release(name, held.address, owner="instance/x")
        again = server.port(network, "10.0.0.4")

    assert again.status == 201
    assert deployment.held(subnet) == book_of(again)


@with_one_ledger
@pytest.mark.parametrize("how", ["space_of_subnet_pool", "space_of_address_scope"])
def test_subnets_out_of_a_mapped_pool_share_its_space(deployment: Deployment, how: str) -> None:
    scope = address_scope(deployment)
    pool = subnet_pool(deployment, scope)
    network = deployment.server.network()
    with sharing(deployment, how, pool if how == "space_of_subnet_pool" else scope) as (server, space):
        ledger, name = other_network(deployment, space)
        ledger.allocate(name, owner="instance/x", address="10.0.0.4")
        subnet = subnet_in(server, network, subnetpool_id=pool)
        ports = [server.port(network) for _ in range(5)]

    assert [port.status for port in ports] == [201] * 4 + [409]
    assert set(deployment.held(subnet)) == ALL - {"10.0.0.4"}


@with_one_ledger
def test_a_subnet_that_is_not_mapped_is_a_space_of_its_own(deployment: Deployment) -> None:
    mapped, other = deployment.server.network(), deployment.server.network()
    with sharing(deployment, "space_of_network", mapped) as (server, _):
        subnets = [subnet_in(server, network) for network in (mapped, other)]
        ports = [server.port(network, "10.0.0.4") for network in (mapped, other)]

    assert [port.status for port in ports] == [201, 201]
    assert [deployment.held(subnet) for subnet in subnets] == [book_of(port) for port in ports]


@with_one_ledger
def test_a_router_gets_the_gateway_also_in_a_space_that_others_share(deployment: Deployment) -> None:
    network = deployment.server.network()
    with sharing(deployment, "space_of_network", network) as (server, _):
        subnet = subnet_in(server, network)
        gateway = server.port(network, "10.0.0.1")

    assert gateway.status == 201
    assert deployment.held(subnet) == book_of(gateway)


@with_one_ledger
def test_what_another_orchestrator_keeps_back_is_refused_by_name_and_never_picked(deployment: Deployment) -> None:
    network = deployment.server.network()
    with sharing(deployment, "space_of_network", network) as (server, space):
        ledger, name = other_network(deployment, space)
        ledger.reserve(name, "10.0.0.5-10.0.0.6")
        subnet = subnet_in(server, network)
        named = server.port(network, "10.0.0.5")
        ports = [server.port(network) for _ in range(4)]

    assert named.status == 409
    assert [port.status for port in ports] == [201] * 3 + [409]
    assert set(deployment.held(subnet)) == ALL - {"10.0.0.5", "10.0.0.6"}


@with_one_ledger
def test_what_somebody_else_holds_in_a_subnets_own_network_outlives_the_subnet(deployment: Deployment) -> None:
    assert deployment.ledger is not None
    network = deployment.server.network()
    with sharing(deployment, "space_of_network", network) as (server, _):
        subnet = subnet_in(server, network)
        server.port(network, device_owner="network:dhcp")
        deployment.ledger.allocate(f"{REALM}-{subnet}", owner="instance/x", address="10.0.0.6")
        gone = server.request("DELETE", f"subnets/{subnet}")
        server.scene("settled")

    assert gone.status == 204
    assert deployment.in_ledger(subnet) == {"10.0.0.6": "instance/x"}
    assert deployment.ledger.network(f"{REALM}-{subnet}").retired
    assert deployment.knowing(subnet) == {"ledger"}


@with_one_ledger
def test_a_port_whose_automatic_address_is_somebody_elses_goes_without_when_the_subnet_comes(
    deployment: Deployment,
) -> None:
    network = deployment.server.network()
    with sharing(deployment, "space_of_network", network) as (server, space):
        hold_in(deployment, space, "2001:db8::/64", OF_MAC)
        subnet_in(server, network)
        ports = [server.port(network, mac_address=mac) for mac in (MAC, MAC.replace(":01", ":02"))]
        made = server.subnet(network, "2001:db8::/64", **AUTOMATIC)
        server.scene("settled")

    assert made.status == 201
    other = OF_MAC.removesuffix("1") + "2"
    assert deployment.held(made.body["subnet"]["id"]) == {other: f"port/{number_of(ports[1])}"}
