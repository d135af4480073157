"""A short day of a fleet; ``python -m tests.soak --part fleet-day-kubernetes`` lives 50,000 claims."""

import random
import secrets

import pytest

from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.fleet_day import Day, FleetScale, MemoryNote, fleet_day, memory_figures
from tests.integrations.kubernetes.metal3.old_clusters import V1BETA1, install_clusters

SMALL = FleetScale(lanes=2, machines=12, rolled=4, rounds=1, passing=2)


@pytest.mark.proof
async def test_a_fleet_that_comes_rolls_grows_and_goes_leaves_nothing(kube: KubeServer) -> None:
    """Every machine gets an address before it is rolled; the memory of a day that is so short says nothing."""
    install_clusters(kube)
    day = Day(SMALL, random.Random(1), 2 * SMALL.lanes * SMALL.lives_a_cluster, V1BETA1)
    figures = await fleet_day(kube, day, f"fleet-{secrets.token_hex(4)}")

    assert figures["address_changes"] > 2 * figures["lives"]
    assert figures["pauses"] == 2 * SMALL.lanes
    assert figures["namespaces"] >= 1


def test_a_replica_may_grow_when_it_begins_to_lead_and_not_while_it_leads() -> None:
    followed = [MemoryNote(megabytes, "follower") for megabytes in (130, 138, 139, 140)]
    led = [MemoryNote(megabytes, "leader") for megabytes in (190, 200, 201, 204)]
    figures = memory_figures({"two": followed + led})
    assert figures["leader_grown_mb"] == 3
    assert figures["follower_grown_mb"] == 1

    with pytest.raises(AssertionError, match=r"the leader two grew by 12\.0 MB"):
        memory_figures({"two": [*followed, *led, MemoryNote(213, "leader")]})
