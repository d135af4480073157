"""Instances as they are listed and told about, and the variables that scripts get."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.complete_names import complete_instance
from tenure.doors.cli.output.field_lists import (
    ListLayout,
    chosen_fields,
    field_values,
    layout_options,
    print_field_list,
    print_fields,
)
from tenure.doors.cli.output.print_answer import answer, fields, wire_text
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.errors import NotFound
from tenure.service.ledger.async_ledger import AsyncLedger

if TYPE_CHECKING:
    from tenure.integrations.ganeti.machine_model import Instance
    from tenure.integrations.ganeti.query.machine_fields import InstanceFacts

NOTHING = "no instances; `tenure instance add NAME` makes one"

name_argument = click.argument("name", shell_complete=complete_instance)


@command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_instance)
@layout_options
@pass_session
def list_instances(session: Session, names: tuple[str, ...], **said: Any) -> None:
    """List the instances, in order of name, or those that are named.

    For example:
      tenure instance list
      tenure instance list web -o name,ips,macs --no-headers --separator :
    """
    from tenure.integrations.ganeti.query.machine_fields import INSTANCE_DEFAULT, INSTANCE_FIELDS

    layout = ListLayout(**said)
    chosen = chosen_fields(session, layout, INSTANCE_DEFAULT, INSTANCE_FIELDS)
    facts = session.run(lambda ledger: _found(ledger, names))
    print_fields(session, facts, chosen, layout, nothing=NOTHING)


@command("list-fields")
@click.argument("names", nargs=-1, metavar="[FIELD]...")
@pass_session
def list_fields(session: Session, names: tuple[str, ...]) -> None:
    """List the fields that `tenure instance list -o` can show, or tell what some of them mean.

    For example:
      tenure instance list-fields
    """
    from tenure.integrations.ganeti.query.machine_fields import INSTANCE_FIELDS

    print_field_list(session, INSTANCE_FIELDS, names)


@command("info")
@name_argument
@pass_session
def info(session: Session, name: str) -> None:
    """Tell all about an instance: where it runs, its NICs and their addresses.

    For example:
      tenure instance info web
    """
    [facts] = session.run(lambda ledger: _found(ledger, [name]))
    document = instance_document(facts)
    words = {key: document[key] for key in ("name", "node", "group", "uuid", "serial_no")}
    answer(session, document, "\n".join([fields(words), *nic_lines(facts)]))


@command("env")
@name_argument
@click.option("--nic", type=click.IntRange(0), metavar="N", help="As the script of this NIC gets them, from 0.")
@click.option("--post", is_flag=True, help="As hooks get them after an operation: with GANETI_ and GANETI_POST_.")
@pass_session
def env(session: Session, name: str, nic: int | None, post: bool) -> None:
    """Print the variables that hooks and scripts get of an instance, one a line.

    For example:
      tenure instance env web
      tenure instance env web --nic 0
    """
    if nic is not None and post:
        raise click.UsageError("--nic and --post exclude each other: scripts of NICs have no phases")
    [facts] = session.run(lambda ledger: _found(ledger, [name]))
    variables = _variables(facts, nic, post)
    answer(session, variables, "\n".join(f"{key}={value}" for key, value in variables.items()))


def _variables(facts: "InstanceFacts", nic: int | None, post: bool) -> Mapping[str, str]:
    from tenure.integrations.ganeti.hook_environment import hook_variables, instance_variables, nic_variables

    instance = facts.instance
    if nic is None:
        told = instance_variables(instance, facts.networks)
        return hook_variables(told, told) if post else told
    if nic >= len(instance.nics):
        raise NotFound("NIC", str(nic), hint=f"instance {instance.name} has {len(instance.nics)}", field="nic")
    chosen = instance.nics[nic]
    return nic_variables(chosen, None if chosen.network is None else facts.networks[chosen.network])


async def _found(ledger: AsyncLedger, names: Sequence[str]) -> "list[InstanceFacts]":
    from tenure.integrations.ganeti.instances import Instances

    instances = Instances(ledger)
    return await instance_facts(ledger, [await instances.find(name) for name in names] or await instances.every())


async def instance_facts(ledger: AsyncLedger, instances: "Iterable[Instance]") -> "list[InstanceFacts]":
    """Put instances and the networks of their NICs together."""
    from tenure.integrations.ganeti.network_lookup import NetworkLookup
    from tenure.integrations.ganeti.query.machine_fields import InstanceFacts

    found = list(instances)
    wanted = {nic.network for instance in found for nic in instance.nics}
    every = (
        await NetworkLookup(ledger).every() if wanted - {None} else []
    )  # one may be gone, with an instance that is gone
    networks = {network.uuid: network for network in every if network.uuid in wanted}
    return [InstanceFacts(instance, networks) for instance in found]


def instance_document(facts: "InstanceFacts") -> dict[str, Any]:
    """Write an instance whole."""
    from tenure.integrations.ganeti.query.machine_fields import INSTANCE_FIELDS

    return field_values(facts, list(INSTANCE_FIELDS.values()))


def nic_lines(facts: "InstanceFacts") -> Iterator[str]:
    """Tell of each NIC: addresses, network, and how it is wired."""
    if not facts.nics:
        yield "  no NICs"
    for number, nic in enumerate(facts.nics):
        ips = ", ".join(ip or "-" for ip in nic["ips"]) or "no address"
        called = "" if nic["name"] is None else f" ({nic['name']})"
        wire = wire_text(nic["mode"], nic["link"], nic["vlan"])
        yield f"  NIC {number}{called}: {ips} on {nic['network'] or 'no network'}, {nic['mac']}, {wire}"
