"""``tenure vmpool agent``: looks after a pool from one node. It recovers, repairs, tries cleanups again, shows numbers.

A node is recovered once for each boot, and once for each start of the adaptor where a file tells of it; never because
the agent itself was started again. Even then only allocations that are older than the boot, or the start, count as
dead: an agent that comes to a node at work touches no living VM (VD3).

A machine that boots under the name of another one that runs looks like that one, booted again, where neither the node
object nor the hardware tells them apart. So it asks first: it notes that it wants the name, and waits for as long as
the agent of the other one needs to object. Only then it recovers.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TypeVar

from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable, ObjectMissing
from tenure.integrations.kubernetes.runtime.process_probes import serve_probes
from tenure.integrations.kubernetes.runtime.resource_types import ResourceType
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
from tenure.integrations.vmpool.machines.vm_return import wait_unless
from tenure.integrations.vmpool.node_identity import (
    NodeIdentity,
    claim_ends,
    must_ask,
    name_clash,
    noted_again,
    read_node_identity,
)
from tenure.integrations.vmpool.node_recovery import (
    NodeRecovery,
    RecoveryInterrupted,
    RecoveryMode,
    RecoveryReport,
    chosen_mode,
)
from tenure.integrations.vmpool.pool_document import PoolChange, PoolDocument
from tenure.integrations.vmpool.pool_errors import PoolUnavailable
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.sizing.size_decider import DeciderSettings, SizeDecider
from tenure.integrations.vmpool.state.argument_checks import check_port, check_seconds
from tenure.integrations.vmpool.state.go_json import whole_seconds
from tenure.integrations.vmpool.state.pool_notes import CleanupFailure, NodeNote
from tenure.integrations.vmpool.vanished_writes import gone_lines, returned_lines
from tenure.kernel.errors import Conflict, Invalid, TenureError

T = TypeVar("T")

LOG = logging.getLogger(__name__)

NODE = ResourceType("", "v1", "nodes", "Node", namespaced=False)
LONGEST_RETRY_S = 3600.0
AGENT_PORT = 8082
REPORTS = 100
"""How many reports are kept: an agent runs for years."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What an agent is started with."""

    cleanup: CleanupPlan | None = None
    mode: RecoveryMode | None = None
    every_s: float = 30.0
    """How often it looks."""
    retry_s: float = 60.0
    """After how long a failed cleanup is tried again; after each further failure twice as long, an hour at most."""
    adaptor_start_file: Path | None = None
    """A file that the adaptor writes whenever it is started, if VMs are dead then; its time tells the start."""
    host: str = "127.0.0.1"
    port: int = AGENT_PORT
    """For health, readiness and metrics; 0 takes a free one."""
    takes_over: bool = False
    """Whether this machine has taken the place of another one of its name; for the first round."""
    decider: DeciderSettings | None = None
    """How it decides on the size of the pool, if it may."""

    def __post_init__(self) -> None:
        chosen_mode(self.mode, self.cleanup)
        check_seconds(self.every_s, "every_s")
        check_seconds(self.retry_s, "retry_s", may_be_zero=True)
        check_port(self.port, least=0)


@dataclass(frozen=True, slots=True)
class NodeStart:
    """Something after which the VMs of a node are dead: a boot, or a start of the adaptor."""

    name: str
    """As it is noted when the node was recovered after it."""
    at: datetime
    """What was allocated before is of dead VMs."""


class NodeMismatch(Conflict):
    """The node object of this name tells of another boot than this machine's: this is another machine (VD3)."""

    code = "node_mismatch"


