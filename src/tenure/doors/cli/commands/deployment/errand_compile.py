"""Work on a deployment as it was last deployed: VMs made anew, errands, and workers that compile."""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.deployment.open_deployments import deployment_argument, run_on_deployments
from tenure.doors.cli.commands.deployment.plan_text import (
    addresses_text,
    applied_lines,
    ident,
    planned_lines,
    settings_lines,
)
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.complete_names import complete_deployed_instance
from tenure.doors.cli.output.print_answer import answer, counted
from tenure.doors.cli.session import Session, pass_session

if TYPE_CHECKING:
    from tenure.integrations.bosh.deployments_api import Deployments
    from tenure.integrations.bosh.state.compile_workers import Compiling
    from tenure.integrations.bosh.verbs.deploy import Deployed

UP_ALREADY = (
    "no VM is to be made anew: who waits for one already, is stopped hard, leaves or is ignored stays as it is, and so "
    "do errands at rest; `tenure deployment show {deployment}` tells who that is"
)
RUNS_ALREADY = "nothing to report: the VMs of errand {errand} are there"

dry_run_option = click.option("--dry-run", is_flag=True, help="Only tell what would be done; nothing is changed.")
errand_argument = click.argument("errand")
plan_option = click.option("--plan", metavar="PLAN", help="The plan to compile for, to be sure that it is no other's.")


@command("recreate")
@deployment_argument
@click.argument("instance", required=False, shell_complete=complete_deployed_instance)
@dry_run_option
@pass_session
def recreate(session: Session, deployment: str, instance: str | None, dry_run: bool) -> None:
    """Let an instance, or all of a deployment, wait for a new VM, without a deploy.

    It goes by the manifest and the cloud config that were last deployed. Addresses stay, but for VMs that are swapped
    (create-swap-delete): those come beside the old ones, on new addresses.

    For example:
      tenure deployment recreate shop web/0
      tenure deployment recreate shop --dry-run
    """
    done = run_on_deployments(session, lambda door: door.recreate(deployment, instance, dry=dry_run))
    does = ["tenure", "deployment", "recreate", deployment, *([] if instance is None else [instance])]
    _tell(session, done, shlex.join(does), dry_run=dry_run, nothing=UP_ALREADY.format(deployment=deployment))


@command("run-errand")
@deployment_argument
@errand_argument
@dry_run_option
@pass_session
def run_errand(session: Session, deployment: str, errand: str, dry_run: bool) -> None:
    """Reserve what the instances of an errand need to be run, all or nothing.

    What they have from before they keep. An errand is a group whose `lifecycle` is `errand`. Report each VM with
    `commit`, and the end with `end-errand`.

    For example:
      tenure deployment run-errand shop smoke-test
    """
    done = run_on_deployments(session, lambda door: door.run_errand(deployment, errand, dry=dry_run))
    does = shlex.join(["tenure", "deployment", "run-errand", deployment, errand])
    ends = shlex.join(["tenure", "deployment", "end-errand", deployment, errand])
    nothing = RUNS_ALREADY.format(errand=errand)
    _tell(session, done, does, dry_run=dry_run, nothing=nothing, then=f"`{ends}` when its VMs are deleted again")


def _tell(
    session: Session, done: "Deployed", does: str, *, dry_run: bool, nothing: str, then: str | None = None
) -> None:
    """Tell what was done, or would be; ``nothing`` where there is nothing to do, ``then`` what follows at the end."""
    from tenure.integrations.bosh.views.result_documents import plan_document

    plan = plan_document(done, applied=not dry_run)
    aborts = f"tenure deployment abort {plan['deployment']} --plan {plan['plan']}"
    lines = list(planned_lines(plan, does) if dry_run else applied_lines(plan, aborts))
    if not plan["changes"]:
        lines = [nothing]
    answer(session, plan, "\n".join([*lines, *([] if dry_run or then is None else [then])]))


@command("end-errand")
@deployment_argument
@errand_argument
@pass_session
def end_errand(session: Session, deployment: str, errand: str) -> None:
    """Report that the VMs of an errand are deleted, and none is being made any more.

    Its instances keep their addresses for the next run; what a deploy gave up for them meanwhile is free.

    For example:
      tenure deployment end-errand shop smoke-test
    """
    found = run_on_deployments(session, lambda door: door.end_errand(deployment, errand))
    # Imported behind the work, here and below: where PyYAML is missing, run_on_deployments says what to install.
    from tenure.integrations.bosh.views.result_documents import instance_document

    rest = [instance_document(each) for each in found]
    document = {"deployment": deployment, "errand": errand, "instances": rest}
    lines = [f"errand {errand} of deployment {deployment} rests", *(f"  {_kept(each)}" for each in rest)]
    answer(session, document, "\n".join(lines))


