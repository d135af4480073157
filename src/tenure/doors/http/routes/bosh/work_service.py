"""Work on deployments as the API answers it; like ``deployment_service``, loaded when it is asked."""

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.doors.http.routes.bosh import work_schemas as shapes
from tenure.doors.http.routes.bosh.deployment_schemas import Compile, DeployedInstance, DeploymentPlan
from tenure.doors.http.routes.bosh.deployment_service import DeploymentService, answered, instance_told
from tenure.integrations.bosh.state.compile_workers import Compiling
from tenure.integrations.bosh.state.instance_state import load_deployment
from tenure.integrations.bosh.views.result_documents import (
    compile_document,
    difference_document,
    managed_document,
    plan_document,
    why_document,
)
from tenure.kernel.errors import NotFound


@dataclass(frozen=True, slots=True)
class WorkService(DeploymentService):
    """The deployments of a ledger while they are worked on, answered in shapes."""

    async def diff(self, body: shapes.DifferenceBody) -> shapes.ManifestDifference:
        """Tell how a manifest differs from what is deployed."""
        found = await self.door.diff(body.manifest, document=body.document)
        return answered(difference_document(found), shapes.ManifestDifference)

    async def why(self, deployment: str, instance: str) -> shapes.ExplainedInstance:
        """Explain the addresses of an instance."""
        return answered(why_document(await self.door.why(deployment, instance)), shapes.ExplainedInstance)

    async def recreate(self, deployment: str, instance: str | None, *, dry: bool) -> DeploymentPlan:
        """Let an instance, or all, wait for new VMs; or tell what that would do."""
        done = await self.door.recreate(deployment, instance, dry=dry)
        return answered(plan_document(done, applied=not dry), DeploymentPlan)

    async def check(self, deployment: str, vms: Sequence[str]) -> list[shapes.MissingVm]:
        """Tell which instances lost their VMs."""
        missing = await self.door.check(deployment, frozenset(vms))
        found = await self.door.standing(deployment)
        return [
            answered({"vm": each.vm, "instance": instance_told(each.instance, found)}, shapes.MissingVm)
            for each in missing
        ]

    async def run_errand(self, deployment: str, errand: str, *, dry: bool) -> DeploymentPlan:
        """Reserve what an errand needs to be run; or tell what that would be."""
        done = await self.door.run_errand(deployment, errand, dry=dry)
        return answered(plan_document(done, applied=not dry), DeploymentPlan)

    async def end_errand(self, deployment: str, errand: str) -> list[DeployedInstance]:
        """Let an errand rest; return its instances."""
        rest = await self.door.end_errand(deployment, errand)
        found = await self.door.standing(deployment)
        return [answered(instance_told(each, found), DeployedInstance) for each in rest]

    async def compile(self, deployment: str, body: shapes.CompileBody) -> Compile:
        """Reserve an address for each worker."""
        return _compile(await self.door.begin_compiling(deployment, body.plan, workers=body.workers))

    async def commit_worker(self, deployment: str, body: shapes.WorkerBody) -> Compile:
        """Take the report that a worker's VM is up; return the compile it is of."""
        await self._check_known(deployment)
        await self.door.commit_worker(deployment, body.plan, body.number, vm=body.vm)
        found = await self.door.compiling(deployment)
        if found is None:  # it was ended in this moment
            raise NotFound("compile worker", str(body.number), of=f"deployment {deployment}", field="number")
        return _compile(found)

    async def end_compile(self, deployment: str, plan: str | None) -> shapes.EndedCompile:
        """Take the report that a compile is over."""
        await self._check_known(deployment)
        ended = await self.door.end_compiling(deployment, plan)
        done = None if ended is None else _compile(ended)
        return shapes.EndedCompile(deployment=deployment, ended=ended is not None, compile=done)

    async def managed_networks(self) -> list[shapes.ManagedNetwork]:
        """Read the managed networks that were made."""
        return [answered(managed_document(each), shapes.ManagedNetwork) for each in await self.door.managed_networks()]

    async def _check_known(self, deployment: str) -> None:
        if await load_deployment(self.door.ledger, deployment) is None:
            raise NotFound("deployment", deployment)


def _compile(compiling: Compiling) -> Compile:
    return answered(compile_document(compiling), Compile)
