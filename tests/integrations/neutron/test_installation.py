"""What a deployment agrees on changes under servers that run: each notices before it gives or takes an address."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
import sqlalchemy as sa

from tenure.kernel.errors import Conflict
from tests.infrastructure.postgres import schema_in_thread
from tests.integrations.neutron.maintenance.maintenance_site import Site, built, digits, site_of
from tests.integrations.neutron.stage.deployment import Deployment, deployed
from tests.integrations.neutron.stage.kinds import mode_and_database
from tests.integrations.neutron.stage.ports import SMALL, book_of, number_of
from tests.integrations.neutron.stage.server import Refused
from tests.integrations.neutron.stage.settings import Answer, port_of
from tests.scale import in_proof

pytestmark = pytest.mark.halved

OTHER = {"database": "ledger", "ledger": "database"}
LATE = "10.0.0.6"

in_each_kind = pytest.mark.parametrize(("mode", "database"), mode_and_database())


@contextmanager
def moving(mode: str, database: str) -> Iterator[tuple[Deployment, Site]]:
    """Give a deployment with a server at work, and what an operator has who is about to move it to the other mode."""
    with ExitStack() as opened:
        deployment = opened.enter_context(deployed(mode, database))
        ledger = deployment.settings.ledger or opened.enter_context(schema_in_thread())
        yield deployment, site_of(deployment.settings.database, OTHER[mode], ledger, deployment.engine)


def said_by(answer: Answer) -> str:
    """Return what a server says that refuses."""
    assert answer.status == 503, answer
    return str(answer.body["NeutronError"]["message"])


def refusal_to(site: Site) -> str:
    """Try to move, and return what is in the way of it."""
    agreed = agreement_of(site)
    try:
        report = site.move_in()
    except Conflict as error:
        said = str(error)
    else:
        said = "in flight" if report.in_flight and not report.agreed else "nothing"
    assert agreement_of(site) == agreed
    return said


def books_of(site: Site) -> list[object]:
    """Read Neutron's rows, ours and the ledger's."""
    return [site.truth(), *site.everything()]


@in_each_kind
def test_a_server_that_runs_refuses_once_the_deployment_has_moved(mode: str, database: str) -> None:
    with moving(mode, database) as (deployment, site):
        network, _ = deployment.subnet(SMALL)
        first = deployment.server.port(network)
        deployment.settle()
        assert site.move_in().agreed
        before = books_of(site)

        made = deployment.server.port(network), deployment.server.port(network, LATE)
        gone = deployment.server.delete_port(number_of(first))
        other = deployment.server.subnet(network, "10.1.0.0/24")

        for answer in (*made, gone, other):
            assert f"this deployment keeps its addresses in mode '{OTHER[mode]}'" in said_by(answer)
            assert f"this server is set to '{mode}'" in said_by(answer)
        assert books_of(site) == before
        with deployment.one_more(mode=OTHER[mode], ledger=site.settings.ledger) as server:
            again = server.port(network)
        assert again.status == 201
        assert site.verify().found == []
        assert {place[1] for place in site.rows()} == {digits(address) for address in book_of(first, again)}


@in_each_kind
def test_a_deployment_does_not_move_while_a_request_is_at_work(mode: str, database: str) -> None:
    with moving(mode, database) as (deployment, site):
        network, subnet = deployment.subnet(SMALL)
        deployment.server.arm("create_port_precommit", "stop")
        deployment.server.begin("request", "POST", "ports", {"port": port_of(network)})
        deployment.server.reached()

        refusal = refusal_to(site)
        deployment.server.go_on()
        status, body = deployment.server.end()
        deployment.settle()

        assert refusal in ("servers of Neutron are at work: stop them, and run the import again", "in flight")
        assert status == 201
        assert deployment.held(subnet) == book_of(Answer(status, body))
        assert site.move_in().agreed
        assert deployment.in_rows(subnet) == book_of(Answer(status, body))
        assert site.verify().found == []


@in_each_kind
def test_a_request_that_comes_while_the_deployment_moves_waits_and_is_refused(mode: str, database: str) -> None:
    with deployed(mode, database) as deployment:
        network, subnet = deployment.subnet(SMALL)
        deployment.server.port(network)
        deployment.settle()
        before = deployment.books(subnet)
        with deployment.engine.begin() as connection:
            connection.execute(sa.text("UPDATE tenure_deployment SET mode = :m WHERE id = 1"), {"m": OTHER[mode]})
            deployment.server.begin("request", "POST", "ports", {"port": port_of(network)})
            deployment.wait_until_blocked()

        refused = Answer(*deployment.server.end())

        assert f"this deployment keeps its addresses in mode '{OTHER[mode]}'" in said_by(refused)
        deployment.settle()
        assert deployment.books(subnet) == before


@in_each_kind
def test_a_server_whose_agreement_was_deleted_agrees_afresh(mode: str, database: str) -> None:
    with deployed(mode, database) as deployment:
        network, subnet = deployment.subnet(SMALL)
        agreed = agreement_of(deployment)
        with deployment.engine.begin() as connection:
            connection.execute(sa.text("DELETE FROM tenure_deployment WHERE id = 1"))

        made = deployment.server.port(network)

        assert made.status == 201
        assert agreement_of(deployment) == agreed
        deployment.settle()
        assert deployment.held(subnet) == book_of(made)


@pytest.mark.parametrize("database", ["postgresql", in_proof("mariadb")])
def test_a_server_whose_ledger_knows_another_number_than_the_database_refuses(database: str) -> None:
    with deployed("ledger", database) as deployment:
        network, subnet = deployment.subnet(SMALL)
        with deployment.engine.begin() as connection:
            connection.execute(sa.text("DELETE FROM tenure_deployment"))

        refused = [deployment.server.port(network) for _ in range(2)]

        for answer in refused:
            assert "the ledger knows another deployment of Neutron as 'neutron'" in said_by(answer)
        assert agreement_of(deployment) is None
        assert deployment.held(subnet) == {}


@pytest.mark.parametrize("plugins", ["router", in_proof("router,tenure")])
def test_a_server_whose_deployment_was_taken_over_in_the_ledger_says_so(plugins: str) -> None:
    with deployed("ledger", "mariadb") as deployment, built("postgresql", "database") as wrong:
        network, _ = deployment.subnet(SMALL)
        deployment.server.port(network)
        deployment.settle()
        wrong.settings = replace(wrong.settings, mode="ledger", ledger=deployment.settings.ledger)
        assert wrong.move_in(take_over=True, remove_held=True).agreed

        try:
            with deployment.one_more(service_plugins=plugins) as server:
                said = said_by(server.port(network))
        except Refused as error:
            said = str(error)

        assert "another deployment of Neutron has taken over the name 'neutron' in the ledger" in said


def agreement_of(deployment: Deployment | Site) -> tuple[str, ...] | None:
    """Read what is agreed on."""
    with deployment.engine.connect() as connection:
        found = connection.execute(sa.text("SELECT mode, realm, ledger FROM tenure_deployment WHERE id = 1")).first()
    return None if found is None else tuple(found)


ASKED = {"database": ["SELECT", "INSERT"], "ledger": ["SELECT", "SELECT", "INSERT"]}
"""The record with the agreement, and the row; between them in mode ledger the record once more, to keep it."""


def test_looking_at_the_agreement_costs_no_statement_of_its_own(deployment: Deployment) -> None:
    _, subnet = deployment.subnet(SMALL)
    first, second = (["take", subnet, f"port-{number}", None] for number in range(2))
    deployment.server.scene("statements", [first])

    asked = deployment.server.scene("statements", [second])

    assert asked == ASKED[deployment.settings.mode]
