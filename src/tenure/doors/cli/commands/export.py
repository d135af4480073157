"""``tenure export``: the ledger as a file for others."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.complete_names import complete_network
from tenure.doors.cli.output.atomic_files import whole_file
from tenure.doors.cli.output.print_answer import answer, echo
from tenure.doors.cli.output.progress import Bar
from tenure.doors.cli.session import Session, pass_session

if TYPE_CHECKING:
    from tenure.service.ledger.async_ledger import AsyncLedger

NETBOX = {"netbox-prefixes": "prefixes", "netbox-ranges": "ip-ranges", "netbox-addresses": "ip-addresses"}
FORMATS = ("json", "csv", *NETBOX)

network_option = click.option("--network", shell_complete=complete_network, help="Only this network.")
output_option = click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file, whole or not at all."
)


@command("export")
@click.option("--format", type=click.Choice(FORMATS), default="json", show_default=True, help="What to write.")
@network_option
@output_option
@pass_session
def export(session: Session, format: str, network: str | None, output: Path | None) -> None:
    """Write the plan and the holdings (json), the holdings (csv), or one of NetBox's tables.

    For example:
      tenure export --network net1
      tenure export --format csv --output holdings.csv
    """
    # On a terminal the export itself is seen to go on; a bar would only run through it.
    with Bar(session, "exporting", hidden=output is None and sys.stdout.isatty()) as bar:
        session.run(lambda ledger: _write(session, _exported(ledger, format, network, bar), output))
    _told(session, format, output)


def _exported(ledger: "AsyncLedger", format: str, network: str | None, bar: Bar) -> AsyncIterator[str]:
    from tenure.interchange.exporter.export_run import export_csv, export_json
    from tenure.interchange.exporter.netbox_writer import export_netbox

    if format in NETBOX:
        return export_netbox(ledger, NETBOX[format], network=network, progress=bar)
    return (export_csv if format == "csv" else export_json)(ledger, network=network, progress=bar)


async def _write(session: Session, pieces: AsyncIterator[str], output: Path | None) -> None:
    """Write pieces to standard output, or to a file."""
    if output is None:
        async for text in pieces:
            echo(session, text, end=False)
        return
    with whole_file(output) as file:
        async for text in pieces:
            file.write(text)


def _told(session: Session, format: str, output: Path | None) -> None:
    if output is not None:
        answer(session, {"file": str(output), "format": format}, f"wrote {output}")
