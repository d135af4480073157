"""Servers at work while somebody reconciles, again and again: nothing that they do is taken for drift."""

import threading
from typing import Any

from tests.integrations.neutron.maintenance.maintenance_site import site_of
from tests.integrations.neutron.stage.deployment import Deployment
from tests.scale import runs

WORKERS, EACH, TIMES = 3, runs(3, 8, proof=8), runs(3, 8, proof=8)

LATE = {"holding-pending", "holding-extra"}
"""What a server has committed and not yet told the ledger: whoever tells it first does no harm."""


def settled_kinds(report: Any, subnet: str) -> set[str]:
    """Tell which drift was found in a subnet, but what is in flight; the deployment has subnets of other tests, too."""
    return {drift.kind for drift, outcome in report.found if drift.subnet == subnet and outcome != "in-flight"}


def test_reconciling_does_not_disturb_servers_at_work(deployment: Deployment) -> None:
    server, settings = deployment.server, deployment.settings
    site = site_of(settings.database, settings.mode, settings.ledger or None, deployment.engine)
    network, subnet = deployment.subnet("10.9.0.0/24")
    ports = [[str(server.port(network).body["port"]["id"]) for _ in range(EACH)] for _ in range(WORKERS)]
    told: list[Any] = []
    crowd = threading.Thread(target=lambda: told.extend(server.tell("crowd", network, "churn", ports, TIMES)))
    reports = []

    crowd.start()
    while crowd.is_alive():
        reports += [site.reconcile(), site.verify()]
    crowd.join()
    deployment.settle()

    statuses = {event["status"] for worker in told for event in worker["events"]}
    assert (len(told), statuses) == (WORKERS, {201, 204})
    assert {kind for report in reports for kind in settled_kinds(report, subnet)} <= LATE
    assert len(reports) > 2
    assert [drift for drift, _ in site.verify().found if drift.subnet == subnet] == []
    assert len(deployment.held(subnet)) == WORKERS * EACH