def _kept(instance: dict[str, Any]) -> str:
    return f"{ident(instance)} keeps: {addresses_text(instance)}"


@command("compile")
@deployment_argument
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="At most so many; else what the config says.")
@plan_option
@pass_session
def compile_packages(session: Session, deployment: str, workers: int | None, plan: str | None) -> None:
    """Reserve an address for each worker that compiles for the last plan, all or none.

    How many there are, and in which network, the `compilation` of the cloud config says. Repeated, it tells the same
    workers. What a compile that broke off left is freed by the next deploy.

    For example:
      tenure deployment compile shop --workers 2
    """
    begun = run_on_deployments(session, lambda door: door.begin_compiling(deployment, plan, workers=workers))
    from tenure.integrations.bosh.views.result_documents import compile_document

    document = compile_document(begun)
    answer(session, document, "\n".join(_compile_lines(document)))


def _compile_lines(document: dict[str, Any]) -> Iterator[str]:
    name, workers = document["deployment"], document["workers"]
    yield f"{counted({'workers': len(workers)})} for plan {document['plan']} of deployment {name}"
    for each in workers:
        yield f"worker {each['number']}: " + ("no VM yet" if each["vm"] is None else f"runs on {each['vm']}")
        yield from settings_lines(each)
    yield "next:"
    for each in workers:
        if each["vm"] is None:
            command = f"tenure deployment commit-worker {name} {each['number']} --vm VM"
            yield f"  worker {each['number']}: make its VM with the settings above, then `{command}`"
    yield f"`tenure deployment end-compile {name}` when all is compiled and the VMs are deleted"


@command("commit-worker")
@deployment_argument
@click.argument("number", type=click.IntRange(min=0))
@click.option("--vm", required=True, metavar="NAME", help="The VM that is up, by its name at the IaaS.")
@plan_option
@pass_session
def commit_worker(session: Session, deployment: str, number: int, vm: str, plan: str | None) -> None:
    """Report that the VM of a worker is up: it carries the worker's address.

    That is so whatever becomes of the compile.

    For example:
      tenure deployment commit-worker shop 0 --vm vm-20
    """
    found = run_on_deployments(session, lambda door: _commit(door, deployment, plan, number, vm))
    from tenure.integrations.bosh.views.result_documents import compile_document

    document = None if found is None else compile_document(found)
    answer(session, document, f"worker {number} of deployment {deployment} runs on {vm}")


async def _commit(door: "Deployments", deployment: str, plan: str | None, number: int, vm: str) -> "Compiling | None":
    await door.standing(deployment)  # there must be such a deployment
    await door.commit_worker(deployment, plan, number, vm=vm)
    return await door.compiling(deployment)


@command("end-compile")
@deployment_argument
@plan_option
@pass_session
def end_compile(session: Session, deployment: str, plan: str | None) -> None:
    """Report that all is compiled and the workers' VMs are deleted, which frees their addresses.

    Where the cloud config says `orphan_workers`, the VMs are not deleted: they are orphans, and keep their addresses.

    For example:
      tenure deployment end-compile shop
    """
    ended = run_on_deployments(session, lambda door: _end(door, deployment, plan))
    from tenure.integrations.bosh.views.result_documents import compile_document

    compiled = None if ended is None else compile_document(ended)
    document = {"deployment": deployment, "ended": compiled is not None, "compile": compiled}
    answer(session, document, _end_text(deployment, compiled))


async def _end(door: "Deployments", deployment: str, plan: str | None) -> "Compiling | None":
    await door.standing(deployment)  # there must be such a deployment
    return await door.end_compiling(deployment, plan)


def _end_text(deployment: str, compiled: dict[str, Any] | None) -> str:
    if compiled is None:
        return f"no compile goes on for deployment {deployment}, or it was ended before"
    network, workers = compiled["network"], compiled["workers"]
    orphans = [each for each in workers if compiled["orphan_workers"] and each["vm"] is not None]
    freed = [f"{network} {each['address']}" for each in workers if each not in orphans and each["address"] is not None]
    told = f"the compile for plan {compiled['plan']} of deployment {deployment} is over; "
    told += f"freed: {', '.join(freed) or 'nothing'}"
    if not orphans:
        return told
    vms = shlex.join(each["vm"] for each in orphans)
    return f"{told}\norphans now: `tenure deployment cleanup-orphans {vms}` when they are deleted"
