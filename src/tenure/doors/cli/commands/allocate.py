"""``tenure allocate`` and ``tenure hold``: addresses for owners."""

import contextlib
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import warn, with_options
from tenure.doors.cli.framework.shared_options import claim_options, network_argument, owner_argument
from tenure.doors.cli.output.json_documents import Document, holding_document
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.addressing.addresses import Family, unit_text
from tenure.kernel.errors import StoreUnavailable, TenureError
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.holdings.tenures import Ending
from tenure.kernel.picking.passed_over import Passed, describe_passed_over, may_return, passed_over
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
    are full, the address is of the other, unless --family, --pool or --subnet says which. Ctrl-C withdraws a claim
    that waits.
    A warning names the full pools of an earlier rank, and with the policy lowest those of the other family. It belongs
    to the run that picked the address: asking again, also with the same --key, gives the address without it. With
    sticky there is none for an address that the owner had before, nor where the log was trimmed and cannot say so.

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
    warn(session, given.notes())
    documents = [_document(holding, given.notes([holding])) for holding in given.holdings]
    _print(session, documents, given.holdings, quiet=quiet)


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


@dataclass(frozen=True)
class _Given:
    """What was given, and which pools were full when it was picked."""

    holdings: list[Holding]
    plan: Network | None = None
    full: Mapping[int, Passed] = field(default_factory=dict)
    lack: str = "full"

    def notes(self, holdings: Sequence[Holding] | None = None) -> list[str]:
        """Write what is to be noted of these holdings; without them, of all together."""
        places = [each.row.first for each in (self.holdings if holdings is None else holdings)]
        full = {place: self.full[place] for place in places if place in self.full}
        return [] if self.plan is None else describe_passed_over(self.plan, full, self.lack)


async def _noted(ledger: AsyncLedger, network: str, owner: str, said: dict[str, Any], ask: Ask) -> _Given:
    """Ask for addresses, and note which of them were given because earlier pools were full.

    Cost: a reading of the plan, and where pools come one after the other, of what the owner held before; with a policy
    that comes back to former addresses, of the history of each address from a later pool.
    """
    # Before the addresses are asked for: holdings that the owner has by then are no news.
    plan, before = await _held_before(ledger, network, owner, said)
    holdings = await ask(ledger)
    if plan is not None:
        lack = "without so many in a row" if said.get("contiguous") else "full"
        # The plan is from before: it may lack the pool that served. Notes never cost the answer.
        with contextlib.suppress(TenureError):
            full = await _full_before(ledger, plan, said, [each for each in holdings if each.generation not in before])
            return _Given(holdings, plan, full, lack)
    return _Given(holdings)


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


async def _full_before(
    ledger: AsyncLedger, plan: Network, said: dict[str, Any], fresh: list[Holding]
) -> dict[int, Passed]:
    """Return which pools were full when these were picked; what waited for its owner was not picked."""
    waited = {(each.owner, each.slot) for each in plan.preallocations}
    key = (plan.name, said["pool"], said["subnet"], said["zone"], said["family"] and Family(said["family"]))
    policy = said["policy"] and Policy(said["policy"])
    picked = [each for each in fresh if (each.owner, each.slot) not in waited]
    full = [(each, passed) for each in picked if (passed := passed_over(plan, key, policy, each.row.first))]
    returns = may_return(plan, key, policy)
    return {
        each.row.first: passed
        for each, passed in full
        if not (returns and await _may_have_returned(ledger, plan, each))
    }


async def _may_have_returned(ledger: AsyncLedger, plan: Network, holding: Holding) -> bool:
    """Return whether the owner's slot had this address before, as far as the log says."""
    history = await ledger.history(holding.address, network=plan.name)
    return history.trimmed or any(
        (each.owner, each.slot) == (holding.owner, holding.slot) and each.ending is not Ending.STILL_HELD
        for each in history.tenures
    )


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
    return {**holding_document(holding), "warnings": [*map(with_options, holding.warnings), *notes]}


def _print_one(session: Session, given: _Given, *, quiet: bool) -> None:
    warn(session, given.notes())
    _print(session, _document(given.holdings[0], given.notes()), given.holdings, quiet=quiet)


def _print(session: Session, document: object, holdings: list[Holding], *, quiet: bool) -> None:
    warn(session, (with_options(text) for holding in holdings for text in holding.warnings))
    answer(
        session,
        document,
        "\n".join(unit_text(holding.row.first, holding.row.last) if quiet else str(holding) for holding in holdings),
    )
