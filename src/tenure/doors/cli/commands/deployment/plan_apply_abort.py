"""Plans from their beginning to their end: shown, applied, taken back; and how a deployment goes."""

import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.deployment.open_deployments import (
    deployment_argument,
    file_argument,
    read_document,
    run_on_deployments,
)
from tenure.doors.cli.commands.deployment.plan_text import applied_lines, ident, next_lines, planned_lines, without_kept
from tenure.doors.cli.framework.click_base import command, with_options
from tenure.doors.cli.framework.exit_codes import FINDINGS
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, missing_file, pass_session

if TYPE_CHECKING:
    from tenure.integrations.bosh.deployments_api import Deployments
    from tenure.integrations.bosh.state.instance_state import DeploymentInstance
    from tenure.integrations.bosh.verbs.deploy import Deployed
    from tenure.kernel.holdings.holding_model import Holding

    Act = Callable[..., Awaitable[Deployed]]

plan_options = with_options(
    click.option("--recreate", is_flag=True, help="Have every VM made anew, also where nothing changed."),
    click.option(
        "--hand-over", is_flag=True, help="Let instances wait for addresses that others of the deployment give up."
    ),
    click.option(
        "--vm-state",
        type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
        metavar="FILE",
        help="What running VMs say, in YAML or JSON: needed without a cloud config, and at the first deploy with one.",
    ),
    click.option("--vm-state-from", metavar="COMMAND", help="Run this, and read what running VMs say from its output."),
    click.option("--fix", is_flag=True, help="Have VMs made anew that did not answer, instead of a refusal."),
    click.option(
        "--changes", "changes_only", is_flag=True, help="Leave out who is kept, if no VM of it is to be reported."
    ),
)
NOTHING_LEFT = (
    "nothing is left of plan {plan} of deployment {deployment} to take back: it is done, was taken back before, or "
    "never was"
)

exit_code_option = click.option("--exit-code", is_flag=True, help="Exit with 1 if there is anything to do.")


@command("plan")
@file_argument
@plan_options
@exit_code_option
@click.pass_context
@pass_session
def plan(
    session: Session, context: click.Context, file: Path, changes_only: bool, exit_code: bool, **said: Any
) -> None:
    """Tell what `apply` would do with a manifest, with the addresses it would reserve; nothing is changed.

    Who is moved is shown with the old address and the new one.

    For example:
      tenure deployment plan shop.yml
      tenure deployment plan shop.yml --recreate --changes
    """
    deploy = _wish(file, said)
    found = run_on_deployments(session, lambda door: deploy(door.plan), try_on_new=True)
    # Imported behind the work, here and below: where PyYAML is missing, run_on_deployments says what to install.
    from tenure.integrations.bosh.views.result_documents import plan_document

    whole = plan_document(found, applied=False)
    told = without_kept(whole) if changes_only else whole
    answer(session, told, "\n".join(planned_lines(told, _apply_command(file, said))))
    if exit_code and found.changes:
        context.exit(FINDINGS)


def _wish(file: Path, said: Mapping[str, Any]) -> "Callable[[Act], Awaitable[Deployed]]":
    """Read what is to be deployed, and return how to plan or to apply it."""
    if said["vm_state"] is not None and said["vm_state_from"] is not None:
        raise click.UsageError("--vm-state and --vm-state-from exclude each other")
    # Read here and once: `apply` may deploy twice, and standard input can be read only once.
    document, text = read_document(file)
    reports = None if said["vm_state"] is None else read_document(said["vm_state"])
    orders = {key: said[key] for key in ("recreate", "hand_over", "fix")}

    async def deploy(act: "Act") -> "Deployed":
        from tenure.integrations.bosh.running_vms.vm_state import ask_command, read_vm_state

        heard = None if reports is None else read_vm_state(reports[1], reports[0])
        if said["vm_state_from"] is not None:
            heard = await ask_command(said["vm_state_from"])
        return await act(text, document=document, vm_state=heard, **orders)

    return deploy


