"""Every kind of request comes through Neutron's interface as its users make it, in both modes."""

import pytest

from tests.integrations.neutron.stage.deployment import Deployment
from tests.integrations.neutron.stage.kinds import each_once
from tests.integrations.neutron.stage.ports import SMALL, address_of, book_of, change_of, fill, number_of
from tests.integrations.neutron.stage.settings import Answer, port_of

pytestmark = pytest.mark.halved

MAC = "fa:16:3e:00:00:01"
AUTOMATIC = {"ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"}


def make_router(deployment: Deployment) -> str:
    """Make a router, and return its number."""
    made = deployment.server.request("POST", "routers", {"router": {"name": "r"}})
    assert made.status == 201, made
    return str(made.body["router"]["id"])


def add_interface(deployment: Deployment, router: str, subnet: str) -> Answer:
    """Let a router into a subnet, at its gateway."""
    return deployment.server.request("PUT", f"routers/{router}/add_router_interface", {"subnet_id": subnet})


@each_once
def test_a_router_gets_the_gateway_address_and_nobody_else_picks_it(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)
    fill(deployment, network)

    added = add_interface(deployment, make_router(deployment), subnet)

    assert added.status == 200
    assert deployment.held(subnet)["10.0.0.1"] == f"port/{added.body['port_id']}"


@each_once
def test_a_second_port_does_not_get_the_gateway_address(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)
    first = deployment.server.port(network, "10.0.0.1")

    second = deployment.server.port(network, "10.0.0.1")

    assert (first.status, second.status) == (201, 409)
    assert deployment.held(subnet) == book_of(first)


