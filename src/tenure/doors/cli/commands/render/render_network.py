"""``tenure render``: a network written for the programs that serve it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenure.doors.cli.commands.export import output_option
from tenure.doors.cli.commands.render.render_metal3 import metal3
from tenure.doors.cli.framework.click_base import noun, with_options
from tenure.doors.cli.framework.shared_options import network_argument
from tenure.doors.cli.output.atomic_files import write_whole
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session

if TYPE_CHECKING:
    from tenure.interchange.formats.source_items import Oddity
    from tenure.interchange.render.host_names import Rendering

domain_option = click.option("--domain", metavar="NAME", help="The domain of hosts whose labels name none.")
common = with_options(network_argument, domain_option, output_option)


@noun("render")
def render() -> None:
    """Write a network for the programs that serve it: hosts files, dnsmasq, Kea, PTR zones, data of machines.

    A label `hostname` names a host, else its owner does; a label `mac` its card. What is left out is told on standard
    error.

    For example:
      tenure render hosts net1
    """


render.add_command(metal3)


@render.command("hosts")
@common
@pass_session
def hosts(session: Session, network: str, domain: str | None, output: Path | None) -> None:
    """Write the lines of a hosts file.

    For example:
      tenure render hosts net1 --domain example.org
    """
    from tenure.interchange.render.hosts_file import render_hosts

    _written(session, session.run(lambda ledger: render_hosts(ledger, network, domain=domain)), output)


@render.command("dnsmasq")
@common
@pass_session
def dnsmasq(session: Session, network: str, domain: str | None, output: Path | None) -> None:
    """Write host records, and DHCP hosts where a label `mac` names the card, for dnsmasq.

    For example:
      tenure render dnsmasq net1 --domain example.org
    """
    from tenure.interchange.render.dnsmasq import render_dnsmasq

    _written(session, session.run(lambda ledger: render_dnsmasq(ledger, network, domain=domain)), output)


@render.command("kea")
@common
@click.option("--family", type=click.Choice(["4", "6"]), default="4", show_default=True, help="Dhcp4 or Dhcp6.")
@pass_session
def kea(session: Session, network: str, domain: str | None, output: Path | None, family: str) -> None:
    """Write subnets, pools and reservations for Kea.

    For example:
      tenure render kea net1 --family 4
    """
    from tenure.interchange.render.kea import render_kea

    number = int(family)
    _written(session, session.run(lambda ledger: render_kea(ledger, network, family=number, domain=domain)), output)


@render.command("ptr")
@network_argument
@click.option("--serial", type=int, required=True, metavar="N", help="The serial number of the zones.")
@click.option("--nameserver", "nameservers", multiple=True, required=True, metavar="NAME", help="Repeat for more.")
@click.option("--contact", default="", metavar="NAME", help="The mailbox of the zones, written as a name.")
@click.option("--ttl", "ttl_s", type=int, default=3600, show_default=True, metavar="SECONDS", help="Time to live.")
@domain_option
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False, exists=True), help="A file a zone, in here.")
@pass_session
def ptr(
    session: Session, network: str, serial: int, nameservers: Sequence[str], contact: str, ttl_s: int,
    domain: str | None, folder: Path | None,
) -> None:  # fmt: skip
    """Write the reverse zones of a network, with a PTR record for each name.

    For example:
      tenure render ptr net1 --serial 2026050101 --nameserver ns1.example.org --domain example.org
    """
    from tenure.interchange.render.ptr_zones import render_ptr_zones

    zones = session.run(
        lambda ledger: render_ptr_zones(
            ledger, network, serial=serial, nameservers=nameservers, contact=contact, domain=domain, ttl_s=ttl_s
        )
    )
    if folder is None:
        document = {"zones": {zone.name: zone.text for zone in zones.zones}}
        _told(session, document, "\n".join(zone.text for zone in zones.zones).rstrip("\n"), zones.left_out)
        return
    # The zone of a block smaller than an octet has a slash in its name (RFC 2317).
    files = [str(folder / f"{zone.name.replace('/', '-')}.zone") for zone in zones.zones]
    for file, zone in zip(files, zones.zones, strict=True):
        write_whole(Path(file), zone.text)
    _told(session, {"files": files}, "\n".join(f"wrote {file}" for file in files), zones.left_out)


def _written(session: Session, rendering: "Rendering", output: Path | None) -> None:
    if output is None:
        _told(session, {"text": rendering.text}, rendering.text.rstrip("\n"), rendering.left_out)
        return
    write_whole(output, rendering.text)
    _told(session, {"file": str(output)}, f"wrote {output}", rendering.left_out)


def _told(session: Session, document: Mapping[str, object], text: str, left_out: "Sequence[Oddity]") -> None:
    from tenure.interchange.importer.dry_run_report import remark_document
    from tenure.interchange.render.host_names import NOTED

    answer(session, {**document, "left_out": [remark_document(remark) for remark in left_out]}, text)
    for remark in [] if session.json else left_out:
        click.echo(f"{'note' if remark.code == NOTED else 'left out'}: {remark}", err=True)
