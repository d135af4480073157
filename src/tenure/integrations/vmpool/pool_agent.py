"""``tenure vmpool agent``: looks after a pool from one node. It recovers, repairs, tries cleanups again, shows numbers.

A node is recovered once for each boot, and once for each start of the adaptor where a file tells of it; never because
the agent itself was started again. Even then only allocations that are older than the boot, or the start, count as
dead: an agent that comes to a node at work touches no living VM (VD3).
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable, ObjectMissing
from tenure.integrations.kubernetes.runtime.process_probes import serve_probes
from tenure.integrations.kubernetes.runtime.resource_types import ResourceType
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
from tenure.integrations.vmpool.machines.vm_return import wait_unless
from tenure.integrations.vmpool.node_identity import NodeIdentity, read_node_identity
from tenure.integrations.vmpool.node_recovery import (
    NodeRecovery,
    RecoveryInterrupted,
    RecoveryMode,
    RecoveryReport,
)
from tenure.integrations.vmpool.pool_errors import PoolUnavailable
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.state.pool_notes import CleanupFailure, NodeNote
from tenure.kernel.errors import Conflict, TenureError

LOG = logging.getLogger(__name__)

NODE = ResourceType("", "v1", "nodes", "Node", namespaced=False)
LONGEST_RETRY_S = 3600.0
AGENT_PORT = 8082


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
    """Of the recoveries and retries of this process."""
    _took_over: bool = False

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
            self._refused(error)
        else:
            self.not_ready = {}

    def _refused(self, error: TenureError) -> None:
        """Say why nothing was done; in the log once, until there is another reason."""
        if self.not_ready != {"pool": str(error)}:
            audit(PoolEvent.FAILED, node=self.identity.node_name, operation="agent", code=error.code, cause=str(error))
        self.not_ready = {"pool": str(error)}

    async def _look_after(self, stop: asyncio.Event, *, is_proven: bool) -> None:
        document = await self.pool.read()
        if document.notes.problem:
            # Whether this boot was recovered is not known, and to note it is not possible: leave the VMs alone.
            raise Conflict(document.notes.problem)
        noted = document.notes.nodes.get(self.identity.node_name)
        start = self._start()
        if self._is_new(noted, start):
            self.reports.append(await self._recovery(start, is_proven).run(stop))
            self._took_over = True
        elif any(self._is_due(each) for each in document.notes.cleanup_failed.values()) and self.settings.cleanup:
            report = await self._recovery(None, is_proven).retry_failed(self._is_due, stop)
            if report.released or report.failed:
                self.reports.append(report)
        # After a recovery as well: it reads what the recovery has written, which is what the numbers show.
        await self.pool.repair()

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
        )

    def _is_due(self, failure: CleanupFailure) -> bool:
        pause_s = min(self.settings.retry_s * 2 ** min(failure.tries - 1, 20), LONGEST_RETRY_S)
        return datetime.now(UTC) >= failure.at + timedelta(seconds=pause_s)

    async def _is_node(self) -> bool:
        """Return whether this machine is certainly the node of its name; raise ``NodeMismatch`` if it is another one.

        The kubelet writes its boot into the node object, and the API server has one node of a name. Where that may
        not be read, or is not there, only the notes can tell two machines of one name apart.
        """
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
    """An agent that runs beside its caller."""

    agent: PoolAgent
    port: int
    ended: "asyncio.Task[None]"
    """Done when the agent has ended, with its error if it has one."""


@contextlib.asynccontextmanager
async def started_agent(
    pool: AsyncVMPool, settings: AgentSettings, stop: asyncio.Event, identity: NodeIdentity | None = None
) -> AsyncIterator[RunningAgent]:
    """Run an agent for as long as the block; the pool needs a ``PoolMeter`` as its observer."""
    meter = pool.meter
    assert meter is not None, "an agent shows the numbers of its pool"
    agent = PoolAgent(pool, settings, identity or read_node_identity(pool.node_name))
    probes, port = await serve_probes(settings.host, settings.port, lambda: agent.not_ready, meter.samples)
    running = asyncio.create_task(agent.run(stop), name="vmpool agent")
    try:
        yield RunningAgent(agent, port, running)
    finally:
        stop.set()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await probes.cleanup()


async def run_agent(
    pool: AsyncVMPool, settings: AgentSettings, stop: asyncio.Event, ready: Callable[[int], None]
) -> None:
    """Run an agent until ``stop`` is set; ``ready`` is called with its port. An error that none expects is raised."""
    async with started_agent(pool, settings, stop) as running:
        ready(running.port)
        await running.ended
