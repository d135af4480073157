"""A pool of VMs in one ConfigMap, for asyncio; ``vm_pool`` has its twin for everybody else.

It may share the ConfigMap with Go managers of the seed's time: the same object, text and pick. Costs are in requests
to the API server, each as large as the whole state (about 414 bytes an allocated address, 18 a free one).
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Self, TypeVar

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import find_credentials
from tenure.integrations.vmpool.config_map_swap import (
    NOTES_KEY,
    STATE_KEY,
    AnswerLost,
    ConfigMapSwap,
    StoredPool,
    SwapLost,
)
from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
from tenure.integrations.vmpool.machines.vm_port import ReadinessProbe
from tenure.integrations.vmpool.machines.vm_return import StopEvent, followed
from tenure.integrations.vmpool.node_identity import find_node_identity, find_node_name
from tenure.integrations.vmpool.node_recovery import NodeRecovery, RecoveryMode, RecoveryReport
from tenure.integrations.vmpool.pool_changes import PoolChanges, PoolObserver, now
from tenure.integrations.vmpool.pool_decisions import RepairReport, decide_allocation, decide_release, decide_repair
from tenure.integrations.vmpool.pool_document import Decide, PoolChange, PoolDocument, read_document, written_values
from tenure.integrations.vmpool.pool_errors import (
    NO_CLIENT,
    NO_CONFIGURATION,
    NodeNameUnknown,
    PoolStateUnreadable,
    PoolSwapConflict,
    PoolUnavailable,
    VMPoolExhausted,
)
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.integrations.vmpool.ready_allocation import allocate_ready
from tenure.integrations.vmpool.retry_schedule import RetrySchedule
from tenure.integrations.vmpool.state.allocation_names import (
    check_allocation_id,
    check_node_name,
    check_pod_name,
    check_pod_namespace,
)
from tenure.integrations.vmpool.state.ip_list import IPLike, check_ip
from tenure.integrations.vmpool.state.pool_notes import HistoryLine, PoolNotes
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation
from tenure.integrations.vmpool.state.state_repair import OutsidePool, PoolFinding, repair_state
from tenure.integrations.vmpool.state.state_rules import AllocationRequest, ids_of_ip
from tenure.integrations.vmpool.vanished_writes import OwnAllocations, VanishedWrite
from tenure.integrations.vmpool.vm_pool_settings import LONGEST_S, VMPoolSettings
from tenure.integrations.vmpool.vm_pool_status import VMPoolStatus, status_of
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown

T = TypeVar("T")

AGENT = "tenure-vmpool"
"""What requests call themselves; the API server names the manager of written fields so."""
WAITING = RetrySchedule(base_s=0.2)
"""How often a full pool is read by a caller that waits for a VM: after a second at the latest."""
LONGEST_COPIED_NAME = 220
"""So much of the name of a ConfigMap is in the name of its copy, which must not be longer than 253 characters."""


class AsyncVMPool:
    """Who has which VM of a pool. Any number of processes may use one pool at the same time.

    Every operation ends within ``operation_timeout_s``. An operation that fails has changed nothing, unless its error
    is ``PoolUnavailable`` with the outcome ``unknown``: repeat it, under the same id, to learn what is so.
    """

    def __init__(
        self,
        client: ApiClient | None,
        settings: VMPoolSettings | None,
        *,
        find_node_name: Callable[[], str] | None = None,
        observer: PoolObserver | None = None,
    ) -> None:
        if client is None:
            raise Invalid(NO_CLIENT, field="client")
        if settings is None:
            raise Invalid(NO_CONFIGURATION, field="settings")
        self.settings = settings
        self.client = client
        self.meter = observer if isinstance(observer, PoolMeter) else None
        """What counts, if this pool has one that also counts cleanups."""
        self._find_node_name = find_node_name
        self._swap = ConfigMapSwap(client, settings.namespace, settings.config_map_name)
        self._own = OwnAllocations(settings.line)
        self._changes = PoolChanges(self._swap, settings, self._own, observer=observer)
        for warning in settings.warnings:
            audit(PoolEvent.WARNING, pool=settings.config_map_name, warning=warning)

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(
        cls,
        settings: VMPoolSettings,
        *,
        kubeconfig: str | None = None,
        context: str | None = None,
        observer: PoolObserver | None = None,
    ) -> AsyncIterator[Self]:
        """Give a pool with a client of its own: by a kubeconfig, or the service account of the pod."""
        async with ApiClient(find_credentials(kubeconfig, context), agent=AGENT) as client:
            pool = cls(client, settings, find_node_name=find_node_name, observer=observer)
            try:
                yield pool
            finally:
                await pool.close()

    @property
    def node_name(self) -> str:
        """Return the name of this node; raise ``NodeNameUnknown``."""
        if self.settings.node_name:
            return self.settings.node_name
        if self._find_node_name is None:
            raise NodeNameUnknown("set NODE_NAME, or the setting node_name")
        return check_node_name(self._find_node_name())

    async def allocate(
        self,
        allocation_id: str,
        pod_name: str = "",
        pod_namespace: str = "",
        *,
        wait_s: float = 0.0,
        probe: ReadinessProbe | None = None,
    ) -> VMAllocation:
        """Give an id its VM: the one it has already, else one of those that are free, by the hash of the id.

        Raise ``VMPoolExhausted`` if none is free, also after ``wait_s``: the pool is read again and again until then,
        and whoever reads first after a release gets the VM (VS10). Raise ``VMNotReady`` if a probe finds that the VM
        does not answer. Cost: one read, and one write if the VM is new; callers at the same time share both. O(n) for
        reading and writing the text. With a probe one more read, and what the VM takes to answer.
        """
        request = AllocationRequest(
            check_allocation_id(allocation_id), self.node_name, check_pod_name(pod_name),
            check_pod_namespace(pod_namespace),
        )  # fmt: skip
        entry = await free_within(check_wait(wait_s), lambda: self._allocate(request, probe))
        self._own.remember(entry)
        return entry

    async def _allocate(self, request: AllocationRequest, probe: ReadinessProbe | None) -> VMAllocation:
        if probe is not None:
            return await allocate_ready(self, request, probe, self._decide_allocation)
        pod = f"{request.pod_namespace}/{request.pod_name}" if request.pod_name else ""
        about = {"node": request.node_name, "id": request.allocation_id, "pod": pod}
        return await self.change("allocate", lambda document: self._decide_allocation(document, request), about=about)

    def _decide_allocation(self, document: PoolDocument, request: AllocationRequest) -> PoolChange[VMAllocation]:
        return decide_allocation(document, self.settings.line, request, now())

    async def deallocate(self, allocation_id: str) -> bool:
        """Take the VM of an id back; return whether the id had one. Cost: one read, and one write if it had."""
        wanted = check_allocation_id(allocation_id)

        def decide(document: PoolDocument) -> PoolChange[tuple[VMAllocation, ...]]:
            return decide_release(document, self.settings.line, [wanted], self._known_node_name, now())

        about = {"node": self._known_node_name, "id": wanted}
        return bool(await self.change("deallocate", decide, about=about))

    async def deallocate_ip(self, ip: IPLike) -> bool:
        """Take a VM back by its IP, in whatever spelling; return whether an id had it. Cost: as ``deallocate``."""
        wanted = check_ip(ip)

        def decide(document: PoolDocument) -> PoolChange[tuple[VMAllocation, ...]]:
            ids = ids_of_ip(document.state, self.settings.line, wanted)
            return decide_release(document, self.settings.line, ids, self._known_node_name, now())

        about = {"node": self._known_node_name, "ip": wanted}
        return bool(await self.change("deallocate", decide, about=about))

    async def get(self, allocation_id: str) -> VMAllocation | None:
        """Return the VM that an id has, as it is stored. Cost: one read."""
        wanted = check_allocation_id(allocation_id)
        return (await self.read()).state.entry(wanted)

    async def find_ip(self, ip: IPLike) -> VMAllocation | None:
        """Return the allocation of an IP, in whatever spelling. Cost: one read."""
        wanted = check_ip(ip)
        state = (await self.read()).state
        ids = ids_of_ip(state, self.settings.line, wanted)
        return state.entry(ids[0]) if ids else None

    async def list(self) -> list[VMAllocation]:
        """Return all allocations as they are stored, in order of id. Cost: one read."""
        state = (await self.read()).state
        return [found for key in sorted(state.allocated) if (found := state.entry(key)) is not None]

    async def status(self) -> VMPoolStatus:
        """Return how the pool stands, as it is stored; nothing is created. Cost: one read."""
        return status_of(await self.read(), self.settings)

    async def verify(self) -> tuple[PoolFinding, ...]:
        """Return what a repair would put right, or report; nothing is written. Cost: one read."""
        state = (await self.read()).state
        return repair_state(state, self.settings.line, outside_pool=self.settings.outside_pool).findings

    async def repair(
        self, *, outside_pool: OutsidePool | None = None, replace_unreadable: bool = False
    ) -> RepairReport:
        """Put the state right, and return what was wrong. Cost: one read, and one write if anything was.

        A state that cannot be read is left as it is, unless ``replace_unreadable`` is the operator's word: then its
        text is copied to another ConfigMap, and all addresses are free.
        """
        if replace_unreadable and (report := await self._replace_unreadable()) is not None:
            return report
        rule = outside_pool or self.settings.outside_pool
        if rule not in ("keep", "drop"):
            raise Invalid(f"outside_pool: 'keep' or 'drop' is needed, not {rule!r}", field="outside_pool")

        def decide(document: PoolDocument) -> PoolChange[RepairReport]:
            return decide_repair(document, self.settings.line, rule, self._known_node_name, now())

        return await self.change("repair", decide, about={"node": self._known_node_name})

    async def recover(
        self,
        *,
        cleanup: CleanupPlan | None = None,
        mode: RecoveryMode | None = None,
        node_name: str = "",
        takes_over: bool = False,
        stop: StopEvent | None = None,
    ) -> RecoveryReport:
        """Give back the VMs of this node, which are dead because its adaptor was started again; put the state right.

        They are kept unless there is a cleanup, or ``mode`` is *release* (VD2). A node that is named is recovered on
        the caller's word, wherever this runs; without a name ``NodeNameTaken`` is raised if another machine has this
        node's name, unless this one ``takes_over``. Once ``stop`` is set, nothing is released any more, and
        ``RecoveryInterrupted`` is raised. Cost: one read, the cleanups and their wait, one read, and one
        write if anything has changed.
        """
        name = check_node_name(node_name) if node_name else self.node_name
        identity = None if node_name else find_node_identity(name)
        recovery = NodeRecovery(
            self, name, cleanup, mode, identity=identity, takes_over=takes_over, meter=self.meter
        )  # fmt: skip
        async with followed(stop) as event:
            return await recovery.run(event)

    async def reassert(self) -> tuple[VanishedWrite, ...]:
        """Look for allocations of this process that another manager overwrote, assert them again, and report (VD8).

        Every other operation looks as well. Cost: one read, and one write if there was anything to assert again.
        """
        before = len(self._own.reports)
        await self.change("reassert", lambda document: PoolChange(None), about={"node": self._known_node_name})
        return tuple(self._own.reports)[before:]

    @property
    def vanished(self) -> tuple[VanishedWrite, ...]:
        """Return the reports of allocations of this process that vanished, oldest first."""
        return tuple(self._own.reports)

    async def change(
        self,
        operation: str,
        decide: Decide[T],
        *,
        about: Mapping[str, object] | None = None,
        timeout_s: float | None = None,
    ) -> T:
        """Decide on the pool as it is, write what has changed, and return the decision's result.

        ``decide`` is a pure function. It is called again with what is there then if another writer was faster, and may
        share a write with other callers of this process. What it raises is raised here, and nothing is written for
        it. ``about`` names node, id, pod and IP for the audit.
        """
        return await self._changes.change(operation, decide, about or {}, timeout_s)

    async def read(self) -> PoolDocument:
        """Read the pool, whole. Cost: one read."""
        return await self._changes.read()

    async def close(self) -> None:
        """Wait until nothing is under way. The client is its owner's to close."""
        await self._changes.close()

    @property
    def _known_node_name(self) -> str:
        """Return the name of this node; empty if nothing says it, where an operation can do without."""
        try:
            return self.node_name
        except Invalid:
            return ""

    async def _replace_unreadable(self) -> RepairReport | None:
        """Replace what cannot be read by a fresh state or fresh notes, after a copy; nothing if all can be read."""
        try:
            async with asyncio.timeout(self.settings.operation_timeout_s):
                stored = await self._swap.read()
                problem, state = _unreadable(stored, self.settings)
                if not problem:
                    return None
                at = now()
                copy = f"{self.settings.config_map_name[:LONGEST_COPIED_NAME]}-broken-{at:%Y%m%dt%H%M%Sz}"
                texts = {STATE_KEY: stored.state_text, NOTES_KEY: stored.notes_text}
                await self._swap.keep_copy(copy, {name: text for name, text in texts.items() if text is not None})
                line = HistoryLine(at, "repair", "", "", self._known_node_name)
                await self._swap.write(stored, written_values(state.written_at(at), PoolNotes().with_line(line)))
        except (AnswerLost, TimeoutError) as error:
            raise PoolUnavailable(str(error) or "the API server did not answer in time", outcome="unknown") from error
        except SwapLost as error:
            raise PoolSwapConflict("repair", str(error), attempts=1) from error
        audit(PoolEvent.REPAIRED, node=self._known_node_name, reason=problem, copy=copy)
        return RepairReport(is_written=True, copy=copy)


