"""The tags of a network, and the groups of nodes it is connected to."""

from typing import Any

import click

from tenure.doors.cli.commands.network.network_change import end_hooked, run_hooked, run_on_networks, tell_network
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.complete_names import complete_group
from tenure.doors.cli.framework.shared_options import network_argument, no_check_option
from tenure.doors.cli.output.hook_reports import hook_options
from tenure.doors.cli.output.print_answer import answer, wire_text
from tenure.doors.cli.session import Session, pass_session

groups_argument = click.argument("groups", nargs=-1, metavar="[GROUP]...", shell_complete=complete_group)
tags_argument = click.argument("tags", nargs=-1, required=True, metavar="TAG...")


@command("add-tags")
@network_argument
@tags_argument
@pass_session
def add_tags(session: Session, network: str, tags: tuple[str, ...]) -> None:
    """Put tags on a network, beside those it has.

    For example:
      tenure network add-tags net1 dmz public
    """
    made = run_on_networks(session, lambda networks: networks.tag(network, add=tags))
    tell_network(session, made, _tags_text(made.network.name, made.network.tags))


@command("remove-tags")
@network_argument
@tags_argument
@pass_session
def remove_tags(session: Session, network: str, tags: tuple[str, ...]) -> None:
    """Take tags off a network; each must be there.

    For example:
      tenure network remove-tags lan prod
    """
    made = run_on_networks(session, lambda networks: networks.tag(network, remove=tags))
    tell_network(session, made, _tags_text(made.network.name, made.network.tags))


@command("list-tags")
@network_argument
@pass_session
def list_tags(session: Session, network: str) -> None:
    """List the tags of a network, one a line.

    For example:
      tenure network list-tags lan
    """
    from tenure.integrations.ganeti.networks import Networks

    found = session.run(lambda ledger: Networks(ledger).find(network))
    answer(session, list(found.tags), "\n".join(found.tags) or f"network {found.name} has no tags")


@command("connect")
@network_argument
@groups_argument
@click.option(
    "-N",
    "--nic-parameters",
    "--parameters",
    "parameters",
    metavar="KEY=VALUE,…",
    help="mode= bridged, routed or openvswitch, link= and vlan=.",
)
@click.option(
    "--replace",
    "replaces",
    is_flag=True,
    help="Where it is connected in another way, connect it in this one, with the NICs.",
)
@no_check_option
@hook_options
@click.pass_context
@pass_session
def connect(
    session: Session, context: click.Context, network: str, groups: tuple[str, ...], parameters: str | None, **said: Any
) -> None:
    """Connect a network to groups of nodes, or to all: how NICs on it are wired there.

    Unless said otherwise a NIC is bridged to xen-br0, without vlan. Where the network is connected already, nothing is
    changed, unless --replace is given: then NICs that are wired in the old way are wired in the new one, in the same
    step.

    For example:
      tenure network connect net1 default -N mode=bridged,link=br100
      tenure network connect net1 default -N mode=bridged,link=br200 --replace
    """
    from tenure.integrations.ganeti.options.network_grammar import read_connection_option

    wire = {} if parameters is None else read_connection_option(parameters)
    check, replaces = said["check"], said["replaces"]
    made = run_hooked(
        session, said, lambda networks: networks.connect(network, groups, check=check, replaces=replaces, **wire)
    )
    names = ", ".join(
        f"{each.group} ({wire_text(each.mode, each.link, each.vlan)})" for each in made.network.connections
    )
    tell_network(session, made, f"network {made.network.name} is connected to {names}")
    end_hooked(session, context, made, "connected")


@command("disconnect")
@network_argument
@groups_argument
@hook_options
@click.pass_context
@pass_session
def disconnect(session: Session, context: click.Context, network: str, groups: tuple[str, ...], **said: Any) -> None:
    """Take a network off groups of nodes, or off all; no NIC there may be on it.

    For example:
      tenure network disconnect lan spare
    """
    made = run_hooked(session, said, lambda networks: networks.disconnect(network, groups))
    names = ", ".join(each.group for each in made.network.connections)
    tell_network(session, made, f"network {made.network.name} is connected to {names or 'no group'}")
    end_hooked(session, context, made, "disconnected")


def _tags_text(network: str, tags: tuple[str, ...]) -> str:
    return f"tags of network {network}: {', '.join(tags)}" if tags else f"network {network} has no tags"
