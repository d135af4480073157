"""Deployments as the API answers them: by the door's own documents, so that nobody is told otherwise elsewhere.

This reads YAML, which a server may have been installed without: routes load it when they are asked.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from tenure.doors.http.routes.bosh import deployment_schemas as shapes
from tenure.integrations.bosh.cloud_config.configs import Configs, Uploaded
from tenure.integrations.bosh.cloud_config.moved_instances import Moved
from tenure.integrations.bosh.cloud_config.site_survey import Orphan
from tenure.integrations.bosh.deployments_api import Deployments
from tenure.integrations.bosh.planning.explain_instance import waits_for
from tenure.integrations.bosh.running_vms.vm_state import VmState, read_vm_state
from tenure.integrations.bosh.state.instance_state import Deployment, DeploymentInstance
from tenure.integrations.bosh.views.queries import DeploymentStatus
from tenure.integrations.bosh.views.result_documents import (
    address_document,
    instance_document,
    moved_document,
    plan_document,
    settings,
)
from tenure.wire import encode

CURRENT, OLDER, OWN = "current", "older", "own"
"""What a deployment was deployed with: the cloud configs in force, those of another time, or networks of its own."""

VM_STATE = "vm_state"
"""How faults name what VMs say."""

Report = Callable[[Deployments], Awaitable[DeploymentInstance | None]]

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class DeploymentService:
    """The deployments of a ledger, answered in shapes."""

    door: Deployments

    async def upload(self, name: str, text: str, *, dry: bool) -> shapes.UploadedConfig:
        """Put a cloud config in force. Whom it moves is asked first, while networks have the names instances know."""
        moves = await self.door.moved_by(text, name=name)
        return _uploaded(name, await self.door.upload_config(text, name=name, dry=dry), moves, dry=dry)

    async def remove_config(self, name: str, *, dry: bool) -> shapes.UploadedConfig:
        """Take a cloud config out of force: tried first, so that whom it moves is asked only if it can be."""
        tried = await self.door.remove_config(name, dry=True)
        moves = await self.door.moved_by(None, name=name)
        return _uploaded(name, tried if dry else await self.door.remove_config(name), moves, dry=dry)

    async def configs(self) -> list[shapes.CloudConfig]:
        """Read the cloud configs in force."""
        found = await self.door.configs()
        papers = () if found is None else found.papers
        return [
            shapes.CloudConfig(name=each.name, revision=each.revision, text=each.document["text"]) for each in papers
        ]

    async def deploy(self, body: shapes.ManifestBody, *, dry: bool) -> shapes.DeploymentPlan:
        """Deploy a manifest, or tell what that would do."""
        act = self.door.plan if dry else self.door.apply
        done = await act(
            body.manifest,
            document=body.document,
            recreate=body.recreate,
            hand_over=body.hand_over,
            vm_state=_vm_state(body.vm_state),
            fix=body.fix,
        )
        return answered(plan_document(done, applied=not dry), shapes.DeploymentPlan)

    async def every(self) -> list[shapes.DeploymentSummary]:
        """Read all deployments in numbers."""
        in_force = await self.door.configs()
        return [_summary(deployment, instances, in_force) for deployment, instances in await self.door.every()]

    async def standing(self, name: str) -> shapes.Deployment:
        """Read one deployment with its instances."""
        found = await self.door.standing(name)
        return shapes.Deployment(
            name=found.deployment.name,
            plan=found.deployment.plan,
            config=_config(found.deployment, current=found.up_to_date),
            instances=[answered(instance_told(each, found), shapes.DeployedInstance) for each in found.instances],
        )

    async def delete(self, name: str) -> list[shapes.DeployedInstance]:
        """Let a deployment go; return the instances whose VMs are to be deleted and reported first."""
        left = [{**instance_document(each), "settings": None} for each in await self.door.delete(name)]
        return [answered({**each, "leaving": True, "waits_for": "deletion"}, shapes.DeployedInstance) for each in left]

    async def abort(self, name: str, plan: str) -> shapes.TakenBack:
        """Take a plan back; return what was freed."""
        # Asked before the abort, which leaves no trace by which it could be known.
        open_still = (await self.door.standing(name)).can_take_back(plan)
        freed = await self.door.abort(name, plan)
        return shapes.TakenBack(taken_back=open_still, items=[encode.holding(each) for each in freed])

    async def report(self, deployment: str, report: Report) -> shapes.ReportedInstance:
        """Take a report; return how the instance stands then, or what it was if it is gone with this report."""
        instance = await report(self.door)
        assert instance is not None
        standing = await self.door.standing(deployment)
        document = {**instance_told(instance, standing), "gone": not standing.has(instance)}
        return answered(document, shapes.ReportedInstance)

    async def orphans(self) -> list[shapes.Orphan]:
        """Read the VMs that were replaced and are to be deleted."""
        return [_orphan(each) for each in await self.door.orphans()]


def _uploaded(name: str, done: Uploaded, moves: Sequence[Moved], *, dry: bool) -> shapes.UploadedConfig:
    document = {
        "name": name,
        "written": not dry,
        "networks": list(done.changed),
        "moves": [moved_document(each) for each in moves],
        "warnings": [fault.told() for fault in done.warnings],
    }
    return answered(document, shapes.UploadedConfig)


def _summary(
    deployment: Deployment, instances: Sequence[DeploymentInstance], in_force: Configs | None
) -> shapes.DeploymentSummary:
    current = in_force is not None and deployment.snapshot == in_force.snapshot
    return shapes.DeploymentSummary(
        name=deployment.name,
        plan=deployment.plan,
        config=_config(deployment, current=current),
        groups=sorted({each.group for each in instances}),
        instances=len(instances),
        waiting=sum(waits_for(each) is not None or bool(each.earlier) for each in instances),
        leaving=sum(each.leaving for each in instances),
        ignored=sum(each.ignored for each in instances),
        addresses=sum(len(each.holdings) for each in instances),
    )


def _config(deployment: Deployment, *, current: bool) -> str:
    if deployment.snapshot is None:
        return OWN
    return CURRENT if current else OLDER


def instance_told(instance: DeploymentInstance, found: DeploymentStatus) -> dict[str, Any]:
    """Write an instance with the settings that a VM of it is made with; one that leaves gets none."""
    made_with = None if instance.leaving else settings(instance, found.config_of(instance))
    return {**instance_document(instance), "settings": made_with}


def _vm_state(said: dict[str, shapes.VmState | None] | None) -> Mapping[str, VmState] | None:
    """Read what VMs say as the door does: so it is checked alike, and its faults have places."""
    return None if said is None else read_vm_state(msgspec.json.encode(said).decode(), VM_STATE)


def _orphan(orphan: Orphan) -> shapes.Orphan:
    return shapes.Orphan(
        vm=orphan.vm,
        deployment=orphan.deployment,
        instance=orphan.instance,
        addresses=[answered(address_document(each), shapes.HeldAddress) for each in orphan.holdings],
    )


def answered(document: dict[str, Any], shape: type[S]) -> S:
    """Answer one of the door's documents in its shape."""
    return msgspec.convert(document, shape)
