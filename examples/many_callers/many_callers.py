"""A thousand callers at once: what waits together is committed together, without a timer."""

import asyncio
import tempfile
import time
from pathlib import Path

import tenure

CALLERS = 1000


async def main() -> None:
    """Let every caller ask for itself, all at the same moment."""
    with tempfile.TemporaryDirectory() as folder:
        async with await tenure.open_async(f"sqlite:///{Path(folder) / 'tenure.db'}") as ledger:
            await ledger.add_network("pods")
            await ledger.add_subnet("pods", "10.0.0.0/16")
            await ledger.add_pool("pods", "10.0.0.0/16", policy="random")

            begun = time.perf_counter()
            calls = (ledger.allocate("pods", owner=f"pod/{number}") for number in range(CALLERS))
            holdings = await asyncio.gather(*calls)
            took_s = time.perf_counter() - begun

            assert len({holding.address for holding in holdings}) == CALLERS
            assert await ledger.verify() == []
    print(f"{CALLERS} addresses, each durable before its caller was answered: {CALLERS / took_s:,.0f} a second")


asyncio.run(main())
