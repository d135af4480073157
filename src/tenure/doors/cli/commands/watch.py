"""``tenure watch``: the log, as it grows."""

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.output.json_documents import change_document
from tenure.doors.cli.output.print_answer import cell_text, echo, json_line
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.addressing.addresses import unit_text
from tenure.kernel.holdings.holding_model import Change
from tenure.service.ledger.async_ledger import AsyncLedger


@command("watch")
@click.option("--after", type=int, metavar="N", help="Begin behind this number; else with what comes next.")
@click.option("--once", is_flag=True, help="Stop at the end of the log; without --after, read it from its beginning.")
@pass_session
def watch(session: Session, after: int | None, once: bool) -> None:
    """Follow the log: every change once, in commit order, a line each (with --json: a document a line).

    For example:
      tenure watch --once
      tenure watch --after 3 --once --json
    """
    session.run(lambda ledger: _follow(ledger, session, after, once))


async def _follow(ledger: AsyncLedger, session: Session, after: int | None, once: bool) -> None:
    if once:
        async for change in ledger.changes(after or 0):
            _print(session, change)
        return
    async for change in ledger.tail(await ledger.last_change() if after is None else after):
        _print(session, change)


def _print(session: Session, change: Change) -> None:
    document = change_document(change)
    echo(session, json_line(document) if session.json else _line(change, document["at"]))


def _place(change: Change) -> str | None:
    return None if change.first is None or change.last is None else unit_text(change.first, change.last)


def _line(change: Change, at: str) -> str:
    words = [
        f"{change.seq:>6}",
        cell_text(at),
        f"{change.verb:<17}",
        change.network_name or "-",
        _place(change),
        change.owner,
        change.slot,
        f"request={change.request}" if change.request else None,
        f"actor={change.actor}" if change.actor else None,
        f"request_id={change.request_id}" if change.request_id else None,
    ]
    told = [f"{name}={cell_text(value)}" for name, value in change.details.items() if name != "network"]
    return "  ".join(word for word in [*words, *told] if word)
