"""Subnets that Neutron rolls back leave no trace in the ledger's plan, and those that go take all with them."""

from typing import Any

import pytest

from tests.integrations.neutron.stage.deployment import Deployment
from tests.integrations.neutron.stage.kinds import ledger_first
from tests.integrations.neutron.stage.ports import SMALL, book_of
from tests.integrations.neutron.stage.settings import Answer

pytestmark = [ledger_first, pytest.mark.halved]

LOW = [{"start": "10.0.0.10", "end": "10.0.0.12"}]
HIGH = [{"start": "10.0.0.100", "end": "10.0.0.102"}]


def pools_of(pools: list[dict[str, str]]) -> list[str]:
    """Write pools as a plan does."""
    return sorted(f"{pool['start']}-{pool['end']}" for pool in pools)


def change(deployment: Deployment, subnet: str, **fields: Any) -> Answer:
    """Change a subnet."""
    return deployment.server.request("PUT", f"subnets/{subnet}", {"subnet": fields})


def addresses(deployment: Deployment, network: str, count: int) -> set[str]:
    """Make so many ports, and return their addresses."""
    return set(book_of(*(deployment.server.port(network) for _ in range(count))))


def test_a_subnet_that_is_made_is_in_every_plan(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(allocation_pools=LOW)

    plans = deployment.plans(subnet)

    assert plans == deployment.plan_for(pools_of(LOW))
    assert addresses(deployment, network, 3) == {"10.0.0.10", "10.0.0.11", "10.0.0.12"}


def test_a_subnet_that_a_mechanism_driver_refuses_leaves_nothing(deployment: Deployment) -> None:
    network = deployment.server.network()
    before = deployment.networks()
    deployment.server.arm("create_subnet_precommit", "error")

    refused = deployment.server.subnet(network)

    assert refused.status == 500
    assert deployment.networks() == before


def test_a_subnet_whose_commit_fails_leaves_nothing(deployment: Deployment) -> None:
    network = deployment.server.network()
    before = deployment.networks()
    deployment.server.arm("committing", "error", since="create_subnet_precommit")

    refused = deployment.server.subnet(network)

    assert refused.status == 500
    deployment.settle()
    assert deployment.networks() == before


def test_a_subnet_whose_request_is_retried_is_there_once(deployment: Deployment) -> None:
    network = deployment.server.network()
    before = deployment.networks()
    deployment.server.arm("create_subnet_precommit", "deadlock")

    made = deployment.server.subnet(network)

    assert made.status == 201
    deployment.settle()
    assert deployment.networks() - before == {(book, made.body["subnet"]["id"]) for book in deployment.all_books}


def test_pools_whose_change_fails_are_the_old_ones(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(allocation_pools=LOW)
    deployment.server.arm("update_subnet_precommit", "error")

    refused = change(deployment, subnet, allocation_pools=HIGH)

    assert refused.status == 500
    assert deployment.plans(subnet) == deployment.plan_for(pools_of(LOW))
    assert addresses(deployment, network, 3) == {"10.0.0.10", "10.0.0.11", "10.0.0.12"}


def test_pools_whose_change_fails_at_the_commit_are_the_old_ones(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(allocation_pools=LOW)
    deployment.server.arm("committing", "error", since="update_subnet_precommit")

    refused = change(deployment, subnet, allocation_pools=HIGH)

    assert refused.status == 500
    deployment.settle()
    assert deployment.plans(subnet) == deployment.plan_for(pools_of(LOW))
    assert addresses(deployment, network, 3) == {"10.0.0.10", "10.0.0.11", "10.0.0.12"}


def test_pools_change_and_what_is_held_outside_of_the_new_ones_stays_held(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(allocation_pools=LOW)
    kept = deployment.server.port(network)

    changed = change(deployment, subnet, allocation_pools=HIGH)

    assert changed.status == 200
    assert deployment.plans(subnet) == deployment.plan_for(pools_of(HIGH))
    assert addresses(deployment, network, 3) == {"10.0.0.100", "10.0.0.101", "10.0.0.102"}
    assert deployment.held(subnet).items() >= book_of(kept).items()


def test_a_change_that_says_nothing_of_pools_leaves_them(deployment: Deployment) -> None:
    _, subnet = deployment.subnet(allocation_pools=LOW)

    changed = change(deployment, subnet, name="other")

    assert changed.status == 200
    assert deployment.plans(subnet) == deployment.plan_for(pools_of(LOW))


def test_a_subnet_that_could_not_be_deleted_is_still_all_there(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)
    kept = deployment.server.port(network, device_owner="network:dhcp")
    deployment.server.arm("subnet_removed", "error")

    refused = deployment.server.request("DELETE", f"subnets/{subnet}")

    assert refused.status == 500
    assert deployment.held(subnet) == book_of(kept)
    assert deployment.knowing(subnet) == deployment.all_books
    assert len(addresses(deployment, network, 4)) == 4


def test_a_deleted_subnet_takes_all_with_it(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    deployment.server.port(network, device_owner="network:dhcp")

    gone = deployment.server.request("DELETE", f"subnets/{subnet}")

    assert gone.status == 204
    assert deployment.held(subnet) == {}
    assert deployment.knowing(subnet) == set()


def test_a_subnet_in_use_is_not_deleted(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    kept = deployment.server.port(network)

    refused = deployment.server.request("DELETE", f"subnets/{subnet}")

    assert refused.status == 409
    assert deployment.held(subnet) == book_of(kept)


def test_a_subnet_with_no_pools_gives_only_what_is_named(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    change(deployment, subnet, allocation_pools=[])

    refused = deployment.server.port(network)
    named = deployment.server.port(network, "10.0.0.20")

    assert (refused.status, named.status) == (409, 201)
    assert deployment.held(subnet) == book_of(named)
