"""``tenure network map``: every subnet of a network as a picture, with its pools; as ranges and counts for scripts."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.shared_options import network_argument
from tenure.doors.cli.output.map_cells import CellKind, Stroke, joined, panels
from tenure.doors.cli.output.map_text import ASCII, UNICODE, Drawing, Signs, block_text, plain_number
from tenure.doors.cli.output.network_chart import Chart, network_charts
from tenure.doors.cli.output.print_answer import answer, unicode_wanted
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.plan.plan_model import Pool
from tenure.service.ledger.async_ledger import AsyncLedger


@command("map")
@network_argument
@click.option("--ascii/--unicode", "ascii_only", default=None, help="Which signs to draw with; else by the locale.")
@pass_session
def map_network(session: Session, network: str, ascii_only: bool | None) -> None:
    """Draw a map of a network: each subnet with its pools, what is held, reserved and free.

    One sign is one address where there are few, and a block of them, shaded by how much is taken, where there are
    many. With --json: every range and its kind, and how many addresses there are of each kind.

    For example:
      tenure network map lan
    """
    charts = session.run(lambda ledger: _charts(ledger, network))
    signs = ASCII if (not unicode_wanted() if ascii_only is None else ascii_only) else UNICODE
    lines = [line for chart in charts for line in (*_picture(chart, signs), "")]
    nothing = f"network {network} has no subnets; `tenure subnet add {network} CIDR` makes one"
    answer(session, [_document(chart) for chart in charts], "\n".join(lines[:-1]) or nothing)


async def _charts(ledger: AsyncLedger, ident: str) -> list[Chart]:
    from tenure.integrations.ganeti.networks import Networks

    return await network_charts(ledger, (await Networks(ledger).find(ident)).name)


def _picture(chart: Chart, signs: Signs) -> Iterator[str]:
    yield from Drawing(signs, chart.unit).lines(panels(chart.strokes, chart.unit), chart.title)
    if not chart.subnet.pools:
        yield "  no pools: an address must be written out to be had"
    for pool in chart.subnet.pools:
        counts = _counts(chart.strokes, pool.range)
        free, size = plain_number(counts[CellKind.FREE]), plain_number(pool.range.size)
        yield f"  {pool.name or 'pool'} {block_text(pool.range)}: {free} of {size} addresses free"


def _counts(strokes: list[Stroke], part: AddressRange) -> Counter[CellKind]:
    """Count the addresses of each kind in a part."""
    counts: Counter[CellKind] = Counter()
    for stroke in strokes:
        counts[stroke.kind] += max(0, min(stroke.last, part.last) - max(stroke.first, part.first) + 1)
    return counts


def _document(chart: Chart) -> dict[str, Any]:
    return {
        "network": chart.network,
        "subnet": str(chart.subnet.cidr),
        "name": chart.subnet.name,
        "unit": chart.subnet.unit,
        "counts": _count_document(chart, chart.subnet.cidr.range),
        "pools": [_pool_document(chart, pool) for pool in chart.subnet.pools],
        "ranges": [{**_ends(stroke), "kind": str(stroke.kind)} for stroke in joined(chart.strokes)],
    }


def _pool_document(chart: Chart, pool: Pool) -> dict[str, Any]:
    return {"name": pool.name, **_ends(pool.range), "counts": _count_document(chart, pool.range)}


def _count_document(chart: Chart, part: AddressRange) -> dict[str, int]:
    counts = _counts(chart.strokes, part)
    return {str(kind): counts[kind] for kind in CellKind}


def _ends(piece: AddressRange | Stroke) -> dict[str, Any]:
    ends = {"first": format_address(piece.first), "last": format_address(piece.last)}
    return {**ends, "size": piece.last - piece.first + 1}
