"""A process that follows a later file, and is killed at a chosen call of the store."""

import asyncio

import tenure
from tenure.integrations.ganeti.files.load.follow_file import follow_import
from tenure.integrations.ganeti.files.read.cluster_file import read_cluster
from tests.infrastructure.forks import FORKS
from tests.infrastructure.mortal_stores import DIED, make_mortal
from tests.integrations.ganeti.files.documents import Json


def lives(url: str, document: Json, dies_at: int, *, after: bool) -> bool:
    """Let a process follow a file; it is killed before or after a call of the store. Return whether it lived."""
    process = FORKS.Process(target=_follow, args=(url, document, dies_at, after))
    process.start()
    process.join()
    code = process.exitcode
    process.close()
    assert code in (0, DIED), code
    return code == 0


def _follow(url: str, document: Json, dies_at: int, after: bool) -> None:
    asyncio.run(_followed(url, document, dies_at, after=after))


async def _followed(url: str, document: Json, dies_at: int, *, after: bool) -> None:
    async with await tenure.open_async(url) as ledger:
        make_mortal(dies_at, after=after)
        await follow_import(ledger, read_cluster(document))
