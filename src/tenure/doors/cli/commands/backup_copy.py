"""``tenure backup``, ``restore`` and ``copy``: a whole ledger from one store to another."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import FINDINGS
from tenure.doors.cli.output.json_documents import breach_document
from tenure.doors.cli.output.print_answer import answer, counted
from tenure.doors.cli.output.progress import Bar
from tenure.doors.cli.session import Session, pass_session, run_alone

Copying = Callable[[Callable[[str, int, int], None]], Awaitable[Any]]


@command("backup")
@click.argument("file", type=click.Path(path_type=Path))
@pass_session
def backup(session: Session, file: Path) -> None:
    """Copy the ledger into one new file, while others work on it.

    The file is itself a ledger: `tenure --store sqlite:///FILE show` looks into it.

    For example:
      tenure backup monday.db
    """
    from tenure.interchange import copy_ledger

    source = session.store_url
    _copy(session, lambda tell: copy_ledger.backup(source, file, progress=tell), f"backed up to {file}")


@command("restore")
@click.argument("file", type=click.Path(path_type=Path))
@pass_session
def restore(session: Session, file: Path) -> None:
    """Copy a backup into an empty store.

    For example:
      tenure restore friday.db --store sqlite:///restored.db
    """
    from tenure.interchange import copy_ledger

    target = session.store_url
    _copy(session, lambda tell: copy_ledger.restore(file, target, progress=tell), f"restored {file}")


@command("copy")
@click.argument("source")
@click.argument("target")
@pass_session
def copy(session: Session, source: str, target: str) -> None:
    """Copy a ledger from one store into another, which must be empty; both are URLs.

    Ends with a comparison by content and with a check of every invariant.

    For example:
      tenure copy sqlite:///tenure.db sqlite:///other.db
    """
    from tenure.interchange import copy_ledger

    _copy(session, lambda tell: copy_ledger.copy(source, target, progress=tell), "copied")


def _copy(session: Session, work: Copying, done: str) -> None:
    with Bar(session, "copying") as bar:
        report = run_alone(work(bar.stage))
    breaches = [breach_document(breach) for breach in report.breaches]
    document = {"seq": report.seq, "counts": dict(report.counts), "digest": report.digest, "breaches": breaches}
    lines = [
        f"{done}, as of change {report.seq}: {counted(report.counts)}",
        *(f"breach: {breach}" for breach in report.breaches),
    ]
    answer(session, document, "\n".join(lines))
    if breaches:
        click.get_current_context().exit(FINDINGS)
