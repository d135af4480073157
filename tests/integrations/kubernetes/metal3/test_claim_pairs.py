"""C26, some rounds; ``python -m tests.soak --part pairs-kubernetes`` plays 1,000."""

from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.claim_pairs import PAIRS, POOLS, claim_pairs
from tests.scale import runs

ROUNDS = runs(2 * POOLS * PAIRS, 1000, 100)
"""In ``make test`` every pair of a pool is claimed twice, the second time from what others release."""


async def test_c26_two_kinds_never_get_one_address(kube: KubeServer) -> None:
    figures = await claim_pairs(kube, rounds=ROUNDS)

    assert figures["address_changes"] >= 2 * 2 * ROUNDS
