"""``tenure reserve`` and ``tenure preallocation``: addresses kept away from picking, or for one owner."""

from typing import Any

import click

from tenure.doors.cli.commands.subnet import chosen_networks
from tenure.doors.cli.framework.click_base import noun, with_options
from tenure.doors.cli.framework.exit_codes import unless_nothing, warn_beside_list
from tenure.doors.cli.framework.shared_options import (
    address_argument,
    labels_option,
    network_argument,
    network_choice,
    no_check_option,
    owner_argument,
    range_argument,
    request_option,
    slot_option,
)
from tenure.doors.cli.output.json_documents import Document
from tenure.doors.cli.output.print_answer import answer, table
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange, merge, parse_range
from tenure.kernel.plan.edits import Unreserve
from tenure.kernel.plan.new_ground import opened_ground
from tenure.kernel.plan.plan_model import Network, Notes
from tenure.service.apply.operations import IgnoreConflicts
from tenure.service.ledger.async_ledger import AsyncLedger

notes_options = with_options(
    labels_option,
    click.option("--description", default="", metavar="TEXT", help="A few words for people."),
    request_option,
)
"""What may be written on a reserved range and on a pre-allocation."""


@noun("reserve")
def reserve() -> None:
    """Keep ranges away from picking, and lift them again.

    For example:
      tenure reserve list net1
    """


@reserve.command("add")
@network_argument
@range_argument
@click.option("--reason", default="", metavar="TEXT", help="Why, and on whose word.")
@notes_options
@pass_session
def add(session: Session, network: str, range: str, **said: Any) -> None:
    """Keep a range away from picking; held addresses in it stay held.

    For example:
      tenure reserve add net1 192.0.2.60-192.0.2.69 --reason "for the switches"
    """
    made = session.run(lambda ledger: ledger.reserve(network, range, **said))
    warn_beside_list(session, made.warnings)
    answer(session, reserved_entries(made), unless_nothing(f"reserved {range} in network {network}", made))


@reserve.command("remove")
@network_argument
@range_argument
@no_check_option
@pass_session
def remove(session: Session, network: str, range: str, check: bool) -> None:
    """Lift a reserved range, wholly or in part.

    For example:
      tenure reserve remove net1 192.0.2.20-192.0.2.29
    """
    edit = Unreserve(network=network, range=range)
    made, lifted = session.run(lambda ledger: _unreserved(ledger, edit, check=check))
    wanted = parse_range(range)
    stays = any(kept.range.overlaps(wanted) for subnet in made.subnets for kept in subnet.reserved)
    warn_beside_list(session, made.warnings, ALL_THE_SAME if stays else None)
    verb, parts = "are" if len(lifted) > 1 else "is", ", ".join(map(str, lifted))
    text = f"{range if lifted == [wanted] else parts} {verb} no longer reserved in network {network}"
    answer(session, reserved_entries(made), text if lifted else f"nothing to change in network {network}")


ALL_THE_SAME = "`--no-conflicts-check` lifts it all the same"


async def _unreserved(ledger: AsyncLedger, edit: Unreserve, *, check: bool) -> tuple[Network, list[AddressRange]]:
    """Lift a range, and return the network and what is no longer reserved there: nodes' own addresses still are."""
    from tenure.integrations.ganeti.network_lookup import apply_fresh, settled, unchanged  # help loads no integration

    async def attempt() -> tuple[Network, list[AddressRange]]:
        before = await ledger.network(edit.network)
        unlooked = [] if check else [IgnoreConflicts(network=edit.network)]
        # Only as it was read: otherwise the difference would name what another command lifted.
        made = (await apply_fresh(ledger, [unchanged(before), *unlooked, edit]))[-1]
        assert isinstance(made, Network)
        return made, merge(opened_ground(before, made))

    return await settled(attempt)


@reserve.command("list")
@network_choice
@pass_session
def list_reserved(session: Session, network: str | None) -> None:
    """List the reserved ranges of a network, or of all.

    For example:
      tenure reserve list net1
    """
    networks = session.run(lambda ledger: chosen_networks(ledger, network))
    documents = [entry for each in networks for entry in reserved_entries(each)]
    columns = {"NETWORK": "network", "SUBNET": "subnet", "RANGE": "range", "REASON": "reason"}
    table(session, documents, columns, nothing="no reserved ranges")


@noun("preallocation")
def preallocation() -> None:
    """Let addresses wait for one owner each.

    For example:
      tenure preallocation list net1
    """


@preallocation.command("add")
@network_argument
@address_argument
@owner_argument
@slot_option
@notes_options
@pass_session
def add_preallocation(session: Session, network: str, address: str, owner: str, **said: Any) -> None:
    """Let an address wait for one owner: it gets this one, and nobody else does.

    For example:
      tenure preallocation add net1 192.0.2.80 instance/db-7
    """
    made = session.run(lambda ledger: ledger.preallocate(network, owner, address, **said))
    answer(session, preallocation_entries(made), f"{address} waits for {owner} in network {network}")


@preallocation.command("remove")
@network_argument
@owner_argument
@slot_option
@pass_session
def remove_preallocation(session: Session, network: str, owner: str, slot: str) -> None:
    """Forget that an address waits for an owner.

    For example:
      tenure preallocation remove net1 instance/db-9
    """
    made = session.run(lambda ledger: ledger.remove_preallocation(network, owner, slot=slot))
    answer(session, preallocation_entries(made), f"no address waits for {owner} in network {network} any more")


@preallocation.command("list")
@network_choice
@pass_session
def list_preallocations(session: Session, network: str | None) -> None:
    """List the addresses that wait for an owner.

    For example:
      tenure preallocation list net1
    """
    networks = session.run(lambda ledger: chosen_networks(ledger, network))
    documents = [entry for each in networks for entry in preallocation_entries(each)]
    columns = {"NETWORK": "network", "ADDRESS": "address", "OWNER": "owner", "SLOT": "slot"}
    table(session, documents, columns, nothing="no address waits for anybody")


def reserved_entries(network: Network) -> list[Document]:
    """Write the reserved ranges of a network."""
    return [
        {
            "network": network.name,
            "subnet": str(subnet.cidr),
            "range": str(kept.range),
            "reason": kept.reason,
            "request": kept.request,
            **_notes(kept.notes),
        }
        for subnet in network.subnets
        for kept in subnet.reserved
    ]


def preallocation_entries(network: Network) -> list[Document]:
    """Write the pre-allocations of a network."""
    return [
        {
            "network": network.name,
            "address": format_address(wish.position),
            "owner": str(wish.owner),
            "slot": wish.slot,
            "request": wish.request,
            **_notes(wish.notes),
        }
        for wish in network.preallocations
    ]


def _notes(notes: Notes) -> Document:
    return {"labels": dict(notes.labels), "description": notes.description}
