"""Which network of a ledger has a pool, said in the ledger itself: so a process without a cluster finds the right one.

A move is decided by the note in the pool's ConfigMap. The mover says here what of that concerns the ledger: that the
pool is coming, is here, or has left. Without such a paper the pool was never moved, and is in the network of its name.
"""

from dataclasses import dataclass
from typing import Literal

from tenure.kernel.errors import NotFound
from tenure.kernel.holdings.holding_model import Paper
from tenure.service.apply.operations import WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

KIND = "vm-pool-placement"
PlacedAs = Literal["coming", "here", "left"]


@dataclass(frozen=True, slots=True)
class LedgerPlacement:
    """What a ledger says of a pool."""

    epoch: int = 0
    state: PlacedAs = "here"
    paper: Paper | None = None
    """Where it says so; none if it says nothing."""

    def written(self, pool: str, epoch: int, state: PlacedAs) -> WritePaper:
        """Return the operation that says something else, unless another process has said so meanwhile."""
        revision = 0 if self.paper is None else self.paper.revision
        return WritePaper(kind=KIND, name=pool, document={"epoch": epoch, "state": state}, revision=revision)


async def read_ledger_placement(ledger: AsyncLedger, pool: str) -> LedgerPlacement:
    """Read what a ledger says of a pool. Cost: one request."""
    try:
        paper = await ledger.paper(KIND, pool)
    except NotFound:
        return LedgerPlacement()
    return LedgerPlacement(int(paper.document["epoch"]), paper.document["state"], paper)
