"""What commands on deployments share: the door, which is loaded when it is needed, and the documents they read."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from tenure.doors.cli.framework.complete_names import complete_deployed_instance, complete_deployment
from tenure.doors.cli.session import Session
from tenure.kernel.errors import Invalid
from tenure.kernel.extras import how_to_install

if TYPE_CHECKING:
    from tenure.integrations.bosh.deployments_api import Deployments

T = TypeVar("T")

STANDARD_INPUT = "standard input"
MISSING = f"deployment: PyYAML is missing: {how_to_install('deployments')}"

file_argument = click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
deployment_argument = click.argument("deployment", shell_complete=complete_deployment)
instance_argument = click.argument("instance", shell_complete=complete_deployed_instance)


def run_on_deployments(
    session: Session,
    work: "Callable[[Deployments], Awaitable[T]]",
    *,
    may_make: bool = False,
    try_on_new: bool = False,
) -> T:
    """Do one piece of work on the deployments of the ledger."""
    try:
        from tenure.integrations.bosh.deployments_api import Deployments
    except ModuleNotFoundError as error:
        # Only the optional package may be missing; any other module that is not found is an error of ours.
        if error.name != "yaml":
            raise
        raise Invalid(MISSING) from None
    return session.run(lambda ledger: work(Deployments(ledger)), may_make=may_make, try_on_new=try_on_new)


def read_document(file: Path) -> tuple[str, str]:
    """Read a document; return how faults name it, and its text."""
    if str(file) == "-":
        # As bytes: sys.stdin itself would decode them by the locale.
        return STANDARD_INPUT, _text(STANDARD_INPUT, sys.stdin.buffer.read())
    return str(file), _text(str(file), file.read_bytes())


def _text(name: str, data: bytes) -> str:
    try:
        # -sig drops the mark that some editors begin a file with.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(f"{name}: not UTF-8 ({error.reason} at byte {error.start})", field="file") from None
