"""``tenure network``: named things that machines attach to."""

import click

from tenure.doors.cli.commands import noun, with_options
from tenure.doors.cli.documents import Document, network_entry, time_text
from tenure.doors.cli.options import (
    cascade_option,
    changed,
    description_option,
    labels_option,
    network_argument,
    undo_option,
    without_option,
)
from tenure.doors.cli.printing import answer, fields, table
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.configuration import Network, NetworkKind
from tenure.kernel.edits import Labels
from tenure.kernel.values import moment
from tenure.service.ledger import AsyncLedger

COLUMNS = {
    "NETWORK": "name",
    "SPACE": "space",
    "KIND": "kind",
    "SUBNETS": "blocks",
    "RETIRED": "retired",
    "LABELS": "labels",
    "DESCRIPTION": "description",
}

plan_options = with_options(
    click.option("--kind", type=click.Choice([str(kind) for kind in NetworkKind]), help="What it is to machines."),
    click.option("--mac-prefix", metavar="MAC", help="How the MAC addresses on it begin."),
    click.option("--tag", "tags", multiple=True, metavar="WORD", help="A tag; repeat for more."),
    labels_option,
    description_option,
)


@noun("network")
def network() -> None:
    """Add, change, list and remove networks.

    For example:
      tenure network list
    """


@network.command("add")
@click.argument("name")
@click.option("--space", help="Share one address plan with the other networks of this space.")
@plan_options
@pass_session
def add(
    session: Session,
    name: str,
    space: str | None,
    kind: str | None,
    mac_prefix: str | None,
    tags: tuple[str, ...],
    labels: Labels,
    description: str | None,
) -> None:
    """Add a network, in a space of its own unless one is named.

    For example:
      tenure network add net2 --space site --label team=shop
    """
    made = session.run(
        lambda ledger: ledger.add_network(
            name,
            space=space,
            kind=kind or "manual",
            mac_prefix=mac_prefix,
            tags=tags,
            labels=labels,
            description=description or "",
        ),
        may_make=True,
    )
    _told(session, made, "added")


@network.command("modify")
@network_argument
@plan_options
@without_option("mac-prefix", "tags", "labels", "description")
@pass_session
def modify(
    session: Session,
    network: str,
    kind: str | None,
    mac_prefix: str | None,
    tags: tuple[str, ...],
    labels: Labels,
    description: str | None,
    without: tuple[str, ...],
) -> None:
    """Change what is written on a network; what is not named stays as it is.

    For example:
      tenure network modify net1 --description "the shop's machines" --without labels
    """
    made = session.run(
        lambda ledger: ledger.modify_network(
            network,
            kind=changed(kind, "kind", without, None),
            mac_prefix=changed(mac_prefix, "mac-prefix", without, None),
            tags=changed(tags, "tags", without, ()),
            labels=changed(labels, "labels", without, {}),
            description=changed(description, "description", without, ""),
        )
    )
    _told(session, made, "changed")


@network.command("rename")
@network_argument
@click.argument("name")
@pass_session
def rename(session: Session, network: str, name: str) -> None:
    """Give a network another name; holdings and uuid stay.

    For example:
      tenure network rename net1 shop
    """
    made = session.run(lambda ledger: ledger.modify_network(network, name=name))
    _told(session, made, f"{network} is now")


@network.command("retire")
@network_argument
@undo_option
@pass_session
def retire(session: Session, network: str, undo: bool) -> None:
    """Stop picking in a network; what is held stays and is released as usual.

    For example:
      tenure network retire net1
    """
    made = session.run(lambda ledger: ledger.modify_network(network, retired=not undo))
    _told(session, made, "back in use:" if undo else "retired")


@network.command("remove")
@network_argument
@cascade_option
@pass_session
def remove(session: Session, network: str, cascade: bool) -> None:
    """Remove a network that nobody uses, or with all its holdings.

    For example:
      tenure network remove net1 --cascade
    """
    session.run(lambda ledger: ledger.remove_network(network, cascade=cascade))
    answer(session, {"removed": {"network": network}}, f"removed network {network}")


@network.command("list")
@pass_session
def list_networks(session: Session) -> None:
    """List the networks, in order of name.

    For example:
      tenure network list --json
    """
    documents = session.run(_entries)
    if not session.json:
        documents = [{**entry, "blocks": [subnet["cidr"] for subnet in entry["subnets"]]} for entry in documents]
    table(session, documents, COLUMNS, nothing="no networks; `tenure network add NAME` makes one")


@network.command("show")
@network_argument
@pass_session
def show(session: Session, network: str) -> None:
    """Show one network with its subnets, pools and reserved ranges.

    For example:
      tenure network show net1
    """
    entry = session.run(lambda ledger: _entry(ledger, network))
    answer(session, entry, fields(plain_network(entry)))


def plain_network(entry: Document) -> Document:
    """Return a network's document with what is nested written as short texts."""
    subnets = [subnet["cidr"] for subnet in entry["subnets"]]
    pools = [pool["name"] or pool["range"] for subnet in entry["subnets"] for pool in subnet["pools"]]
    reserved = [kept["range"] for subnet in entry["subnets"] for kept in subnet["reserved"]]
    waiting = [f"{wish['address']} for {wish['owner']}" for wish in entry["preallocations"]]
    reached = [" ".join(filter(None, (each["group"], each["mode"], each["link"]))) for each in entry["connections"]]
    plain = {
        "subnets": subnets,
        "pools": pools,
        "reserved": reserved,
        "preallocations": waiting,
        "connections": reached,
    }
    return {name.removesuffix("_us"): _plain_time(name, value) for name, value in {**entry, **plain}.items()}


def _plain_time(name: str, value: object) -> object:
    """Write a time for people where there is one; anything else stays as it is."""
    if not name.endswith("_us") or not isinstance(value, int):
        return value
    return time_text(moment(value)) if value else None


async def _entries(ledger: AsyncLedger) -> list[Document]:
    spaces = await ledger.spaces()
    entries = [network_entry(network, space.name) for space in spaces for network in space.networks.values()]
    return sorted(entries, key=lambda entry: str(entry["name"]))


async def _entry(ledger: AsyncLedger, name: str) -> Document:
    found = await ledger.network(name)
    entries = {entry["name"]: entry for entry in await _entries(ledger)}
    return entries.get(name) or network_entry(found)


def _told(session: Session, made: Network, verb: str) -> None:
    answer(session, network_entry(made), f"{verb} network {made.name}")
