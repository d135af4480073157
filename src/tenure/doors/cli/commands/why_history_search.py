"""``tenure why``, ``history`` and ``search``: who holds what, who did, and where a word is written."""

from datetime import UTC, datetime
from typing import Any

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.complete_names import complete_network
from tenure.doors.cli.framework.shared_options import address_argument
from tenure.doors.cli.output.json_documents import (
    explanation_document,
    found_document,
    history_document,
    tenure_document,
)
from tenure.doors.cli.output.print_answer import answer, echo, table
from tenure.doors.cli.session import Session, pass_session
from tenure.service.read.search import ObjectKind

within_option = click.option("--network", shell_complete=complete_network, help="Only in this network.")

TENURES = {
    "OWNER": "owner",
    "SLOT": "slot",
    "NETWORK": "network",
    "SINCE": "since",
    "UNTIL": "until",
    "ENDING": "ending",
    "BEGUN BY": "begun_text",
    "ENDED BY": "ended_text",
}
FOUND = {
    "KIND": "kind",
    "NETWORK": "network",
    "ADDRESS": "address",
    "NAME": "name",
    "LABELS": "labels",
    "DESCRIPTION": "description",
}

Labels = dict[str, str | None]


class Moment(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A time in ISO 8601; without a zone it is UTC."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read a time."""
        try:
            moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2026-05-01T12:00:00Z", param, ctx)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


@command("why")
@address_argument
@within_option
@pass_session
def why(session: Session, address: str, network: str | None) -> None:
    """Explain an address: who, since when, by which request; or why it is not free; or that it is.

    For example:
      tenure why 192.0.2.10
    """
    explanation = session.run(lambda ledger: ledger.why(address, network=network))
    answer(session, explanation_document(explanation), str(explanation))


@command("history")
@address_argument
@within_option
@click.option("--at", type=Moment(), help="Only who held it at this time (ISO 8601; UTC unless it says otherwise).")
@pass_session
def history(session: Session, address: str, network: str | None, at: datetime | None) -> None:
    """Tell who held an address, from when until when, and how it ended.

    For example:
      tenure history 192.0.2.10
      tenure history 192.0.2.10 --at 2026-05-01T12:00:00Z
    """
    found = session.run(lambda ledger: ledger.history(address, network=network, at=at))
    document = history_document(found)
    if session.json:
        answer(session, document, "")
        return
    rows = [{**tenure_document(each), "begun_text": each.begun_text, "ended_text": each.ended_text} for each in found]
    table(session, rows, TENURES, nothing=f"nobody is known to have held {address}")
    if found.trimmed:
        echo(session, f"the log was trimmed; it is complete since {document['complete_since'] or 'now'}")


def _sought_labels(context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> Labels | None:
    """Read labels to look for: name=text, or a name alone for whatever text."""
    split = [pair.partition("=") for pair in pairs]
    return {name: text if equals else None for name, equals, text in split} or None


@command("search")
@click.argument("text", required=False)
@click.option(
    "--label", "labels", metavar="NAME[=TEXT]", multiple=True, callback=_sought_labels, help="Has this label."
)
@click.option("--kind", type=click.Choice([str(kind) for kind in ObjectKind]), help="Only objects of this kind.")
@within_option
@click.option("--limit", type=int, metavar="N", help="So many at most.")
@pass_session
def search(session: Session, **sought: Any) -> None:
    """Find whatever lies at an address, block or range, or carries a text or a label.

    For example:
      tenure search web
      tenure search 192.0.2.0/28
      tenure search --label team=shop --kind holding
    """
    found = session.run(lambda ledger: ledger.search(**sought))
    table(session, [found_document(each) for each in found], FOUND, nothing="nothing found")
