"""Neutron's life with a driver: workers are forked, servers disagree, and the ledger is away when it is needed."""

import time
from collections.abc import Callable, Iterator, Mapping

import psutil
import pytest

from tests.infrastructure.postgres import PostgresServer, private_postgres, schema_in_thread
from tests.integrations.neutron.stage.deployment import Deployment, deployed
from tests.integrations.neutron.stage.kinds import each_once, with_one_ledger
from tests.integrations.neutron.stage.ports import SMALL, book_of, number_of
from tests.integrations.neutron.stage.server import Refused
from tests.integrations.neutron.stage.settings import port_of
from tests.scale import in_proof

pytestmark = pytest.mark.halved

CHECKED = "router,tenure"
"""The service plugins of a server that looks whether it agrees before it starts."""

Leave = Callable[[PostgresServer], None]

TIMEOUT_S = 1.0
AT_THE_FIRST_PORT = pytest.mark.parametrize("plugins", ["router", in_proof(CHECKED)])
"""One look serves all refusals: that it comes at the start, too, is tried with the mode."""

LOW, HIGH = ([{"start": f"10.0.0.{first}", "end": f"10.0.0.{first + 2}"}] for first in (10, 100))


def test_workers_forked_after_the_driver_was_used_work_beside_their_parent(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)
    first = deployment.server.port(network)

    told = deployment.server.tell("crowd", network, "fill", [[], []])
    full = deployment.server.port(network)
    gone = deployment.server.delete_port(number_of(first))
    again = deployment.server.port(network)

    statuses = sorted(event["status"] for worker in told for event in worker["events"])
    assert statuses == [201, 201, 201, 201, 409, 409]
    assert (full.status, gone.status, again.status) == (409, 204, 201)
    assert len(deployment.held(subnet)) == 5


@each_once
@pytest.mark.parametrize("plugins", ["router", CHECKED])
def test_a_server_in_another_mode_refuses(deployment: Deployment, plugins: str) -> None:
    network, subnet = deployment.subnet(SMALL)
    with schema_in_thread() as ledger:
        other = {"database": "ledger", "ledger": "database"}[deployment.settings.mode]
        settings = {"mode": other, "ledger": ledger, "service_plugins": plugins}

        said = refusal(deployment, network, settings)

    assert f"this deployment keeps its addresses in mode '{deployment.settings.mode}'" in said
    assert f"this server is set to '{other}'" in said
    assert deployment.held(subnet) == {}


@with_one_ledger
@AT_THE_FIRST_PORT
def test_a_server_in_another_realm_refuses(deployment: Deployment, plugins: str) -> None:
    network, subnet = deployment.subnet(SMALL)

    said = refusal(deployment, network, {"tenure": {"realm": "other"}, "service_plugins": plugins})

    assert "this deployment is called 'neutron' in its ledger, and [tenure] realm here is 'other'" in said
    assert deployment.held(subnet) == {}


@with_one_ledger
@AT_THE_FIRST_PORT
def test_a_server_with_another_ledger_refuses(deployment: Deployment, plugins: str) -> None:
    network, subnet = deployment.subnet(SMALL)
    with schema_in_thread() as ledger:
        said = refusal(deployment, network, {"ledger": ledger, "service_plugins": plugins})

    assert "this server's [tenure] ledger is not the one that this deployment keeps its addresses in" in said
    assert deployment.held(subnet) == {}


@with_one_ledger
@AT_THE_FIRST_PORT
@pytest.mark.parametrize("ledger", ["memory:", "sqlite:////nowhere/ledger.db"])
def test_a_server_with_a_ledger_that_others_cannot_reach_refuses(
    deployment: Deployment, plugins: str, ledger: str
) -> None:
    network, subnet = deployment.subnet(SMALL)

    said = refusal(deployment, network, {"ledger": ledger, "service_plugins": plugins})

    assert "[tenure] ledger: servers share a ledger on PostgreSQL, postgresql://" in said
    assert deployment.held(subnet) == {}


