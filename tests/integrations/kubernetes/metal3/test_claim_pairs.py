"""C26, some rounds; ``python -m tests.soak --part pairs-kubernetes`` plays 1,000."""

from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.claim_pairs import claim_pairs


async def test_c26_two_kinds_never_get_one_address(kube: KubeServer) -> None:
    figures = await claim_pairs(kube, rounds=40)

    assert figures["address_changes"] >= 2 * 2 * 40
