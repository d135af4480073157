"""An import in a process of its own, to be killed.

``python -m tests.integrations.ganeti.files.load.import_process URL INSTANCES``
"""

import asyncio
import json
import sys

import tenure
from tenure.integrations.ganeti.files.load import import_cluster, import_network
from tenure.integrations.ganeti.files.load.import_cluster import plan_import, run_import
from tenure.integrations.ganeti.files.read.cluster_file import read_file
from tests.integrations.ganeti.files.crowds import crowd_document

PAGE, CHUNK = 70, 15
"""Small, so that there are many steps to be killed between and within."""


def told(done: int, total: int) -> None:
    """Tell the parent how far it is."""
    print(done, total, flush=True)


async def main(url: str, instances: int) -> None:
    """Import a crowd."""
    import_network.PAGE, import_cluster.CHUNK = PAGE, CHUNK
    async with await tenure.open_async(url) as ledger:
        cluster = read_file(json.dumps(crowd_document(instances)).encode())
        await run_import(ledger, await plan_import(cluster, ledger), told)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
