"""``tenure verify``, ``tenure sweep`` and ``tenure archive``: the ledger looked after."""

import click

from tenure.doors.cli.commands.holding import print_holdings
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import FINDINGS
from tenure.doors.cli.output.json_documents import breach_document
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.output.progress import Bar
from tenure.doors.cli.session import Session, pass_session
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.read.verify import MACHINES, Breach


@command("verify")
@click.pass_context
@pass_session
def verify(session: Session, context: click.Context) -> None:
    """Check every invariant of the ledger, and that instances and what they hold agree; others may go on meanwhile.

    Exit code 1 if something does not hold.

    For example:
      tenure verify
    """
    with Bar(session, "verifying") as bar:
        bar(0, None)
        breaches = session.run(_breaches)
    documents = [breach_document(breach) for breach in breaches]
    lines = "\n".join(str(breach) for breach in breaches) or "clean: every invariant holds"
    answer(session, {"clean": not breaches, "breaches": documents}, lines)
    if breaches:
        context.exit(FINDINGS)


async def _breaches(ledger: AsyncLedger) -> list[Breach]:
    from tenure.integrations.ganeti.query.verify_machines import verify_machines

    return [*await ledger.verify(), *(Breach(MACHINES, text) for text in await verify_machines(ledger))]


@command("sweep")
@pass_session
def sweep(session: Session) -> None:
    """Remove pending holdings past their deadline and cooled-off ones, by the store's clock.

    It happens by itself when addresses are wanted; this does it now.

    For example:
      tenure sweep
    """
    removed = session.run(lambda ledger: ledger.sweep())
    print_holdings(session, removed, nothing="nothing is overdue")


@command("archive")
@click.option("--keep-days", type=float, required=True, metavar="DAYS", help="Days of changes that stay in the log.")
@pass_session
def archive(session: Session, keep_days: float) -> None:
    """Move changes older than so many days from the log into the archive, compressed; others may go on meanwhile.

    `tenure history` still tells of them, and `tenure verify` checks them. `tenure serve --keep-changes DAYS` does it
    again and again.

    For example:
      tenure archive --keep-days 90
    """
    moved = session.run(lambda ledger: ledger.archive_changes(keep_days))
    answer(session, {"moved": moved}, f"{moved} changes moved into the archive")
