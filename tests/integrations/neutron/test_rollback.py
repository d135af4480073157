"""What Neutron rolls back leaves nothing, and what it commits is everywhere: both modes, both databases."""

from uuid import uuid4

import pytest

from tests.integrations.neutron.stage.deployment import Deployment
from tests.integrations.neutron.stage.kinds import ledger_first
from tests.integrations.neutron.stage.ports import SMALL, book_of, change_of, fill, number_of
from tests.integrations.neutron.stage.server import Refused
from tests.integrations.neutron.stage.settings import Answer, port_of

pytestmark = [ledger_first, pytest.mark.halved]


def test_a_port_is_in_every_book(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()

    made = deployment.server.port(network)

    assert made.status == 201
    assert deployment.held(subnet) == book_of(made)


def test_a_deleted_port_is_in_none(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    made = deployment.server.port(network)

    gone = deployment.server.delete_port(number_of(made))

    assert gone.status == 204
    assert deployment.held(subnet) == {}


def test_a_port_that_a_mechanism_driver_refuses_leaves_nothing(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    deployment.server.arm("create_port_precommit", "error")

    refused = deployment.server.port(network)

    assert refused.status == 500
    assert deployment.held(subnet) == {}


def test_a_port_whose_commit_fails_leaves_nothing(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    deployment.server.arm("committing", "error", since="create_port_precommit")

    refused = deployment.server.port(network)

    assert refused.status == 500
    deployment.settle()
    assert deployment.held(subnet) == {}


def test_a_port_of_which_the_database_took_no_commit_leaves_nothing(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    deployment.server.arm("commit_sent", "error", since="create_port_precommit")

    refused = deployment.server.port(network)

    assert refused.status == 500
    deployment.settle()
    assert deployment.held(subnet) == {}


def test_a_port_whose_commit_was_not_answered_is_there(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    deployment.server.arm("commit_done", "error", since="create_port_precommit")

    unanswered = deployment.server.port(network)

    assert unanswered.status == 500
    deployment.settle()
    assert len(deployment.held(subnet)) == 1


def test_a_deletion_whose_commit_was_not_answered_is_made(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    made = deployment.server.port(network)
    deployment.server.arm("commit_done", "error", since="port_released")

    unanswered = deployment.server.delete_port(number_of(made))

    assert unanswered.status == 500
    deployment.settle()
    assert deployment.held(subnet) == {}


def test_a_deletion_of_which_the_database_took_no_commit_is_none(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    made = deployment.server.port(network)
    deployment.server.arm("commit_sent", "error", since="port_released")

    refused = deployment.server.delete_port(number_of(made))

    assert refused.status == 500
    deployment.settle()
    assert deployment.held(subnet) == book_of(made)


def test_a_request_that_is_retried_after_a_deadlock_holds_one_address(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    deployment.server.arm("create_port_precommit", "deadlock")

    made = deployment.server.port(network)

    assert made.status == 201
    assert deployment.held(subnet) == book_of(made)


def test_a_request_that_is_retried_after_a_deadlock_at_its_commit_holds_one_address(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    deployment.server.arm("committing", "deadlock", since="create_port_precommit")

    made = deployment.server.port(network)

    assert made.status == 201
    deployment.settle()
    assert deployment.held(subnet) == book_of(made)


def test_a_request_that_is_retried_after_the_database_refused_its_commit_holds_one_address(
    deployment: Deployment,
) -> None:
    network, subnet = deployment.subnet(SMALL)
    deployment.server.arm("commit_sent", "deadlock", since="create_port_precommit")

    made = deployment.server.port(network)

    assert made.status == 201
    deployment.settle()
    assert deployment.held(subnet) == book_of(made)


def test_a_named_address_is_had_again_when_its_request_is_retried(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    deployment.server.arm("create_port_precommit", "deadlock")

    made = deployment.server.port(network, "10.0.0.77")

    assert made.status == 201
    assert deployment.held(subnet) == {"10.0.0.77": f"port/{number_of(made)}"}


def test_a_port_that_could_not_be_deleted_keeps_its_address(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)
    ports = fill(deployment, network)
    deployment.server.arm("port_released", "error")

    refused = deployment.server.delete_port(number_of(ports[0]))
    others = deployment.server.port(network)

    assert (refused.status, others.status) == (500, 409)
    assert deployment.held(subnet) == book_of(*ports)


def test_a_port_whose_deletion_is_retried_after_a_deadlock_is_gone(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    kept, made = deployment.server.port(network), deployment.server.port(network)
    deployment.server.arm("port_released", "deadlock")

    gone = deployment.server.delete_port(number_of(made))

    assert gone.status == 204
    assert deployment.held(subnet) == book_of(kept)


def test_a_change_of_addresses_that_fails_keeps_the_old_one(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    made = deployment.server.port(network, "10.0.0.7")
    deployment.server.arm("update_port_precommit", "error")

    change = change_of(fixed_ips=[{"ip_address": "10.0.0.8"}])
    refused = deployment.server.request("PUT", f"ports/{number_of(made)}", change)

    assert refused.status == 500
    assert deployment.held(subnet) == book_of(made)
    assert deployment.server.port(network, "10.0.0.8").status == 201


def test_a_change_of_addresses_lets_go_of_the_old_one(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    made = deployment.server.port(network, "10.0.0.7")

    change = change_of(fixed_ips=[{"ip_address": "10.0.0.8"}])
    changed = deployment.server.request("PUT", f"ports/{number_of(made)}", change)

    assert changed.status == 200
    assert deployment.held(subnet) == {"10.0.0.8": f"port/{number_of(made)}"}
    assert deployment.server.port(network, "10.0.0.7").status == 201


def test_a_port_in_a_full_subnet_can_change_to_any_address(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)
    ports = fill(deployment, network)

    change = change_of(fixed_ips=[{"subnet_id": subnet}])
    changed = deployment.server.request("PUT", f"ports/{number_of(ports[0])}", change)

    assert changed.status == 200
    assert deployment.held(subnet) == book_of(*ports)


def test_a_bulk_of_which_one_port_is_refused_leaves_nothing(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    deployment.server.arm("create_port_precommit", "error", passed=2)

    refused = deployment.server.request("POST", "ports", {"ports": [port_of(network)] * 4})

    assert refused.status == 500
    assert deployment.held(subnet) == {}


def test_a_bulk_that_does_not_fit_leaves_nothing(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)

    refused = deployment.server.request("POST", "ports", {"ports": [port_of(network)] * 6})

    assert refused.status == 409
    assert deployment.held(subnet) == {}


def test_a_bulk_is_in_every_book(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)

    made = deployment.server.request("POST", "ports", {"ports": [port_of(network)] * 5})

    assert made.status == 201
    ports = [Answer(201, {"port": port}) for port in made.body["ports"]]
    assert deployment.held(subnet) == book_of(*ports)


def test_a_port_with_several_addresses_holds_all_of_them_or_none(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)
    any_two = [{"subnet_id": subnet}, {"subnet_id": subnet}]
    deployment.server.arm("create_port_precommit", "error")

    refused = deployment.server.port(network, fixed_ips=any_two)
    made = deployment.server.port(network, fixed_ips=[*any_two, {"ip_address": "10.0.0.3"}])

    assert (refused.status, made.status) == (500, 201)
    assert len(made.body["port"]["fixed_ips"]) == 3
    assert deployment.held(subnet) == book_of(made)


@pytest.mark.kept
def test_a_savepoint_that_is_rolled_back_takes_its_addresses_with_it(deployment: Deployment) -> None:
    _, subnet = deployment.subnet()
    first, second, third = (str(uuid4()) for _ in range(3))
    steps = [
        ("take", subnet, first, "10.0.0.9"),
        ("savepoint", [("take", subnet, second, None), ("drop", subnet, "10.0.0.9")], "rollback"),
        ("savepoint", [("take", subnet, third, None)], "commit"),
    ]

    got = deployment.server.scene("transaction", steps, "commit")

    assert deployment.kept(subnet) == {"10.0.0.9": f"port/{first}", got[2]: f"port/{third}"}


def test_a_release_in_a_savepoint_that_is_rolled_back_is_none(deployment: Deployment) -> None:
    _, subnet = deployment.subnet()
    owner = str(uuid4())
    deployment.server.scene("transaction", [("take", subnet, owner, "10.0.0.9")], "commit")

    steps = [("savepoint", [("drop", subnet, "10.0.0.9")], "rollback")]
    deployment.server.scene("transaction", steps, "commit")

    assert deployment.kept(subnet) == {"10.0.0.9": f"port/{owner}"}


@pytest.mark.kept
def test_savepoints_that_were_released_are_undone_with_their_transaction(deployment: Deployment) -> None:
    _, subnet = deployment.subnet()
    owner = str(uuid4())
    deployment.server.scene("transaction", [("take", subnet, owner, "10.0.0.9")], "commit")

    inner = [("take", subnet, str(uuid4()), None), ("drop", subnet, "10.0.0.9")]
    deployment.server.scene("transaction", [("savepoint", inner, "commit")], "rollback")

    assert deployment.kept(subnet) == {"10.0.0.9": f"port/{owner}"}


def test_a_port_can_have_again_what_it_let_go_of_in_the_same_transaction(deployment: Deployment) -> None:
    _, subnet = deployment.subnet()
    owner = str(uuid4())
    take, drop = ("take", subnet, owner, "10.0.0.9"), ("drop", subnet, "10.0.0.9")
    deployment.server.scene("transaction", [take], "commit")

    deployment.server.scene("transaction", [drop, take, drop, take], "commit")

    assert deployment.kept(subnet) == {"10.0.0.9": f"port/{owner}"}


def test_another_port_can_have_what_was_let_go_of_in_the_same_transaction(deployment: Deployment) -> None:
    _, subnet = deployment.subnet()
    first, second = str(uuid4()), str(uuid4())
    deployment.server.scene("transaction", [("take", subnet, first, "10.0.0.9")], "commit")
    handed_over = [("drop", subnet, "10.0.0.9"), ("take", subnet, second, "10.0.0.9")]

    deployment.server.scene("transaction", handed_over, "rollback")
    rolled_back = deployment.kept(subnet)
    deployment.server.scene("transaction", handed_over, "commit")

    assert rolled_back == {"10.0.0.9": f"port/{first}"}
    assert deployment.kept(subnet) == {"10.0.0.9": f"port/{second}"}


def test_an_address_that_is_taken_and_let_go_of_in_one_transaction_is_free(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    steps = [("take", subnet, str(uuid4()), "10.0.0.9"), ("drop", subnet, "10.0.0.9")]

    deployment.server.scene("transaction", steps, "commit")

    assert deployment.kept(subnet) == {}
    assert deployment.server.port(network, "10.0.0.9").status == 201


def test_another_port_gets_in_a_full_subnet_what_the_same_transaction_let_go_of(deployment: Deployment) -> None:
    _, subnet = deployment.subnet(SMALL)
    owners = [str(uuid4()) for _ in range(6)]
    full = [("take", subnet, owner, None) for owner in owners[:5]]
    got = deployment.server.scene("transaction", full, "commit")

    steps = [("drop", subnet, got[0]), ("take", subnet, owners[5], None)]
    again = deployment.server.scene("transaction", steps, "commit")

    assert again == got[:1]
    expected = {address: f"port/{owner}" for address, owner in zip(got[1:], owners[1:5], strict=True)}
    assert deployment.kept(subnet) == {**expected, got[0]: f"port/{owners[5]}"}


def test_what_a_lost_transaction_took_let_go_of_and_took_again_is_free(deployment: Deployment) -> None:
    network, subnet = deployment.subnet()
    take, drop = ("take", subnet, str(uuid4()), "10.0.0.9"), ("drop", subnet, "10.0.0.9")
    deployment.server.arm("commit_sent", "error")

    with pytest.raises(Refused, match="DBError"):
        deployment.server.scene("transaction", [take, drop, take], "commit")

    deployment.settle()
    assert deployment.kept(subnet) == {}
    assert deployment.server.port(network, "10.0.0.9").status == 201