def check_wait(wait_s: object) -> float:
    """Return how long to wait for a VM that is free, or say what is wrong."""
    if not isinstance(wait_s, int | float) or isinstance(wait_s, bool) or not 0 <= wait_s <= LONGEST_S:
        raise Invalid(f"wait_s: seconds from 0 on are needed, a day at most, not {shown(wait_s)}", field="wait_s")
    return float(wait_s)


async def free_within(wait_s: float, allocate: Callable[[], Awaitable[VMAllocation]]) -> VMAllocation:
    """Allocate, and as long as no VM is free try again, until the time is up; then raise ``VMPoolExhausted``."""
    loop = asyncio.get_running_loop()
    end = loop.time() + wait_s
    for tried in itertools.count(1):
        try:
            return await allocate()
        except VMPoolExhausted:
            left_s = end - loop.time()
            if left_s <= 0:
                raise
        await asyncio.sleep(min(WAITING.delay_s(tried) or 0.0, left_s))
    raise AssertionError("it is tried for ever")


def _unreadable(stored: StoredPool, settings: VMPoolSettings) -> tuple[str, PoolState]:
    """Return why state or notes cannot be read, and the state that is to be there then; no reason if they can."""
    try:
        document = read_document(stored, settings.line)
    except PoolStateUnreadable as error:
        return error.reason, PoolState.fresh(settings.line.ips)
    return document.notes.problem, document.state
