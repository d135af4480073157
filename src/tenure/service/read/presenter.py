"""Rows shown as users see them."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tenure.kernel.errors import AddressOutsideSubnet
from tenure.kernel.holdings.holding_model import Holding, Row
from tenure.kernel.names import Owner
from tenure.kernel.plan.layout import Layout
from tenure.service.allocator.claim import Granted
from tenure.service.allocator.revocable_grants import reported
from tenure.service.apply.apply_operations import Result
from tenure.service.apply.operations import Shown


@dataclass(frozen=True, slots=True)
class ClaimStatus:
    """What became of a claim so far: ``granted`` with its holding, or ``waiting`` at a place (1 is next)."""

    state: str
    holding: Holding | None = None
    place: int | None = None


@dataclass(frozen=True, slots=True)
class WaitingClaim:
    """A claim in line, as users see it; ``until`` its caller waits, or its place is kept; None: for ever."""

    network: str
    owner: Owner
    slot: str
    place: int
    since: datetime
    until: datetime | None
    pool: str | None = None
    subnet: str | None = None
    zone: str | None = None
    family: str | None = None


def holding_of(row: Row, layout: Layout, warnings: tuple[str, ...] = ()) -> Holding:
    """Show a row as users see it."""
    network = layout.name_of(row.network)
    prefix, gateway = layout.shown(network, row.first)
    return Holding(network, reported(row), prefix, gateway, warnings)


def known_holdings(rows: Sequence[Row], layout: Layout) -> list[Holding]:
    """Show rows whose subnet the layout knows; one read a moment earlier or later may not know a few."""
    shown_rows: list[Holding] = []
    for row in rows:
        with contextlib.suppress(KeyError, AddressOutsideSubnet):
            shown_rows.append(holding_of(row, layout))
    return shown_rows


def show(result: Result) -> Shown:
    """Show the result of an operation."""
    if isinstance(result, Granted):
        return holding_of(*result)
    if isinstance(result, list):
        return [holding_of(*each) for each in result]
    return result
