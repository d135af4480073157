"""Give back the VMs of a node that died: clean them up, wait until they are back, then release them in a fresh swap.

No state is written before all cleanups have ended, and what is written then is decided on what is read then: other
nodes write meanwhile. A VM whose cleanup failed stays allocated, is noted beside the state, and is tried again.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeVar, get_args

from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan, RoundStopped, clean_vms
from tenure.integrations.vmpool.modes.pool_fillers import without_generation
from tenure.integrations.vmpool.node_identity import NodeIdentity, must_ask, name_clash, noted_again
from tenure.integrations.vmpool.pool_decisions import with_held_back, with_repairs
from tenure.integrations.vmpool.pool_document import Decide, PoolChange, PoolDocument
from tenure.integrations.vmpool.pool_errors import BadArgument, VMWorkUnfinished
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.integrations.vmpool.state.argument_checks import check_choice
from tenure.integrations.vmpool.state.go_json import in_byte_order
from tenure.integrations.vmpool.state.held_back import is_held_back
from tenure.integrations.vmpool.state.pool_notes import CleanupFailure, HistoryLine, NodeNote, PoolNotes
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation
from tenure.integrations.vmpool.state.state_repair import PoolFinding, PoolLine, repair_state
from tenure.integrations.vmpool.state.state_rules import release
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tenure.kernel.errors import Conflict, TenureError
from tenure.kernel.names import shown

T = TypeVar("T")
RecoveryMode = Literal["keep", "release"]
RECOVERY_MODES: tuple[RecoveryMode, ...] = get_args(RecoveryMode)
Select = Callable[[PoolDocument], Iterable[VMAllocation]]
"""Say which allocations are of dead VMs."""

INTERRUPTED = "context cancelled during VM cleanup wait"


class RecoverablePool(Protocol):
    """What a recovery needs of a pool; ``AsyncVMPool`` is one."""

    settings: VMPoolSettings

    async def read(self) -> PoolDocument:
        """Read the pool."""

    async def change(self, operation: str, decide: Decide[T], *, about: Mapping[str, object] | None = None) -> T:
        """Decide on the pool as it is, and write what has changed."""


@dataclass(frozen=True, slots=True)
class FailedRelease:
    """An allocation that is kept because its VM could not be cleaned up."""

    allocation: VMAllocation
    cause: str


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What a recovery did with the allocations of a node, and what it put right in the state."""

    node_name: str
    mode: RecoveryMode
    released: tuple[VMAllocation, ...] = ()
    failed: tuple[FailedRelease, ...] = ()
    """Kept, noted beside the state, and to be tried again."""
    dropped: tuple[VMAllocation, ...] = ()
    """Entries without an IP, or on an IP that another node's allocation has: they went, and no VM was touched."""
    changed: tuple[VMAllocation, ...] = ()
    """Released, or allocated again, by others while their VMs were cleaned up; left as they are."""
    kept: tuple[VMAllocation, ...] = ()
    """Allocations of the node that stay: because of the mode, or because they are younger than the dead VMs."""
    repairs: tuple[PoolFinding, ...] = ()
    was_created: bool = False
    """Whether there was no state before."""
    is_written: bool = False
    seconds: float = 0.0


class RecoveryInterrupted(VMWorkUnfinished):
    """A recovery was stopped before its VMs were back: nothing was released; the state was put right all the same."""

    code = "recovery_interrupted"

    def __init__(self, report: RecoveryReport) -> None:
        super().__init__(INTERRUPTED)
        self.report = report


class NodeNameTaken(Conflict):
    """Another machine has the name of this node, so it is not known whose VMs are dead; nothing was done (VD3)."""

    code = "node_name_taken"

    def __init__(self, node_name: str, reason: str) -> None:
        hint = "give each node a name of its own (NODE_NAME), or say that this machine has taken the other's place"
        super().__init__(f"node name {node_name!r} is another machine's: {reason}; {hint}", field="node_name")
        self.node_name = node_name
        self.reason = reason


def chosen_mode(mode: RecoveryMode | None, cleanup: CleanupPlan | None) -> RecoveryMode:
    """Return what is done with the allocations of a node: kept, unless there is a cleanup or it is asked for (VD2)."""
    if mode is not None:
        check_choice(mode, "mode", RECOVERY_MODES)
    return mode or ("release" if cleanup else "keep")