def _apply_command(file: Path, said: Mapping[str, Any]) -> str:
    """Write the command that applies what was planned; where VMs were asked, with what they say."""
    words = ["tenure", "deployment", "apply", str(file)]
    words += [f"--{name}" for name in ("recreate", "hand-over", "fix") if said[name.replace("-", "_")]]
    for name in ("vm-state", "vm-state-from"):
        value = said[name.replace("-", "_")]
        words += [] if value is None else [f"--{name}", str(value)]
    return shlex.join(words)


@command("apply")
@file_argument
@plan_options
@pass_session
def apply(session: Session, file: Path, changes_only: bool, **said: Any) -> None:
    """Reserve all that a manifest wants, or nothing; print every VM's settings, and what to report next.

    Nothing is freed before all that is wanted is reserved. Where nothing is to do, nothing is written.

    For example:
      tenure deployment apply shop.yml
    """
    deploy = _wish(file, said)
    if missing_file(session.url):  # a ledger is begun only by a manifest that can do without: with its own networks
        run_on_deployments(session, lambda door: deploy(door.plan), try_on_new=True)
    found = run_on_deployments(session, lambda door: deploy(door.apply), may_make=True)
    from tenure.integrations.bosh.views.result_documents import plan_document

    whole = plan_document(found, applied=True)
    told = without_kept(whole) if changes_only else whole
    answer(session, told, "\n".join(applied_lines(told, f"tenure deployment abort {told['deployment']}")))


@command("abort")
@deployment_argument
@click.option("--plan", "name", metavar="PLAN", help="Which plan; else the last one that was applied.")
@pass_session
def abort(session: Session, deployment: str, name: str | None) -> None:
    """Take a plan back: what it reserved and no VM carries is freed, what it was to give up is kept.

    For example:
      tenure deployment abort shop
    """
    wanted, open_still, freed = run_on_deployments(session, lambda door: _abort(door, deployment, name))
    from tenure.integrations.bosh.views.result_documents import address_document

    addresses = [address_document(held) for held in freed]
    told = ", ".join(f"{each['network']} {each['address']}" for each in addresses) or "nothing"
    document = {"deployment": deployment, "plan": wanted, "taken_back": open_still, "freed": addresses}
    text = f"took back plan {wanted} of deployment {deployment}; freed: {told}"
    answer(session, document, text if open_still else NOTHING_LEFT.format(plan=wanted, deployment=deployment))


async def _abort(door: "Deployments", deployment: str, plan: str | None) -> "tuple[str | None, bool, list[Holding]]":
    standing = await door.standing(deployment)
    wanted = plan or standing.deployment.plan
    if wanted is None:
        return None, False, []
    # can_take_back is asked of the state before the abort.
    return wanted, standing.can_take_back(wanted), await door.abort(deployment, wanted)


@command("delete")
@deployment_argument
@pass_session
def delete(session: Session, deployment: str) -> None:
    """Let a deployment go; its addresses are freed one by one, when its VMs are deleted.

    Who has no VM, and waits for none that is perhaps being made, is gone at once. Run it again when all VMs are deleted
    and reported: then the deployment is gone.

    For example:
      tenure deployment delete shop
    """
    left, orphans = run_on_deployments(session, lambda door: _delete(door, deployment))
    from tenure.integrations.bosh.views.result_documents import instance_document

    waiting = [instance_document(each) for each in left]
    document = {"deployment": deployment, "gone": not left, "waiting": waiting, "orphans": orphans}
    answer(session, document, "\n".join(_delete_text(document)))


async def _delete(door: "Deployments", deployment: str) -> "tuple[list[DeploymentInstance], list[str]]":
    left = await door.delete(deployment)
    return left, [each.vm for each in await door.orphans() if each.deployment == deployment]


def _delete_text(document: dict[str, Any]) -> Iterator[str]:
    name, waiting = document["deployment"], document["waiting"]
    if document["gone"] and document["orphans"]:
        yield f"deployment {name} is gone, and its addresses are free, but for what its orphans have"
        vms = shlex.join(document["orphans"])
        yield f"orphans: `tenure deployment cleanup-orphans {vms}` when they are deleted"
        return
    if document["gone"]:
        yield f"deployment {name} is gone, and its addresses are free"
        return
    yield f"deployment {name} goes when its VMs are deleted"
    yield "next:"
    yield from next_lines(name, [{**each, "instance": ident(each)} for each in waiting])
    yield f"then `tenure deployment delete {name}` once more"