@each_once
def test_an_address_outside_of_the_pools_is_had_by_name(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(allocation_pools=[{"start": "10.0.0.10", "end": "10.0.0.12"}])

    made = deployment.server.port(network, "10.0.0.200")
    again = deployment.server.port(network, "10.0.0.200")

    assert (made.status, again.status) == (201, 409)
    assert deployment.held(subnet) == book_of(made)


@each_once
def test_an_address_outside_of_the_subnet_is_refused(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()

    statuses = [deployment.server.port(network, address).status for address in ("10.0.0.0", "10.0.0.255", "10.0.1.1")]

    assert statuses == [400, 400, 400]
    assert deployment.held(subnet) == {}


@each_once
def test_a_dhcp_port_gets_the_lowest_address(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)
    lowest = [deployment.server.port(network, device_owner="network:dhcp") for _ in range(3)]
    deployment.server.delete_port(number_of(lowest[1]))

    again = deployment.server.port(network, device_owner="network:dhcp")

    assert [address_of(port) for port in lowest] == ["10.0.0.2", "10.0.0.3", "10.0.0.4"]
    assert address_of(again) == "10.0.0.3"
    assert deployment.held(subnet) == book_of(lowest[0], again, lowest[2])


@each_once
def test_subnets_of_one_network_are_tried_one_after_the_other(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)
    second = deployment.server.subnet(network, "10.0.1.0/29").body["subnet"]["id"]

    ports = [deployment.server.port(network) for _ in range(11)]

    assert [port.status for port in ports] == [201] * 10 + [409]
    assert deployment.held(subnet) | deployment.held(second) == book_of(*ports[:10])


@each_once
def test_subnets_of_two_networks_may_lie_over_each_other(deployment: Deployment) -> None:
    one_network, one = deployment.subnet(SMALL)
    other_network, other = deployment.subnet(SMALL)

    ports = [deployment.server.port(network, "10.0.0.3") for network in (one_network, other_network)]

    assert [port.status for port in ports] == [201, 201]
    assert (deployment.held(one), deployment.held(other)) == (book_of(ports[0]), book_of(ports[1]))


@each_once
def test_an_address_is_made_of_the_mac_where_the_subnet_says_so(deployment: Deployment) -> None:
    network, subnet = deployment.subnet("2001:db8::/64", **AUTOMATIC)

    made = deployment.server.port(network, mac_address=MAC)
    refused = deployment.server.port(network, fixed_ips=[{"ip_address": "2001:db8::f816:3eff:fe00:1"}])

    assert made.status == 201
    assert deployment.held(subnet) == {"2001:db8::f816:3eff:fe00:1": f"port/{number_of(made)}"}
    assert refused.status == 400


@each_once
def test_a_delegated_prefix_replaces_the_block_of_nothing(deployment: Deployment) -> None:
    network = deployment.server.network()
    fields = {"network_id": network, "ip_version": 6, "subnetpool_id": "prefix_delegation", **AUTOMATIC}
    made = deployment.server.request("POST", "subnets", {"subnet": fields})
    subnet = made.body["subnet"]["id"]

    deployment.server.scene("delegate", subnet, "2001:db8:7::/64")
    port = deployment.server.port(network, mac_address=MAC)

    assert (made.status, made.body["subnet"]["cidr"]) == (201, "::/64")
    assert port.status == 201
    assert deployment.held(subnet) == {"2001:db8:7:0:f816:3eff:fe00:1": f"port/{number_of(port)}"}


@each_once
def test_ports_follow_when_a_delegated_prefix_changes(deployment: Deployment) -> None:
    network = deployment.server.network()
    fields = {"network_id": network, "ip_version": 6, "subnetpool_id": "prefix_delegation", **AUTOMATIC}
    subnet = deployment.server.request("POST", "subnets", {"subnet": fields}).body["subnet"]["id"]
    port = deployment.server.port(network, mac_address=MAC)

    for block in ("2001:db8:7::/64", "2001:db8:8::/64"):
        deployment.server.scene("delegate", subnet, block)
        listed = deployment.server.request("GET", f"ports/{number_of(port)}")

    assert deployment.held(subnet) == book_of(listed)


@each_once
def test_two_subnets_wait_for_their_prefixes_at_once(deployment: Deployment) -> None:
    networks = [deployment.server.network() for _ in range(2)]
    fields = {"ip_version": 6, "subnetpool_id": "prefix_delegation", **AUTOMATIC}

    made = [deployment.server.request("POST", "subnets", {"subnet": {"network_id": one, **fields}}) for one in networks]

    assert [subnet.status for subnet in made] == [201, 201]


@each_once
def test_blocks_come_out_of_a_subnet_pool(deployment: Deployment) -> None:
    pool = {"name": "p", "prefixes": ["10.64.0.0/28"], "default_prefixlen": 29, "min_prefixlen": 29}
    made = deployment.server.request("POST", "subnetpools", {"subnetpool": pool})
    network = deployment.server.network()
    fields = {"network_id": network, "ip_version": 4, "subnetpool_id": made.body["subnetpool"]["id"]}

    subnets = [deployment.server.request("POST", "subnets", {"subnet": fields}) for _ in range(3)]
    ports = [deployment.server.port(network) for _ in range(11)]

    assert [subnet.status for subnet in subnets[:2]] == [201, 201]
    assert subnets[2].status >= 400
    assert [port.status for port in ports] == [201] * 10 + [409]


@each_once
def test_an_address_is_added_to_a_port_and_taken_from_it(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    made = deployment.server.port(network, "10.0.0.7")
    path = f"ports/{number_of(made)}"

    two = change_of(fixed_ips=[{"ip_address": "10.0.0.7"}, {"subnet_id": subnet}])
    added = deployment.server.request("PUT", path, two)
    both = deployment.held(subnet)
    taken = deployment.server.request("PUT", path, change_of(fixed_ips=[{"ip_address": "10.0.0.7"}]))

    assert (added.status, taken.status) == (200, 200)
    assert both == book_of(added)
    assert len(both) == 2
    assert deployment.held(subnet) == book_of(made)


@each_once
def test_ports_made_together_have_an_address_each(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)

    made = deployment.server.request("POST", "ports", {"ports": [port_of(network) for _ in range(3)]})

    assert made.status == 201
    assert deployment.held(subnet) == book_of(*(Answer(201, {"port": port}) for port in made.body["ports"]))


@each_once
@pytest.mark.parametrize(("wrong", "status"), [("10.0.1.9", 400), ("10.0.0.3", 409)], ids=["outside", "held"])
def test_ports_made_together_are_all_refused_for_one_wrong_address(
    deployment: Deployment, wrong: str, status: int
) -> None:
    network, subnet = deployment.subnet(SMALL)
    kept = deployment.server.port(network, "10.0.0.3")
    # What is named comes first: a random pick might be the same address.
    wanted = [port_of(network, "10.0.0.4"), port_of(network), port_of(network, wrong), port_of(network)]

    refused = deployment.server.request("POST", "ports", {"ports": wanted})

    assert refused.status == status
    deployment.settle()
    assert deployment.held(subnet) == book_of(kept)
    assert [deployment.server.port(network).status for _ in range(5)] == [201] * 4 + [409]
