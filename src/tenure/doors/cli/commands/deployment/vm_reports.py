"""Reports about the VMs of instances. Each may be repeated while it is true: it says how things are."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.deployment.open_deployments import (
    deployment_argument,
    instance_argument,
    run_on_deployments,
)
from tenure.doors.cli.commands.deployment.plan_text import addresses_text, ident, next_lines, settings_lines
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.output.print_answer import answer, table
from tenure.doors.cli.session import Session, pass_session

if TYPE_CHECKING:
    from tenure.integrations.bosh.cloud_config.site_survey import Orphan
    from tenure.integrations.bosh.deployments_api import Deployments
    from tenure.integrations.bosh.state.instance_state import DeploymentInstance
    from tenure.integrations.bosh.views.queries import DeploymentStatus

    Verb = Callable[[Deployments], Awaitable[DeploymentInstance | None]]

ORPHANS = {"VM": "vm", "DEPLOYMENT": "deployment", "INSTANCE": "instance", "ADDRESSES": "addresses"}
NO_ORPHANS = "no orphaned VMs"


def read_hints(context: click.Context, parameter: click.Parameter, pairs: Sequence[str]) -> dict[str, str]:
    """Read addresses that the IaaS picked, written as network=address."""
    hints: dict[str, str] = {}
    for pair in pairs:
        network, equals, address = pair.partition("=")
        if not equals or not network or not address:
            raise click.BadParameter(f"{pair!r} is not of the form NETWORK=ADDRESS", context, parameter)
        hints[network] = address
    return hints


@command("commit")
@deployment_argument
@instance_argument
@click.option("--vm", required=True, metavar="NAME", help="The VM that is up, by its name at the IaaS.")
@click.option(
    "--hint",
    "hints",
    multiple=True,
    metavar="NETWORK=ADDRESS",
    callback=read_hints,
    help="An address that the IaaS picked on a dynamic network; repeat for more.",
)
@click.option(
    "--plan",
    metavar="PLAN",
    help="The plan that the VM was made for; one of another plan is refused. Needed while there are earlier VMs.",
)
@pass_session
def commit(
    session: Session, deployment: str, instance: str, vm: str, hints: Mapping[str, str], plan: str | None
) -> None:
    """Report that an instance's VM is up with its settings; what that VM does not carry is freed.

    While an earlier VM with other settings is perhaps being made, `--plan` must say which one is up; `apply` and `show`
    print it.

    For example:
      tenure deployment commit shop web/0 --vm vm-8
    """
    _report(
        session,
        deployment,
        f"runs on {vm}",
        lambda door: door.commit(deployment, instance, vm=vm, hints=hints, plan=plan),
    )


@command("fail")
@deployment_argument
@instance_argument
@click.option(
    "--plan",
    metavar="PLAN",
    help="The plan that the VM was to be made for; another one is refused. Needed if several are perhaps being made.",
)
@pass_session
def fail(session: Session, deployment: str, instance: str, plan: str | None) -> None:
    """Report that an instance's VM could not be made; it keeps old and new addresses.

    The next good deploy frees what is not needed. Told of an earlier plan's VM, what was kept for that one alone is
    freed at once. Who leaves is gone when it has no VM and none is perhaps being made any more.

    For example:
      tenure deployment fail shop web/0
    """
    _report(session, deployment, "has no new VM", lambda door: door.fail(deployment, instance, plan=plan))


@command("lose")
@deployment_argument
@instance_argument
@click.option("--vm", metavar="NAME", help="The VM that is gone; refused if the instance has another by now.")
@pass_session
def lose(session: Session, deployment: str, instance: str, vm: str | None) -> None:
    """Report that an instance's VM is gone; who leaves is gone with it, others keep their addresses.

    Who leaves while another VM is perhaps being made for it is gone when that is reported as lost or failed, too.

    For example:
      tenure deployment lose shop web/0
    """
    _report(session, deployment, "lost its VM", lambda door: door.lose(deployment, instance, vm=vm))


@command("stop")
@deployment_argument
@instance_argument
@click.option("--hard", is_flag=True, help="Its VM is deleted, too; its addresses wait for it.")
@click.option("--vm", metavar="NAME", help="The VM that was stopped; refused if the instance has another by now.")
@pass_session
def stop(session: Session, deployment: str, instance: str, hard: bool, vm: str | None) -> None:
    """Report that an instance is stopped; it keeps its addresses.

    For example:
      tenure deployment stop shop web/0 --hard
    """
    done = "is stopped, and has no VM" if hard else "is stopped"
    _report(session, deployment, done, lambda door: door.stop(deployment, instance, hard=hard, vm=vm))


@command("start")
@deployment_argument
@instance_argument
@pass_session
def start(session: Session, deployment: str, instance: str) -> None:
    """Let an instance be started again; if it has no VM, one is to be made on the addresses it has.

    For example:
      tenure deployment start shop web/0
    """
    _report(session, deployment, "is started", lambda door: door.start(deployment, instance))


@command("ignore")
@deployment_argument
@instance_argument
@pass_session
def ignore(session: Session, deployment: str, instance: str) -> None:
    """Leave an instance out of deploys: whatever would change it is refused.

    For example:
      tenure deployment ignore shop web/0
    """
    _report(session, deployment, "is ignored by deploys", lambda door: door.ignore(deployment, instance))


@command("unignore")
@deployment_argument
@instance_argument
@pass_session
def unignore(session: Session, deployment: str, instance: str) -> None:
    """Take an ignored instance into deploys again.

    For example:
      tenure deployment unignore shop web/0
    """
    done = "takes part in deploys again"
    _report(session, deployment, done, lambda door: door.ignore(deployment, instance, ignored=False))


def _report(session: Session, deployment: str, done: str, verb: "Verb") -> None:
    """Take a report; tell how the instance stands then, and what is to be done and reported next."""
    instance, standing = run_on_deployments(session, lambda door: _reported(door, deployment, verb))
    # Imported behind the work: where PyYAML is missing, run_on_deployments says what to install.
    from tenure.integrations.bosh.views.result_documents import instance_document, settings

    document = {
        **instance_document(instance),
        "gone": not standing.has(instance),
        "settings": None if instance.leaving else settings(instance, standing.config_of(instance)),
    }
    answer(session, document, "\n".join(_report_lines(document, done, standing.deployment.plan)))


async def _reported(
    door: "Deployments", deployment: str, verb: "Verb"
) -> "tuple[DeploymentInstance, DeploymentStatus]":
    instance = await verb(door)
    assert instance is not None
    return instance, await door.standing(deployment)


def _report_lines(document: dict[str, Any], done: str, last_plan: str | None) -> Iterator[str]:
    who, has = f"{ident(document)} of deployment {document['deployment']}", addresses_text(document)
    if document["gone"]:
        yield f"{who} is gone; freed: {has}"
        return
    yield f"{who} {done}: {has}"
    if document["failed"]:
        yield _failed_line(document, last_plan)
        return
    following = list(next_lines(document["deployment"], [{**document, "instance": ident(document)}]))
    if following and document["waits_for"] == "vm":
        yield from settings_lines(document)
    if following:
        yield "next:"
        yield from following


def _failed_line(document: dict[str, Any], last_plan: str | None) -> str:
    """Tell how to try again, or to take back the plan: that of the last deploy, of an errand, or of VMs made anew."""
    name, group, plan = document["deployment"], document["group"], document["plan"]
    again = f"run-errand {name} {group}" if document["errand"] else "apply FILE"
    which = "" if plan in (None, last_plan) else f" --plan {plan}"
    # who is stopped hard gets no VM by a deploy
    first = f"`tenure deployment start {name} {ident(document)}`, then " if document["state"] == "detached" else ""
    aborts = f"`tenure deployment abort {name}{which}` takes the plan back"
    return f"{first}`tenure deployment {again}` tries again; {aborts}"


@command("cleanup-orphans")
@click.argument("vms", nargs=-1, metavar="[VM]...")
@pass_session
def clean_up_orphans(session: Session, vms: tuple[str, ...]) -> None:
    """Report that orphaned VMs are deleted, which frees their addresses; without VM, list them.

    An orphan is a VM that was swapped for a new one: it keeps its addresses until it is deleted.

    For example:
      tenure deployment cleanup-orphans
      tenure deployment cleanup-orphans vm-9
    """
    if not vms:
        found = [_orphan(each) for each in run_on_deployments(session, lambda door: door.orphans())]
        rows = found if session.json else [{**each, "addresses": addresses_text(each)} for each in found]
        table(session, rows, ORPHANS, nothing=NO_ORPHANS)
        return
    found = [_orphan(each) for each in run_on_deployments(session, lambda door: _cleaned_up(door, vms))]
    known = {each["vm"] for each in found}
    lines = [f"{each['vm']} is gone; freed: {addresses_text(each)}" for each in found]
    lines += [f"{vm} is no orphan, or was cleaned up before" for vm in vms if vm not in known]
    answer(session, found, "\n".join(lines))


async def _cleaned_up(door: "Deployments", vms: Sequence[str]) -> "list[Orphan]":
    # Read before the clean-up: afterwards the ledger no longer shows which addresses the orphans had.
    orphans = [orphan for orphan in await door.orphans() if orphan.vm in vms]
    for orphan in orphans:
        await door.clean_up_orphan(orphan.vm)
    return orphans


def _orphan(orphan: "Orphan") -> dict[str, Any]:
    from tenure.integrations.bosh.views.result_documents import address_document

    return {
        "vm": orphan.vm,
        "deployment": orphan.deployment,
        "instance": orphan.instance,
        "addresses": [address_document(held) for held in orphan.holdings],
    }
