"""An import in a process of its own, to be killed.

``python -m tests.interchange.importer.import_process URL ROWS BATCH``
"""

import asyncio
import sys

import tenure
from tenure.interchange.importer.import_run import run_import
from tests.interchange.importer.planted import planted_table


def told(done: int, total: int | None) -> None:
    """Tell the parent how far it is."""
    print(done, total, flush=True)


async def main(url: str, rows: int, batch: int) -> None:
    """Import the table."""
    source, _ = planted_table(rows, faults=False)
    async with await tenure.open_async(url) as ledger:
        await run_import(ledger, source, batch=batch, progress=told)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
