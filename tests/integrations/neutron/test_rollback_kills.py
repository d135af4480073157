"""A server that is killed between two commits: nothing is handed out twice, and reconciling makes the books agree."""

from collections.abc import Iterator

import pytest

from tests.integrations.neutron.stage.deployment import Deployment
from tests.integrations.neutron.stage.kinds import ledger_first, with_a_ledger
from tests.integrations.neutron.stage.ports import SMALL, book_of, fill, number_of
from tests.integrations.neutron.stage.server import Server
from tests.integrations.neutron.stage.settings import port_of

pytestmark = pytest.mark.halved


@pytest.fixture
def doomed(deployment: Deployment) -> Iterator[Server]:
    """Give one more server, which may be killed."""
    with deployment.one_more() as server:
        yield server


def kill_at(server: Server, point: str, since: str | None, *request: object) -> None:
    """Kill a server when a request of its comes to a point."""
    server.arm(point, "stop", since=since)
    server.begin("request", *request)
    assert server.reached() == point
    server.kill()


@ledger_first
def test_a_port_whose_server_died_before_the_commit_is_not_there(deployment: Deployment, doomed: Server) -> None:
    network, subnet = deployment.subnet(SMALL)
    kill_at(doomed, "create_port_precommit", None, "POST", "ports", {"port": port_of(network)})

    before = [deployment.server.port(network) for _ in range(5)]
    deployment.reconcile()
    after = [deployment.server.port(network) for _ in range(5)]

    made = [port for port in (*before, *after) if port.status == 201]
    assert len(made) == 5
    assert deployment.held(subnet) == book_of(*made)


@ledger_first
def test_a_port_whose_server_died_after_the_commit_is_there(deployment: Deployment, doomed: Server) -> None:
    network, subnet = deployment.subnet(SMALL)
    kill_at(doomed, "committed", "create_port_precommit", "POST", "ports", {"port": port_of(network)})

    [first] = deployment.in_neutron(subnet).items()
    others = [deployment.server.port(network) for _ in range(5)]
    deployment.reconcile()

    assert [port.status for port in others] == [201, 201, 201, 201, 409]
    assert deployment.held(subnet) == {**dict([first]), **book_of(*others[:4])}


@ledger_first
def test_a_port_whose_server_died_after_its_deletion_is_gone(deployment: Deployment, doomed: Server) -> None:
    network, subnet = deployment.subnet(SMALL)
    ports = fill(deployment, network)
    kill_at(doomed, "committed", "port_released", "DELETE", f"ports/{number_of(ports[0])}")

    early = deployment.server.port(network)
    deployment.reconcile()
    late = deployment.server.port(network)

    assert sorted([early.status, late.status]) == [201, 409]
    [made] = [port for port in (early, late) if port.status == 201]
    assert deployment.held(subnet) == book_of(*ports[1:], made)


@ledger_first
def test_a_port_whose_server_died_before_its_deletion_was_committed_is_there(
    deployment: Deployment, doomed: Server
) -> None:
    network, subnet = deployment.subnet(SMALL)
    ports = fill(deployment, network)
    kill_at(doomed, "port_released", None, "DELETE", f"ports/{number_of(ports[0])}")

    refused = deployment.server.port(network)
    deployment.reconcile()

    assert refused.status == 409
    assert deployment.held(subnet) == book_of(*ports)
    assert deployment.server.port(network).status == 409


@with_a_ledger
def test_a_subnet_whose_server_died_before_the_commit_is_not_there(deployment: Deployment, doomed: Server) -> None:
    network = deployment.server.network()
    before = deployment.networks()
    subnet = {"network_id": network, "cidr": SMALL, "ip_version": 4}
    kill_at(doomed, "create_subnet_precommit", None, "POST", "subnets", {"subnet": subnet})

    deployment.reconcile()

    assert deployment.networks() == before


@with_a_ledger
def test_a_subnet_whose_server_died_after_its_deletion_is_gone(deployment: Deployment, doomed: Server) -> None:
    _, subnet = deployment.subnet()
    kill_at(doomed, "committed", "subnet_removed", "DELETE", f"subnets/{subnet}")

    deployment.reconcile()

    assert deployment.knowing(subnet) == set()
    assert deployment.held(subnet) == {}


@with_a_ledger
def test_pools_whose_server_died_before_the_commit_are_the_old_ones(deployment: Deployment, doomed: Server) -> None:
    pools = [{"start": "10.0.0.10", "end": "10.0.0.12"}]
    _, subnet = deployment.subnet(allocation_pools=pools)
    body = {"subnet": {"allocation_pools": [{"start": "10.0.0.100", "end": "10.0.0.102"}]}}
    kill_at(doomed, "update_subnet_precommit", None, "PUT", f"subnets/{subnet}", body)

    deployment.reconcile()

    assert deployment.plans(subnet) == deployment.plan_for(["10.0.0.10-10.0.0.12"])
