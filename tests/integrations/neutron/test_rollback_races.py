"""Two servers at one time, one of them in the middle of a transaction: neither takes from the other what is its."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integrations.neutron.stage.deployment import Deployment
from tests.integrations.neutron.stage.kinds import ledger_first
from tests.integrations.neutron.stage.ports import SMALL, address_of, book_of, change_of, fill, number_of
from tests.integrations.neutron.stage.server import Server
from tests.integrations.neutron.stage.settings import Answer, port_of

pytestmark = ledger_first


@pytest.fixture(scope="module")
def late(deployment: Deployment) -> Iterator[Server]:
    """Give a second server of the same deployment, which is stopped in the middle of requests."""
    with deployment.one_more() as server:
        yield server


def stop_at(server: Server, point: str, *request: Any) -> None:
    """Begin a request that stops at a point, its transaction open."""
    server.arm(point, "stop")
    server.begin("request", *request)
    assert server.reached() == point


def finish(server: Server) -> Answer:
    """Let a request that was stopped go on to its end."""
    server.go_on()
    return Answer(*server.end())


def test_a_late_deletion_frees_nothing_that_another_port_got_meanwhile(deployment: Deployment, late: Server) -> None:
    network, subnet = deployment.subnet(SMALL)
    old = deployment.server.port(network, "10.0.0.3")
    stop_at(late, "delete_port_precommit", "DELETE", f"ports/{number_of(old)}")
    deployment.server.delete_port(number_of(old))
    new = deployment.server.port(network, "10.0.0.3")

    finish(late)

    assert new.status == 201
    deployment.settle()
    assert deployment.held(subnet) == book_of(new)
    assert deployment.server.port(network, "10.0.0.3").status == 409


def test_a_late_change_leaves_the_books_of_the_driver_in_agreement(deployment: Deployment, late: Server) -> None:
    network, subnet = deployment.subnet(SMALL)
    old = deployment.server.port(network, "10.0.0.3")
    path = f"ports/{number_of(old)}"
    stop_at(late, "update_port_begun", "PUT", path, change_of(fixed_ips=[{"ip_address": "10.0.0.4"}]))
    changed = deployment.server.request("PUT", path, change_of(fixed_ips=[{"ip_address": "10.0.0.5"}]))
    new = deployment.server.port(network, "10.0.0.3")

    last = finish(late)

    assert (changed.status, new.status, last.status) == (200, 201, 200)
    deployment.settle()
    kept = deployment.kept(subnet)  # Neutron's own book loses the new port's address here
    assert kept["10.0.0.3"] == f"port/{number_of(new)}"
    assert {address: kept[address] for address in book_of(last)} == book_of(last)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_address_that_is_about_to_be_taken_is_not_given_to_another(
    deployment: Deployment, late: Server, end: str
) -> None:
    network, subnet = deployment.subnet(SMALL)
    if end == "rollback":
        late.arm("committing", "error", since="create_port_precommit")
    stop_at(late, "create_port_precommit", "POST", "ports", {"port": port_of(network, "10.0.0.3")})
    deployment.server.begin("request", "POST", "ports", {"port": port_of(network, "10.0.0.3")})

    if deployment.ledger is None:  # the second waits in the database for the end of the first
        deployment.wait_until_blocked()
        first, second = finish(late), Answer(*deployment.server.end())
    else:  # the ledger refuses at once
        second, first = Answer(*deployment.server.end()), finish(late)

    assert first.status == {"commit": 201, "rollback": 500}[end]
    assert second.status == (201 if end == "rollback" and deployment.ledger is None else 409)
    deployment.settle()
    assert deployment.held(subnet) == book_of(*(answer for answer in (first, second) if answer.status == 201))


def test_a_full_subnet_stays_full_until_a_deletion_is_committed(deployment: Deployment, late: Server) -> None:
    network, subnet = deployment.subnet(SMALL)
    ports = fill(deployment, network)
    stop_at(late, "port_released", "DELETE", f"ports/{number_of(ports[0])}")

    early = deployment.server.port(network)
    gone = finish(late)
    after = deployment.server.port(network)

    assert (early.status, gone.status, after.status) == (409, 204, 201)
    assert address_of(after) == address_of(ports[0])
    assert deployment.held(subnet) == book_of(*ports[1:], after)


def test_other_addresses_are_had_while_a_transaction_is_open(deployment: Deployment, late: Server) -> None:
    network, subnet = deployment.subnet(SMALL)
    stop_at(late, "create_port_precommit", "POST", "ports", {"port": port_of(network, "10.0.0.3")})

    ports = [deployment.server.port(network, f"10.0.0.{number}") for number in (2, 4, 5, 6)]
    last = finish(late)

    assert [port.status for port in (*ports, last)] == [201] * 5
    assert deployment.held(subnet) == book_of(*ports, last)


def test_a_port_that_is_made_in_a_subnet_that_goes_is_refused_and_leaves_nothing(
    deployment: Deployment, late: Server
) -> None:
    network, subnet = deployment.subnet(SMALL)
    stop_at(late, "subnet_removed", "DELETE", f"subnets/{subnet}")
    fixed = {"port": {**port_of(network), "fixed_ips": [{"subnet_id": subnet}]}}
    deployment.server.begin("request", "POST", "ports", fixed)
    deployment.wait_until_blocked()

    gone = finish(late)
    port = Answer(*deployment.server.end())

    assert (gone.status, port.status) == (204, 409)
    deployment.settle()
    assert deployment.knowing(subnet) == set()
    assert deployment.held(subnet) == {}
