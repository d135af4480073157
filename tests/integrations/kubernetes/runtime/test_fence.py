"""A process that must not write any more sends nothing, also what was under way when it learned of it."""

import asyncio

import pytest

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiUnreachable, ObjectMissing
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.kubernetes.runtime.leader_lease import NotLeading
from tests.infrastructure.kube import OPERATOR, KubeServer
from tests.integrations.kubernetes.runtime.toy_controller import CONFIG_MAP


async def test_a_write_that_waits_for_its_turn_is_not_sent_once_the_lease_is_lost(
    kube: KubeServer, namespace: str
) -> None:
    """It was begun while the process led; a server that gets no body does nothing."""
    leads = True

    def fence() -> None:
        if not leads:
            raise NotLeading("another leads")

    def config_map(name: str) -> dict[str, object]:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}}

    async with ApiClient(from_kubeconfig(str(kube.kubeconfig(OPERATOR))), in_flight=1) as client:
        client.fence = fence
        await client.create(CONFIG_MAP, config_map("first"))
        async with client._turns:
            late = asyncio.create_task(client.create(CONFIG_MAP, config_map("late")))
            await asyncio.sleep(0.05)
            leads = False
        with pytest.raises(ApiUnreachable, match="another leads"):
            await late
        with pytest.raises(ObjectMissing):
            await client.get(CONFIG_MAP.path(namespace, "late"))
        leads = True
        assert await client.create(CONFIG_MAP, config_map("late"))
