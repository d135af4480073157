"""One round of fire; ``python -m tests.soak --part fire-kubernetes`` plays many."""

import pytest

from tests.infrastructure.kube import private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import IPAM, install_cluster_api
from tests.integrations.kubernetes.metal3.fire_rounds import CLAIMS, play_fire


@pytest.mark.one_worker("private-kube")
@pytest.mark.parametrize("webhooks", [False, pytest.param(True, marks=pytest.mark.proof)], ids=["bare", "webhooks"])
async def test_kd17_claims_of_both_kinds_survive_kills_a_frozen_leader_and_a_restarted_server(webhooks: bool) -> None:
    """Never one address twice, no orphan, every living claim served; the checker of the stores explains the history."""
    with private_kube() as server:
        install(server)
        install_cluster_api(server, *IPAM)
        figures = await play_fire(server, seed=1, webhooks=webhooks)

    assert figures["served"] == CLAIMS // 2
    assert bool(figures["connections"]) is webhooks
