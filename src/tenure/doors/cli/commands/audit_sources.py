"""``tenure audit``: several sources held against each other, read only."""

from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.import_files import format_option
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import FINDINGS
from tenure.doors.cli.output.print_answer import answer, counted
from tenure.doors.cli.output.progress import Bar
from tenure.doors.cli.session import Session, pass_session, refuse_missing, run_alone
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.wiring import open_async, without_secrets

if TYPE_CHECKING:
    from tenure.interchange.audit import AuditReport, LedgerSource
    from tenure.interchange.formats.source_items import Source


@command("audit")
@click.argument("sources", nargs=-1, required=True)
@format_option
@click.option("--no-ledger", is_flag=True, help="Compare only the sources named, without the ledger itself.")
@click.option("--one-space", is_flag=True, help="Compare by address alone, whatever the networks are called.")
@click.pass_context
@pass_session
def audit(
    session: Session, context: click.Context, sources: tuple[str, ...], format: str, no_ledger: bool, one_space: bool
) -> None:
    """Compare files and other ledgers with this ledger: addresses with two holders, holdings nobody else knows.

    A source is a file (CSV, JSON, NetBox), several files of one export joined by commas, or the URL of a ledger.
    Nothing is written. The exit code is 1 if there is something to tell.

    For example:
      tenure audit plan.csv
      tenure audit plan.csv netbox.csv --no-ledger --one-space
    """
    with Bar(session, "comparing") as bar:
        report = run_alone(_audited(None if no_ledger else session, sources, format, one_space, bar))
    lines = [*(f"fault: {fault}" for fault in report.faults), *map(str, report.discrepancies)]
    compared = counted({"holdings": report.compared}) or "no holdings"
    found = counted({"discrepancies": len(report.discrepancies), "faults": len(report.faults)})
    summary = f"compared {compared} of {counted({'sources': len(report.sources)})}: {found or 'all agree'}"
    answer(session, report.as_document(), "\n".join([*lines, summary]))
    if not report.ok:
        context.exit(FINDINGS)


async def _audited(
    session: Session | None, names: tuple[str, ...], format: str, one_space: bool, bar: Bar
) -> "AuditReport":
    from tenure.interchange.audit import audit

    async with AsyncExitStack() as opened:
        ours = [] if session is None else [await _ledger(session.url, session.open(), opened)]
        sources = [await _source(name, format, opened) for name in names]
        return await audit([*ours, *sources], one_space=one_space, progress=bar)


async def _source(name: str, format: str, opened: AsyncExitStack) -> "Source | LedgerSource":
    from tenure.interchange.formats.detect import read_source

    return await _ledger(name, open_async(name), opened) if "://" in name else read_source(_files(name), format=format)


async def _ledger(url: str, opening: Coroutine[Any, Any, AsyncLedger], opened: AsyncExitStack) -> "LedgerSource":
    from tenure.interchange.audit import LedgerSource

    try:
        refuse_missing(url)
        return LedgerSource(without_secrets(url), await opened.enter_async_context(await opening))
    finally:
        # Where the file is missing, the coroutine is never awaited, and Python would warn of it.
        opening.close()


def _files(name: str) -> list[str]:
    # A file may have a comma in its name.
    return [name] if Path(name).exists() else name.split(",")
