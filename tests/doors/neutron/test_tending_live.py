"""Servers at work while somebody reconciles, again and again: nothing that they do is taken for drift."""

import threading
from typing import Any

from tests.doors.neutron.stage.deployment import Deployment
from tests.doors.neutron.tending_site import kinds, site_of

WORKERS, EACH, TIMES = 3, 8, 8

LATE = {"holding-pending", "holding-extra"}
"""What a server has committed and not yet told the ledger: whoever tells it first does no harm."""


def test_reconciling_does_not_disturb_servers_at_work(deployment: Deployment) -> None:
    server, settings = deployment.server, deployment.settings
    site = site_of(settings.database, settings.mode, settings.ledger or None, deployment.engine)
    network, subnet = deployment.subnet("10.9.0.0/24")
    ports = [[str(server.port(network).body["port"]["id"]) for _ in range(EACH)] for _ in range(WORKERS)]
    site.reconcile()  # the deployment is shared: other tests may have left what only reconciling clears up
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
    assert {kind for report in reports for kind in kinds(report, "found", "repaired", "left")} <= LATE
    assert len(reports) > 2
    assert site.verify().found == []
    assert len(deployment.held(subnet)) == WORKERS * EACH