@dataclass
class PoolAgent:
    """An agent at work; ``round`` does all that is due now."""

    pool: AsyncVMPool
    settings: AgentSettings
    identity: NodeIdentity
    not_ready: dict[str, str] = field(default_factory=lambda: {"first round": "has not ended"})
    """What is wrong, by name; empty if nothing is."""
    reports: list[RecoveryReport] = field(default_factory=list)
    """Of the last recoveries and retries of this process."""
    _took_over: bool = False
    _undone: frozenset[tuple[PoolEvent, str, datetime]] = frozenset()
    """What another manager has undone, and the log has told: allocations, and releases, by id and time."""

    async def run(self, stop: asyncio.Event) -> None:
        """Look again and again until ``stop`` is set; errors are logged, and the next round tries again."""
        while not stop.is_set():
            await self.round(stop)
            await wait_unless(stop, self.settings.every_s)

    async def round(self, stop: asyncio.Event) -> None:
        """Recover if a start was not noted yet, else try failed cleanups again; put the state right; count."""
        try:
            await self._look_after(stop, is_proven=await self._is_node())
        except RecoveryInterrupted as error:
            LOG.info("stopped: %s", error)
        except TenureError as error:
            self._refused(str(error), error.code)
        except Exception as error:
            # Whatever it is, other rounds may do better, and the numbers stay to be read.
            if self._refused(f"{type(error).__name__}: {error}", "internal"):
                LOG.exception("the round of the agent has failed")

    def _refused(self, cause: str, code: str) -> bool:
        """Say why nothing was done; in the log once, until there is another reason; return whether it was said now."""
        is_new = self.not_ready != {"pool": cause}
        if is_new:
            audit(PoolEvent.FAILED, node=self.identity.node_name, operation="agent", code=code, cause=cause)
        self.not_ready = {"pool": cause}
        return is_new

    async def _look_after(self, stop: asyncio.Event, *, is_proven: bool) -> None:
        document = await self.pool.read()
        if document.notes.problem:
            # Whether this boot was recovered is not known, and to note it is not possible: leave the VMs alone.
            raise Conflict(document.notes.problem)
        self._report_undone(document)
        noted = document.notes.nodes.get(self.identity.node_name)
        start = self._start()
        if self._is_new(noted, start) and (reason := await self._why_asked(noted, is_proven=is_proven)):
            self._wait_for_name(reason)
            return
        # Before the recovery, which may take longer than the other machine waits for an objection.
        if noted is not None and noted.boot_id == self.identity.boot_id:
            await self._answer_claim(noted)
        if self._is_new(noted, start):
            self._keep(await self._recovery(start, is_proven).run(stop))
            self._took_over = True
        elif any(self._is_due(each) for each in document.notes.cleanup_failed.values()) and self.settings.cleanup:
            report = await self._recovery(None, is_proven).retry_failed(self._is_due, stop)
            if report.released or report.failed:
                self._keep(report)
        # After a recovery as well: it reads what the recovery has written, which is what the numbers show.
        await self.pool.repair()
        self.not_ready = {}

    def _report_undone(self, document: PoolDocument) -> None:
        """Write a line for each allocation, and for each release, that another manager has undone, once."""
        found = {
            PoolEvent.GONE: gone_lines(document),
            PoolEvent.RETURNED: returned_lines(document, self.pool.settings.line),
        }
        undone = {(event, line.allocation_id, line.at): line for event, lines in found.items() for line in lines}
        for key, line in undone.items():
            if key not in self._undone:
                audit(key[0], node=line.node_name, id=line.allocation_id, ip=line.ip, since=line.at.isoformat())
        self._undone = frozenset(undone)

    def _keep(self, report: RecoveryReport) -> None:
        self.reports.append(report)
        del self.reports[:-REPORTS]

    async def _why_asked(self, noted: NodeNote | None, *, is_proven: bool) -> str:
        """Return for what this machine waits before it takes its name; an empty text if it need not wait."""
        is_sure = is_proven or (self.settings.takes_over and not self._took_over)
        if noted is None or is_sure or name_clash(noted, self.identity) or not must_ask(noted, self.identity):
            return ""
        end = claim_ends(noted, self.identity, datetime.now(UTC))
        if end is None:
            end = await self._note(self._claim)
        # Without a note any more there is no machine to ask.
        if end is None or datetime.now(UTC) >= end:
            return ""
        return f"another machine had the name before (boot {noted.boot_id}); it may object until {end.isoformat()}"

    def _claim(self, noted: NodeNote, now: datetime) -> tuple[NodeNote, datetime | None]:
        """Ask for the name; return until when to wait."""
        claim = replace(noted, claimant=self.identity.boot_id, claimed_at=whole_seconds(now))
        return claim, claim_ends(claim, self.identity, now)

    def _wait_for_name(self, reason: str) -> None:
        if self.not_ready.keys() != {"node name"}:
            audit(PoolEvent.WARNING, node=self.identity.node_name, warning=reason)
        self.not_ready = {"node name": reason}

    async def _answer_claim(self, noted: NodeNote) -> None:
        """Object to another machine that wants the name of this one, which runs; note how often it is looked for."""
        is_asked = bool(noted.claimant) and noted.claimant != self.identity.boot_id
        if not is_asked and noted.looks_every_s == self._looks_every_s:
            return

        def decide(noted: NodeNote, now: datetime) -> tuple[NodeNote, str]:
            seen = noted_again(noted, self.identity, now, self._looks_every_s)
            if noted.claimant in ("", self.identity.boot_id):
                return seen, ""
            return replace(seen, claimant="", claimed_at=None, objected_to=noted.claimant), noted.claimant

        if refused := await self._note(decide):
            said = f"another machine (boot {refused}) wanted the name of this node, and was refused"
            audit(PoolEvent.WARNING, node=self.identity.node_name, warning=said)

    async def _note(self, decide: "Callable[[NodeNote, datetime], tuple[NodeNote, T]]") -> T | None:
        """Change the note of this node as it is then; return what was decided, nothing if the note is gone."""
        name = self.identity.node_name

        def change(document: PoolDocument) -> PoolChange[T | None]:
            noted = document.notes.nodes.get(name)
            if noted is None:
                return PoolChange(None)
            changed, result = decide(noted, datetime.now(UTC))
            return PoolChange(result, notes=document.notes.with_node(name, changed))

        return await self.pool.change("note", change, about={"node": name})

    @property
    def _looks_every_s(self) -> int:
        return math.ceil(self.settings.every_s)

    def _is_new(self, noted: NodeNote | None, start: NodeStart) -> bool:
        """Return whether the node has to be recovered, or at least noted: a name that is taken is found so."""
        return noted is None or noted.boot_id != self.identity.boot_id or noted.recovered != start.name

    def _start(self) -> NodeStart:
        """Return the last start after which VMs of this node are dead."""
        boot = NodeStart(self.identity.boot_id, self.identity.booted_at)
        file = self.settings.adaptor_start_file
        try:
            at = datetime.fromtimestamp(file.stat().st_mtime, UTC) if file else boot.at
        except FileNotFoundError:
            return boot  # the adaptor was not started since the boot
        except (OSError, ValueError, OverflowError) as error:
            raise Invalid(
                f"adaptor_start_file: {file} tells of no start: {error}", field="adaptor_start_file"
            ) from None
        # The file is from before the boot.
        if at <= boot.at:
            return boot
        return NodeStart(f"{boot.name} {at.isoformat()}", at)

    def _recovery(self, start: NodeStart | None, is_proven: bool) -> NodeRecovery:
        return NodeRecovery(
            self.pool,
            self.identity.node_name,
            self.settings.cleanup,
            self.settings.mode,
            before=start.at if start else None,
            identity=self.identity,
            recovered=start.name if start else "",
            takes_over=is_proven or (self.settings.takes_over and not self._took_over),
            meter=self.pool.meter,
            looks_every_s=self._looks_every_s,
            has_asked=True,
        )

    def _is_due(self, failure: CleanupFailure) -> bool:
        # The exponent is bounded: tries are read from notes, in which any number may stand.
        pause_s = min(self.settings.retry_s * 2 ** min(max(failure.tries - 1, 0), 20), LONGEST_RETRY_S)
        passed_s = (datetime.now(UTC) - failure.at).total_seconds()
        # A failure of the far future was noted by a clock that was wrong, or by another one's hand.
        return passed_s >= pause_s or passed_s < -LONGEST_RETRY_S

    async def _is_node(self) -> bool:
        """Return whether this machine is certainly the node of its name; raise ``NodeMismatch`` if it is another one.

        The kubelet writes its boot into the node object, and the API server has one node of a name. Where that may
        not be read, or is not there, only the notes can tell two machines of one name apart.
        """
        if self.pool.client is None:
            return False
        try:
            node = await self.pool.client.get(NODE.path(name=self.identity.node_name))
        except ObjectMissing:
            return False
        except ApiError as error:
            if error.status in (401, 403):
                return False
            raise PoolUnavailable(str(error), outcome="none") from error
        except ApiUnreachable as error:
            raise PoolUnavailable(str(error), outcome="none") from error
        boot = str(((node.get("status") or {}).get("nodeInfo") or {}).get("bootID") or "")
        if boot and boot != self.identity.boot_id:
            raise NodeMismatch(
                f"node {self.identity.node_name!r} runs boot {boot}, and this machine boot {self.identity.boot_id}: "
                "NODE_NAME names another machine than this one",
                field="node_name",
            )
        return bool(boot)


