"""``tenure group``: groups of nodes that networks are connected to."""

from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.framework.click_base import noun
from tenure.doors.cli.framework.complete_names import complete_group
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
    from tenure.integrations.ganeti.query.machine_fields import GroupFacts


@noun("group")
def group() -> None:
    """Add, list and remove groups of nodes.

    For example:
      tenure group list
    """


@group.command("add")
@click.argument("name")
@pass_session
def add(session: Session, name: str) -> None:
    """Add a group of nodes; networks are connected to it, and nodes belong to it.

    For example:
      tenure group add rack2
    """
    from tenure.integrations.ganeti.cluster import Cluster
    from tenure.integrations.ganeti.query.machine_fields import GROUP_FIELDS, GroupFacts

    made = session.run(lambda ledger: Cluster(ledger).add_group(name), may_make=True)
    answer(session, field_values(GroupFacts(made), list(GROUP_FIELDS.values())), f"added group {made.name}")


@group.command("remove")
@click.argument("group", shell_complete=complete_group)
@pass_session
def remove(session: Session, group: str) -> None:
    """Remove a group that has no node and that no network is connected to.

    For example:
      tenure group remove empty
    """
    from tenure.integrations.ganeti.cluster import Cluster

    gone = session.run(lambda ledger: Cluster(ledger).remove_group(group))
    answer(session, {"removed": {"group": gone.name}}, f"removed group {gone.name}")


@group.command("list")
@layout_options
@pass_session
def list_groups(session: Session, **said: Any) -> None:
    """List the groups, in order of name.

    For example:
      tenure group list
    """
    from tenure.integrations.ganeti.query.machine_fields import GROUP_DEFAULT, GROUP_FIELDS

    layout = ListLayout(**said)
    chosen = chosen_fields(session, layout, GROUP_DEFAULT, GROUP_FIELDS)
    print_fields(session, session.run(_facts), chosen, layout, nothing="no groups; `tenure group add NAME` makes one")


@group.command("list-fields")
@click.argument("names", nargs=-1, metavar="[FIELD]...")
@pass_session
def list_fields(session: Session, names: tuple[str, ...]) -> None:
    """List the fields that `tenure group list -o` can show, or tell what some of them mean.

    For example:
      tenure group list-fields
    """
    from tenure.integrations.ganeti.query.machine_fields import GROUP_FIELDS

    print_field_list(session, GROUP_FIELDS, names)


async def _facts(ledger: AsyncLedger) -> "list[GroupFacts]":
    from tenure.integrations.ganeti.cluster import Cluster
    from tenure.integrations.ganeti.instances import Instances
    from tenure.integrations.ganeti.query.machine_fields import GroupFacts

    cluster = Cluster(ledger)
    nodes, instances, networks = await cluster.nodes(), await Instances(ledger).every(), await ledger.networks()
    return [GroupFacts(each, nodes, instances, networks) for each in await cluster.groups()]
