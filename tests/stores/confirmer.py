"""Confirms a holding, and is killed before or after it: ``python -m tests.stores.confirmer URL before|after``."""

import asyncio
import os
import signal
import sys
from typing import Any

import tenure
from tenure.service.ledger.engine_ledger import server_of


async def main(url: str, moment: str) -> None:
    """Confirm what ``vm/a`` holds."""
    ledger = await tenure.open_async(url)
    store: Any = server_of(ledger).store
    rewrite = store.rewrite_unchanged

    async def killed(*words: Any) -> Any:
        answer = await rewrite(*words) if moment == "after" else None
        os.kill(os.getpid(), signal.SIGKILL)
        return answer

    store.rewrite_unchanged = killed
    [held] = await ledger.holdings(owner="vm/a")
    await ledger.confirm("net", held.address, owner="vm/a", generation=held.generation)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
