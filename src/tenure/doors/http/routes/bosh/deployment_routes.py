"""Deployments: cloud configs, plans, and what is reported of instances, their VMs and orphans."""

from typing import TYPE_CHECKING

from tenure.doors.http.routes.bosh.deployment_schemas import (
    AbortBody,
    CloudConfig,
    CloudConfigBody,
    CommitBody,
    ConfigRemovalBody,
    DeployedInstance,
    Deployment,
    DeploymentPlan,
    DeploymentSummary,
    FailBody,
    LoseBody,
    ManifestBody,
    Orphan,
    ReportBody,
    ReportedInstance,
    StopBody,
    TakenBack,
    UploadedConfig,
)
from tenure.doors.http.routing.endpoint import Call, RouteSection
from tenure.doors.http.routing.principal import Need
from tenure.kernel.errors import NotFound
from tenure.kernel.extras import how_to_install
from tenure.kernel.names import check_name
from tenure.wire import encode, responses
from tenure.wire.http_errors import NotInstalled

if TYPE_CHECKING:
    from tenure.doors.http.routes.bosh.deployment_service import DeploymentService, Report

deployments = RouteSection("deployments", "What manifests want, and what their instances have.", apart=True)

INSTANCE = "/deployments/{deployment}/instances/{instance_group}/{ident}"
MISSING = f"PyYAML is missing, without which no manifest can be read; on the server: {how_to_install('deployments')}"


@deployments.route("GET", "/cloud-configs", need=Need.READ, answer=responses.Listing[CloudConfig])
async def list_cloud_configs(call: Call) -> responses.Listing[CloudConfig]:
    """Read the cloud configs in force, in order of name; all of them are read as if they were one."""
    return responses.Listing(items=await desk_of(call).configs())


@deployments.route("PUT", "/cloud-configs/{config}", need=Need.ADMIN, body=CloudConfigBody, answer=UploadedConfig)
async def upload_cloud_config(call: Call) -> UploadedConfig:
    """Put a cloud config in force: it is checked whole, and every fault is told at once, in data.faults.

    Nobody is moved by that: whose address no longer fits is told now, and gets another at the next deploy. With dry_run
    nothing is changed.
    """
    name = check_name(call.params["config"], field="config")
    return await desk_of(call).upload(name, call.body.text, dry=call.body.dry_run)


@deployments.route(
    "POST",
    "/cloud-configs/{config}:delete",
    need=Need.ADMIN,
    body=ConfigRemovalBody,
    answer=UploadedConfig,
    keyed=False,
)
async def delete_cloud_config(call: Call) -> UploadedConfig:
    """Take a cloud config out of force: its networks go, but for what is held in them. The last config stays (409).

    To empty that, put one with networks: [{name: none, type: dynamic}] in force. With dry_run nothing is changed.
    """
    name = check_name(call.params["config"], field="config")
    return await desk_of(call).remove_config(name, dry=call.body.dry_run)


@deployments.route("POST", "/deployments:plan", need=Need.ADMIN, body=ManifestBody, answer=DeploymentPlan, keyed=False)
async def plan_deployment(call: Call) -> DeploymentPlan:
    """Tell what :apply would do with a manifest, with the addresses that it would reserve; nothing is changed."""
    return await desk_of(call).deploy(call.body, dry=True)


@deployments.route("POST", "/deployments:apply", need=Need.ADMIN, body=ManifestBody, answer=DeploymentPlan, keyed=False)
async def apply_deployment(call: Call) -> DeploymentPlan:
    """Reserve all that a manifest wants, or nothing; the answer tells which VMs are to be made, with which settings.

    Repeated, it reserves nothing more. Faults of the manifest (422) and what cannot be had (409) are in data.faults.
    """
    return await desk_of(call).deploy(call.body, dry=False)


@deployments.route("GET", "/deployments", need=Need.READ, answer=responses.Listing[DeploymentSummary])
async def list_deployments(call: Call) -> responses.Listing[DeploymentSummary]:
    """Read all deployments in numbers, in order of name."""
    return responses.Listing(items=await desk_of(call).every())


@deployments.route("GET", "/deployments/{deployment}", need=Need.READ, answer=Deployment)
async def get_deployment(call: Call) -> Deployment:
    """Read a deployment: its instances with their states, VMs, addresses and network settings."""
    return await desk_of(call).standing(deployment_of(call))


@deployments.route(
    "POST",
    "/deployments/{deployment}:delete",
    need=Need.ADMIN,
    body=ReportBody,
    answer=responses.Listing[DeployedInstance],
    keyed=False,
)
async def delete_deployment(call: Call) -> responses.Listing[DeployedInstance]:
    """Let a deployment go. Answers the instances whose VMs are to be deleted: report each with :lose, then repeat this.

    Who has no VM, and waits for none that is perhaps being made, is gone at once. An empty list is the end of it.
    """
    return responses.Listing(items=await desk_of(call).delete(deployment_of(call)))


@deployments.route(
    "POST",
    "/deployments/{deployment}:abort",
    need=Need.ADMIN,
    body=AbortBody,
    answer=TakenBack,
    keyed=False,
)
async def abort_deployment(call: Call) -> TakenBack:
    """Take a plan back: exactly what it reserved and no VM carries is freed, and answered.

    Of a plan that is done, was taken back before or never was, nothing is: taken_back is false then.
    """
    return await desk_of(call).abort(deployment_of(call), call.body.plan)


