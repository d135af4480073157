"""A pool of VMs, for callers who block: the verbs of ``AsyncVMPool`` on a loop in a thread."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import Loader
from tenure.integrations.vmpool.async_vm_pool import AGENT, AsyncVMPool, check_settings
from tenure.integrations.vmpool.cluster_access import find_cluster
from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
from tenure.integrations.vmpool.machines.vm_port import ReadinessProbe
from tenure.integrations.vmpool.machines.vm_return import StopEvent
from tenure.integrations.vmpool.modes.move_pool import MoveReport
from tenure.integrations.vmpool.node_recovery import RecoveryMode, RecoveryReport
from tenure.integrations.vmpool.pod_surroundings import find_node_name
from tenure.integrations.vmpool.pool_changes import PoolObserver
from tenure.integrations.vmpool.pool_decisions import RepairReport
from tenure.integrations.vmpool.state.ip_list import IPLike
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.integrations.vmpool.state.size_policy import SizePolicy
from tenure.integrations.vmpool.state.sized_list import SizedList
from tenure.integrations.vmpool.state.state_repair import OutsidePool, PoolFinding
from tenure.integrations.vmpool.vanished_writes import VanishedWrite
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tenure.integrations.vmpool.vm_pool_status import VMPoolStatus
from tenure.service.ledger.blocking.loop_thread import LoopThread


class VMPool:
    """Who has which VM of a pool. Safe to use from many threads; a child of a fork opens one of its own.

    ``AsyncVMPool`` says what each verb does and costs.
    """

    def __init__(
        self,
        settings: VMPoolSettings,
        *,
        kubeconfig: str | None = None,
        context: str | None = None,
        load: Loader | None = None,
        find_node_name: Callable[[], str] = find_node_name,
        observer: PoolObserver | None = None,
    ) -> None:
        check_settings(settings)
        credentials = load or find_cluster([settings], kubeconfig, context)
        self._thread = LoopThread("pool")
        try:
            self._client = None if credentials is None else self._thread.run(_opened(credentials))
        except BaseException:
            # The thread would outlive a pool that was never made.
            self._thread.close()
            raise
        self._pool = AsyncVMPool(self._client, settings, find_node_name=find_node_name, observer=observer)

    @property
    def settings(self) -> VMPoolSettings:
        """Return what the pool is used with."""
        return self._pool.settings

    @property
    def vanished(self) -> tuple[VanishedWrite, ...]:
        """Return the reports of allocations of this process that vanished, oldest first."""
        return self._pool.vanished

    def allocate(
        self,
        allocation_id: str,
        pod_name: str = "",
        pod_namespace: str = "",
        *,
        wait_s: float = 0.0,
        probe: ReadinessProbe | None = None,
    ) -> VMAllocation:
        """Give an id its VM: the one it has already, else one of those that are free."""
        waited = self._pool.allocate(allocation_id, pod_name, pod_namespace, wait_s=wait_s, probe=probe)
        return self._thread.run(waited)

    def deallocate(self, allocation_id: str) -> bool:
        """Take the VM of an id back; return whether the id had one."""
        return self._thread.run(self._pool.deallocate(allocation_id))

    def deallocate_ip(self, ip: IPLike) -> bool:
        """Take a VM back by its IP; return whether an id had it."""
        return self._thread.run(self._pool.deallocate_ip(ip))

    def get(self, allocation_id: str) -> VMAllocation | None:
        """Return the VM that an id has."""
        return self._thread.run(self._pool.get(allocation_id))

    def find_ip(self, ip: IPLike) -> VMAllocation | None:
        """Return the allocation of an IP."""
        return self._thread.run(self._pool.find_ip(ip))

    def list(self) -> list[VMAllocation]:
        """Return all allocations, in order of id."""
        return self._thread.run(self._pool.list())

    def status(self) -> VMPoolStatus:
        """Return how the pool stands."""
        return self._thread.run(self._pool.status())

    def verify(self) -> tuple[PoolFinding, ...]:
        """Return what a repair would put right, or report."""
        return self._thread.run(self._pool.verify())

    def repair(self, *, outside_pool: OutsidePool | None = None, replace_unreadable: bool = False) -> RepairReport:
        """Put the state right, and return what was wrong."""
        return self._thread.run(self._pool.repair(outside_pool=outside_pool, replace_unreadable=replace_unreadable))

    def recover(
        self,
        *,
        cleanup: CleanupPlan | None = None,
        mode: RecoveryMode | None = None,
        node_name: str = "",
        takes_over: bool = False,
        stop: StopEvent | None = None,
    ) -> RecoveryReport:
        """Give back the VMs of this node, which are dead because its adaptor was started again; put the state right."""
        return self._thread.run(
            self._pool.recover(cleanup=cleanup, mode=mode, node_name=node_name, takes_over=takes_over, stop=stop)
        )

    def move(self, to: str) -> MoveReport:
        """Keep the pool in another mode from now on."""
        return self._thread.run(self._pool.move(to))

    def sizing(self) -> SizedList | None:
        """Return the list of addresses that the pool keeps itself; none if the settings have it."""
        return self._thread.run(self._pool.sizing())

    def resize(
        self,
        *,
        add: Sequence[IPLike] = (),
        remove: Sequence[IPLike] = (),
        policy: SizePolicy | None = None,
        stops: bool = False,
    ) -> SizedList:
        """Change the list of the pool's addresses, for every process; return what it is then."""
        return self._thread.run(self._pool.resize(add=add, remove=remove, policy=policy, stops=stops))

    def reassert(self) -> tuple[VanishedWrite, ...]:
        """Assert allocations of this process again that another manager overwrote."""
        return self._thread.run(self._pool.reassert())

    def close(self) -> None:
        """Finish what is under way, and close the connection. Closing twice is once."""
        self._thread.close(_closed(self._pool, self._client))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _opened(load: Loader) -> ApiClient:
    return await ApiClient(load, agent=AGENT).__aenter__()


async def _closed(pool: AsyncVMPool, client: ApiClient | None) -> None:
    # The pool before the client: calls under way need the client.
    await pool.close()
    if client is not None:
        await client.__aexit__(None, None, None)
