"""``tenure show``: an overview of everything, or one network, address or owner."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import click

from tenure.doors.cli.commands.holding import COLUMNS as HOLDING_COLUMNS
from tenure.doors.cli.commands.holding import holding_rows, print_holdings
from tenure.doors.cli.commands.network.network_show import plain_network
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.complete_names import complete_network
from tenure.doors.cli.output.json_documents import Document, explanation_document, holding_document, network_entry
from tenure.doors.cli.output.map_cells import TAKEN, CellKind, panel
from tenure.doors.cli.output.network_chart import PAGE, chart, held_strokes, print_map
from tenure.doors.cli.output.print_answer import answer, echo, fields, table, table_lines
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.addressing.addresses import Family, family_of, parse_address
from tenure.kernel.errors import Invalid, NotFound
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.names import Owner
from tenure.kernel.plan.blocked_ranges import Barriers
from tenure.kernel.plan.plan_model import Configuration, Network
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.read.explain import Explanation
from tenure.service.read.presenter import WaitingClaim

COLUMNS = {
    "NETWORK": "network",
    "SPACE": "space",
    "POOL": "pool",
    "FAMILY": "family",
    "UNIT": "unit",
    "SIZE": "size",
    "HELD": "held",
    "PENDING": "pending",
    "COOLING": "cooling",
    "RESERVED": "reserved",
    "FREE": "free",
    "WAITING": "waiting",
}
SHOWN_HOLDINGS = 50


class PoolKey(NamedTuple):
    """What has a line of its own: a pool, as far as it hands out one size of one family."""

    pool: str | None
    family: Family | None
    unit: int | None


Answer = Explanation | Sequence[Holding] | tuple[Document, list[Document], list[Holding]]


@command("show")
@click.argument("what", required=False, shell_complete=complete_network)
@click.option("--map", "as_map", is_flag=True, help="Draw the subnets of a network.")
@click.option("--ascii/--unicode", "ascii_only", default=None, help="Which signs to draw with; else by the locale.")
@pass_session
def show(session: Session, what: str | None, as_map: bool, ascii_only: bool | None) -> None:
    """Show everything in a table, or one network, address or owner.

    Sizes count what is handed out: addresses, or prefixes where a subnet hands out those (UNIT is their length). IPv4
    and IPv6 have lines of their own. A claim that waits is counted at every pool that could serve it.

    For example:
      tenure show
      tenure show net1
      tenure show net1 --map
      tenure show 192.0.2.10
      tenure show instance/web-0
    """
    if as_map:
        if what is None:
            raise click.UsageError("--map needs the name of a network")
        print_map(session, what, None, ascii_only)
    elif what is None:
        rows = session.run(overview)
        table(
            session,
            rows if session.json else pool_rows(rows),
            COLUMNS,
            nothing="an empty ledger; `tenure network add NAME` begins a plan",
        )
    else:
        _print(session, what, session.run(lambda ledger: _look_up(ledger, what)))


async def _look_up(ledger: AsyncLedger, what: str) -> Answer:
    """Find out what a word means: an address, the name of a network, or an owner."""
    names = {network.name for network in await ledger.networks()}
    # A network may be named like a block (10.0.0.0/8); then the network is meant.
    if _is_address(what) or (_is_address(what.partition("/")[0]) and what not in names):
        return await ledger.why(what)
    if what not in names and _is_owner(what):
        return await ledger.holdings(owner=what)
    network = await ledger.network(what)
    # The one beyond the limit is not shown; it says whether there are more.
    holdings = await ledger.holdings(what, limit=SHOWN_HOLDINGS + 1)
    pools = await overview(ledger, what)
    # Every network has a row, also one without pools: this one was removed since it was read above.
    if not pools:
        raise NotFound("network", what)
    return network_entry(network), pools, holdings


def _print(session: Session, what: str, found: Answer) -> None:
    if isinstance(found, Explanation):
        answer(session, explanation_document(found), str(found))
    elif isinstance(found, tuple):
        _print_network(session, *found)
    else:
        print_holdings(session, list(found), nothing=f"{what} holds nothing")


def _print_network(session: Session, entry: Document, pools: list[Document], holdings: list[Holding]) -> None:
    entry = {**entry, "space": pools[0]["space"]}
    shown, more = holdings[:SHOWN_HOLDINGS], len(holdings) > SHOWN_HOLDINGS
    if session.json:
        documents = [holding_document(holding) for holding in shown]
        answer(session, {"network": entry, "pools": pools, "holdings": documents, "more_holdings": more}, "")
        return
    echo(session, fields(plain_network(entry)))
    for columns, rows in ((COLUMNS, pool_rows(pools)), (HOLDING_COLUMNS, holding_rows(shown))):
        for line in ["", *table_lines(rows, columns)] if rows else []:
            echo(session, line)
    if more:
        echo(session, f"… and more: `tenure holding list {entry['name']} --after {shown[-1].last_address}`")


async def overview(ledger: AsyncLedger, only: str | None = None) -> list[Document]:
    """Count what is held and free in every pool; cost by holdings."""
    waiting = await ledger.waiting(only)
    rows: list[Document] = []
    for space in await ledger.spaces():
        for network in space.networks.values():
            if only in (None, network.name):
                # A network that was removed since the plan was read has no row any more.
                with suppress(NotFound):
                    rows += await _pool_rows(ledger, space, network, waiting)
    return sorted(rows, key=lambda row: str(row["network"]))


async def _pool_rows(
    ledger: AsyncLedger, space: Configuration, network: Network, waiting: Sequence[WaitingClaim]
) -> list[Document]:
    held = await held_strokes(ledger, space, network) if any(network.pools()) else []
    barriers = [barrier.range for barrier in Barriers(space)]
    rows: dict[PoolKey, Document] = {}
    for subnet, pool in network.pools():
        painted = chart(network, subnet, pool, held, barriers)
        counts = panel(painted.strokes, pool.range).counts
        units = {str(kind): -(-counts[kind] // painted.unit) for kind in (*TAKEN, CellKind.RESERVED, CellKind.FREE)}
        units["size"] = sum(units.values())
        key = PoolKey(pool.name, subnet.family, subnet.unit)
        row = rows.setdefault(key, _row(network, space, key, waiting))
        row.update({name: (row[name] or 0) + count for name, count in units.items()})
    if rows:
        return list(rows.values())
    poolless = await _poolless(ledger, network)
    return [{**_row(network, space, key, waiting), **taken} for key, taken in poolless.items()]


async def _poolless(ledger: AsyncLedger, network: Network) -> dict[PoolKey, dict[str, int]]:
    """Count the holdings of a network that has no pools: each was asked for by its address."""
    keys = [PoolKey(None, subnet.family, subnet.unit) for subnet in network.subnets] or [PoolKey(None, None, None)]
    nothing = {str(kind): 0 for kind in TAKEN}
    counts = {key: Counter(nothing) for key in keys}
    after: str | None = None
    while page := await ledger.holdings(network.name, after=after, limit=PAGE):
        for holding in page:
            key = PoolKey(None, family_of(holding.row.first), holding.unit)
            counts.setdefault(key, Counter(nothing))[str(holding.state)] += 1
        after = page[-1].last_address
    return {key: dict(count) for key, count in counts.items()}


def _row(network: Network, space: Configuration, key: PoolKey, waiting: Sequence[WaitingClaim]) -> Document:
    keys = ("size", *map(str, TAKEN), "reserved", "free")
    served = [claim for claim in waiting if _could_serve(network, key, claim)]
    named = {"network": network.name, "space": space.name, **key._asdict()}
    return {**named, **dict.fromkeys(keys), "waiting": len(served)}


def pool_rows(documents: Sequence[Document]) -> list[Document]:
    """Write overviews for people: what is handed out is an address, or a prefix of some length."""
    return [{**row, "unit": row["unit"] and unit_name(row["unit"], row["family"])} for row in documents]


def unit_name(unit: int, family: str) -> str:
    """Name what a subnet hands out."""
    return "address" if unit == (32 if family == Family.IPV4 else 128) else f"/{unit}"


def _could_serve(network: Network, key: PoolKey, claim: WaitingClaim) -> bool:
    if claim.network != network.name or claim.pool not in (None, key.pool):
        return False
    subnets = [s for s, part in network.pools() if PoolKey(part.name, s.family, s.unit) == key]
    if claim.subnet is not None:
        subnets = [subnet for subnet in subnets if subnet.answers_to(claim.subnet)]
    if claim.zone is not None:
        subnets = [subnet for subnet in subnets if subnet.serves_zone(claim.zone)]
    if claim.family is not None:
        subnets = [subnet for subnet in subnets if subnet.family == claim.family]
    return bool(subnets) or (claim.subnet, claim.zone, claim.family) == (None, None, None)


def _is_address(text: str) -> bool:
    try:
        parse_address(text)
    except Invalid:
        return False
    return True


def _is_owner(text: str) -> bool:
    try:
        Owner(text)
    except Invalid:
        return False
    return True
