"""``tenure node``: machines that carry instances; their own addresses are kept away from them."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.framework.click_base import noun
from tenure.doors.cli.framework.complete_names import complete_group, complete_node
from tenure.doors.cli.output.field_lists import (
    ListLayout,
    chosen_fields,
    field_values,
    layout_options,
    print_field_list,
    print_fields,
)
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.plan.edits import KEEP
from tenure.service.ledger.async_ledger import AsyncLedger

if TYPE_CHECKING:
    from tenure.integrations.ganeti.query.machine_fields import NodeFacts

NONE = "none"
"""Takes an address away."""


@noun("node")
def node() -> None:
    """Add, change, list and remove nodes.

    For example:
      tenure node list
    """


@node.command("add")
@click.argument("name")
@click.option("--group", shell_complete=complete_group, help="The group it belongs to; needed if there are several.")
@click.option("--primary-ip", metavar="ADDRESS", help="Its own address.")
@click.option("--secondary-ip", metavar="ADDRESS", help="Its address for replication.")
@click.option(
    "--no-conflicts-check",
    "check",
    flag_value=False,
    default=True,
    help="Do not reserve its addresses in the networks that have them.",
)
@pass_session
def add(session: Session, name: str, **said: Any) -> None:
    """Add a node to a group; its addresses are reserved in every network that has them.

    For example:
      tenure node add node2 --group default --primary-ip 198.51.100.9
    """
    from tenure.integrations.ganeti.cluster import Cluster
    from tenure.integrations.ganeti.query.machine_fields import NODE_FIELDS, NodeFacts

    made = session.run(lambda ledger: Cluster(ledger).add_node(name, **said))
    document = field_values(NodeFacts(made), list(NODE_FIELDS.values()))
    answer(session, document, f"added node {made.name} to group {made.group}")


@node.command("modify")
@click.argument("name", metavar="NODE", shell_complete=complete_node)
@click.option("--group", shell_complete=complete_group, help="The group to put it into, with its instances.")
@click.option("--primary-ip", metavar="ADDRESS", help="Its own address; or none.")
@click.option("--secondary-ip", metavar="ADDRESS", help="Its address for replication; or none.")
@click.option(
    "--no-conflicts-check",
    "check",
    flag_value=False,
    default=True,
    help="Do not reserve its new addresses, and do not look at NICs without network in the new group.",
)
@pass_session
def modify(session: Session, name: str, check: bool, group: str | None, **said: str | None) -> None:
    """Change a node's addresses or group; what is not named stays as it is.

    Reservations follow the addresses. In another group the NICs of its instances take the mode, link and VLAN by which
    their networks reach that group, and keep their addresses; the command is refused if a network does not reach it.

    For example:
      tenure node modify node9 --secondary-ip 203.0.113.77
      tenure node modify node9 --group default --primary-ip none
    """
    from tenure.integrations.ganeti.cluster_edits import ClusterEdits, NodeWords

    if group is None and all(word is None for word in said.values()):
        raise click.UsageError("nothing to change: say so with --group, --primary-ip or --secondary-ip")
    given = {key: None if word.lower() == NONE else word for key, word in said.items() if word is not None}
    words = NodeWords(group=KEEP if group is None else group, **given)
    changed, facts = session.run(
        lambda ledger: _changed(ledger, ClusterEdits(ledger).modify_node(name, words, check=check), name)
    )
    _tell(session, facts, changed, f"changed node {name}")


@node.command("rename")
@click.argument("name", metavar="NODE", shell_complete=complete_node)
@click.argument("new_name")
@pass_session
def rename(session: Session, name: str, new_name: str) -> None:
    """Give a node another name; its uuid, addresses and instances stay.

    For example:
      tenure node rename node9 node10
    """
    from tenure.integrations.ganeti.cluster_edits import ClusterEdits

    changed, facts = session.run(
        lambda ledger: _changed(ledger, ClusterEdits(ledger).rename_node(name, new_name), new_name)
    )
    _tell(session, facts, changed, f"{name} is now node {new_name}")


@node.command("remove")
@click.argument("node", shell_complete=complete_node)
@pass_session
def remove(session: Session, node: str) -> None:
    """Remove a node that carries no instance; its addresses are no longer reserved.

    For example:
      tenure node remove node9
    """
    from tenure.integrations.ganeti.cluster import Cluster

    gone = session.run(lambda ledger: Cluster(ledger).remove_node(node))
    answer(session, {"removed": {"node": gone.name}}, f"removed node {gone.name}")


@node.command("list")
@layout_options
@pass_session
def list_nodes(session: Session, **said: Any) -> None:
    """List the nodes, in order of name.

    For example:
      tenure node list -o name,primary_ip
    """
    from tenure.integrations.ganeti.query.machine_fields import NODE_DEFAULT, NODE_FIELDS

    layout = ListLayout(**said)
    chosen = chosen_fields(session, layout, NODE_DEFAULT, NODE_FIELDS)
    print_fields(session, session.run(_facts), chosen, layout, nothing="no nodes; `tenure node add NAME` makes one")


@node.command("list-fields")
@click.argument("names", nargs=-1, metavar="[FIELD]...")
@pass_session
def list_fields(session: Session, names: tuple[str, ...]) -> None:
    """List the fields that `tenure node list -o` can show, or tell what some of them mean.

    For example:
      tenure node list-fields
    """
    from tenure.integrations.ganeti.query.machine_fields import NODE_FIELDS

    print_field_list(session, NODE_FIELDS, names)


def _tell(session: Session, facts: "NodeFacts", changed: bool, text: str) -> None:
    from tenure.integrations.ganeti.query.machine_fields import NODE_FIELDS

    document = {**field_values(facts, list(NODE_FIELDS.values())), "changed": changed}
    answer(session, document, text if changed else f"nothing to change: node {facts.node.name}")


async def _changed(ledger: AsyncLedger, work: Awaitable[bool], name: str) -> "tuple[bool, NodeFacts]":
    """Do a change, and read the node as it is then."""
    from tenure.integrations.ganeti.cluster import Cluster
    from tenure.integrations.ganeti.instances import Instances
    from tenure.integrations.ganeti.query.machine_fields import NodeFacts

    changed = await work
    return changed, NodeFacts(await Cluster(ledger).node(name), await Instances(ledger).every())


async def _facts(ledger: AsyncLedger) -> "list[NodeFacts]":
    from tenure.integrations.ganeti.cluster import Cluster
    from tenure.integrations.ganeti.instances import Instances
    from tenure.integrations.ganeti.query.machine_fields import NodeFacts

    instances = await Instances(ledger).every()
    return [NodeFacts(each, instances) for each in await Cluster(ledger).nodes()]
