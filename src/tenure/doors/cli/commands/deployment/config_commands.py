"""Cloud configs: put in force, listed, and taken out of force."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.deployment.open_deployments import file_argument, read_document, run_on_deployments
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import warn
from tenure.doors.cli.output.print_answer import answer, table
from tenure.doors.cli.session import Session, pass_session

if TYPE_CHECKING:
    from tenure.integrations.bosh.cloud_config.configs import Uploaded
    from tenure.integrations.bosh.cloud_config.moved_instances import Moved
    from tenure.integrations.bosh.deployments_api import Deployments
    from tenure.integrations.bosh.model.bosh_errors import BoshFault

WOULD_UPLOAD = "nothing is changed; would be uploaded:"
WOULD_DELETE = "nothing is changed; would be deleted:"

CONFIGS = {"CONFIG": "name", "REVISION": "revision", "BYTES": "bytes"}
NO_CONFIGS = "no cloud config is in force; `tenure deployment upload-config FILE` puts one"

dry_run_option = click.option("--dry-run", is_flag=True, help="Only tell what would change, and who would be moved.")


@command("upload-config")
@file_argument
@click.option(
    "--name", default="default", show_default=True, help="Which cloud config; several are read as if they were one."
)
@dry_run_option
@pass_session
def upload_config(session: Session, file: Path, name: str, dry_run: bool) -> None:
    """Put a cloud config in force: it is checked whole, and every fault is told at once.

    Nobody is moved by that: whose address no longer fits is told now, and gets another at the next deploy.

    For example:
      tenure deployment upload-config cloud.yml --dry-run
      tenure deployment upload-config cloud.yml --name default
    """
    from tenure.integrations.bosh.model.bosh_errors import Rejected

    document, text = read_document(file)
    try:
        uploaded, moves = run_on_deployments(
            session, lambda door: _upload(door, text, name, dry_run), may_make=not dry_run, try_on_new=dry_run
        )
    except Rejected as error:
        raise Rejected(_in_file(error.faults, name, document)) from None
    warnings = _in_file(uploaded.warnings, name, document)
    told = _document(session, name, warnings, uploaded, moves, written=not dry_run)
    answer(session, told, "\n".join(_lines(told, "uploaded" if told["written"] else WOULD_UPLOAD)))


async def _upload(door: "Deployments", text: str, name: str, dry_run: bool) -> "tuple[Uploaded, list[Moved]]":
    """Upload; whom it moves is asked first, while networks have the names that instances know."""
    moves = await door.moved_by(text, name=name)
    return await door.upload_config(text, name=name, dry=dry_run), moves


def _in_file(faults: "Sequence[BoshFault]", name: str, document: str) -> "list[BoshFault]":
    """Let faults of a config be told with the file they are in; those of other configs keep their name."""
    return [
        fault._replace(place=fault.place._replace(document=document))
        if fault.place is not None and fault.place.document == name
        else fault
        for fault in faults
    ]


@command("delete-config")
@click.argument("name")
@dry_run_option
@pass_session
def delete_config(session: Session, name: str, dry_run: bool) -> None:
    """Take a cloud config out of force: its networks go, but for what is held in them. The last config stays.

    Nobody is moved by that: whose network is gone is told now. To empty the last one, upload one that has no addresses:
    `networks: [{name: none, type: dynamic}]`.

    For example:
      tenure deployment delete-config more --dry-run
    """
    removed, moves = run_on_deployments(session, lambda door: _remove(door, name, dry_run))
    told = _document(session, name, removed.warnings, removed, moves, written=not dry_run)
    answer(session, told, "\n".join(_lines(told, "deleted" if told["written"] else WOULD_DELETE)))


async def _remove(door: "Deployments", name: str, dry_run: bool) -> "tuple[Uploaded, list[Moved]]":
    """Remove; whether that can be is tried first, and whom it moves is asked before it is done."""
    tried = await door.remove_config(name, dry=True)
    moves = await door.moved_by(None, name=name)
    return tried if dry_run else await door.remove_config(name), moves


def _document(
    session: Session,
    name: str,
    warnings: "Sequence[BoshFault]",
    uploaded: "Uploaded",
    moves: "Sequence[Moved]",
    *,
    written: bool,
) -> dict[str, Any]:
    """Write what came of an upload or a removal, and give its warnings."""
    from tenure.integrations.bosh.views.result_documents import moved_document

    warn(session, [str(fault) for fault in warnings])
    return {
        "name": name,
        "written": written,
        "networks": list(uploaded.changed),
        "moves": [moved_document(each) for each in moves],
        "warnings": [fault.told() for fault in warnings],
    }


def _lines(document: dict[str, Any], done: str) -> Iterator[str]:
    networks = ", ".join(document["networks"]) or "none"
    yield f"{done} cloud config {document['name']}; networks that change: {networks}"
    if document["moves"]:
        yield "these addresses fit no more; the next deploy of their deployments gives others:"
    for move in document["moves"]:
        ignored = " (ignored: the deploy would be refused)" if move["ignored"] else ""
        place = f"{move['deployment']} {move['instance']}: {move['network']} {move['address']}"
        yield f"  {place}: {move['reason']}{ignored}"
    if document["moves"]:
        yield "`tenure deployment plan FILE` shows where they go"


@command("configs")
@pass_session
def configs(session: Session) -> None:
    """List the cloud configs in force; all of them are read as if they were one. With --json, their texts too.

    For example:
      tenure deployment configs
    """
    found = run_on_deployments(session, lambda door: door.configs())
    papers = () if found is None else found.papers
    rows = [{"name": each.name, "revision": each.revision, "text": each.document["text"]} for each in papers]
    shown = rows if session.json else [{**each, "bytes": len(each["text"].encode())} for each in rows]
    table(session, shown, CONFIGS, nothing=NO_CONFIGS)
