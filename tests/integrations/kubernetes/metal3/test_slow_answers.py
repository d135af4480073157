"""What happens while a write is on its way is not forgotten when its answer comes."""

import asyncio

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL
from tenure.integrations.kubernetes.runtime.api_client import JSON_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.serving import Namespace, OperatorThread, settings_for, until

SLOW_S = 0.5


class SlowClient(ApiClient):
    """A client whose answers about the status of pools come late."""

    async def patch(
        self,
        kind: ResourceType,
        object: Object,
        patch: object,
        *,
        content_type: str = JSON_PATCH,
        subresource: str = "",
    ) -> Object:
        """Patch an object, and wait with the answer if it is a pool."""
        answer = await super().patch(kind, object, patch, content_type=content_type, subresource=subresource)
        if kind == IP_POOL and subresource:
            await asyncio.sleep(SLOW_S)
        return answer


def test_an_address_that_is_made_while_the_status_is_being_written_is_in_the_next_status(
    kube: KubeServer, unserved: Namespace
) -> None:
    settings = settings_for(kube, unserved.name)
    thread = OperatorThread(kube, settings, make_client=lambda load, meter: SlowClient(load, meter=meter))
    thread.start()
    try:
        unserved.pool("p", "10.0.0.1-10.0.0.9")
        until(lambda: unserved.status().get("addresses", {}).get("used") == 0)
        unserved.address("by-hand", "10.0.0.4", "nobody")  # its status waits for the answer to the first one
        until(lambda: unserved.status()["addresses"]["used"] == 1, within_s=4)
    finally:
        thread.stop()
