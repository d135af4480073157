"""Ranges that are cut while claims are being served: no address is left outside, whoever was quicker (A15)."""

import asyncio
import contextlib

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL, text
from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH
from tenure.integrations.kubernetes.runtime.api_errors import ApiError
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.addresses import parse_address
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.ipam_user import IpamUser, user_of
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in
from tests.scale import runs

CLAIMS = 6
ROUNDS = runs(8, 300, 60)


async def test_a_range_that_is_cut_while_claims_are_served_leaves_no_address_outside(
    kube: KubeServer, unserved: Namespace
) -> None:
    """In each round at another moment of the service. The cut is refused, or all addresses are inside."""
    cuts = 0
    with operator_in(kube, unserved.name) as controller:
        async with user_of(kube, unserved.name) as user:
            for number in range(ROUNDS):
                pool = f"p{number}"
                await user.pool(pool, "10.0.0.1", "10.0.0.40")
                cutting = asyncio.create_task(cut(user, pool, 0.004 * (number % 12)))
                await asyncio.gather(*(user.claim(f"{pool}-{each}", pool) for each in range(CLAIMS)))
                is_cut = await cutting
                found = await user.until_settled(controller)
                addresses = [each for each in found.addresses if text(each, "spec", "pool", "name") == pool]
                assert len(addresses) == CLAIMS
                first = parse_address("10.0.0.21" if is_cut else "10.0.0.1")
                assert all((parse_address(text(each, "spec", "address")) or 0) >= first for each in addresses)
                cuts += is_cut
    assert cuts > 0, "in no round was the cut early enough"


async def cut(user: IpamUser, pool: str, after_s: float) -> bool:
    """Take the lower half out of a pool; return whether that was allowed."""
    await asyncio.sleep(after_s)
    object: Object = {"metadata": {"namespace": user.namespace, "name": pool}}
    change = {"spec": {"pools": [{"start": "10.0.0.21", "end": "10.0.0.40"}]}}
    with contextlib.suppress(ApiError):
        await user.client.patch(IP_POOL, object, change, content_type=MERGE_PATCH)
        return True
    return False
