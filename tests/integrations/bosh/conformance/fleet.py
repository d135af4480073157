"""Running VMs that answer when they are asked: in the in-memory mode only they know the addresses of a deployment."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from tenure.integrations.bosh.running_vms.vm_state import VmState, read_vm_state
from tenure.integrations.bosh.verbs import report_vm
from tenure.integrations.bosh.verbs.deploy import Deployed
from tests.integrations.bosh.conformance.town import LAB, Document, Town


def own(
    deployment: str, *groups: Document, subnets: tuple[Document, ...] = (LAB,), more: tuple[Document, ...] = ()
) -> str:
    """Write a manifest that brings its own networks: ``lab``, and more."""
    networks = [{"name": "lab", "type": "manual", "subnets": list(subnets)}, *more]
    return yaml.safe_dump({"name": deployment, "networks": networks, "instance_groups": list(groups)}, sort_keys=False)


@dataclass
class Fleet:
    """The VMs of one deployment, by the names of their instances: what each says of itself, or None if it is silent."""

    town: Town
    deployment: str
    vms: dict[str, Any] = field(default_factory=dict)

    def state(self) -> Mapping[str, VmState]:
        """Ask all VMs."""
        return read_vm_state(json.dumps(self.vms), "state.json")

    async def deploy(self, text: str, **said: Any) -> Deployed:
        """Ask the VMs, and deploy with what they say."""
        return await self.town.deploy(text, **{"vm_state": self.state(), **said})

    async def run(self, text: str, **said: Any) -> Deployed:
        """Deploy, and make and delete all VMs that the plan asks for."""
        deployed = await self.deploy(text, **said)
        for each in await self.town.instances(self.deployment):
            if each.plan is not None and not each.leaving:
                vm = f"vm-{next(self.town.numbers)}"
                after = await report_vm.commit(self.town.ledger, self.deployment, each.name, vm=vm)
                made = {name: {"ip": said["ip"]} for name, said in (after.made_with or {}).items() if "ip" in said}
                self.vms[each.name] = {"vm": vm, "networks": made}
        for each in await self.town.instances(self.deployment):
            if each.leaving:
                await report_vm.lose(self.town.ledger, self.deployment, each.name)
                self.vms.pop(each.name, None)
        return deployed

    async def tails(self) -> dict[str, str]:
        """Return the last number of each VM's address on ``lab``, by group and index."""
        found = {}
        for each in await self.town.instances(self.deployment):
            said = self.vms.get(each.name)
            if said is not None and "lab" in said["networks"]:
                found[f"{each.group}/{each.index}"] = "." + said["networks"]["lab"]["ip"].rpartition(".")[2]
        return found

    async def name_of(self, group: str, index: int) -> str:
        """Name an instance by its uuid."""
        return next(
            each.name
            for each in await self.town.instances(self.deployment)
            if (each.group, each.index) == (group, index)
        )
