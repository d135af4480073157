"""Commands that change an instance, with the hooks that run before and after."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.instance.instance_show import instance_document, instance_facts, nic_lines
from tenure.doors.cli.framework.click_base import command, with_options
from tenure.doors.cli.framework.complete_names import complete_group, complete_instance, complete_node
from tenure.doors.cli.framework.exit_codes import warn
from tenure.doors.cli.output.hook_reports import (
    end_with_findings,
    hook_documents,
    hook_lines,
    hook_options,
    hooking_of,
    refusals_shown,
    unless_interrupted,
)
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session
from tenure.service.ledger.async_ledger import AsyncLedger

if TYPE_CHECKING:
    from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions
    from tenure.integrations.ganeti.instances import Done, Instances
    from tenure.integrations.ganeti.query.machine_fields import InstanceFacts

    Work = Callable[[Instances], Awaitable[Done]]

nets_option = click.option(
    "--net",
    "nets",
    multiple=True,
    metavar="OPT",
    help="A NIC: 0:ip0=IP,ip1=pool,ip2=POOL,network=NETWORK with mac=MAC (or auto: made up), name=, mode=, link= "
    "(or its old word bridge=), vlan=; in a change also NIC:modify,…, NIC:add,…, NIC:remove; repeat for more.",
)
conflict_options = with_options(
    click.option("--force", is_flag=True, help="Let externally reserved addresses be had."),
    click.option(
        "--no-conflicts-check",
        "check",
        flag_value=False,
        default=True,
        help="As --force; and a NIC without network may have an address of a network.",
    ),
)


@command("add")
@click.argument("name")
@nets_option
@click.option("--no-nics", is_flag=True, help="Make it without any NIC.")
@click.option("-n", "--node", shell_complete=complete_node, help="The node that carries it; else the first that can.")
@conflict_options
@hook_options
@click.pass_context
@pass_session
def add(session: Session, context: click.Context, name: str, no_nics: bool, **said: Any) -> None:
    """Add an instance with its NICs and their addresses, all or nothing.

    An address is written out, or picked: pool takes the first free one of the network, the name of a pool the first
    free one there. Without --net the instance has one NIC on no network.

    For example:
      tenure instance add web-2 --net 0:ip0=198.51.100.40,ip1=pool,network=lan
      tenure instance add web-3 --node node1 --net 0:ip=web,network=lan --net 1:network=lan
    """
    from tenure.integrations.ganeti.instance.plan_instance import DEFAULT_NIC

    nets = said["nets"]
    if no_nics and nets:
        raise click.UsageError("--no-nics and --net exclude each other")
    wanted = nets or ([] if no_nics else [DEFAULT_NIC])
    _run(session, context, said, "added", lambda instances: instances.add(name, wanted, _options(said)))


@command("modify")
@click.argument("name", shell_complete=complete_instance)
@nets_option
@conflict_options
@hook_options
@click.pass_context
@pass_session
def modify(session: Session, context: click.Context, name: str, **said: Any) -> None:
    """Change the NICs of an instance and their addresses, all or nothing.

    NIC is its index from 0, its name or its uuid; -1 is the last, and where one is added the place behind it. Addresses
    are counted as they were before the command: two of them can change places in one.

    For example:
      tenure instance modify --net 0:modify,ip1=pool web
      tenure instance modify --net -1:add,ip0=pool,network=lan web
    """
    if not said["nets"]:
        raise click.UsageError("nothing to change: say so with --net")
    _run(session, context, said, "changed", lambda instances: instances.modify(name, said["nets"], _options(said)))


@command("rename")
@click.argument("name", shell_complete=complete_instance)
@click.argument("new_name")
@hook_options
@click.pass_context
@pass_session
def rename(session: Session, context: click.Context, name: str, new_name: str, **said: Any) -> None:
    """Give an instance another name; its uuid, NICs, MACs and addresses stay.

    For example:
      tenure instance rename web shop
    """
    _run(session, context, said, "renamed", lambda instances: instances.rename(name, new_name))


@command("move")
@click.argument("name", shell_complete=complete_instance)
@click.option("-n", "--node", shell_complete=complete_node, help="The node to move to.")
@click.option("-g", "--group", shell_complete=complete_group, help="The group to move to: its first node.")
@click.option(
    "--no-conflicts-check",
    "check",
    flag_value=False,
    default=True,
    help="A NIC without network may have an address of a network that reaches the group.",
)
@hook_options
@click.pass_context
@pass_session
def move(
    session: Session, context: click.Context, name: str, node: str | None, group: str | None, check: bool, **said: Any
) -> None:
    """Move an instance to another node, or to a node of another group; it keeps all its addresses and MACs.

    In another group a NIC on a network takes the mode, link and VLAN by which the network reaches that group. The
    command is refused if one of its networks does not. A move within a group, a failover for example, changes no NIC.

    For example:
      tenure instance move web --node node9
      tenure instance move web --group default
    """
    if (node is None) == (group is None):
        raise click.UsageError("say where to: with --node or with --group, one of the two")
    from tenure.integrations.ganeti.instance.plan_instance import MoveTarget

    target = MoveTarget(node=node, group=group)
    _run(session, context, said, "moved", lambda instances: instances.move(name, target, check=check))


@command("remove")
@click.argument("name", shell_complete=complete_instance)
@hook_options
@click.pass_context
@pass_session
def remove(session: Session, context: click.Context, name: str, **said: Any) -> None:
    """Remove an instance and give back all its addresses.

    For example:
      tenure instance remove web
    """
    _run(session, context, said, "removed", lambda instances: instances.remove(name))


def _options(said: dict[str, Any]) -> "InstanceOptions":
    from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions

    return InstanceOptions(node=said.get("node"), force=said["force"], check=said["check"])


def _run(session: Session, context: click.Context, said: dict[str, Any], verb: str, work: "Work") -> None:
    """Run an operation with its hooks; print what was done, and how the hooks went."""
    with refusals_shown(session):
        done, facts = session.run(lambda ledger: _done(session, ledger, said, work))
    warn(session, hook_lines(done.hooks))
    _tell(session, done, facts, verb)
    end_with_findings(session, context, done.hooks, f"instance {done.instance.name} is {verb}")


async def _done(
    session: Session, ledger: AsyncLedger, said: dict[str, Any], work: "Work"
) -> "tuple[Done, InstanceFacts]":
    from tenure.integrations.ganeti.instances import Instances

    done = await unless_interrupted(session, work(Instances(ledger, hooking_of(said))))
    [facts] = await instance_facts(ledger, [done.instance])
    return done, facts


def _tell(session: Session, done: "Done", facts: "InstanceFacts", verb: str) -> None:
    document = {**instance_document(facts), "changed": done.changed, "hooks": hook_documents(done.hooks)}
    where = f"instance {done.instance.name} on {done.instance.node}"
    head = f"{verb} {where}" if done.changed else f"nothing to change: {where}"
    answer(session, document, "\n".join([head, *nic_lines(facts)]))
