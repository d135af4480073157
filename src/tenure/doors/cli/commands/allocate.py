"""``tenure allocate`` and ``tenure hold``: addresses for owners."""

import sys
from typing import Any

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import warn
from tenure.doors.cli.framework.shared_options import claim_options, network_argument, owner_argument
from tenure.doors.cli.output.json_documents import Document, holding_document
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.addressing.addresses import unit_text
from tenure.kernel.holdings.holding_model import Holding
from tenure.service.apply.operations import GroupKeywords
from tenure.service.ledger.async_ledger import AsyncLedger

ONLY_ONE = ("address", "reserved", "wait_s", "description", "carrier", "plan")
"""What is said of a single address and has no meaning for several."""

quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print nothing but the address.")


@command("allocate")
@network_argument
@owner_argument
@claim_options
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="So many, all or none, in slots 0, 1, 2, ….")
@click.option("--contiguous", is_flag=True, help="With --count: in a row, without a gap.")
@click.option(
    "--wait", "wait_s", type=float, metavar="SECONDS", help="Wait so long for a free one, in order of arrival."
)
@quiet_option
@pass_session
def allocate(
    session: Session, network: str, owner: str, count: int | None, contiguous: bool, quiet: bool, **said: Any
) -> None:
    """Give an address to an owner: this one, or the next free one that the policy picks.

    Asking again with the same owner and slot gives the same answer, if that is what is asked for; else it is refused.
    The holding stays as it is: where it has not the labels, description, carrier or plan that are asked for, a warning
    says so, and `tenure holding modify` changes them.
    All pools of a network are picked from together, by rank and then as they are written: where those of one family
    are full, the address is of the other, unless --family, --pool or --subnet says which. Ctrl-C withdraws a claim
    that waits.

    For example:
      tenure allocate net1 instance/web-1
      tenure allocate net1 instance/db-1 --address 192.0.2.5 --label team=shop
      tenure allocate net1 instance/lb --count 4 --contiguous
      tenure allocate net1 instance/web-2 --wait 30 --quiet
    """
    if count is None:
        if contiguous:
            raise click.UsageError("--contiguous needs --count: how many in a row?")
        _tell_waiting(session, said["wait_s"])
        found = session.run(lambda ledger: ledger.allocate(network, owner=owner, **_said(said)))
        _told(session, _document(found), [found], quiet=quiet)
        return
    if wrong := [f"--{name.removesuffix('_s')}" for name in ONLY_ONE if said[name]]:
        raise click.UsageError(f"{wrong[0]} is for one address; leave it out, or leave out --count")
    several = session.run(lambda ledger: _many(ledger, network, owner, count, contiguous, said))
    _told(session, [_document(holding) for holding in several], several, quiet=quiet)


@command("hold")
@network_argument
@owner_argument
@claim_options
@click.option("--lasts", "lasts_s", type=float, metavar="SECONDS", help="Its deadline; without, only you end it.")
@quiet_option
@pass_session
def hold(session: Session, network: str, owner: str, quiet: bool, **said: Any) -> None:
    """Take an address for an owner until it is confirmed, cancelled, or its deadline has passed.

    For example:
      tenure hold net1 instance/web-3 --lasts 600
    """
    found = session.run(lambda ledger: ledger.hold(network, owner=owner, **_said(said)))
    _told(session, _document(found), [found], quiet=quiet)


async def _many(
    ledger: AsyncLedger, network: str, owner: str, count: int, contiguous: bool, said: dict[str, Any]
) -> list[Holding]:
    of_each = {name: said[name] for name in GroupKeywords.__optional_keys__}
    return await ledger.allocate_many(
        network,
        owner=owner,
        count=count,
        contiguous=contiguous,
        slot=said["slot"],
        key=said["key"],
        **_said(of_each),
    )


def _said(said: dict[str, Any]) -> dict[str, Any]:
    """Return what was said: the rest is left to the ledger's own defaults."""
    return {name: value for name, value in said.items() if value is not None and value != {}}


def _tell_waiting(session: Session, wait_s: float | None) -> None:
    if wait_s and sys.stderr.isatty() and not session.json:
        click.echo(f"waiting up to {wait_s:g} s where nothing is free; Ctrl-C withdraws the claim", err=True)


def _document(holding: Holding) -> Document:
    return {**holding_document(holding), "warnings": list(holding.warnings)}


def _told(session: Session, document: object, holdings: list[Holding], *, quiet: bool) -> None:
    warn(session, (text for holding in holdings for text in holding.warnings))
    answer(
        session,
        document,
        "\n".join(unit_text(holding.row.first, holding.row.last) if quiet else str(holding) for holding in holdings),
    )
