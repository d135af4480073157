"""Deployments as they are listed, shown, compared with a manifest, and explained."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.deployment.open_deployments import (
    deployment_argument,
    file_argument,
    instance_argument,
    read_document,
    run_on_deployments,
)
from tenure.doors.cli.commands.deployment.plan_apply_abort import exit_code_option
from tenure.doors.cli.commands.deployment.plan_text import (
    addresses_text,
    earlier_lines,
    ident,
    next_lines,
    settings_lines,
)
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.complete_names import complete_deployed_instance
from tenure.doors.cli.framework.exit_codes import FINDINGS
from tenure.doors.cli.output.print_answer import answer, cell_text, fields, table, table_lines, unicode_wanted
from tenure.doors.cli.session import Session, pass_session

if TYPE_CHECKING:
    from tenure.integrations.bosh.deployments_api import Deployments
    from tenure.integrations.bosh.state.instance_state import Deployment, DeploymentInstance
    from tenure.integrations.bosh.views.queries import DeploymentStatus

DEPLOYMENTS = {
    "DEPLOYMENT": "name",
    "GROUPS": "groups",
    "INSTANCES": "instances",
    "WAITING": "waiting",
    "LEAVING": "leaving",
    "IGNORED": "ignored",
    "CONFIG": "config",
}
INSTANCES = {
    "INSTANCE": "instance",
    "AZ": "az",
    "STATE": "state",
    "VM": "vm",
    "ADDRESSES": "addresses",
    "WAITS FOR": "waits_for",
}
MANAGED = {
    "NETWORK": "name",
    "STATE": "state",
    "SUBNET": "subnet",
    "RANGE": "range",
    "CID": "cid",
    "DEPLOYMENTS": "deployments",
}
NOT_MANAGED = "no managed networks were made; a program that brings the cloud along makes them"
NOTHING = "no deployments; `tenure deployment apply FILE` makes one"
NO_INSTANCES = "no instances"

REPORT = "report"
"""What an instance waits for that needs no VM: word of an earlier one, which is perhaps being made."""


@command("list")
@pass_session
def list_deployments(session: Session) -> None:
    """List the deployments: how many instances they have, and how many of these wait for something.

    For example:
      tenure deployment list
    """
    table(session, run_on_deployments(session, _listed), DEPLOYMENTS, nothing=NOTHING)


async def _listed(door: "Deployments") -> list[dict[str, Any]]:
    configs = await door.configs()
    snapshot = None if configs is None else configs.snapshot
    return [_entry(deployment, instances, snapshot) for deployment, instances in await door.every()]


def _entry(deployment: "Deployment", instances: "list[DeploymentInstance]", snapshot: str | None) -> dict[str, Any]:
    from tenure.integrations.bosh.planning.explain_instance import waits_for

    own = deployment.snapshot is None
    return {
        "name": deployment.name,
        "plan": deployment.plan,
        "config": "own" if own else "current" if deployment.snapshot == snapshot else "older",
        "groups": sorted({each.group for each in instances}),
        "instances": len(instances),
        "waiting": sum(waits_for(each) is not None or bool(each.earlier) for each in instances),
        "leaving": sum(each.leaving for each in instances),
        "ignored": sum(each.ignored for each in instances),
        "addresses": sum(len(each.holdings) for each in instances),
    }


@command("show")
@deployment_argument
@click.argument("instance", required=False, shell_complete=complete_deployed_instance)
@pass_session
def show(session: Session, deployment: str, instance: str | None) -> None:
    """Show a deployment's instances with VMs and addresses; or one instance with its settings.

    For example:
      tenure deployment show shop
      tenure deployment show shop web/0
    """
    if instance is None:
        _show_deployment(session, run_on_deployments(session, lambda door: door.standing(deployment)))
        return
    standing, found = run_on_deployments(session, lambda door: _with_instance(door, deployment, instance))
    # Imported behind the work, here and below: where PyYAML is missing, run_on_deployments says what to install.
    from tenure.integrations.bosh.views.result_documents import instance_document, settings

    document = {
        **instance_document(found),
        "settings": None if found.leaving else settings(found, standing.config_of(found)),
    }
    answer(session, document, "\n".join(_instance_lines(document)))


async def _with_instance(
    door: "Deployments", deployment: str, instance: str
) -> "tuple[DeploymentStatus, DeploymentInstance]":
    return await door.standing(deployment), await door.instance(deployment, instance)


def _show_deployment(session: Session, standing: "DeploymentStatus") -> None:
    from tenure.integrations.bosh.views.result_documents import instance_document

    documents = [instance_document(each) for each in standing.instances]
    head = _entry(standing.deployment, list(standing.instances), None)
    config = head["config"] if head["config"] == "own" else "current" if standing.up_to_date else "older"
    document = {"name": head["name"], "plan": head["plan"], "config": config, "instances": documents}
    answer(session, document, "\n".join(_deployment_lines(document)))


def _deployment_lines(document: dict[str, Any]) -> Iterator[str]:
    words = {"current": "the cloud config in force", "older": "an older cloud config", "own": "networks of its own"}
    yield f"deployment {document['name']}, deployed with {words[document['config']]}; last plan {document['plan']}"
    rows = [_instance_row(each) for each in document["instances"]]
    yield from table_lines(rows, INSTANCES) if rows else [NO_INSTANCES]


def _instance_row(document: dict[str, Any]) -> dict[str, Any]:
    waits_for = document["waits_for"] or (REPORT if document["earlier"] else None)
    return {**document, "instance": ident(document), "addresses": addresses_text(document), "waits_for": waits_for}


def _instance_lines(document: dict[str, Any]) -> Iterator[str]:
    named = ("name", "deployment", "index", "az", "state", "vm", "ignored", "leaving", "failed", "plan")
    yield fields({**{key: document[key] for key in named}, "addresses": addresses_text(document)})
    yield from earlier_lines(document["earlier"])
    if not document["leaving"]:
        yield "settings:"
        yield from settings_lines(document)
    following = list(next_lines(document["deployment"], [{**document, "instance": ident(document)}]))
    if following:
        yield "next:"
        yield from following


@command("diff")
@file_argument
@exit_code_option
@click.pass_context
@pass_session
def diff(session: Session, context: click.Context, file: Path, exit_code: bool) -> None:
    """Compare a manifest with the one that is deployed.

    Also tells which networks changed in the cloud config since. What that means for addresses, `plan` tells.

    For example:
      tenure deployment diff shop.yml
    """
    name, text = read_document(file)
    found = run_on_deployments(session, lambda door: door.diff(text, document=name))
    from tenure.integrations.bosh.views.result_documents import difference_document

    document = difference_document(found)
    answer(session, document, "\n".join(_difference_lines(document)))
    if exit_code and not document["same"]:
        context.exit(FINDINGS)


def _difference_lines(document: dict[str, Any]) -> Iterator[str]:
    if document["same"]:
        yield f"deployment {document['deployment']} is deployed as the manifest and the cloud config say"
    for each in document["differences"]:
        yield _difference(each["path"], each["before"], each["after"])
    for network in document["networks"]:
        yield f"~ cloud config: network {network} changed since the last deploy"


def _difference(path: str, before: Any, after: Any) -> str:
    if isinstance(after, dict):
        return f"+ {path}{_whole(after)}"
    if isinstance(before, dict):
        return f"- {path}{_whole(before)}"
    return f"~ {path}: {cell_text(before)} {'→' if unicode_wanted() else '->'} {cell_text(after)}"


def _whole(value: dict[str, Any]) -> str:
    """Write a group or a network that came or went, without what it does not say."""
    told = {key: list(said) if key == "networks" else said for key, said in value.items() if said}
    return f": {', '.join(f'{key} {cell_text(said)}' for key, said in told.items())}" if told else ""


@command("why")
@deployment_argument
@instance_argument
@pass_session
def why(session: Session, deployment: str, instance: str) -> None:
    """Explain why an instance has its addresses, since when and by which plan, and what would change them.

    For example:
      tenure deployment why shop web/0
    """
    found = run_on_deployments(session, lambda door: door.why(deployment, instance))
    from tenure.integrations.bosh.views.result_documents import why_document

    told = why_document(found)
    answer(session, told, "\n".join(_why_lines(told)))


def _why_lines(told: dict[str, Any]) -> Iterator[str]:
    zone = "" if told["az"] is None else f" in {told['az']}"
    yield f"{ident(told)} of deployment {told['deployment']} ({told['name']}), {told['state']}{zone}"
    for reason in told["reasons"]:
        yield f"{reason['network']} {reason['address'] or 'without address'}: {reason['why']}"
        if reason["since"]:
            plan = "" if reason["plan"] is None else f", by plan {reason['plan']}"
            yield f"  since {cell_text(reason['since'])}{plan}; " + _carried(reason["vm"])
        if reason["moves"]:
            yield f"  the next deploy gives another one: {reason['moves']}"
        elif reason["changes"]:
            yield "  it changes if"
            yield from (f"    - {change}" for change in reason["changes"])
    if not told["reasons"]:
        yield "it holds no address"
    yield from earlier_lines(told["earlier"])
    yield f"it waits for {told['waiting']}"


def _carried(vm: str | None) -> str:
    return "no VM carries it" if vm is None else f"{vm} carries it"


@command("networks")
@pass_session
def networks(session: Session) -> None:
    """List the managed networks that were made in the cloud; one that no deployment uses is an orphan.

    They are made and deleted in Python only, by a program that can ask the cloud.

    For example:
      tenure deployment networks
    """
    found = run_on_deployments(session, lambda door: door.managed_networks())
    from tenure.integrations.bosh.views.result_documents import managed_document

    documents = [managed_document(each) for each in found]
    rows = documents if session.json else [row for each in documents for row in _subnet_rows(each)]
    table(session, rows, MANAGED, nothing=NOT_MANAGED)


def _subnet_rows(network: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Write a network subnet by subnet; one that is just begun has none yet."""
    state = "orphan" if network["orphaned"] and network["state"] == "ready" else network["state"]
    shown = {**network, "state": state}
    for each in network["subnets"] or [{"name": None, "range": None, "cid": None}]:
        yield {**shown, "subnet": each["name"], "range": each["range"], "cid": each["cid"]}
