"""A pool of VMs, for asyncio; ``vm_pool`` has its twin for everybody else.

In the mode ``configmap`` it may share the ConfigMap with Go managers of the seed's time: the same object, text and
pick. Costs are said for that mode, in requests to the API server, each as large as the whole state (about 414 bytes an
allocated address, 18 a free one); ``modes`` says what the other modes cost.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Self, TypeVar

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.vmpool.cluster_access import find_cluster
from tenure.integrations.vmpool.config_map_swap import STATE_KEY
from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
from tenure.integrations.vmpool.machines.vm_port import ReadinessProbe
from tenure.integrations.vmpool.machines.vm_return import StopEvent, followed
from tenure.integrations.vmpool.metering.operation_count import OperationCount, one_operation, under_way
from tenure.integrations.vmpool.metering.result_tally import MILLISECONDS, NEW
from tenure.integrations.vmpool.modes.config_map_place import ConfigMapPlace
from tenure.integrations.vmpool.modes.move_pool import MoveReport, move_alone
from tenure.integrations.vmpool.modes.pool_fillers import without_generation
from tenure.integrations.vmpool.modes.pool_place import PoolPlace
from tenure.integrations.vmpool.modes.pool_places import LOOK_EVERY_S, PoolPlaces
from tenure.integrations.vmpool.node_identity import find_node_identity
from tenure.integrations.vmpool.node_recovery import NodeRecovery, RecoveryMode, RecoveryReport
from tenure.integrations.vmpool.pod_surroundings import find_node_name
from tenure.integrations.vmpool.pool_changes import NoObserver, PoolObserver, now
from tenure.integrations.vmpool.pool_decisions import (
    RepairReport,
    decide_allocation,
    decide_repair,
    misplaced_finding,
    notes_findings,
)
from tenure.integrations.vmpool.pool_document import Decide, PoolChange, PoolDocument, PoolElsewhere
from tenure.integrations.vmpool.pool_errors import (
    NO_CLIENT,
    NO_CONFIGURATION,
    BadArgument,
    PoolStateMisplaced,
    PoolUnavailable,
    VMPoolExhausted,
)
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.integrations.vmpool.ready_allocation import allocate_ready
from tenure.integrations.vmpool.retry_schedule import RetrySchedule
from tenure.integrations.vmpool.sizing.resize_pool import NEEDS_CLUSTER, ResizeRequest, resize_pool
from tenure.integrations.vmpool.state.allocation_names import (
    check_allocation_id,
    check_node_name,
    check_pod_name,
    check_pod_namespace,
)
from tenure.integrations.vmpool.state.argument_checks import check_choice, check_seconds
from tenure.integrations.vmpool.state.held_back import is_held_back
from tenure.integrations.vmpool.state.ip_list import IPLike, check_ip
from tenure.integrations.vmpool.state.pool_state import VMAllocation, read_state
from tenure.integrations.vmpool.state.size_policy import SizePolicy
from tenure.integrations.vmpool.state.sized_list import SizedList
from tenure.integrations.vmpool.state.state_repair import (
    OUTSIDE_RULES,
    OutsidePool,
    PoolFinding,
    RepairKind,
    repair_state,
)
from tenure.integrations.vmpool.state.state_rules import AllocationRequest
from tenure.integrations.vmpool.vanished_writes import VanishedWrite
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tenure.integrations.vmpool.vm_pool_status import VMPoolStatus, status_of
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown

T = TypeVar("T")

AGENT = "tenure-vmpool"
"""What requests call themselves; the API server names the manager of written fields so."""
WAITING = RetrySchedule(base_s=0.2)
"""How often a full pool is read by a caller that waits for a VM: after a second at the latest."""


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
        find_node_name: Callable[[], str] = find_node_name,
        observer: PoolObserver | None = None,
    ) -> None:
        if client is None and getattr(settings, "pool_mode", "") != "ledger":
            raise Invalid(NO_CLIENT, field="client")
        self.settings = check_settings(settings)
        self.client = client
        self.meter = observer if isinstance(observer, PoolMeter) else None
        """What counts, if this pool has one that also counts cleanups."""
        self._observer = observer or NoObserver()
        self._find_node_name = find_node_name
        self.places = PoolPlaces(client, self.settings, observer)
        """Where the pool is kept, or was, or may be moved to."""
        for warning in self.settings.warnings:
            audit(PoolEvent.WARNING, pool=self.settings.config_map_name, warning=warning)

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
        credentials = find_cluster([settings], kubeconfig, context)
        async with contextlib.AsyncExitStack() as stack:
            client = None
            if credentials is not None:
                client = await stack.enter_async_context(ApiClient(credentials, agent=AGENT))
            pool = cls(client, settings, observer=observer)
            # Behind the client, so that the pool is closed before it: calls under way need the client.
            stack.push_async_callback(pool.close)
            yield pool

    @property
    def node_name(self) -> str:
        """Return the name of this node; raise ``NodeNameUnknown``."""
        if self.settings.node_name:
            return self.settings.node_name
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
        request = self.request(allocation_id, pod_name, pod_namespace)
        wait, about = check_seconds(wait_s, "wait_s", may_be_zero=True), about_request(request)
        check_probe(probe)
        with self.counted("allocate") as count:
            try:
                return await free_within(wait, lambda: self.allocate_once(request, probe), about)
            except VMPoolExhausted:
                audit(PoolEvent.EXHAUSTED, operation="allocate", **about, attempt=count.attempts)
                raise

    def request(self, allocation_id: str, pod_name: str = "", pod_namespace: str = "") -> AllocationRequest:
        """Return what is asked for, checked, with the name of this node."""
        return AllocationRequest(
            check_allocation_id(allocation_id), self.node_name, check_pod_name(pod_name),
            check_pod_namespace(pod_namespace), pick=self.settings.pool_pick,
        )  # fmt: skip

    @contextlib.contextmanager
    def counted(self, operation: str) -> Iterator[OperationCount]:
        """Count what is tried inside as one operation with one result, unless it is itself a part of one."""
        if (whole := under_way()) is not None:
            yield whole
            return
        count = OperationCount(operation)
        try:
            with one_operation(count):
                yield count
        finally:
            self.count(count)

    def count(self, count: OperationCount) -> None:
        """Count an operation that has ended."""
        self._observer.operation(count.operation, count.result, count.seconds, count.attempts)
        if count.operation == "allocate" and not count.is_noted:
            self.places.tally.add(count.result)
            if count.result == NEW:
                self.places.tally.add(MILLISECONDS, round(1000 * count.seconds))

    async def allocate_once(self, request: AllocationRequest, probe: ReadinessProbe | None = None) -> VMAllocation:
        """Give an id its VM, without waiting for one; the whole operation is its caller's to count."""

        async def work(place: PoolPlace) -> VMAllocation:
            if probe is None:
                return await place.allocate(request)
            entry = await allocate_ready(self, request, probe, self._decide_allocation)
            return place.remember(entry) if isinstance(place, ConfigMapPlace) else without_generation(entry)

        return await self._where_it_is(work, may_write=True)

    def _decide_allocation(self, document: PoolDocument, request: AllocationRequest) -> PoolChange[VMAllocation]:
        return decide_allocation(document, self.settings.line, request, now())

    async def deallocate(self, allocation_id: str) -> bool:
        """Take the VM of an id back; return whether the id had one. Cost: one read, and one write if it had."""
        wanted = check_allocation_id(allocation_id)
        node = self._known_node_name
        with self.counted("deallocate"):
            return bool(await self._where_it_is(lambda place: place.release(node, allocation_id=wanted)))

    async def deallocate_ip(self, ip: IPLike) -> bool:
        """Take a VM back by its IP, in whatever spelling; return whether an id had it. Cost: as ``deallocate``."""
        wanted, node = check_ip(ip), self._known_node_name
        with self.counted("deallocate"):
            return bool(await self._where_it_is(lambda place: place.release(node, ip=wanted)))

    async def get(self, allocation_id: str) -> VMAllocation | None:
        """Return the VM that an id has, as it is stored. Cost: one read."""
        wanted = check_allocation_id(allocation_id)
        self._looks("get", id=wanted)
        return await self._where_it_is(lambda place: place.get(wanted))

    async def find_ip(self, ip: IPLike) -> VMAllocation | None:
        """Return the allocation of an IP, in whatever spelling. Cost: one read."""
        wanted = check_ip(ip)
        self._looks("find", ip=wanted)
        return await self._where_it_is(lambda place: place.find_ip(wanted))

    def _looks(self, operation: str, **about: str) -> None:
        """Write that this node reads the pool."""
        audit(PoolEvent.READ, operation=operation, node=self._known_node_name, **about)

    async def _where_it_is(
        self, work: Callable[[PoolPlace], Awaitable[T]], *, is_whole: bool = False, may_write: bool = False
    ) -> T:
        """Do a piece of work where the pool is; if it was moved, and nothing was found, do it again where it is now."""
        deadline = time.monotonic() + self.settings.operation_timeout_s
        while True:
            place = await self.places.current(is_whole=is_whole, may_write=may_write)
            known = self.settings.line.generation
            try:
                found = await work(place)
            except PoolElsewhere:
                if time.monotonic() > deadline:
                    raise PoolUnavailable("the pool was moved again and again", outcome="none") from None
                # What is there may be read before the note that says so.
                await asyncio.sleep(LOOK_EVERY_S)
                await self.places.find()
                continue
            except VMPoolExhausted:
                # A list that has changed since may have VMs that are free.
                if await self.places.has_moved() or self.settings.line.generation != known:
                    continue
                raise
            if found or is_whole or not await self.places.has_moved():
                return found

    async def list(self) -> list[VMAllocation]:
        """Return all allocations as they are stored, in order of id. Cost: one read."""
        self._looks("list")
        state = (await self.read()).state
        found = [state.entry(key) for key in sorted(state.allocated)]
        return [without_generation(each) for each in found if each is not None and not is_held_back(each)]

    async def status(self) -> VMPoolStatus:
        """Return how the pool stands, as it is stored; nothing is created. Cost: one read."""
        self._looks("status")
        document = await self.read()
        return status_of(document, self.settings, self.places.mode)

    async def verify(self) -> tuple[PoolFinding, ...]:
        """Return what a repair would put right, or report; nothing is written. Cost: one read."""
        line, rule = self.settings.line, self.settings.outside_pool
        self._looks("verify")
        try:
            document = await self.read()
        except PoolStateMisplaced as error:
            found = repair_state(read_state(error.text), line, outside_pool=rule).findings
            return (misplaced_finding(STATE_KEY), *found)
        return (*repair_state(document.state, line, outside_pool=rule).findings, *notes_findings(document))

    async def repair(
        self, *, outside_pool: OutsidePool | None = None, replace_unreadable: bool = False
    ) -> RepairReport:
        """Put the state right, and return what was wrong. Cost: one read, and one write if anything was.

        A state or notes that cannot be read are left as they are, unless ``replace_unreadable`` is the operator's
        word: then their text is copied to another ConfigMap. Without a state, all addresses are free; without notes,
        allocations are as they were.
        """
        rule = self.settings.outside_pool if outside_pool is None else outside_pool
        check_choice(rule, "outside_pool", OUTSIDE_RULES)
        report = None
        if replace_unreadable:
            place = await self.places.current()
            report = await place.replace_unreadable(self._known_node_name)
        done = await self._repaired(rule)
        return done if report is None else replace(done, is_written=True, copy=report.copy, replaced=report.replaced)

    async def _repaired(self, rule: OutsidePool) -> RepairReport:
        try:
            report = await self._repair_state(rule)
            is_in_place = all(each.kind is not RepairKind.MISPLACED for each in report.findings)
        except PoolStateMisplaced:
            report, is_in_place = RepairReport(), False
        if is_in_place:
            return report
        moved = await self.places.home.put_in_place(self._known_node_name)
        again = await self._repair_state(rule)
        return replace(again, findings=(*moved, *again.findings), is_written=True)

    async def _repair_state(self, rule: OutsidePool) -> RepairReport:
        def decide(document: PoolDocument) -> PoolChange[RepairReport]:
            return decide_repair(document, self.settings.line, rule, self._known_node_name, now())

        healed = await self._where_it_is(lambda place: place.heal(), is_whole=True)
        report = await self.change("repair", decide, about={"node": self._known_node_name})
        return replace(report, unfinished=healed)

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

    async def move(self, to: str) -> MoveReport:
        """Keep the pool in another mode from now on; every process follows by itself (VD4).

        A move that was broken off goes on. Cost: a few requests for each address.
        """
        with self.counted("move"):
            return await move_alone(self.places, to)

    async def sizing(self) -> SizedList | None:
        """Return the list of addresses that the pool keeps itself; none if the settings have it. Cost: one read."""
        follower = self.places.follower
        if follower is None:
            raise Invalid(NEEDS_CLUSTER, field="client")
        return (await follower.lists.read()).sized

    async def resize(
        self,
        *,
        add: Sequence[IPLike] = (),
        remove: Sequence[IPLike] = (),
        policy: SizePolicy | None = None,
        stops: bool = False,
    ) -> SizedList:
        """Change the list of the pool's addresses, for every process; return what it is then (VS9).

        What is removed is not given out any more, and stays its pod's until that releases it. ``policy`` says when the
        pool grows and shrinks by itself, for which an agent has to decide; ``stops`` ends that. May be repeated.
        Cost: some ten small requests; where addresses come or go, the pool is read, and written once.
        """
        request = ResizeRequest(
            add=[str(ip) for ip in add], remove=[str(ip) for ip in remove], policy=policy, stops=stops
        )
        with self.counted("resize"):
            return await resize_pool(self, request)

    async def reassert(self) -> tuple[VanishedWrite, ...]:
        """Look for allocations of this process that another manager overwrote, assert them again, and report (VD8).

        Every other operation looks as well. Cost: one read, and one write if there was anything to assert again.
        """
        node = self._known_node_name
        return await self._where_it_is(lambda place: place.reassert(node), is_whole=True)

    @property
    def vanished(self) -> tuple[VanishedWrite, ...]:
        """Return the reports of allocations of this process that vanished, oldest first."""
        return self.places.home.vanished if self.client is not None else ()

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
        said = about or {}
        with self.counted(operation):
            return await self._where_it_is(
                lambda place: place.change(operation, decide, said, timeout_s), is_whole=True, may_write=True
            )  # fmt: skip

    async def read(self) -> PoolDocument:
        """Read the pool, whole. Cost: one read."""
        return await self._where_it_is(lambda place: place.read(), is_whole=True)

    async def close(self) -> None:
        """Wait until nothing is under way. The client is its owner's to close."""
        await self.places.close()

    @property
    def _known_node_name(self) -> str:
        """Return the name of this node; empty if nothing says it, where an operation can do without."""
        try:
            return self.node_name
        except Invalid:
            return ""


