"""Who has a VM: an instance or a worker, of whichever deployment."""

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.integrations.bosh.state.compile_workers import COMPILE, worker_of
from tenure.integrations.bosh.state.instance_state import INSTANCE, DeploymentInstance, load_bare
from tenure.integrations.bosh.state.vm_index import VM, Vm, exchanged, load_vms
from tenure.kernel.errors import Conflict, NotFound
from tenure.kernel.holdings.holding_model import Paper
from tenure.kernel.names import Owner
from tenure.service.apply.operations import Operation, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

ALL_VMS, SITE = "deployments.vms", "site"
"""The paper that says that every VM has one: ledgers of the time before have none for theirs."""


@dataclass(frozen=True, slots=True)
class VmHolder:
    """Who has a VM: the owner of its addresses, and how he is called."""

    owner: Owner
    deployment: str
    name: str

    def told(self, asking: str) -> str:
        """Name him to somebody of a deployment."""
        return self.name if self.deployment == asking else f"{self.name} of deployment {self.deployment}"


@dataclass(frozen=True, slots=True)
class FoundVm:
    """A VM and who has it; ``first`` is to be done with whatever is done to it."""

    vm: Vm
    holder: VmHolder | None = None
    first: Sequence[Operation] = ()


async def find_vm(ledger: AsyncLedger, name: str, *, in_place_of: str | None = None) -> FoundVm:
    """Find who has a VM. Costs two looks, however many there are; if somebody has it, one at all of his deployment.

    Where not all VMs have papers yet, all instances are looked at, and theirs get some, but for the one that goes.
    """
    vm = (await load_vms(ledger, [name]))[name]
    if vm.deployment is not None:
        return FoundVm(vm, await _who_has(ledger, name, vm.deployment))
    if await _paper(ledger, ALL_VMS, SITE) is not None:
        return FoundVm(vm)
    homes = await _homes(ledger)
    holder = await _who_has(ledger, name, homes[name]) if name in homes else None
    # The caller writes the paper of this VM itself, and the VM that goes needs none any more.
    without = {name, in_place_of, *(paper.name for paper in await ledger.papers(VM))}
    missing = [Vm(each).written(home) for each, home in homes.items() if each not in without]
    return FoundVm(vm, holder, [*missing, WritePaper(kind=ALL_VMS, name=SITE, document={})])


async def _homes(ledger: AsyncLedger) -> dict[str, str]:
    """Return in which deployment every VM is, by name."""
    homes = {paper.document["vm"]: paper.name.split("/")[0] for paper in await ledger.papers(INSTANCE)}
    for paper in await ledger.papers(COMPILE):
        homes |= dict.fromkeys(paper.document["vms"].values(), paper.name)
    # Instances and workers without a VM are all noted under None.
    homes.pop(None, None)
    return homes


async def _who_has(ledger: AsyncLedger, vm: str, deployment: str) -> VmHolder | None:
    for each in await load_bare(ledger, deployment, vm=vm):
        return VmHolder(each.owner, deployment, f"instance {each.name}")
    compiling = await _paper(ledger, COMPILE, deployment)
    for number, its in () if compiling is None else compiling.document["vms"].items():
        if its == vm:
            return VmHolder(worker_of(deployment, int(number)), deployment, f"worker {number}")
    return None


async def _paper(ledger: AsyncLedger, kind: str, name: str) -> Paper | None:
    try:
        return await ledger.paper(kind, name)
    except NotFound:
        return None


async def retold(
    ledger: AsyncLedger, papers: Sequence[DeploymentInstance], instances: Sequence[DeploymentInstance]
) -> list[Operation]:
    """Return the operations after which instances have the VMs that speak for them, in place of those in their papers.

    A VM that one of another deployment has cannot speak for them.
    """
    before, after = {each.vm for each in papers}, {each.vm for each in instances}
    vms = await load_vms(ledger, sorted(each for each in before - after if each is not None))
    for each in instances:
        # A VM that this deployment has already is not another deployment's, and needs no look.
        if each.vm is None or each.vm in before:
            continue
        found = await find_vm(ledger, each.vm)
        if found.holder is not None and found.holder.deployment != each.deployment:
            told = f"instance {each.name} cannot have VM {each.vm!r}: {found.holder.told(each.deployment)} has it"
            raise Conflict(told, field="vm")
        vms[each.vm] = found.vm
    return exchanged(vms, papers[0].deployment, before, after) if vms else []