@deployments.route("POST", f"{INSTANCE}:commit", need=Need.ADMIN, body=CommitBody, answer=ReportedInstance, keyed=False)
async def commit_instance(call: Call) -> ReportedInstance:
    """Report that an instance's VM is up with its settings: what the VM does not carry is freed."""
    said = call.body
    return await reported(
        call, lambda door: door.commit(*instance_of(call), vm=said.vm, hints=said.hints, plan=said.plan)
    )


@deployments.route("POST", f"{INSTANCE}:fail", need=Need.ADMIN, body=FailBody, answer=ReportedInstance, keyed=False)
async def fail_instance(call: Call) -> ReportedInstance:
    """Report that an instance's VM could not be made: it keeps old and new addresses until the next good deploy."""
    return await reported(call, lambda door: door.fail(*instance_of(call), plan=call.body.plan))


@deployments.route("POST", f"{INSTANCE}:lose", need=Need.ADMIN, body=LoseBody, answer=ReportedInstance, keyed=False)
async def lose_instance(call: Call) -> ReportedInstance:
    """Report that an instance's VM is gone. One that leaves is gone with it; others keep their addresses.

    One that leaves while another VM is perhaps being made for it is gone when that is reported as lost or failed, too.
    """
    return await reported(call, lambda door: door.lose(*instance_of(call), vm=call.body.vm))


@deployments.route("POST", f"{INSTANCE}:stop", need=Need.ADMIN, body=StopBody, answer=ReportedInstance, keyed=False)
async def stop_instance(call: Call) -> ReportedInstance:
    """Report that an instance is stopped; it keeps its addresses, with hard also though its VM is gone."""
    return await reported(call, lambda door: door.stop(*instance_of(call), hard=call.body.hard, vm=call.body.vm))


@deployments.route("POST", f"{INSTANCE}:start", need=Need.ADMIN, body=ReportBody, answer=ReportedInstance, keyed=False)
async def start_instance(call: Call) -> ReportedInstance:
    """Let an instance be started again; if it has no VM, one is to be made on the addresses it has."""
    return await reported(call, lambda door: door.start(*instance_of(call)))


@deployments.route("POST", f"{INSTANCE}:ignore", need=Need.ADMIN, body=ReportBody, answer=ReportedInstance, keyed=False)
async def ignore_instance(call: Call) -> ReportedInstance:
    """Leave an instance out of deploys: whatever would change it is refused."""
    return await reported(call, lambda door: door.ignore(*instance_of(call)))


@deployments.route(
    "POST", f"{INSTANCE}:unignore", need=Need.ADMIN, body=ReportBody, answer=ReportedInstance, keyed=False
)
async def unignore_instance(call: Call) -> ReportedInstance:
    """Take an ignored instance into deploys again."""
    return await reported(call, lambda door: door.ignore(*instance_of(call), ignored=False))


@deployments.route("GET", "/orphans", need=Need.READ, answer=responses.Listing[Orphan])
async def list_orphans(call: Call) -> responses.Listing[Orphan]:
    """Read the VMs that were replaced and are to be deleted, with the addresses that they keep until then."""
    return responses.Listing(items=await desk_of(call).orphans())


@deployments.route(
    "POST",
    "/orphans/{vm}:clean_up",
    need=Need.ADMIN,
    body=ReportBody,
    answer=responses.Listing[responses.Holding],
    keyed=False,
)
async def clean_up_orphan(call: Call) -> responses.Listing[responses.Holding]:
    """Report that an orphaned VM is deleted: its addresses are freed, and answered. Of no orphan nothing is freed."""
    found = await desk_of(call).door.clean_up_orphan(check_name(call.params["vm"], field="vm"))
    return responses.Listing(items=[encode.holding(each) for each in found])


def desk_of(call: Call) -> "DeploymentService":
    """Open the door to deployments, if what it needs is there."""
    try:
        from tenure.doors.http.routes.bosh.deployment_service import DeploymentService
        from tenure.integrations.bosh.deployments_api import Deployments
    except ModuleNotFoundError as error:
        # Only the optional package may be missing; any other module that is not found is an error of ours.
        if error.name != "yaml":
            raise
        raise NotInstalled(MISSING) from None
    return DeploymentService(Deployments(call.ledger))


async def reported(call: Call, report: "Report") -> ReportedInstance:
    """Take a report about the instance that the path names."""
    return await desk_of(call).report(deployment_of(call), report)


def deployment_of(call: Call) -> str:
    """Return the deployment that the path names; none has a slash in its name, behind which groups begin."""
    return slashless(check_name(call.params["deployment"], field="deployment"), kind="deployment")


def instance_of(call: Call) -> tuple[str, str]:
    """Return the deployment and the instance that the path names, as the door takes them."""
    group = slashless(call.params["instance_group"], kind="instance_group")
    return deployment_of(call), f"{group}/{call.params['ident']}"


def slashless(name: str, *, kind: str) -> str:
    """Return a name in which there is no slash: no deployment or group has one in its name."""
    if "/" in name:
        raise NotFound(kind, name)
    return name
