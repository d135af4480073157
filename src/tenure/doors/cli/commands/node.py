"""``tenure node``: machines that carry instances; their own addresses are kept away from them."""

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
from tenure.service.ledger.async_ledger import AsyncLedger

if TYPE_CHECKING:
    from tenure.integrations.ganeti.query.machine_fields import NodeFacts


@noun("node")
def node() -> None:
    """Add, list and remove nodes.

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


async def _facts(ledger: AsyncLedger) -> "list[NodeFacts]":
    from tenure.integrations.ganeti.cluster import Cluster
    from tenure.integrations.ganeti.instances import Instances
    from tenure.integrations.ganeti.query.machine_fields import NodeFacts

    instances = await Instances(ledger).every()
    return [NodeFacts(each, instances) for each in await Cluster(ledger).nodes()]
