"""What pages cost in a /16 with 60,000 held and in an empty one: ``python -m tests.doors.http.utilisation.measure``."""

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence

import tenure
from tests.doors.http.stage import Client, running

HELD = 60_000
BATCH = 2_000
BAR = 3.0
PAGES = {
    "map of the /16": "/networks/{network}/map",
    "map of a /24 of it": "/networks/{network}/map?first=10.{second}.100.0&last=10.{second}.100.255",
    "holdings, limit 100": "/networks/{network}/holdings?limit=100",
    "utilisation": "/networks/{network}/utilisation",
    "timeline": "/networks/{network}/timeline",
}
NETWORKS = {"empty": 1, "full": 2}


async def fill(ledger: tenure.AsyncLedger, held: int) -> None:
    """Make two networks, and fill one."""
    for name, second in NETWORKS.items():
        await ledger.add_network(name)
        await ledger.add_subnet(name, f"10.{second}.0.0/16")
        await ledger.add_pool(name, f"10.{second}.0.0/16")
    for start in range(0, held, BATCH):
        await ledger.allocate_many("full", owners=[f"vm/{number}" for number in range(start, start + BATCH)])


async def timed(client: Client, paths: Sequence[str], times: int) -> tuple[float, float]:
    """Return the median milliseconds of two pages, read in turn."""
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for path, costs in zip(paths, took, strict=True):
            began = time.perf_counter()
            await client.get(path)
            costs.append(time.perf_counter() - began)
    return statistics.median(took[0]) * 1000, statistics.median(took[1]) * 1000


async def measure(times: int, held: int = HELD) -> dict[str, tuple[float, float]]:
    """Return the cost of each page: empty, full."""
    found: dict[str, tuple[float, float]] = {}
    async with running() as server, server.client() as client:
        async with await tenure.open_async(server.store) as ledger:
            await fill(ledger, held)
        server.process.terminate()
        await server.restart()
        began = time.perf_counter()
        await client.get("/networks/full/utilisation")
        counted = time.perf_counter()
        await client.get("/networks/full/map")
        drawn = time.perf_counter()
        print(f"counted after {(counted - began) * 1000:.0f} ms, first map {(drawn - counted) * 1000:.0f} ms")
        for title, path in PAGES.items():
            paths = [path.format(network=name, second=second) for name, second in NETWORKS.items()]
            found[title] = await timed(client, paths, times)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    for title, (empty, full) in asyncio.run(measure(parser.parse_args(arguments).times)).items():
        print(f"{title:>20}: empty {empty:6.2f} ms, with {HELD:,} held {full:6.2f} ms, {full / empty:5.2f} times")


if __name__ == "__main__":
    main()
