"""KP7: the roles that are shipped are enough for every mode in the cluster, for a move and for a repair."""

from pathlib import Path

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.pool_manifests import pool_documents
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import create
from tests.integrations.vmpool.pool_stage import SIX
from tests.integrations.vmpool.test_pool_manifests import Account


async def test_kp7_the_shipped_roles_are_enough_for_every_mode_and_a_move(
    kube: KubeServer, namespace: str, tmp_path: Path
) -> None:
    for document in pool_documents(("rbac", "modes"), namespace=namespace):
        create(kube, document)
    kubeconfig = str(Account(kube, namespace).kubeconfig(tmp_path))
    settings = VMPoolSettings(pool_ips=SIX, namespace=namespace, node_name="node-1", operation_timeout_s=20)

    async with AsyncVMPool.connect(settings, kubeconfig=kubeconfig) as pool:
        kept = await pool.allocate("kept")
        for to in ("per-ip", "shards", "configmap"):
            assert (await pool.move(to)).allocations == 1
            await pool.allocate("other")
            assert await pool.deallocate("other")
            assert (await pool.repair()).findings == ()
            assert await pool.list() == [kept]