def check_settings(settings: object) -> VMPoolSettings:
    """Return settings, or say that they are none."""
    if settings is None:
        raise Invalid(NO_CONFIGURATION, field="settings")
    if not isinstance(settings, VMPoolSettings):
        raise BadArgument(f"settings: VMPoolSettings are needed, not {shown(settings)}", field="settings")
    return settings


def check_probe(probe: object) -> None:
    """Raise ``BadArgument`` unless a probe is one, or there is none."""
    if probe is not None and not isinstance(probe, ReadinessProbe):
        raise BadArgument(f"probe: a ReadinessProbe is needed, not {shown(probe)}", field="probe")


def about_request(request: AllocationRequest) -> dict[str, str]:
    """Return what the audit says of a request."""
    pod = f"{request.pod_namespace}/{request.pod_name}" if request.pod_name else ""
    return {"node": request.node_name, "id": request.allocation_id, "pod": pod}


async def free_within(
    wait_s: float, allocate: Callable[[], Awaitable[VMAllocation]], about: Mapping[str, object]
) -> VMAllocation:
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
        if tried == 1:
            audit(PoolEvent.WAITING, **about, seconds=f"{wait_s:g}")
        # Cut to what is left, so that the last try is made when the time is up, and not before.
        await asyncio.sleep(min(WAITING.delay_s(tried) or 0.0, left_s))
        if (count := under_way()) is not None:
            count.begin_again()
    raise AssertionError("it is tried for ever")
