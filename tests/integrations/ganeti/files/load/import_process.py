"""An import in a process of its own, to be killed: ``python -m tests.doors.networks.ganeti.importer URL INSTANCES``."""

import asyncio
import json
import sys

import tenure
from tenure.doors.networks.ganeti import moving_in, network_steps
from tenure.doors.networks.ganeti.moving_in import plan_import, run_import
from tenure.doors.networks.ganeti.reading import read_file
from tests.doors.networks.ganeti.crowds import crowd_document

PAGE, CHUNK = 70, 15
"""Small, so that there are many steps to be killed between and within."""


def told(done: int, total: int) -> None:
    """Tell the parent how far it is."""
    print(done, total, flush=True)


async def main(url: str, instances: int) -> None:
    """Import a crowd."""
    network_steps.PAGE, moving_in.CHUNK = PAGE, CHUNK
    async with await tenure.open_async(url) as ledger:
        cluster = read_file(json.dumps(crowd_document(instances)).encode())
        await run_import(ledger, await plan_import(cluster, ledger), told)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
