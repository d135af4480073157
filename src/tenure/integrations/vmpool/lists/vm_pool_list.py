"""Several named pools in an order, for callers who block: the verbs of ``AsyncVMPoolList`` on a loop in a thread."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import Loader
from tenure.integrations.vmpool.async_vm_pool import AGENT, AsyncVMPool
from tenure.integrations.vmpool.cluster_access import find_cluster
from tenure.integrations.vmpool.lists.async_vm_pool_list import AsyncVMPoolList, PooledVM
from tenure.integrations.vmpool.machines.vm_port import ReadinessProbe
from tenure.integrations.vmpool.pod_surroundings import find_node_name
from tenure.integrations.vmpool.state.ip_list import IPLike
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tenure.integrations.vmpool.vm_pool_status import VMPoolStatus
from tenure.service.ledger.blocking.loop_thread import LoopThread


class VMPoolList:
    """Named pools in an order, for any number of threads. ``AsyncVMPoolList`` says what each verb does and costs."""

    def __init__(
        self,
        settings: Sequence[VMPoolSettings],
        *,
        kubeconfig: str | None = None,
        context: str | None = None,
        load: Loader | None = None,
        find_node_name: Callable[[], str] = find_node_name,
    ) -> None:
        credentials = load or find_cluster(settings, kubeconfig, context)
        self._thread = LoopThread("pool list")
        self._client: ApiClient | None = None
        self._pools: Sequence[AsyncVMPool] = ()
        try:
            client = self._client = None if credentials is None else self._thread.run(_opened(credentials))
            self._pools = [AsyncVMPool(client, each, find_node_name=find_node_name) for each in settings]
            self._list = AsyncVMPoolList(self._pools)
        except BaseException:
            self.close()
            raise

    def allocate(
        self,
        allocation_id: str,
        pod_name: str = "",
        pod_namespace: str = "",
        *,
        pools: Sequence[str] | None = None,
        wait_s: float = 0.0,
        probe: ReadinessProbe | None = None,
    ) -> PooledVM:
        """Give an id its VM: the one it has already, else one of the first pool that has one free."""
        waited = self._list.allocate(allocation_id, pod_name, pod_namespace, pools=pools, wait_s=wait_s, probe=probe)
        return self._thread.run(waited)

    def deallocate(self, allocation_id: str, *, pools: Sequence[str] | None = None) -> bool:
        """Take the VM of an id back; return whether the id had one."""
        return self._thread.run(self._list.deallocate(allocation_id, pools=pools))

    def deallocate_ip(self, ip: IPLike, *, pools: Sequence[str] | None = None) -> bool:
        """Take a VM back by its IP; return whether an id had it."""
        return self._thread.run(self._list.deallocate_ip(ip, pools=pools))

    def get(self, allocation_id: str, *, pools: Sequence[str] | None = None) -> PooledVM | None:
        """Return the VM that an id has."""
        return self._thread.run(self._list.get(allocation_id, pools=pools))

    def find_ip(self, ip: IPLike, *, pools: Sequence[str] | None = None) -> PooledVM | None:
        """Return the allocation of an IP."""
        return self._thread.run(self._list.find_ip(ip, pools=pools))

    def list(self, *, pools: Sequence[str] | None = None) -> list[PooledVM]:
        """Return all allocations, pool by pool."""
        return self._thread.run(self._list.list(pools=pools))

    def status(self, *, pools: Sequence[str] | None = None) -> dict[str, VMPoolStatus]:
        """Return how the pools stand, by name."""
        return self._thread.run(self._list.status(pools=pools))

    def close(self) -> None:
        """Finish what is under way, and close the connection. Closing twice is once."""
        self._thread.close(_closed(self._pools, self._client))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _opened(load: Loader) -> ApiClient:
    return await ApiClient(load, agent=AGENT).__aenter__()


async def _closed(pools: Sequence[AsyncVMPool], client: ApiClient | None) -> None:
    # The pools before the client: calls under way need the client.
    for pool in pools:
        await pool.close()
    if client is not None:
        await client.__aexit__(None, None, None)
