"""One round of fire; ``python -m tests.soak --part fire-kubernetes`` plays many."""

import pytest

from tests.infrastructure.kube import private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import IPAM, install_cluster_api
from tests.integrations.kubernetes.metal3.fire_rounds import CLAIMS, play_fire


@pytest.mark.xdist_group("private-kube")
async def test_kd17_claims_of_both_kinds_survive_kills_a_frozen_leader_and_a_restarted_server() -> None:
    """Never one address twice, no orphan, every living claim served; the checker of the stores explains the history."""
    with private_kube() as server:
        install(server)
        install_cluster_api(server, *IPAM)
        figures = await play_fire(server, seed=1)

    assert figures["served"] == CLAIMS // 2
