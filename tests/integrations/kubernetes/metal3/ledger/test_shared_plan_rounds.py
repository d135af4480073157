"""One round of two clusters and a script on one plan; the soak's part ``shared-plan-kubernetes`` plays many."""

import pytest

from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.ledger.shared_plan_rounds import play_round


@pytest.mark.one_worker("private-kube")
def test_two_clusters_and_a_script_fill_a_network_while_operators_and_the_ledgers_server_are_killed(
    kube: KubeServer, other_kube: KubeServer
) -> None:
    figures = play_round([kube, other_kube], seed=1)

    assert figures["claims"] + figures["instances"] == 40