@dataclass(frozen=True)
class RunningAgent:
    """An agent that runs beside its caller, for one pool or several."""

    agents: Sequence[PoolAgent]
    """One for each pool."""
    port: int
    ended: "asyncio.Task[None]"
    """Done when the agent has ended, with its error if it has one."""

    @property
    def agent(self) -> PoolAgent:
        """Return the agent of the first pool."""
        return self.agents[0]


@contextlib.asynccontextmanager
async def started_agent(
    pools: AsyncVMPool | Sequence[AsyncVMPool],
    settings: AgentSettings,
    stop: asyncio.Event,
    identity: NodeIdentity | None = None,
) -> AsyncIterator[RunningAgent]:
    """Run an agent for as long as the block; each pool needs a ``PoolMeter`` as its observer."""
    looked_after = [pools] if isinstance(pools, AsyncVMPool) else list(pools)
    known = identity or read_node_identity(looked_after[0].node_name)
    agents = [PoolAgent(pool, settings, known) for pool in looked_after]
    deciders = [SizeDecider(pool, settings.decider) for pool in looked_after] if settings.decider else []
    meters = [meter for pool in looked_after if (meter := pool.meter) is not None]
    assert len(meters) == len(agents), "an agent shows the numbers of its pools"
    probes, port = await serve_probes(
        settings.host, settings.port, lambda: _not_ready(agents), lambda: chain(*(each.samples() for each in meters))
    )
    running = asyncio.create_task(_run_all(agents, stop), name="vmpool agent")
    deciding = [asyncio.create_task(_decide(each)) for each in deciders]
    try:
        yield RunningAgent(agents, port, running)
    finally:
        stop.set()
        for task in (running, *deciding):
            task.cancel()
        await asyncio.gather(running, *deciding, return_exceptions=True)
        await probes.cleanup()


