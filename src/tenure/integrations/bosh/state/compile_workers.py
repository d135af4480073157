"""Workers that compile for a deployment: throw-away owners, on one paper for as long as they are there.

A worker is never used again: what one of a compile that broke off had, its machine may still have. So it is freed only
once everybody else has what he wants, and a worker whose VM is known leaves its address to that VM, as an orphan.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tenure.integrations.bosh.model.document_model import DNS, GATEWAY
from tenure.integrations.bosh.state.instance_state import ORPHAN, REALM, DeploymentInstance, orphan_of
from tenure.integrations.bosh.state.vm_index import Vm, exchanged, load_vms
from tenure.kernel.errors import NotFound
from tenure.kernel.holdings.holding_model import Holding, Paper
from tenure.kernel.names import Owner
from tenure.service.apply.operations import Operation, ReleaseOwner, RemovePaper, Transfer, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

COMPILE = "deployments.compile"
COMPILER = "compile"
"""The kind of owner that a worker is."""


def worker_of(deployment: str, number: int) -> Owner:
    """Return the owner of a worker's address."""
    return Owner(f"{REALM}:{COMPILER}/{deployment}-{number}")


@dataclass(frozen=True, slots=True)
class CompileWorker:
    """A worker. ``holding`` is None on a dynamic network; ``settings`` are what its VM is made with."""

    number: int
    vm: str | None = None
    holding: Holding | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compiling:
    """A compile that goes on: for which plan, where, and who works. ``orphans``: workers are not deleted at its end."""

    deployment: str
    plan: str
    network: str
    az: str | None = None
    orphans: bool = False
    workers: tuple[CompileWorker, ...] = ()
    revision: int = 0
    vms: Mapping[str, Vm] = field(default_factory=dict)
    """What is written down of the workers' VMs."""

    def worker(self, number: int) -> CompileWorker | None:
        """Find a worker."""
        return next((each for each in self.workers if each.number == number), None)

    def instance(self, worker: CompileWorker) -> DeploymentInstance:
        """Return a worker as an instance of a group of its own: so it is named, and gets settings, like any other."""
        on = {"name": self.network, "nic_group": None, "defaults": [DNS, GATEWAY]}
        return DeploymentInstance(
            self.deployment, group_of(self.deployment), str(worker.number), worker.number, self.az, vm=worker.vm,
            networks=[on], holdings=() if worker.holding is None else (worker.holding,),
        )  # fmt: skip

    def written(self) -> Operation:
        """Return the operation that writes it down, over the revision that was read."""
        vms = {str(each.number): each.vm for each in self.workers}
        said = {"plan": self.plan, "network": self.network, "az": self.az, "orphans": self.orphans, "vms": vms}
        return WritePaper(kind=COMPILE, name=self.deployment, document=said, revision=self.revision)

    def removed(self) -> Operation:
        """Return the operation that takes it out of the books."""
        return RemovePaper(kind=COMPILE, name=self.deployment, revision=self.revision)

    def broken_off(self) -> list[Operation]:
        """Return the operations that end it where nobody told what became of the VMs: those keep their addresses."""
        return [*self.freed(orphaned=True), self.removed()]

    def freed(self, *, orphaned: bool) -> list[Operation]:
        """Return the operations that end the workers; ``orphaned``: VMs that are known of keep their addresses."""
        gone = exchanged(self.vms, self.deployment, set(self.vms), set())
        return [*gone, *(operation for each in self.workers for operation in self._freed(each, orphaned=orphaned))]

    def _freed(self, worker: CompileWorker, *, orphaned: bool) -> list[Operation]:
        if worker.vm is None or not orphaned:
            return [ReleaseOwner(owner=worker_of(self.deployment, worker.number))]
        told = {"deployment": self.deployment, "instance": self.instance(worker).name}
        paper = WritePaper(kind=ORPHAN, name=worker.vm, document=told)
        held, heir = worker.holding, orphan_of(worker.vm)
        if held is None:
            return [paper]
        place: Any = {"network": held.network, "address": held.address, "generation": held.generation}
        return [Transfer(owner=held.owner, to=heir, to_slot=held.address, **place), paper]


def group_of(deployment: str) -> str:
    """Name the group that a deployment's workers seem to be of."""
    return f"compilation-{deployment}"


async def load_compiling(ledger: AsyncLedger, deployment: str) -> Compiling | None:
    """Read a deployment's compile with what its workers hold, if one goes on or broke off."""
    try:
        paper = await ledger.paper(COMPILE, deployment)
    except NotFound:
        return None
    return await _read(ledger, paper)


async def _read(ledger: AsyncLedger, paper: Paper) -> Compiling:
    said = paper.document
    vms = {int(number): vm for number, vm in said["vms"].items()}
    owners = {number: worker_of(paper.name, number) for number in vms}
    held = {each.owner: each for each in await ledger.holdings_of(list(owners.values()))}
    workers = [CompileWorker(number, vm, held.get(owners[number])) for number, vm in sorted(vms.items())]
    return Compiling(
        paper.name, said["plan"], said["network"], said["az"], said["orphans"], tuple(workers), paper.revision,
        await load_vms(ledger, vms.values()),
    )  # fmt: skip


async def ended(ledger: AsyncLedger, deployment: str) -> list[Operation]:
    """Return the operations that end a compile which broke off; none if there is none."""
    left = await load_compiling(ledger, deployment)
    return [] if left is None else left.broken_off()
