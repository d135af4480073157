"""Small plans that several suites start from."""

from typing import Any

import tenure
from tenure.kernel.holdings.holding_model import Row


async def small_plan(ledger: tenure.AsyncLedger, *, network: str = "net", space: str | None = None) -> None:
    """Lay out a network with one block, a gateway and a pool of ten addresses."""
    await ledger.add_network(network, space=space)
    await ledger.add_subnet(network, "192.0.2.0/24", gateway="192.0.2.1", name="block")
    await ledger.add_pool(network, "192.0.2.10-192.0.2.19", name="pool")


async def addresses(ledger: tenure.AsyncLedger, network: str = "net") -> list[str]:
    """List what is held in a network."""
    return [holding.address for holding in await ledger.holdings(network)]


def last(address: str) -> int:
    """Return the last number of an IPv4 address."""
    return int(address.rpartition(".")[2])


def without_asker(holding: tenure.Holding) -> Row:
    """Return a holding's row without what names a request: an answer names the request that ended it."""
    return holding.row._replace(request=None, details={})


def ending(change: tenure.Change) -> dict[str, Any]:
    """Return the details of an entry that ends a holding, but not on whose word it began: only servers know."""
    return {name: value for name, value in change.details.items() if name != "began_by"}
