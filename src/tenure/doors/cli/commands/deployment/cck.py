"""Cloud check: instances whose VMs are gone without a report, and what is done about them."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.deployment.open_deployments import deployment_argument, read_document, run_on_deployments
from tenure.doors.cli.commands.deployment.plan_apply_abort import exit_code_option
from tenure.doors.cli.commands.deployment.plan_text import addresses_text, ident, next_lines, settings_lines
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.complete_names import complete_deployed_instance
from tenure.doors.cli.framework.exit_codes import FINDINGS
from tenure.doors.cli.output.print_answer import answer, table_lines
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.errors import Invalid
from tenure.kernel.names import check_name

if TYPE_CHECKING:
    from tenure.integrations.bosh.deployments_api import Deployments
    from tenure.integrations.bosh.state.instance_state import DeploymentInstance
    from tenure.integrations.bosh.verbs.cloud_check import Missing

RECREATE, FORGET = "recreate", "forget"
GONE = {"VM": "vm", "INSTANCE": "instance", "AZ": "az", "ADDRESSES": "addresses"}
BOM = "\ufeff"
"""What some editors begin a file with: it is inside where files were joined."""

ALL_THERE = "deployment {deployment}: no VM is missing"
DO_NEXT = """\
`tenure deployment cck {deployment} --vms {file} --recreate` lets them wait for new VMs, on what they have;
--forget instead only forgets the VMs, and the next deploy makes others; INSTANCE does so for some of them"""


@command("cck")
@deployment_argument
@click.argument("instances", nargs=-1, metavar="[INSTANCE]...", shell_complete=complete_deployed_instance)
@click.option(
    "--vms",
    "file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="All VMs that the IaaS has, by name, one a line; those of others do no harm.",
)
@click.option("--recreate", "resolution", flag_value=RECREATE, help="Let who lost a VM wait for a new one.")
@click.option("--forget", "resolution", flag_value=FORGET, help="Forget the VMs; who had them keeps the addresses.")
@exit_code_option
@click.pass_context
@pass_session
def cck(
    session: Session,
    context: click.Context,
    deployment: str,
    instances: tuple[str, ...],
    file: Path,
    resolution: str | None,
    exit_code: bool,
) -> None:
    """Tell which instances lost their VMs, given all VMs that exist; ignored ones are left alone.

    Nobody loses an address by that. New VMs get the settings that the lost ones were deployed with.

    For example:
      tenure deployment cck shop --vms vms.txt
      tenure deployment cck shop web/0 --vms vms.txt --recreate
    """
    vms = _read_vms(file)
    if resolution is not None and not vms and not instances:
        raise Invalid(f"vms: {file} names no VM, so all would be gone; if that is so, name the instances", field="vms")
    found = run_on_deployments(session, lambda door: _checked(door, deployment, vms, instances, resolution))
    document = {"deployment": deployment, "missing": found}
    answer(session, document, "\n".join(_lines(document, shlex.quote(str(file)))))
    if exit_code and found:
        context.exit(FINDINGS)


def _read_vms(file: Path) -> list[str]:
    """Read names of VMs, one a line; what is no name is told with its line."""
    name, text = read_document(file)
    vms = []
    for number, line in enumerate(text.splitlines(), start=1):
        if vm := line.strip().removeprefix(BOM):
            try:
                vms.append(check_name(vm, field="vms"))
            except Invalid as error:
                raise Invalid(f"{name}:{number}: {error.message}", field="vms") from None
    return vms


async def _checked(
    door: "Deployments", deployment: str, vms: Sequence[str], named: Sequence[str], resolution: str | None
) -> list[dict[str, Any]]:
    """Look for lost VMs, and do about each what is to be done."""
    missing = await door.check(deployment, vms)
    if named:
        meant = {(await door.instance(deployment, each)).uuid for each in named}
        missing = [each for each in missing if each.instance.uuid in meant]
    return [await _resolved(door, each, resolution) for each in missing]


async def _resolved(door: "Deployments", missing: "Missing", resolution: str | None) -> dict[str, Any]:
    """Do what is to be done about a lost VM; who leaves needs none, and goes with the report that it is gone."""
    from tenure.integrations.bosh.views.result_documents import instance_document, settings

    before = missing.instance
    wanted = None if before.leaving else resolution
    after: DeploymentInstance = before
    # Both verbs name the VM: if the instance has another by now, nothing is done to that one.
    if wanted == RECREATE:
        after = await door.recreate_missing(before.deployment, before.name, vm=missing.vm)
    elif wanted == FORGET:
        after = await door.delete_reference(before.deployment, before.name, vm=missing.vm)
    config = (await door.standing(before.deployment)).config_of(after)
    told = {**instance_document(after), "settings": None if after.leaving else settings(after, config)}
    return {"vm": missing.vm, "resolution": wanted, "instance": told}


def _lines(document: dict[str, Any], file: str) -> Iterator[str]:
    name, missing = document["deployment"], document["missing"]
    if not missing:
        yield ALL_THERE.format(deployment=name)
        return
    open_ones = [each for each in missing if each["resolution"] is None]
    for each in missing:
        yield from _resolved_lines(each) if each not in open_ones else ()
    if open_ones:
        yield f"deployment {name}: these VMs are gone"
        yield from table_lines([_row(each) for each in open_ones], GONE)
    waiting = [_named(each) for each in missing if each["resolution"] is not None or each["instance"]["leaving"]]
    following = list(next_lines(name, waiting))
    if following:
        yield "next:"
        yield from following
    if any(not each["instance"]["leaving"] for each in open_ones):
        yield DO_NEXT.format(deployment=name, file=file)


def _resolved_lines(lost: dict[str, Any]) -> Iterator[str]:
    instance = lost["instance"]
    done = "waits for a VM in place of" if lost["resolution"] == RECREATE else "has forgotten its VM"
    yield f"{ident(instance)} of deployment {instance['deployment']} {done} {lost['vm']}: {addresses_text(instance)}"
    if instance["waits_for"] == "vm":
        yield from settings_lines(instance)


def _row(lost: dict[str, Any]) -> dict[str, Any]:
    return {**_named(lost), "vm": lost["vm"], "addresses": addresses_text(lost["instance"])}


def _named(lost: dict[str, Any]) -> dict[str, Any]:
    return {**lost["instance"], "instance": ident(lost["instance"])}
