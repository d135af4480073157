"""More about deployments: how they differ and why, VMs made anew, cloud check, errands, compiles, managed networks."""

from typing import TYPE_CHECKING

from tenure.doors.http.routes.bosh.deployment_routes import (
    INSTANCE,
    deployment_of,
    deployments,
    desk_of,
    instance_of,
    reported,
    slashless,
)
from tenure.doors.http.routes.bosh.deployment_schemas import (
    Compile,
    DeployedInstance,
    DeploymentPlan,
    ReportBody,
    ReportedInstance,
)
from tenure.doors.http.routes.bosh.work_schemas import (
    CompileBody,
    DifferenceBody,
    DryRunBody,
    EndCompileBody,
    EndedCompile,
    ExplainedInstance,
    LostVmBody,
    ManagedNetwork,
    ManifestDifference,
    MissingVm,
    VmsBody,
    WorkerBody,
)
from tenure.doors.http.routing.endpoint import Call
from tenure.doors.http.routing.principal import Need
from tenure.wire import responses

if TYPE_CHECKING:
    from tenure.doors.http.routes.bosh.work_service import WorkService

__all__ = ["deployments"]

DEPLOYMENT = "/deployments/{deployment}"
ERRAND = "/deployments/{deployment}/errands/{errand}"


@deployments.route(
    "POST", "/deployments:diff", need=Need.READ, body=DifferenceBody, answer=ManifestDifference, keyed=False
)
async def diff_deployment(call: Call) -> ManifestDifference:
    """Tell how a manifest differs from what is deployed, and which networks changed in the cloud config since.

    What that means for addresses, :plan tells.
    """
    return await _desk(call).diff(call.body)


@deployments.route("GET", f"{INSTANCE}/why", need=Need.READ, answer=ExplainedInstance)
async def why_instance(call: Call) -> ExplainedInstance:
    """Explain why an instance has its addresses, since when and by which plan, and what would change them."""
    return await _desk(call).why(*instance_of(call))


@deployments.route(
    "POST", f"{DEPLOYMENT}:recreate", need=Need.ADMIN, body=DryRunBody, answer=DeploymentPlan, keyed=False
)
async def recreate_deployment(call: Call) -> DeploymentPlan:
    """Let all instances of a deployment wait for new VMs, without a deploy.

    Who waits already, is stopped hard, leaves or is ignored stays as it is, and so do errands at rest. The answer has
    who waits for a VM now, and with which settings it is to be made.
    """
    return await _desk(call).recreate(deployment_of(call), None, dry=call.body.dry_run)


@deployments.route("POST", f"{INSTANCE}:recreate", need=Need.ADMIN, body=DryRunBody, answer=DeploymentPlan, keyed=False)
async def recreate_instance(call: Call) -> DeploymentPlan:
    """Let an instance wait for a new VM, without a deploy; it keeps its addresses, unless VMs are swapped."""
    deployment, instance = instance_of(call)
    return await _desk(call).recreate(deployment, instance, dry=call.body.dry_run)


@deployments.route(
    "POST", f"{DEPLOYMENT}:check", need=Need.READ, body=VmsBody, answer=responses.Listing[MissingVm], keyed=False
)
async def check_deployment(call: Call) -> responses.Listing[MissingVm]:
    """Tell which instances lost their VMs, given all VMs that exist; ignored ones are left alone. Changes nothing."""
    return responses.Listing(items=await _desk(call).check(deployment_of(call), call.body.vms))


@deployments.route(
    "POST", f"{INSTANCE}:recreate_missing", need=Need.ADMIN, body=LostVmBody, answer=ReportedInstance, keyed=False
)
async def recreate_missing(call: Call) -> ReportedInstance:
    """Let an instance wait for a VM in place of a lost one, on what it has, with the settings it was deployed with."""
    return await reported(call, lambda door: door.recreate_missing(*instance_of(call), vm=call.body.vm))


@deployments.route(
    "POST", f"{INSTANCE}:delete_reference", need=Need.ADMIN, body=LostVmBody, answer=ReportedInstance, keyed=False
)
async def delete_reference(call: Call) -> ReportedInstance:
    """Forget an instance's VM; it keeps its addresses, and nobody gets what the VM may still have."""
    return await reported(call, lambda door: door.delete_reference(*instance_of(call), vm=call.body.vm))


@deployments.route("POST", f"{ERRAND}:run", need=Need.ADMIN, body=DryRunBody, answer=DeploymentPlan, keyed=False)
async def run_errand(call: Call) -> DeploymentPlan:
    """Reserve what the instances of an errand need to be run, all or nothing; what they have from before they keep.

    Report each VM with :commit, and the end with :end.
    """
    return await _desk(call).run_errand(deployment_of(call), _errand(call), dry=call.body.dry_run)


@deployments.route(
    "POST", f"{ERRAND}:end", need=Need.ADMIN, body=ReportBody, answer=responses.Listing[DeployedInstance], keyed=False
)
async def end_errand(call: Call) -> responses.Listing[DeployedInstance]:
    """Report that the VMs of an errand are deleted. Answers its instances, which keep their addresses."""
    return responses.Listing(items=await _desk(call).end_errand(deployment_of(call), _errand(call)))


@deployments.route("POST", f"{DEPLOYMENT}:compile", need=Need.ADMIN, body=CompileBody, answer=Compile, keyed=False)
async def compile_deployment(call: Call) -> Compile:
    """Reserve an address for each worker that compiles for the last plan of a deployment, all or none.

    The answer tells with which settings their VMs are to be made. Repeated, it tells the same workers. What a compile
    that broke off left is freed by the next deploy.
    """
    return await _desk(call).compile(deployment_of(call), call.body)


@deployments.route("POST", f"{DEPLOYMENT}:commit_worker", need=Need.ADMIN, body=WorkerBody, answer=Compile, keyed=False)
async def commit_worker(call: Call) -> Compile:
    """Report that the VM of a worker is up: it carries the worker's address, whatever becomes of the compile."""
    return await _desk(call).commit_worker(deployment_of(call), call.body)


@deployments.route(
    "POST", f"{DEPLOYMENT}:end_compile", need=Need.ADMIN, body=EndCompileBody, answer=EndedCompile, keyed=False
)
async def end_compile(call: Call) -> EndedCompile:
    """Report that all is compiled and the VMs of the workers are deleted, which frees their addresses.

    Where the cloud config says orphan_workers, the VMs are not deleted: they are orphans, and keep their addresses.
    """
    return await _desk(call).end_compile(deployment_of(call), call.body.plan)


@deployments.route("GET", "/managed-networks", need=Need.READ, answer=responses.Listing[ManagedNetwork])
async def list_managed_networks(call: Call) -> responses.Listing[ManagedNetwork]:
    """Read the managed networks that were made in the cloud. They are made and deleted in Python only."""
    return responses.Listing(items=await _desk(call).managed_networks())


def _desk(call: Call) -> "WorkService":
    """Open the door to deployments for work, if what it needs is there."""
    # Before the import, which would raise ModuleNotFoundError where desk_of raises NotInstalled.
    door = desk_of(call).door
    from tenure.doors.http.routes.bosh.work_service import WorkService

    return WorkService(door)


def _errand(call: Call) -> str:
    """Return the errand that the path names: a group, in whose name is no slash."""
    return slashless(call.params["errand"], kind="errand")
