"""Moving a pool and changing its list ask for a Lease, and say why there is none."""

import asyncio
import time
from pathlib import Path

import pytest

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import ClusterAccess
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.modes.pool_lease import while_alone
from tenure.integrations.vmpool.pool_errors import PoolForbidden, PoolUnavailable
from tenure.integrations.vmpool.pool_manifests import pool_documents
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import create
from tests.integrations.vmpool.pool_stage import SIX
from tests.integrations.vmpool.test_pool_manifests import Account


async def test_a_role_that_allows_no_lease_is_said_at_once(kube: KubeServer, namespace: str, tmp_path: Path) -> None:
    """With the role for one ConfigMap nobody can move the pool or change its list."""
    for document in pool_documents(("rbac",), namespace=namespace):
        create(kube, document)
    kubeconfig = str(Account(kube, namespace).kubeconfig(tmp_path))
    settings = VMPoolSettings(pool_ips=SIX, namespace=namespace, node_name="node-1", operation_timeout_s=60)

    async with AsyncVMPool.connect(settings, kubeconfig=kubeconfig) as pool, asyncio.timeout(20):
        with pytest.raises(PoolForbidden, match="lease"):
            await pool.move("per-ip")
        with pytest.raises(PoolForbidden):
            await pool.resize(add=["192.0.2.200"])


async def test_a_server_that_does_not_answer_ends_the_wait_for_a_lease() -> None:
    async def load() -> ClusterAccess:
        return ClusterAccess(f"http://127.0.0.1:{free_port()}", None, None)

    settings = VMPoolSettings(pool_ips=SIX, operation_timeout_s=0.5)
    async with ApiClient(load) as client:
        pool = AsyncVMPool(client, settings)
        began = time.monotonic()
        with pytest.raises(PoolUnavailable, match="does not answer"):
            await while_alone(pool.places, asyncio.Event().wait)
        await pool.close()

    assert time.monotonic() - began < 20
