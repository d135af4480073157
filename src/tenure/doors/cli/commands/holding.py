"""Commands on holdings that exist: release, confirm, cancel, transfer, modify, list."""

from collections.abc import Sequence
from typing import Any

import click

from tenure.doors.cli.framework.click_base import command, noun, with_options
from tenure.doors.cli.framework.shared_options import (
    address_argument,
    changed,
    changed_labels,
    description_option,
    generation_option,
    key_option,
    labels_option,
    network_argument,
    owner_argument,
    relabel_options,
    request_option,
    without_option,
)
from tenure.doors.cli.output.json_documents import Document, holding_document
from tenure.doors.cli.output.print_answer import answer, table
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.addressing.addresses import unit_text
from tenure.kernel.holdings.holding_model import Holding

COLUMNS = {
    "ADDRESS": "address",
    "NETWORK": "network",
    "OWNER": "owner",
    "SLOT": "slot",
    "STATE": "state",
    "SINCE": "since",
    "UNTIL": "until",
    "REQUEST": "request",
    "LABELS": "labels",
}

of_holding = with_options(network_argument, address_argument, owner_argument)
ending_options = with_options(generation_option, request_option, key_option)


@command("release")
@of_holding
@ending_options
@pass_session
def release(session: Session, network: str, address: str, owner: str, **said: Any) -> None:
    """End an owner's holding of an address. An address that nobody holds is no error.

    For example:
      tenure release net1 192.0.2.10 instance/web-0
    """
    ended = session.run(lambda ledger: ledger.release(network, address, owner=owner, **said))
    _ended(session, ended, f"{owner} no longer holds {address} in {network}", f"nobody holds {address} in {network}")


@command("release-owner")
@owner_argument
@with_options(request_option, key_option)
@pass_session
def release_owner(session: Session, owner: str, **said: Any) -> None:
    """End all holdings of an owner, in all networks, as one.

    For example:
      tenure release-owner instance/web-0
    """
    ended = session.run(lambda ledger: ledger.release_owner(owner, **said))
    documents = [holding_document(holding) for holding in ended]
    lines = [f"{owner} no longer holds {_ended_text(holding)}" for holding in ended]
    answer(session, documents, "\n".join(lines) or f"{owner} holds nothing")


@command("confirm")
@of_holding
@ending_options
@pass_session
def confirm(session: Session, network: str, address: str, owner: str, **said: Any) -> None:
    """Turn a pending holding into a held one; it succeeds exactly while the holding exists.

    For example:
      tenure confirm net1 192.0.2.13 instance/web-9
    """
    held = session.run(lambda ledger: ledger.confirm(network, address, owner=owner, **said))
    answer(session, holding_document(held), str(held))


@command("cancel")
@of_holding
@ending_options
@pass_session
def cancel(session: Session, network: str, address: str, owner: str, **said: Any) -> None:
    """End a pending holding; one that is gone already is no error.

    For example:
      tenure cancel net1 192.0.2.13 instance/web-9
    """
    ended = session.run(lambda ledger: ledger.cancel(network, address, owner=owner, **said))
    _ended(session, ended, f"cancelled: {address} in {network}", f"nothing is pending on {address} in {network}")


@command("transfer")
@of_holding
@click.argument("to")
@click.option("--to-slot", default="", metavar="NAME", help="Which slot of the new owner.")
@ending_options
@pass_session
def transfer(session: Session, network: str, address: str, owner: str, to: str, **said: Any) -> None:
    """Hand a holding over to another owner; nobody else can get the address in between.

    For example:
      tenure transfer net1 192.0.2.10 instance/web-0 instance/web-7
    """
    moved = session.run(lambda ledger: ledger.transfer(network, address, owner=owner, to=to, **said))
    answer(session, holding_document(moved), str(moved))


@noun("holding")
def holding() -> None:
    """List holdings and change what is written on them.

    For example:
      tenure holding list net1
    """


@holding.command("list")
@network_argument
@click.option("--after", metavar="ADDRESS", help="Go on behind this address.")
@click.option("--limit", type=int, metavar="N", help="So many at most.")
@pass_session
def list_holdings(session: Session, network: str, after: str | None, limit: int | None) -> None:
    """List the holdings of a network, in order of address.

    For example:
      tenure holding list net1 --limit 10
    """
    found = session.run(lambda ledger: ledger.holdings(network, after=after, limit=limit))
    print_holdings(session, found, nothing=f"nobody holds anything in {network}")


@holding.command("modify")
@of_holding
@labels_option
@relabel_options
@description_option
@click.option("--carrier", metavar="NAME", help="The machine that carries the address now.")
@click.option("--plan", metavar="NAME", help="The operation it belongs to.")
@click.option("--state", type=click.Choice(["held", "draining"]), help="Drain it for a successor, or take it back.")
@without_option("labels", "description", "carrier", "plan")
@ending_options
@pass_session
def modify(
    session: Session, network: str, address: str, owner: str, without: tuple[str, ...], generation: int | None,
    request: str | None, key: str | None, **said: Any,
) -> None:  # fmt: skip
    """Change what is written on a holding, or its state.

    For example:
      tenure holding modify net1 192.0.2.10 instance/web-0 --label team=shop --carrier vm-17
    """
    wanted = changed_labels(said, without)
    empty: dict[str, Any] = {"description": ""}
    wanted |= {field: changed(value, field, without, empty.get(field)) for field, value in said.items()}
    held = session.run(
        lambda ledger: ledger.modify_holding(
            network, address, owner=owner, generation=generation, request=request, key=key, **wanted
        )
    )
    answer(session, holding_document(held), str(held))


def print_holdings(session: Session, holdings: list[Holding], *, nothing: str) -> None:
    """Write holdings as a table."""
    documents = [holding_document(holding) for holding in holdings] if session.json else holding_rows(holdings)
    table(session, documents, COLUMNS, nothing=nothing)


def holding_rows(holdings: Sequence[Holding]) -> list[Document]:
    """Write holdings for people: a prefix has its length, which documents keep apart as ``unit``."""
    return [{**holding_document(each), "address": unit_text(each.row.first, each.row.last)} for each in holdings]


def _ended(session: Session, ended: Holding | None, text: str, nothing: str) -> None:
    document = None if ended is None else holding_document(ended)
    answer(session, document, nothing if ended is None else f"{text}{_by_text(ended)}")


def _ended_text(holding: Holding) -> str:
    return f"{unit_text(holding.row.first, holding.row.last)} in {holding.network}{_by_text(holding)}"


def _by_text(ended: Holding) -> str:
    """Write by which request a holding was ended, if the caller named it; who the caller is, he knows himself."""
    return f" (request {ended.request})" if ended.request else ""
