"""Rows shown as users see them."""

from tenure.kernel.layout import Layout
from tenure.kernel.values import Holding, Row
from tenure.service.applying import Result
from tenure.service.claims import Granted
from tenure.service.operations import Shown


def holding_of(row: Row, layout: Layout) -> Holding:
    """Show a row as users see it."""
    network = layout.name_of(row.network)
    prefix, gateway = layout.shown(network, row.first)
    return Holding(network, row, prefix, gateway)


def show(result: Result) -> Shown:
    """Show the result of an operation."""
    if isinstance(result, Granted):
        return holding_of(*result)
    if isinstance(result, list):
        return [holding_of(*each) for each in result]
    return result