@dataclass(frozen=True, slots=True)
class NodeRecovery:
    """A recovery of one node, which may be run again if it fails."""

    pool: RecoverablePool
    node_name: str
    cleanup: CleanupPlan | None = None
    mode: RecoveryMode | None = None
    before: datetime | None = None
    """Only allocations made earlier are of dead VMs, such as before the node was booted; none: all of the node."""
    identity: NodeIdentity | None = None
    """This machine, if it is the node itself; it is compared with the machine that was last noted under the name."""
    recovered: str = ""
    """What is noted as the cause of this recovery, such as the boot; empty: nothing."""
    takes_over: bool = False
    """Whether this machine has taken the place of the one that was noted under the name."""
    meter: PoolMeter | None = None
    looks_every_s: int = 0
    """How often the machine looks at its note, if it does."""
    has_asked: bool = False
    """Whether the machine that was noted under the name had time to object to this one, as an agent gives it."""

    def __post_init__(self) -> None:
        chosen_mode(self.mode, self.cleanup)
        if self.cleanup is not None and not isinstance(self.cleanup, CleanupPlan):
            raise BadArgument(f"cleanup: a CleanupPlan is needed, not {shown(self.cleanup)}", field="cleanup")

    async def run(self, stop: asyncio.Event | None = None) -> RecoveryReport:
        """Release or keep what the node has, and put the state right.

        Raise ``RecoveryInterrupted`` if ``stop`` is set before the VMs are back, and ``NodeNameTaken``. An error of
        the API server ends it with nothing written, however far it was: the state is as it was before.
        """
        return await self._run(self._own, stop or asyncio.Event(), is_repaired=True)

    async def retry_failed(
        self, is_due: Callable[[CleanupFailure], bool], stop: asyncio.Event | None = None
    ) -> RecoveryReport:
        """Clean up again those VMs of the node whose cleanup has failed before, and release what is clean now."""
        # They are known to be dead, whatever is done with others.
        certain = replace(self, mode="release")
        return await certain._run(lambda document: self._failed(document, is_due), stop or asyncio.Event())

    async def _run(self, select: Select, stop: asyncio.Event, *, is_repaired: bool = False) -> RecoveryReport:
        began = time.monotonic()
        document = await self.pool.read()
        self.check_name(document.notes)
        mode = chosen_mode(self.mode, self.cleanup)
        dead = {each.allocation_id: each for each in select(document)} if mode == "release" else {}
        usable, untouched = _sorted(document.state, dead, self.pool.settings.line)
        try:
            causes = await self._clean(usable.values(), document.notes, stop)
        # The state is put right all the same; without causes nothing is released.
        except RoundStopped:
            causes = None
        settlement = _Settlement(self, mode, dead, usable, untouched, causes, is_repaired)
        report = await self.pool.change("recover", settlement.decide, about={"node": self.node_name})
        report = replace(report, seconds=time.monotonic() - began)
        if self.meter is not None and is_repaired:
            self.meter.recovered(report.seconds)
        _log_report(report)
        if causes is None:
            raise RecoveryInterrupted(report)
        return report

    def _own(self, document: PoolDocument) -> list[VMAllocation]:
        """Return the allocations of the node that are of dead VMs."""
        return [each for each in _entries(document.state, self.node_name) if self._is_old(each)]

    def _is_old(self, allocation: VMAllocation) -> bool:
        # Times are whole seconds, rounded down: an allocation of the very second of the boot counts as later.
        if self.before is None:
            return True
        return allocation.allocated_at is not None and allocation.allocated_at < self.before.replace(microsecond=0)

    def _failed(self, document: PoolDocument, is_due: Callable[[CleanupFailure], bool]) -> list[VMAllocation]:
        own = {(each.ip, each.allocation_id): each for each in _entries(document.state, self.node_name)}
        noted = document.notes.cleanup_failed.items()
        return [own[key] for ip, each in noted if (key := (ip, each.allocation_id)) in own and is_due(each)]

    def check_name(self, notes: PoolNotes) -> None:
        """Raise ``NodeNameTaken`` if the notes say that another machine has the name."""
        if self.identity is None or self.takes_over:
            return
        noted = notes.nodes.get(self.node_name)
        if reason := name_clash(noted, self.identity) or self._why_to_ask(noted):
            raise NodeNameTaken(self.node_name, reason)

    def _why_to_ask(self, noted: NodeNote | None) -> str:
        """Return why the VMs may be those of another machine that runs: its agent has not been asked."""
        assert self.identity is not None
        if self.has_asked or noted is None or not noted.looks_every_s or not must_ask(noted, self.identity):
            return ""
        return (
            f"an agent looked after it in another boot ({noted.boot_id}), and may still run; start the agent of this "
            f"machine, which asks it, or name the node whose VMs are dead ({self.node_name!r})"
        )

    async def _clean(
        self, allocations: Iterable[VMAllocation], notes: PoolNotes, stop: asyncio.Event
    ) -> dict[str, str]:
        """Return by IP why VMs are not usable; without a cleanup all are."""
        vms = list(allocations)
        if self.cleanup is None or not vms:
            return {each.ip: "" for each in vms}
        tries = {ip: each.tries for ip, each in notes.cleanup_failed.items()}
        why_left = self._why_left
        return await clean_vms(self.cleanup, vms, stop, why_left=why_left, earlier_tries=tries, meter=self.meter)

    async def _why_left(self, allocation: VMAllocation) -> str:
        """Return why a VM is not cleaned up now: since the list was read, it may have been given to a living pod."""
        try:
            entry = (await self.pool.read()).state.allocated.get(allocation.allocation_id)
        except TenureError as error:
            # A VM that cannot be seen may be a living pod's by now.
            return f"it could not be seen whose it is: {error}"
        is_same = entry is not None and _is_same(entry, allocation, self.pool.settings.line)
        return "" if is_same else "it was released meanwhile, so that it was not touched"


