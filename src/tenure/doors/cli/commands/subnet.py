"""``tenure subnet``: the blocks of a network."""

from collections.abc import Mapping
from typing import Any

import click

from tenure.doors.cli.framework.click_base import noun, with_options
from tenure.doors.cli.framework.exit_codes import warn
from tenure.doors.cli.framework.shared_options import (
    cascade_option,
    changed,
    changed_labels,
    description_option,
    labels_option,
    network_argument,
    network_choice,
    no_check_option,
    relabel_options,
    subnet_argument,
    undo_option,
    without_option,
)
from tenure.doors.cli.output.json_documents import Document, subnet_entry
from tenure.doors.cli.output.print_answer import answer, table
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.plan.edits import AddSubnet, Edit, ModifySubnet
from tenure.kernel.plan.plan_model import KeepBack, Network
from tenure.kernel.plan.side_effects import NOTHING_CHANGED
from tenure.service.apply.operations import IgnoreConflicts, Operation
from tenure.service.ledger.async_ledger import AsyncLedger

COLUMNS = {
    "NETWORK": "network",
    "SUBNET": "cidr",
    "NAME": "name",
    "GATEWAY": "gateway",
    "UNIT": "unit",
    "KEEPS BACK": "keep_back",
    "DNS": "dns",
    "ZONES": "zones",
    "RETIRED": "retired",
    "LABELS": "labels",
}

block_options = with_options(
    click.option("--gateway", metavar="ADDRESS", help="Its gateway, which is kept back."),
    click.option("--name", help="A name for it."),
    click.option(
        "--dns",
        multiple=True,
        metavar="ADDRESS",
        help="A name server, in place of those that there are; repeat for more.",
    ),
    click.option("--dhcp/--no-dhcp", default=None, help="Whether DHCP serves it."),
    click.option(
        "--zone",
        "zones",
        multiple=True,
        metavar="NAME",
        help="An availability zone, in place of those that there are; repeat for more.",
    ),
    click.option(
        "--keep-back",
        multiple=True,
        type=click.Choice([str(word) for word in KeepBack]),
        help="What it never hands out by itself, in place of the usual; repeat for more.",
    ),
    labels_option,
    description_option,
)


@noun("subnet")
def subnet() -> None:
    """Add, change, list and remove the subnets of a network.

    For example:
      tenure subnet list net1
    """


@subnet.command("add")
@network_argument
@click.argument("cidr")
@click.option("--unit", type=int, metavar="LENGTH", help="Prefix length it hands out; a single address by default.")
@block_options
@no_check_option
@pass_session
def add(session: Session, network: str, cidr: str, check: bool, **said: Any) -> None:
    """Add a block to a network.

    For example:
      tenure subnet add net1 198.51.100.0/24 --gateway 198.51.100.1
      tenure subnet add net1 2001:db8::/48 --unit 64
    """
    # The options are shared with modify, where nothing said leaves a field as it is; a new subnet gets the defaults.
    said["keep_back"] = said["keep_back"] or None
    said["dhcp"] = bool(said["dhcp"])
    said["description"] = said["description"] or ""
    edit = AddSubnet(network=network, cidr=cidr, **said)
    made = session.run(lambda ledger: edited_plan(ledger, edit, check=check))
    subnet = made.subnets[-1]  # a new subnet stands behind all others
    warn(session, made.warnings)
    document = {**subnet_entry(network, subnet), "warnings": list(made.warnings)}
    answer(session, document, f"added subnet {subnet.cidr} to network {network}")


@subnet.command("modify")
@network_argument
@subnet_argument
@click.option("--cidr", help="Grow, shrink or move the block.")
@block_options
@relabel_options
@without_option("gateway", "name", "dns", "zones", "keep-back", "labels", "description")
@no_check_option
@pass_session
def modify(session: Session, network: str, subnet: str, without: tuple[str, ...], check: bool, **said: Any) -> None:
    """Change a subnet, found by name, block or uuid; what is not named stays as it is.

    For example:
      tenure subnet modify net1 192.0.2.0/24 --name front --without gateway
    """
    wanted = changed_labels(said, without)
    empty: dict[str, Any] = {"gateway": None, "name": None, "description": ""}
    wanted |= {
        field: changed(value, field.replace("_", "-"), without, empty.get(field, ())) for field, value in said.items()
    }
    _told(session, session.run(lambda ledger: _modified(ledger, network, subnet, wanted, check=check)), "changed")


@subnet.command("retire")
@network_argument
@subnet_argument
@undo_option
@pass_session
def retire(session: Session, network: str, subnet: str, undo: bool) -> None:
    """Stop picking in a subnet; what is held stays and is released as usual.

    For example:
      tenure subnet retire net1 192.0.2.0/24
    """
    wanted = {"retired": not undo}
    made = session.run(lambda ledger: _modified(ledger, network, subnet, wanted))
    _told(session, made, "back in use:" if undo else "retired")


@subnet.command("remove")
@network_argument
@subnet_argument
@cascade_option
@pass_session
def remove(session: Session, network: str, subnet: str, cascade: bool) -> None:
    """Remove a subnet with its pools and reserved ranges.

    For example:
      tenure subnet remove net1 old --cascade
    """
    session.run(lambda ledger: ledger.remove_subnet(network, subnet, cascade=cascade))
    document = {"removed": {"network": network, "subnet": subnet}}
    answer(session, document, f"removed subnet {subnet} of network {network}")


@subnet.command("list")
@network_choice
@pass_session
def list_subnets(session: Session, network: str | None) -> None:
    """List the subnets of a network, or of all.

    For example:
      tenure subnet list net1
    """
    networks = session.run(lambda ledger: chosen_networks(ledger, network))
    documents = [subnet_entry(each.name, subnet) for each in networks for subnet in each.subnets]
    table(session, documents, COLUMNS, nothing="no subnets; `tenure subnet add NETWORK CIDR` makes one")


async def chosen_networks(ledger: AsyncLedger, name: str | None) -> list[Network]:
    """Read one network, or all."""
    return await ledger.networks() if name is None else [await ledger.network(name)]


async def _modified(
    ledger: AsyncLedger, network: str, ident: str, wanted: Mapping[str, Any], *, check: bool = True
) -> Document:
    """Change a subnet and show it; afterwards it may no longer go by the name or block it was found by."""
    uuid = (await ledger.network(network)).subnet(ident).uuid
    changed = await edited_plan(ledger, ModifySubnet(network=network, subnet=uuid, **wanted), check=check)
    return {**subnet_entry(network, changed.subnet(uuid)), "warnings": list(changed.warnings)}


async def edited_plan(ledger: AsyncLedger, edit: Edit, *, check: bool) -> Network:
    """Make one edit of a network, and return the network with its warnings; without a look at the cluster if asked."""
    before: list[Operation] = [] if check else [IgnoreConflicts(network=edit.network)]
    made = (await ledger.apply([*before, edit]))[-1]
    assert isinstance(made, Network)
    return made


def _told(session: Session, document: Document, verb: str) -> None:
    warn(session, document["warnings"])
    place = f"subnet {document['cidr']} of network {document['network']}"
    nothing = NOTHING_CHANGED in document["warnings"]
    answer(session, document, f"nothing to change in {place}" if nothing else f"{verb} {place}")
