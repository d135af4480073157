"""A network's addresses painted for the map and the overview: pools, what is kept away, holdings of the whole space."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tenure.doors.cli.output.map_cells import COLUMNS, CellKind, Panel, Stroke, joined, painted, panels
from tenure.doors.cli.output.map_text import ASCII, UNICODE, Drawing, block_text, row_labels
from tenure.doors.cli.output.print_answer import answer, unicode_wanted
from tenure.doors.cli.session import Session
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange, merge
from tenure.kernel.errors import NotFound
from tenure.kernel.plan.blocked_ranges import Barriers
from tenure.kernel.plan.plan_model import Configuration, Network, Pool, Subnet
from tenure.service.ledger.async_ledger import AsyncLedger

PAGE = 10_000


@dataclass(frozen=True, slots=True)
class Chart:
    """A stretch of one subnet, painted."""

    title: str
    network: str
    pool: Pool | None
    subnet: Subnet
    strokes: list[Stroke]

    @property
    def unit(self) -> int:
        """Return how many addresses the subnet hands out at once."""
        return self.subnet.unit_size


def print_map(session: Session, network: str, pool: str | None, ascii_only: bool | None) -> None:
    """Draw the subnets of a network, or the ranges of one pool."""
    charts = session.run(lambda ledger: network_charts(ledger, network, pool))
    signs = ASCII if (not unicode_wanted() if ascii_only is None else ascii_only) else UNICODE
    documents: list[dict[str, Any]] = []
    lines: list[str] = []
    for chart in charts:
        pictures = panels(chart.strokes, chart.unit)
        documents += [map_document(chart, picture) for picture in pictures]
        lines += [*Drawing(signs, chart.unit).lines(pictures, chart.title), ""]
    nothing = f"network {network} has no subnets; `tenure subnet add {network} CIDR` makes one"
    answer(session, documents, "\n".join(lines[:-1]) if lines else nothing)


def map_document(chart: Chart, panel: Panel) -> dict[str, Any]:
    """Write one picture for scripts: what it shows, and its rows in ASCII signs."""
    signs = "".join(sign for sign, _ in Drawing(ASCII, chart.unit).cells(panel))
    rows = (signs[start : start + COLUMNS] for start in range(0, len(signs), COLUMNS))
    return {
        "network": chart.network,
        "subnet": str(chart.subnet.cidr),
        "pool": None if chart.pool is None else chart.pool.name,
        "first": format_address(panel.range.first),
        "last": format_address(panel.range.last),
        "unit": chart.subnet.unit,
        "cell_addresses": panel.cell,
        "closer": panel.zoomed,
        "counts": {str(kind): panel.counts[kind] for kind in CellKind},
        "rows": [{"address": label, "cells": row} for label, row in zip(row_labels(panel), rows, strict=True)],
    }


async def network_charts(ledger: AsyncLedger, name: str, pool: str | None = None) -> list[Chart]:
    """Paint the subnets of a network, or the ranges of one pool of it."""
    # The ledger's own error says best what is wrong with a name.
    await ledger.network(name)
    configuration = await _space_of(ledger, name)
    network = configuration.network(name)
    if pool is None:
        parts: list[tuple[Subnet, Pool | None]] = [(subnet, None) for subnet in network.subnets]
    else:
        parts = list(_pools_meant(network, pool))
    held = await held_strokes(ledger, configuration, network)
    barriers = list(Barriers(configuration))
    return [chart(network, subnet, part, held, [barrier.range for barrier in barriers]) for subnet, part in parts]


async def _space_of(ledger: AsyncLedger, name: str) -> Configuration:
    for configuration in await ledger.spaces():
        if name in configuration.networks:
            return configuration
    raise NotFound("network", name)


def _pools_meant(network: Network, ident: str) -> Iterator[tuple[Subnet, Pool]]:
    found = [(s, p) for s, p in network.pools() if ident in (p.name, str(p.range), block_text(p.range))]
    if not found:
        raise NotFound("pool", ident, network=network.name)
    yield from found


async def held_strokes(ledger: AsyncLedger, configuration: Configuration, network: Network) -> list[Stroke]:
    """Read what is taken where the network lies, by whichever network of its space; cost by holdings."""
    return joined(heapq.merge(*[await _strokes_of(ledger, name) for name in overlapping(configuration, network)]))


def overlapping(configuration: Configuration, network: Network) -> list[str]:
    """Name the networks of a space that have addresses in common with one of them, itself among them."""
    blocks = [subnet.cidr.range for subnet in network.subnets]
    return [
        other.name
        for other in configuration.networks.values()
        if any(subnet.cidr.range.overlaps(block) for subnet in other.subnets for block in blocks)
    ]


async def _strokes_of(ledger: AsyncLedger, network: str) -> list[Stroke]:
    strokes: list[Stroke] = []
    after: str | None = None
    while page := await ledger.holdings(network, after=after, limit=PAGE):
        strokes += [Stroke(h.row.first, h.row.last, CellKind(str(h.state))) for h in page]
        if len(page) < PAGE:
            break
        after = page[-1].last_address
    return sorted(strokes)


def chart(
    network: Network, subnet: Subnet, part: Pool | None, held: list[Stroke], barriers: list[AddressRange]
) -> Chart:
    """Paint a subnet, or one range of a pool in it."""
    whole = subnet.cidr.range if part is None else part.range
    kept = [AddressRange(position, position) for position, _ in subnet.kept_back()]
    away = merge(_whole_units(subnet, piece) for piece in [*barriers, *kept] if piece.overlaps(subnet.cidr.range))
    closed = network.retired or subnet.retired
    # `overlay` walks through both layers in order, and pools may be written in any.
    pools = sorted(subnet.pools, key=lambda pool: pool.range)
    # Each layer hides those before it: a reserved address that is held is shown as held.
    layers = [
        [_stroke(pool.range, CellKind.RESERVED if closed or pool.retired else CellKind.FREE) for pool in pools],
        [_stroke(piece, CellKind.RESERVED) for piece in away],
        held,
    ]
    title = f"{network.name} {subnet.cidr}"
    if part is not None:
        title = f"{network.name} {part.name or 'pool'} {block_text(part.range)}"
    return Chart(title, network.name, part, subnet, painted(whole, layers))


def _stroke(piece: AddressRange, kind: CellKind) -> Stroke:
    return Stroke(piece.first, piece.last, kind)


def _whole_units(subnet: Subnet, piece: AddressRange) -> AddressRange:
    """Widen a range, as far as it lies in the subnet, to the units it touches: none of them is handed out."""
    first, last = max(piece.first, subnet.cidr.first), min(piece.last, subnet.cidr.last)
    return AddressRange(subnet.unit_at(first).first, subnet.unit_at(last).last)
