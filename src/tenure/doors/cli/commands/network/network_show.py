"""Networks as they are listed and told about."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.complete_names import complete_network
from tenure.doors.cli.framework.shared_options import network_argument
from tenure.doors.cli.output.field_lists import (
    ListLayout,
    field_values,
    layout_options,
    print_field_list,
    print_fields,
    print_list,
)
from tenure.doors.cli.output.json_documents import Document, network_entry, time_text
from tenure.doors.cli.output.print_answer import answer, fields, wire_text
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.errors import NotFound
from tenure.kernel.holdings.holding_model import Holding, moment
from tenure.kernel.plan.plan_model import Configuration, Network
from tenure.service.ledger.async_ledger import AsyncLedger

if TYPE_CHECKING:
    from tenure.integrations.ganeti.query.network_fields import NetworkFacts

COLUMNS = {
    "NETWORK": "name",
    "SPACE": "space",
    "KIND": "kind",
    "SUBNETS": "blocks",
    "GROUPS": "groups",
    "TAGS": "tags",
    "RETIRED": "retired",
    "LABELS": "labels",
    "DESCRIPTION": "description",
}
NOTHING = "no networks; `tenure network add NAME` makes one"

FROM_HOLDINGS = {"free_count", "reserved_count", "map", "subnets", "families"}
FROM_INSTANCES = {"inst_list", "inst_cnt"}
"""Fields that cost more than the plan: all holdings of a network, all instances."""

networks_argument = click.argument("networks", nargs=-1, metavar="[NETWORK]...", shell_complete=complete_network)


@command("list")
@networks_argument
@layout_options
@pass_session
def list_networks(session: Session, networks: tuple[str, ...], **said: Any) -> None:
    """List the networks, in order of name, or those that are named.

    For example:
      tenure network list --json
      tenure network list -o name,free_count,group_list --no-headers --separator :
    """
    layout = ListLayout(**said)
    if layout.output is not None:
        _print_chosen(session, networks, layout)
        return
    documents = session.run(lambda ledger: entries(ledger, networks))
    if not session.json:
        documents = [_row(entry) for entry in documents]
    print_list(session, documents, COLUMNS, layout, nothing=NOTHING)


def _print_chosen(session: Session, networks: Sequence[str], layout: ListLayout) -> None:
    from tenure.integrations.ganeti.query.network_fields import FIELDS, NETWORK_DEFAULT, select

    chosen = select(layout.output, NETWORK_DEFAULT, FIELDS)
    facts = session.run(lambda ledger: network_facts(ledger, networks, {field.name for field in chosen}))
    print_fields(session, facts, chosen, layout, nothing=NOTHING)


def _row(entry: Document) -> Document:
    blocks = [subnet["cidr"] for subnet in entry["subnets"]]
    groups = [connection["group"] for connection in entry["connections"]]
    return {**entry, "blocks": blocks, "groups": groups}


@command("list-fields")
@click.argument("names", nargs=-1, metavar="[FIELD]...")
@pass_session
def list_fields(session: Session, names: tuple[str, ...]) -> None:
    """List the fields that `tenure network list -o` can show, or tell what some of them mean.

    For example:
      tenure network list-fields map subnets
    """
    from tenure.integrations.ganeti.query.network_fields import FIELDS

    print_field_list(session, FIELDS, names)


@command("show")
@network_argument
@pass_session
def show(session: Session, network: str) -> None:
    """Show one network with its subnets, pools and reserved ranges.

    For example:
      tenure network show net1
    """
    [entry] = session.run(lambda ledger: entries(ledger, [network]))
    answer(session, entry, fields(plain_network(entry)))


@command("info")
@networks_argument
@pass_session
def info(session: Session, networks: tuple[str, ...]) -> None:
    """Tell all about networks: subnets, maps of their pools, groups and instances.

    For example:
      tenure network info lan
    """
    from tenure.integrations.ganeti.query.info_text import info_lines
    from tenure.integrations.ganeti.query.network_fields import FIELDS

    facts = session.run(lambda ledger: network_facts(ledger, networks, set(FIELDS)))
    documents = [field_values(each, list(FIELDS.values())) for each in facts]
    texts = ["\n".join(info_lines(each)) for each in facts]
    answer(session, documents, "\n\n".join(texts) or NOTHING)


def plain_network(entry: Document) -> Document:
    """Return a network's document with what is nested written as short texts."""
    subnets = [subnet["cidr"] for subnet in entry["subnets"]]
    # A pool of several ranges is named once.
    pools = list(dict.fromkeys(pool["name"] or pool["range"] for each in entry["subnets"] for pool in each["pools"]))
    reserved = [kept["range"] for subnet in entry["subnets"] for kept in subnet["reserved"]]
    waiting = [f"{wish['address']} for {wish['owner']}" for wish in entry["preallocations"]]
    reached = [
        f"{wire['group']} {wire_text(wire['mode'], wire['link'], wire['vlan'])}" for wire in entry["connections"]
    ]
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


async def entries(ledger: AsyncLedger, idents: Sequence[str] = ()) -> list[Document]:
    """Write networks whole, with their spaces: all, in order of name, or those that are named."""
    found = await placed_networks(ledger, idents)
    return [network_entry(network, space.name) for network, space in found]


async def placed_networks(ledger: AsyncLedger, idents: Sequence[str] = ()) -> list[tuple[Network, Configuration]]:
    """Find networks by name or uuid, each with the space it is in."""
    spaces = await ledger.spaces()
    every = [(network, space) for space in spaces for network in space.networks.values()]
    if not idents:
        return sorted(every, key=lambda placed: placed[0].name)
    by_uuid = {network.uuid: (network, space) for network, space in every}
    # Names come last, so that a name wins over a uuid that is spelt alike.
    known = {**by_uuid, **{network.name: (network, space) for network, space in every}}
    missing = [ident for ident in idents if ident not in known]
    if missing:
        await ledger.network(missing[0])  # which says best what is wrong with such a name
        raise NotFound("network", missing[0])
    return [known[ident] for ident in idents]


async def network_facts(ledger: AsyncLedger, idents: Sequence[str], wanted: set[str]) -> "list[NetworkFacts]":
    """Read what these fields of networks are made from, and no more."""
    from tenure.integrations.ganeti.instances import Instances
    from tenure.integrations.ganeti.query.network_fields import NetworkFacts

    instances = await Instances(ledger).every() if wanted & FROM_INSTANCES else []
    facts = []
    for network, space in await placed_networks(ledger, idents):
        held = await _held(ledger, network, space) if wanted & FROM_HOLDINGS else ()
        neighbours = [each for each in space.networks.values() if each is not network]
        facts.append(NetworkFacts(network, held, instances, neighbours))
    return facts


async def _held(ledger: AsyncLedger, network: Network, space: Configuration) -> list[Holding]:
    """Read what is held where the network lies, by whichever network of its space."""
    from tenure.doors.cli.output.network_chart import overlapping

    return [holding for name in overlapping(space, network) for holding in await ledger.holdings(name)]
