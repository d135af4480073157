"""``tenure allocate`` and ``tenure hold``: addresses for owners."""

import contextlib
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import warn, warn_beside_list
from tenure.doors.cli.framework.shared_options import claim_options, network_argument, owner_argument
from tenure.doors.cli.output.json_documents import Document, holding_document
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.addressing.addresses import Family, unit_text
from tenure.kernel.errors import StoreUnavailable, TenureError
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.picking.passed_over import describe_passed_over, passed_over
from tenure.kernel.plan.plan_model import Network, Policy
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
    are full, the address is of the other, unless --family, --pool or --subnet says which, and a warning names the full
    ones. Ctrl-C withdraws a claim that waits.

    For example:
      tenure allocate net1 instance/web-1
      tenure allocate net1 instance/db-1 --address 192.0.2.5 --label team=shop
      tenure allocate net1 instance/lb --count 4 --contiguous
      tenure allocate net1 instance/web-2 --wait 30 --quiet
    """
    if count is None:
        if contiguous:
            raise click.UsageError("--contiguous needs --count: how many in a row?")
        _print_waiting(session, said["wait_s"])
        ask = partial(_one, verb="allocate", network=network, owner=owner, said=said)
        _print_one(session, session.run(lambda ledger: _noted(ledger, network, owner, said, ask)), quiet=quiet)
        return
    if wrong := [f"--{name.removesuffix('_s')}" for name in ONLY_ONE if said[name]]:
        raise click.UsageError(f"{wrong[0]} is for one address; leave it out, or leave out --count")
    many = partial(_many, network=network, owner=owner, count=count, contiguous=contiguous, said=said)
    given = session.run(lambda ledger: _noted(ledger, network, owner, {**said, "contiguous": contiguous}, many))
    warn_beside_list(session, given.notes)
    _print(session, [_document(holding) for holding in given.holdings], given.holdings, quiet=quiet)


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
    ask = partial(_one, verb="hold", network=network, owner=owner, said=said)
    _print_one(session, session.run(lambda ledger: _noted(ledger, network, owner, said, ask)), quiet=quiet)


Ask = Callable[[AsyncLedger], Awaitable[list[Holding]]]


class _Given(NamedTuple):
    """What was given, and what is to be noted of it."""

    holdings: list[Holding]
    notes: list[str]


async def _noted(ledger: AsyncLedger, network: str, owner: str, said: dict[str, Any], ask: Ask) -> _Given:
    """Ask for addresses, and note which of them were given because earlier pools were full.

    Cost: a reading of the plan, and where pools come one after the other, of what the owner held before.
    """
    plan, before = await _held_before(ledger, network, owner, said)
    holdings = await ask(ledger)
    notes: list[str] = []
    if plan is not None:
        # The plan is from before: it may lack the pool that served. Notes never cost the answer.
        with contextlib.suppress(TenureError):
            notes = _notes(plan, said, [each for each in holdings if each.generation not in before])
    return _Given(holdings, notes)


async def _one(ledger: AsyncLedger, verb: str, network: str, owner: str, said: dict[str, Any]) -> list[Holding]:
    ask = ledger.allocate if verb == "allocate" else ledger.hold
    return [await ask(network, owner=owner, **_said(said))]


async def _held_before(
    ledger: AsyncLedger, network: str, owner: str, said: dict[str, Any]
) -> tuple[Network | None, set[int]]:
    """Return the plan, and what the owner has there: an address that was given before is no news; None: nor is any."""
    if said.get("address") is not None:
        return None, set()
    try:
        plan = await ledger.network(network)
        kinds = {(pool.rank, subnet.family) for subnet, pool in plan.pools()}
        held = await ledger.holdings(network, owner=owner) if len(kinds) > 1 else []
    # Whoever may allocate may not be allowed to read; what is wrong otherwise, the allocation says.
    except StoreUnavailable:
        raise
    except TenureError:
        return None, set()
    return plan if len(kinds) > 1 else None, {holding.generation for holding in held}


def _notes(plan: Network, said: dict[str, Any], fresh: list[Holding]) -> list[str]:
    """Write which pools were full when these were picked; what waited for its owner was not picked."""
    waited = {(each.owner, each.slot) for each in plan.preallocations}
    key = (plan.name, said["pool"], said["subnet"], said["zone"], said["family"] and Family(said["family"]))
    policy = said["policy"] and Policy(said["policy"])
    picked = [each.row.first for each in fresh if (each.owner, each.slot) not in waited]
    lack = "without so many in a row" if said.get("contiguous") else "full"
    return describe_passed_over(plan, {place: passed_over(plan, key, policy, place) for place in picked}, lack)


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


def _print_waiting(session: Session, wait_s: float | None) -> None:
    if wait_s and sys.stderr.isatty() and not session.json:
        click.echo(f"waiting up to {wait_s:g} s where nothing is free; Ctrl-C withdraws the claim", err=True)


def _document(holding: Holding, notes: Sequence[str] = ()) -> Document:
    return {**holding_document(holding), "warnings": [*holding.warnings, *notes]}


def _print_one(session: Session, given: _Given, *, quiet: bool) -> None:
    warn(session, given.notes)
    _print(session, _document(given.holdings[0], given.notes), given.holdings, quiet=quiet)


def _print(session: Session, document: object, holdings: list[Holding], *, quiet: bool) -> None:
    warn(session, (text for holding in holdings for text in holding.warnings))
    answer(
        session,
        document,
        "\n".join(unit_text(holding.row.first, holding.row.last) if quiet else str(holding) for holding in holdings),
    )
