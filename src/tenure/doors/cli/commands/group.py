"""``tenure group``: groups of nodes that networks are connected to."""

from collections.abc import Awaitable, Sequence
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
    from tenure.integrations.ganeti.machine_model import Group
    from tenure.integrations.ganeti.query.machine_fields import GroupFacts


@noun("group")
def group() -> None:
    """Add, change, list and remove groups of nodes.

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


@group.command("rename")
@click.argument("name", metavar="GROUP", shell_complete=complete_group)
@click.argument("new_name")
@pass_session
def rename(session: Session, name: str, new_name: str) -> None:
    """Give a group another name; its uuid, nodes, instances and networks stay.

    For example:
      tenure group rename spare rack3
    """
    from tenure.integrations.ganeti.cluster_edits import ClusterEdits

    changed, facts = session.run(
        lambda ledger: _changed(ledger, ClusterEdits(ledger).rename_group(name, new_name), new_name)
    )
    _tell(session, facts, changed, f"{name} is now group {facts.group.name}")


@group.command("assign-nodes")
@click.argument("name", metavar="GROUP", shell_complete=complete_group)
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...", shell_complete=complete_node)
@click.option(
    "--no-conflicts-check",
    "check",
    flag_value=False,
    default=True,
    help="Do not look at NICs without network of instances that come.",
)
@pass_session
def assign_nodes(session: Session, name: str, nodes: tuple[str, ...], check: bool) -> None:
    """Put nodes into a group, all or none, with the instances on them.

    Instances keep their addresses; their NICs take the mode, link and VLAN by which their networks reach the group.
    The command is refused if a network does not reach it.

    For example:
      tenure group assign-nodes default node9
    """
    from tenure.integrations.ganeti.cluster_edits import ClusterEdits

    changed, facts = session.run(
        lambda ledger: _changed(ledger, ClusterEdits(ledger).assign_nodes(name, nodes, check=check), name)
    )
    _tell(session, facts, changed, f"group {facts.group.name} has {', '.join(facts.members)}")


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


def _tell(session: Session, facts: "GroupFacts", changed: bool, text: str) -> None:
    from tenure.integrations.ganeti.query.machine_fields import GROUP_FIELDS

    document = {**field_values(facts, list(GROUP_FIELDS.values())), "changed": changed}
    answer(session, document, text if changed else f"nothing to change: group {facts.group.name}")


async def _changed(ledger: AsyncLedger, work: Awaitable[bool], name: str) -> "tuple[bool, GroupFacts]":
    """Do a change, and read the group (by name or uuid) as it is then."""
    from tenure.integrations.ganeti.cluster import Cluster

    changed = await work
    [facts] = await _facts(ledger, [await Cluster(ledger).group(name)])
    return changed, facts


async def _facts(ledger: AsyncLedger, groups: "Sequence[Group] | None" = None) -> "list[GroupFacts]":
    """Put groups, or all there are, together with what is in them."""
    from tenure.integrations.ganeti.cluster import Cluster
    from tenure.integrations.ganeti.instances import Instances
    from tenure.integrations.ganeti.query.machine_fields import GroupFacts

    cluster = Cluster(ledger)
    nodes, instances, networks = await cluster.nodes(), await Instances(ledger).every(), await ledger.networks()
    chosen = await cluster.groups() if groups is None else groups
    return [GroupFacts(each, nodes, instances, networks) for each in chosen]
