"""A short day of a fleet; ``python -m tests.soak --part fleet-day-kubernetes`` lives 50,000 claims."""

from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.fleet_day import LIVES_A_CLUSTER, fleet_day

CLUSTERS = 4


async def test_a_fleet_that_comes_rolls_grows_and_goes_leaves_nothing(kube: KubeServer) -> None:
    """Every machine gets an address before it is rolled; the memory of a day that is so short says nothing."""
    figures = await fleet_day(kube, seed=1, lives=CLUSTERS * LIVES_A_CLUSTER, clusters=CLUSTERS)

    assert figures["address_changes"] > 2 * CLUSTERS * LIVES_A_CLUSTER
