"""A town where deployments are deployed: a ledger, cloud configs, and VMs that come and go as the plan says."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from tenure.integrations.bosh.cloud_config.configs import Uploaded, upload
from tenure.integrations.bosh.state.instance_state import DeploymentInstance, load_instances
from tenure.integrations.bosh.verbs import report_vm
from tenure.integrations.bosh.verbs.deploy import Deployed, deploy
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.service.ledger.async_ledger import AsyncLedger

Document = Mapping[str, Any]

LAB: Document = {"range": "172.20.5.0/28", "gateway": "172.20.5.1"}


def config(*subnets: Document, name: str = "lab", more: Sequence[Document] = (), **top: Any) -> str:
    """Write a cloud config: by default the network ``lab`` of the conformance file."""
    network = {"name": name, "type": "manual", "subnets": list(subnets or (LAB,))}
    return yaml.safe_dump({"networks": [network, *more], **top}, sort_keys=False)


def lab(**changes: Any) -> Document:
    """Write the subnet of ``lab`` with something changed; None takes a key away."""
    return {key: value for key, value in {**LAB, **changes}.items() if value is not None}


def manifest(deployment: str, *groups: Document) -> str:
    """Write a manifest."""
    return yaml.safe_dump({"name": deployment, "instance_groups": list(groups)}, sort_keys=False)


def app(instances: int = 1, name: str = "app", network: str = "lab", **more: Any) -> Document:
    """Write a group on one network; ``static_ips`` go to the network, the rest to the group."""
    on: dict[str, Any] = {"name": network}
    if "static_ips" in more:
        on["static_ips"] = more.pop("static_ips")
    return {"name": name, "instances": instances, "networks": more.pop("networks", [on]), **more}


@dataclass
class Town:
    """Drives the door as somebody would who makes VMs."""

    ledger: AsyncLedger
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def upload(self, text: str, name: str = "default") -> Uploaded:
        """Put a cloud config in force."""
        return await upload(self.ledger, name, text)

    async def deploy(self, text: str, **said: Any) -> Deployed:
        """Reserve; make no VM yet."""
        return await deploy(self.ledger, "manifest.yml", text, **said)

    async def run(self, text: str, **said: Any) -> Deployed:
        """Deploy, and make and delete all VMs that the plan asks for."""
        deployed = await self.deploy(text, **said)
        await self.finish(deployed)
        return deployed

    async def finish(self, deployed: Deployed) -> None:
        """Make the VMs of a plan, then delete those of instances that leave."""
        for each in await self.instances(deployed.deployment):
            if each.plan is not None and not each.leaving:
                vm = f"vm-{next(self.numbers)}"
                await report_vm.commit(self.ledger, each.deployment, each.name, vm=vm, plan=each.plan)
        for each in await self.instances(deployed.deployment):
            if each.leaving:
                await report_vm.lose(self.ledger, each.deployment, each.name)

    async def instances(self, deployment: str) -> list[DeploymentInstance]:
        """Read a deployment's instances."""
        return await load_instances(self.ledger, deployment)

    async def has(self, deployment: str, *, state: State = State.HELD) -> dict[str, dict[str, str]]:
        """Return what each instance of a deployment holds, by network."""
        return {
            f"{each.group}/{each.index}": {held.network: _text(held) for held in each.holdings if held.state is state}
            for each in await self.instances(deployment)
        }

    async def tails(self, deployment: str) -> dict[str, str]:
        """Return the last number of each instance's address on ``lab``: the file's way to write them."""
        found = await self.has(deployment)
        return {name: "." + held["lab"].rpartition(".")[2] for name, held in found.items() if "lab" in held}

    async def parting(self, deployment: str) -> dict[str, dict[str, str]]:
        """Return what instances hold only until their VMs are replaced."""
        found = await self.has(deployment, state=State.DRAINING)
        return {name: held for name, held in found.items() if held}


def _text(held: Holding) -> str:
    whole = 128 if ":" in held.address else 32
    return held.address if held.unit == whole else f"{held.address}/{held.unit}"