def _entries(state: PoolState, node_name: str) -> list[VMAllocation]:
    """Return the allocations of a node, each under the id of its key, which counts."""
    found = [(key, each) for key, each in state.allocated.items() if not is_held_back(each)]
    return [replace(each, allocation_id=key) for key, each in found if each.node_name == node_name]


def _sorted(
    state: PoolState, dead: Mapping[str, VMAllocation], pool: PoolLine
) -> tuple[dict[str, VMAllocation], dict[str, VMAllocation]]:
    """Part allocations into those whose VM can be cleaned up, in canonical spelling, and those that just go.

    A VM that an allocation beside them has, too, is perhaps alive: it is not touched.
    """
    others = {pool.spelled(each.ip) for key, each in state.allocated.items() if key not in dead}
    usable, untouched = {}, {}
    for key, each in dead.items():
        ip = pool.spelled(each.ip)
        if ip is None or ip in others:
            untouched[key] = each
        else:
            usable[key] = replace(each, ip=ip)
    return usable, untouched


@dataclass(frozen=True, slots=True)
class _Settlement:
    """What a recovery decides on the state as it is when the VMs are back."""

    recovery: NodeRecovery
    mode: RecoveryMode
    dead: Mapping[str, VMAllocation]
    """As they were when their VMs were cleaned up."""
    usable: Mapping[str, VMAllocation]
    untouched: Mapping[str, VMAllocation]
    causes: Mapping[str, str] | None
    """Why VMs are not usable, by IP; none if it was stopped, so that nothing may be released."""
    is_repaired: bool

    def decide(self, document: PoolDocument) -> PoolChange[RecoveryReport]:
        """Release what is clean and as it was, note what is not, put the state right."""
        settings = self.recovery.pool.settings
        pool, now = settings.line, datetime.now(UTC)
        # Asked again: while VMs were cleaned up, another machine may have been noted under the name.
        self.recovery.check_name(document.notes)
        same = {key: each for key, each in self.dead.items() if _is_there(document.state, key, each, pool)}
        released, failed, dropped = self._judged(same)
        gone = release(document.state, pool, [*in_byte_order(released), *dropped])
        state, repairs = gone.state, gone.findings
        if self.is_repaired:
            repaired = repair_state(state, pool, outside_pool=settings.outside_pool)
            # Each finding once: a release repairs as well, and may have found the same.
            state, repairs = repaired.state, tuple(dict.fromkeys((*repairs, *repaired.findings)))
        state = with_held_back(document.state, state, pool, now)
        notes = self._notes(document, state, released, failed, repairs, now)
        is_new = not document.is_there
        is_written = state is not document.state or notes != document.notes or is_new
        report = RecoveryReport(
            self.recovery.node_name, self.mode, tuple(released.values()), tuple(failed.values()),
            tuple(dropped.values()), tuple(each for key, each in self.dead.items() if key not in same),
            tuple(each for each in _entries(state, self.recovery.node_name) if each.allocation_id not in failed),
            repairs, is_new, is_written,
        )  # fmt: skip
        return PoolChange(
            report,
            state if is_written else None,
            notes if is_written else None,
            findings=repairs,
            report=lambda attempt: _log_endings(report, attempt),
        )

    def _judged(
        self, same: Mapping[str, VMAllocation]
    ) -> tuple[dict[str, VMAllocation], dict[str, FailedRelease], dict[str, VMAllocation]]:
        """Return what is released, what failed, and what goes without a VM."""
        if self.causes is None:
            return {}, {}, {}
        usable = {key: each for key, each in self.usable.items() if key in same}
        released = {key: each for key, each in usable.items() if not self.causes[each.ip]}
        failed = {key: FailedRelease(each, self.causes[each.ip]) for key, each in usable.items() if key not in released}
        return released, failed, {key: each for key, each in self.untouched.items() if key in same}

    def _notes(
        self,
        document: PoolDocument,
        state: PoolState,
        released: Mapping[str, VMAllocation],
        failed: Mapping[str, FailedRelease],
        repairs: Sequence[PoolFinding],
        now: datetime,
    ) -> PoolNotes:
        notes, pool = document.notes, self.recovery.pool.settings.line
        noted = {
            ip: each for ip, each in notes.cleanup_failed.items()
            if (entry := state.allocated.get(each.allocation_id)) is not None and entry.ip == ip
        }  # fmt: skip
        for failure in failed.values():
            entry = failure.allocation
            tries = noted[entry.ip].tries + 1 if entry.ip in noted else 1
            noted[entry.ip] = CleanupFailure(entry.allocation_id, failure.cause, now, tries)
        outside = sorted({each.ip for each in state.allocated.values()} - pool.known)
        draining = {ip: notes.draining.get(ip, now) for ip in outside} if self.is_repaired else notes.draining
        notes = replace(notes, cleanup_failed=noted, draining=draining)
        notes = with_repairs(notes, repairs, self.recovery.node_name, now)
        for entry in released.values():
            notes = notes.with_line(HistoryLine(now, "recover", entry.allocation_id, entry.ip, entry.node_name))
        return self._with_node(notes, now, is_written=state is not document.state or notes != document.notes)

    def _with_node(self, notes: PoolNotes, now: datetime, *, is_written: bool) -> PoolNotes:
        """Note this machine under its name: where it recovers for a cause, and where something is written anyway."""
        recovery = self.recovery
        if recovery.identity is None or not (recovery.recovered or is_written):
            return notes
        before = notes.nodes.get(recovery.node_name)
        noted = noted_again(before, recovery.identity, now, recovery.looks_every_s)
        # A recovery that was stopped is not noted as done, so that the next round does it.
        if recovery.recovered and self.causes is not None:
            noted = replace(noted, recovered=recovery.recovered)
        return notes.with_node(recovery.node_name, noted)


