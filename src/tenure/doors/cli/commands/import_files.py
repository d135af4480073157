"""``tenure import``: an address plan moved in from files."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import FINDINGS
from tenure.doors.cli.output.print_answer import answer, counted
from tenure.doors.cli.output.progress import Bar
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.errors import Invalid

if TYPE_CHECKING:
    from tenure.interchange.formats.source_items import Source
    from tenure.interchange.importer.dry_run_report import DryRunReport
    from tenure.service.ledger.async_ledger import AsyncLedger

FORMATS = ("auto", "csv", "json", "netbox")
# The importer's own limit, copied: importing it would load the importer for every help text.
LARGEST_BATCH = 10_000

files_argument = click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
format_option = click.option(
    "--format", type=click.Choice(FORMATS), default="auto", show_default=True, help="What the files are."
)


@command("import")
@files_argument
@format_option
@click.option("--dry-run", is_flag=True, help="Only tell what would be written, and every fault.")
@click.option("--force", is_flag=True, help="Let reserved, kept-back and pre-allocated addresses be held.")
@click.option(
    "--batch", type=click.IntRange(1, LARGEST_BATCH), default=1000, show_default=True, help="Holdings a transaction."
)
@click.pass_context
@pass_session
def import_files(
    session: Session,
    context: click.Context,
    files: tuple[Path, ...],
    format: str,
    dry_run: bool,
    force: bool,
    batch: int,
) -> None:
    """Move in from CSV, JSON or a NetBox export (one or several files).

    Every fault is named with its line; while there is one, nothing is written and the exit code is 1. An import that
    was broken off is simply run again.

    For example:
      tenure import plan.csv --dry-run
      tenure import plan.csv
    """
    from tenure.interchange.formats.detect import read_source

    source = read_source(files, format=format)
    with Bar(session, "importing") as bar:
        report, written = session.run(
            lambda ledger: _moved_in(ledger, source, dry_run, force, batch, bar),
            may_make=not dry_run,
            try_on_new=dry_run,
        )
    document = {**report.as_document(), "written": written}
    answer(session, document, "\n".join(_lines(report, written)))
    if not report.ok:
        context.exit(FINDINGS)


async def _moved_in(
    ledger: "AsyncLedger", source: "Source", dry_run: bool, force: bool, batch: int, bar: Bar
) -> "tuple[DryRunReport, bool]":
    """Write the source if it has no faults; tell the report, and whether it was written."""
    from tenure.interchange.importer.import_run import plan_import, run_import

    if not dry_run:
        try:
            return await run_import(ledger, source, batch=batch, force=force, progress=bar), True
        except Invalid:
            pass  # it names the first fault only; the dry run names all
    return await plan_import(ledger, source, force=force, progress=bar), False


def _lines(report: "DryRunReport", written: bool) -> Iterator[str]:
    for fault in report.faults:
        yield f"fault: {fault}"
    for oddity in report.oddities:
        yield f"oddity: {oddity}"
    if report.already.total():
        yield f"there already: {counted(report.already)}"
    verb = "written" if written else "would be written" if report.ok else "nothing was written; new would be"
    yield f"{verb}: {counted(report.new) or 'nothing'}"
    if not report.ok:
        them = "it" if len(report.faults) == 1 else "them"
        yield f"{counted({'faults': len(report.faults)})}: correct {them}, then run the import again"
