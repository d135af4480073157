"""A paper for each VM that instances and workers have, so that no VM is two's, whatever deployments they are of.

It tells only in which deployment the VM is; who has it there, its own papers tell. So one that was left over refuses
nobody. It is written and removed in the very ``apply`` in which its VM comes or goes.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from tenure.kernel.errors import NotFound
from tenure.service.apply.operations import Operation, RemovePaper, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

VM = "deployments.vm"


@dataclass(frozen=True, slots=True)
class Vm:
    """What is written down of a VM: in which deployment it is, and the revision of that paper, 0 if there is none."""

    name: str
    deployment: str | None = None
    revision: int = 0

    def written(self, deployment: str) -> Operation:
        """Return the operation after which a deployment has it; of two who do so in one moment, one is refused."""
        return WritePaper(kind=VM, name=self.name, document={"deployment": deployment}, revision=self.revision)

    def removed(self, deployment: str) -> list[Operation]:
        """Return the operation after which a deployment has it no more: none if that is not written down at all."""
        if self.deployment != deployment:
            return []
        return [RemovePaper(kind=VM, name=self.name, revision=self.revision)]


async def load_vms(ledger: AsyncLedger, names: Iterable[str | None]) -> dict[str, Vm]:
    """Read what is written down of some VMs. Costs a look for each."""
    found: dict[str, Vm] = {}
    for name in names:
        if name is not None:
            found[name] = Vm(name)
            with suppress(NotFound):
                paper = await ledger.paper(VM, name)
                found[name] = Vm(name, paper.document["deployment"], paper.revision)
    return found


def exchanged(
    vms: Mapping[str, Vm], deployment: str, before: set[str | None], after: set[str | None]
) -> list[Operation]:
    """Return the operations after which a deployment has other VMs than before; only VMs that were read count."""
    gone = [operation for name, vm in vms.items() if name in before - after for operation in vm.removed(deployment)]
    return [*gone, *(vm.written(deployment) for name, vm in vms.items() if name in after - before)]