@each_once
def test_a_server_that_agrees_starts_and_works(deployment: Deployment) -> None:
    network, subnet = deployment.subnet(SMALL)

    with deployment.one_more(service_plugins=CHECKED) as server:
        made = server.port(network)

    assert made.status == 201
    assert deployment.held(subnet) == book_of(made)


def refusal(deployment: Deployment, network: str, settings: Mapping[str, object]) -> str:
    """Start a server that should refuse, at its start if it looks then, else at its first port; return what it says."""
    if settings["service_plugins"] == CHECKED:
        with pytest.raises(Refused) as caught, deployment.one_more(**settings):
            pass
        return str(caught.value)
    with deployment.one_more(**settings) as server:
        refused = server.port(network)
    assert refused.status == 503, refused
    return str(refused.body["NeutronError"]["message"])


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """Give a PostgreSQL for the ledger alone, which may be stopped."""
    with private_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def site(postgres: PostgresServer) -> Iterator[Deployment]:
    """Give a deployment whose ledger may go away, and that has a short patience."""
    with deployed("ledger", "mariadb", ledger=postgres.url, timeout_s=str(TIMEOUT_S)) as made:
        yield made


@pytest.fixture
def away(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """Give the ledger's server, and let it be back afterwards, whatever happens."""
    yield postgres
    wake(postgres)


def freeze(postgres: PostgresServer) -> None:
    """Stop every process of a server in its tracks: it is there, and does not answer."""
    postmaster = psutil.Process(postgres.pid)
    for process in (postmaster, *postmaster.children()):
        process.suspend()


def wake(postgres: PostgresServer) -> None:
    """Let a server answer again, whether it was frozen or stopped."""
    if not (postgres.folder / "data" / "postmaster.pid").exists():
        postgres.start()
        return
    postmaster = psutil.Process(postgres.pid)
    for process in (postmaster, *postmaster.children()):
        process.resume()


DOWN, SLOW = pytest.param(PostgresServer.stop, id="down"), pytest.param(freeze, id="slow")
AWAY = pytest.mark.parametrize("leave", [DOWN, SLOW])
DOWN_FIRST = pytest.mark.parametrize("leave", [DOWN, pytest.param(freeze, id="slow", marks=pytest.mark.proof)])
"""For what comes after the refusal: that a server which hangs is refused in time, and settled later, is tried above."""
LEDGER = pytest.mark.one_worker("neutron-life")


@LEDGER
@AWAY
def test_a_port_is_refused_in_time_while_the_ledger_is_away(
    site: Deployment, away: PostgresServer, leave: Leave
) -> None:
    network, subnet = site.subnet(SMALL)
    leave(away)
    begin = time.monotonic()

    refused = [site.server.port(network), site.server.port(network, "10.0.0.3")]
    took_s = time.monotonic() - begin
    wake(away)

    assert [answer.status for answer in refused] == [503, 503]
    assert took_s < 2 * TIMEOUT_S + 3
    site.settle()
    assert site.held(subnet) == {}
    assert [site.server.port(network).status for _ in range(6)] == [201] * 5 + [409]


@LEDGER
@DOWN_FIRST
def test_a_port_is_deleted_also_while_the_ledger_is_away(site: Deployment, away: PostgresServer, leave: Leave) -> None:
    network, subnet = site.subnet(SMALL)
    made = site.server.port(network)
    leave(away)

    gone = site.server.delete_port(number_of(made))
    wake(away)

    assert gone.status == 204
    site.settle()
    assert site.held(subnet) == {}


@LEDGER
@AWAY
def test_a_port_is_confirmed_when_the_ledger_is_back_that_left_at_the_commit(
    site: Deployment, away: PostgresServer, leave: Leave
) -> None:
    network, subnet = site.subnet(SMALL)
    site.server.arm("create_port_precommit", "stop")
    site.server.begin("request", "POST", "ports", {"port": port_of(network)})
    site.server.reached()
    leave(away)

    site.server.go_on()
    status, _ = site.server.end()
    wake(away)

    assert status == 201
    site.settle()
    assert len(site.held(subnet)) == 1


@LEDGER
@DOWN_FIRST
def test_a_port_is_taken_back_when_the_ledger_is_back_that_left_at_the_rollback(
    site: Deployment, away: PostgresServer, leave: Leave
) -> None:
    network, subnet = site.subnet(SMALL)
    site.server.arm("create_port_precommit", "stop")
    site.server.arm("committing", "error", since="create_port_precommit")
    site.server.begin("request", "POST", "ports", {"port": port_of(network)})
    site.server.reached()
    leave(away)

    site.server.go_on()
    status, _ = site.server.end()
    wake(away)

    assert status == 500
    site.settle()
    assert site.held(subnet) == {}


@LEDGER
@DOWN_FIRST
def test_a_subnet_that_could_not_be_made_while_the_ledger_is_away_is_nowhere(
    site: Deployment, away: PostgresServer, leave: Leave
) -> None:
    network = site.server.network()
    before = site.networks()
    leave(away)

    refused = site.server.subnet(network, SMALL)
    wake(away)

    assert refused.status == 503
    site.settle()
    assert site.networks() == before


@LEDGER
@DOWN_FIRST
def test_pools_that_could_not_be_changed_while_the_ledger_is_away_are_the_old_ones(
    site: Deployment, away: PostgresServer, leave: Leave
) -> None:
    _, subnet = site.subnet(allocation_pools=LOW)
    leave(away)

    refused = site.server.request("PUT", f"subnets/{subnet}", {"subnet": {"allocation_pools": HIGH}})
    wake(away)

    assert refused.status == 503
    site.settle()
    assert site.plans(subnet) == site.plan_for(["10.0.0.10-10.0.0.12"])


@LEDGER
@DOWN_FIRST
def test_pools_that_are_changed_once_the_ledger_is_back_are_the_new_ones(
    site: Deployment, away: PostgresServer, leave: Leave
) -> None:
    _, subnet = site.subnet(allocation_pools=LOW)
    body = {"subnet": {"allocation_pools": HIGH}}
    leave(away)
    refused = site.server.request("PUT", f"subnets/{subnet}", body)
    wake(away)

    changed = site.server.request("PUT", f"subnets/{subnet}", body)

    assert (refused.status, changed.status) == (503, 200)
    site.settle()
    assert site.plans(subnet) == site.plan_for(["10.0.0.100-10.0.0.102"])


@LEDGER
@DOWN_FIRST
def test_a_subnet_is_deleted_also_while_the_ledger_is_away(
    site: Deployment, away: PostgresServer, leave: Leave
) -> None:
    _, subnet = site.subnet(SMALL)
    leave(away)

    gone = site.server.request("DELETE", f"subnets/{subnet}")
    wake(away)

    assert gone.status == 204
    site.settle()
    assert site.knowing(subnet) == set()


@LEDGER
def test_a_server_does_not_start_to_use_a_ledger_that_is_away(site: Deployment, away: PostgresServer) -> None:
    network, subnet = site.subnet(SMALL)
    with site.one_more() as server:
        away.stop()
        refused = server.port(network)
        wake(away)
        made = server.port(network)

    assert (refused.status, made.status) == (503, 201)
    assert site.held(subnet) == book_of(made)


@LEDGER
@DOWN_FIRST
def test_a_deployment_whose_ledger_was_away_at_first_works_when_it_is_back(leave: Leave) -> None:
    with private_postgres() as postgres, deployed("ledger", "mariadb", postgres.url, timeout_s=str(TIMEOUT_S)) as first:
        network = first.server.network()
        leave(postgres)
        try:
            refused = first.server.subnet(network, SMALL)
        finally:
            wake(postgres)
        first.settle()
        made = first.server.subnet(network, SMALL)
        port = first.server.port(network)

        assert (refused.status, made.status, port.status) == (503, 201, 201)
        assert first.held(made.body["subnet"]["id"]) == book_of(port)
