"""Commands that change a network: each is one ``apply``, wholly done or not at all."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.network.network_flags import (
    NONE,
    all_tags,
    deprecations,
    design_options,
    network_options,
    plan_options,
    unless_none,
    unreserve_option,
)
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import unless_nothing, warn, with_options
from tenure.doors.cli.framework.shared_options import (
    cascade_option,
    changed,
    changed_labels,
    network_argument,
    relabel_options,
    undo_option,
    without_option,
)
from tenure.doors.cli.output.hook_reports import (
    end_with_findings,
    hook_documents,
    hook_lines,
    hook_options,
    hooking_of,
    refusals_shown,
    unless_interrupted,
)
from tenure.doors.cli.output.json_documents import network_entry
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.plan.edits import KEEP

if TYPE_CHECKING:
    from tenure.integrations.ganeti.networks import Changed, NetworkOptions, Networks

    Work = Callable[[Networks], Awaitable[Changed]]


@command("add")
@click.argument("name")
@click.option("--space", help="Share one address plan with the other networks of this space.")
@design_options
@plan_options
@hook_options
@click.pass_context
@pass_session
def add(session: Session, context: click.Context, name: str, space: str | None, **said: Any) -> None:
    """Add a network with subnets, pools and reserved addresses, all at once or nothing.

    Nothing of that is needed: a network may as well be bare. It gets a space of its own unless one is named.

    For example:
      tenure network add net2 --space site --label team=shop
      tenure network add net4 --subnet add:cidr=10.0.0.0/24,gateway=10.0.0.1,name=front --pool add:10.0.0.10-10.0.0.99
    """
    from tenure.kernel.plan.edits import AddNetwork

    wish = AddNetwork(
        network=name,
        space=space,
        kind=said["kind"] or "manual",
        mac_prefix=unless_none(said["mac_prefix"]),
        tags=all_tags(said),
        labels=said["labels"],
        description=said["description"] or "",
    )
    made = run_hooked(session, said, lambda networks: networks.add(wish, network_options(said)), may_make=True)
    tell_network(session, made, f"added network {made.network.name}", deprecations(said))
    end_hooked(session, context, made, "added")


@command("modify")
@network_argument
@design_options
@unreserve_option
@plan_options
@relabel_options
@without_option("mac-prefix", "tags", "labels", "description")
@hook_options
@click.pass_context
@pass_session
def modify(session: Session, context: click.Context, network: str, without: tuple[str, ...], **said: Any) -> None:
    """Change a network, all at once or nothing; what is not named stays as it is.

    Options about subnets are done first, in the order written, then those about pools, then reserved addresses. IDENT
    is the name, the block or the uuid of a subnet. Gateways, IPv6 blocks, names and the MAC prefix may be none.

    An address of --add-reserved-ips that is wrong or lies in no subnet refuses the whole command. Ganeti warns of it
    and goes on; but an address that was meant to be reserved, and is not, is given to an instance.

    For example:
      tenure network modify net1 --description "the shop's machines" --without labels
      tenure network modify --subnet old:modify,dhcp=yes,name=front --pool add:203.0.113.2-203.0.113.4,name=p net1
      tenure network modify --remove-reserved-ips 192.0.2.30-192.0.2.35 net1
    """
    words = {
        "kind": changed(said["kind"], "kind", without, None),
        "mac_prefix": changed(unless_none(said["mac_prefix"]), "mac-prefix", _emptied(said, without), None),
        "tags": changed(all_tags(said), "tags", without, ()),
        **changed_labels(said, without),
        "description": changed(said["description"], "description", without, ""),
    }
    options = network_options(said)
    made = run_hooked(session, said, lambda networks: networks.modify(network, options, words))
    verb = "changed" if _asks(options, words) else "nothing to change in"
    tell_network(session, made, f"{verb} network {made.network.name}", deprecations(said))
    end_hooked(session, context, made, "changed")


def _asks(options: "NetworkOptions", words: Mapping[str, Any]) -> bool:
    """Tell whether anything was to be changed at all."""
    spoken = any(value is not KEEP for value in words.values())
    # --no-conflicts-check asks for no change; it only says how others are looked at.
    return spoken or replace(options, check=True) != type(options)()


def _emptied(said: Mapping[str, Any], without: tuple[str, ...]) -> tuple[str, ...]:
    return (*without, "mac-prefix") if (said["mac_prefix"] or "").lower() == NONE else without


@command("rename")
@network_argument
@click.argument("name")
@hook_options
@click.pass_context
@pass_session
def rename(session: Session, context: click.Context, network: str, name: str, **said: Any) -> None:
    """Give a network another name; holdings and uuid stay.

    For example:
      tenure network rename net1 shop
    """
    made = _modified(session, said, network, {"name": name})
    tell_network(session, made, f"{network} is now network {made.network.name}")
    end_hooked(session, context, made, "renamed")


@command("retire")
@network_argument
@undo_option
@hook_options
@click.pass_context
@pass_session
def retire(session: Session, context: click.Context, network: str, undo: bool, **said: Any) -> None:
    """Stop picking in a network; what is held stays and is released as usual.

    For example:
      tenure network retire net1
    """
    made = _modified(session, said, network, {"retired": not undo})
    tell_network(session, made, f"{'back in use:' if undo else 'retired'} network {made.network.name}")
    end_hooked(session, context, made, "changed")


@command("remove")
@network_argument
@cascade_option
@click.option("--force", is_flag=True, help="Understood; it changes nothing.")
@hook_options
@click.pass_context
@pass_session
def remove(session: Session, context: click.Context, network: str, cascade: bool, force: bool, **said: Any) -> None:
    """Remove a network that nobody uses, or with all its holdings.

    It must be connected to no group of nodes.

    For example:
      tenure network remove net1 --cascade
    """
    gone = run_hooked(session, said, lambda networks: networks.remove(network, cascade=cascade))
    name = gone.network.name
    document = {"removed": {"network": name}, "hooks": hook_documents(gone.hooks)}
    answer(session, document, f"removed network {name}")
    end_hooked(session, context, gone, "removed")


def _modified(session: Session, said: Mapping[str, Any], network: str, words: Mapping[str, Any]) -> "Changed":
    from tenure.integrations.ganeti.networks import NetworkOptions

    return run_hooked(session, said, lambda networks: networks.modify(network, NetworkOptions(), words))


def run_hooked(session: Session, said: Mapping[str, Any], work: "Work", *, may_make: bool = False) -> "Changed":
    """Do one piece of work on the networks of the ledger, with the hooks that the options name."""
    from tenure.integrations.ganeti.networks import Networks

    with refusals_shown(session):
        made = session.run(
            lambda ledger: unless_interrupted(session, work(Networks(ledger, hooking_of(said)))), may_make=may_make
        )
    warn(session, hook_lines(made.hooks))
    return made


def end_hooked(session: Session, context: click.Context, made: "Changed", verb: str) -> None:
    """End the command with the code of findings if a hook behind it failed."""
    end_with_findings(session, context, made.hooks, f"network {made.network.name} is {verb}")


def run_on_networks(session: Session, work: "Work", *, may_make: bool = False) -> "Changed":
    """Do one piece of work on the networks of the ledger."""
    from tenure.integrations.ganeti.networks import Networks

    return session.run(lambda ledger: work(Networks(ledger)), may_make=may_make)


def tell_network(session: Session, made: "Changed", text: str, warnings: Iterable[str] = ()) -> None:
    """Tell what a command left, and what is to be said about it."""
    every = [*warnings, *map(with_options, made.warnings), *made.network.warnings]
    text = unless_nothing(text, made.network)
    warn(session, every)
    document = {**network_entry(made.network), "warnings": every, "hooks": hook_documents(made.hooks)}
    answer(session, document, text)