def _log_endings(report: RecoveryReport, attempt: int) -> None:
    """Write a line for every allocation that was released, and for every one that could not be (VS2)."""
    for each in report.failed:
        audit(PoolEvent.CLEANUP_FAILED, **_about(each.allocation), attempt=attempt, cause=each.cause)
    for entry in report.released:
        audit(PoolEvent.RELEASED, **_about(entry), attempt=attempt)


def _log_report(report: RecoveryReport) -> None:
    audit(
        PoolEvent.RECOVERY, node=report.node_name, mode=report.mode, released=len(report.released),
        failed=len(report.failed), dropped=len(report.dropped), changed=len(report.changed),
        kept=len(report.kept), repaired=len(report.repairs), seconds=f"{report.seconds:.3f}",
    )  # fmt: skip


def _about(entry: VMAllocation) -> dict[str, str]:
    pod = f"{entry.pod_namespace}/{entry.pod_name}" if entry.pod_name else ""
    return {"node": entry.node_name, "id": entry.allocation_id, "pod": pod, "ip": entry.ip}


def _is_there(state: PoolState, key: str, seen: VMAllocation, pool: PoolLine) -> bool:
    """Return whether an allocation is still the one whose VM was cleaned up."""
    now = state.allocated.get(key)
    return now is not None and _is_same(now, seen, pool)


def _is_same(now: VMAllocation, seen: VMAllocation, pool: PoolLine) -> bool:
    """Return whether two entries of one id are one allocation; a move between gives it another generation."""

    def said(entry: VMAllocation) -> VMAllocation:
        ip = pool.spelled(entry.ip) or entry.ip
        return replace(without_generation(entry), allocation_id=seen.allocation_id, ip=ip)

    return said(now) == said(seen)
