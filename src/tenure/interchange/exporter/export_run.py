"""Moving out: everything as text, piece by piece, so that memory stays small however large the ledger is.

The pieces are read one after the other while the ledger goes on: for a picture of one moment, use a backup.
"""

import json
from collections.abc import AsyncIterator

from tenure.interchange.formats.source_items import Progress
from tenure.interchange.formats.tenure_csv import header_row, holding_row
from tenure.interchange.formats.tenure_json import FORMAT, VERSION, holding_text, network_text
from tenure.interchange.importer.dry_run import pages
from tenure.kernel.holdings.holding_model import Holding
from tenure.service.ledger.async_ledger import AsyncLedger


async def export_csv(
    ledger: AsyncLedger, *, network: str | None = None, progress: Progress | None = None
) -> AsyncIterator[str]:
    """Write the holdings of a network, or of all, as a table."""
    await check_there(ledger, network)
    yield header_row()
    async for page in holding_pages(ledger, network, progress):
        yield "".join(holding_row(holding) for holding in page)


async def export_json(
    ledger: AsyncLedger, *, network: str | None = None, progress: Progress | None = None
) -> AsyncIterator[str]:
    """Write the plan and the holdings of a network, or of all: reading it back gives the same."""
    await check_there(ledger, network)
    yield f'{{"format": "{FORMAT}", "version": {VERSION},\n "spaces": ['
    between = "\n"
    for space in await ledger.spaces():
        chosen = [each for each in space.networks.values() if network in (None, each.name)]
        if chosen:
            networks = ",\n    ".join(network_text(each) for each in chosen)
            yield f'{between}  {{"name": {json.dumps(space.name, ensure_ascii=False)}, "networks": [\n    {networks}]}}'
            between = ",\n"
    yield '],\n "holdings": ['
    between = "\n"
    async for page in holding_pages(ledger, network, progress):
        yield between + ",\n".join(f"  {holding_text(holding)}" for holding in page)
        between = ",\n"
    yield "]}\n"


async def check_there(ledger: AsyncLedger, network: str | None) -> None:
    """Raise NotFound unless there is such a network, if one is named: before anything of an export is written."""
    if network is not None:
        await ledger.network(network)


async def holding_pages(
    ledger: AsyncLedger, network: str | None, progress: Progress | None
) -> AsyncIterator[list[Holding]]:
    """Read the holdings of a network, or of all in order of name, a page at a time."""
    done = 0
    names = [each.name for each in await ledger.networks()] if network is None else [network]
    for name in names:
        async for page in pages(ledger, name):
            yield page
            done += len(page)
            if progress is not None:
                progress(done, None)