async def _decide(decider: SizeDecider) -> None:
    """Decide on the size of a pool, or wait for that, until it is cancelled; whatever goes wrong, it begins again."""
    while True:
        try:
            await decider.run()
        except Exception:
            LOG.exception("the decider on the size of %s has failed", decider.pool.settings.config_map_name)
        await asyncio.sleep(decider.settings.every_s)


async def _run_all(agents: Sequence[PoolAgent], stop: asyncio.Event) -> None:
    """Look after each pool by itself: one that is in trouble keeps no other one waiting."""
    async with asyncio.TaskGroup() as group:
        for agent in agents:
            group.create_task(agent.run(stop))


def _not_ready(agents: Sequence[PoolAgent]) -> dict[str, str]:
    """Return what is wrong, by name; of several pools, with the name of the pool."""
    if len(agents) == 1:
        return agents[0].not_ready
    return {
        f"{agent.pool.settings.config_map_name} {name}": reason
        for agent in agents
        for name, reason in agent.not_ready.items()
    }


async def run_agent(
    pools: Sequence[AsyncVMPool], settings: AgentSettings, stop: asyncio.Event, ready: Callable[[int], None]
) -> None:
    """Run an agent until ``stop`` is set; ``ready`` is called with its port."""
    async with started_agent(pools, settings, stop) as running:
        ready(running.port)
        await running.ended
