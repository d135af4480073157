"""A process full of waiters: ``python -m tests.proof.waiters`` reads its errand, one line of JSON, and does as told.

It says ``ready`` when the store is open. ``wait`` sets all its waiters down in the line, ``cancel OWNER`` sends one of
them away, ``end`` closes the ledger. Every answer is told as a line of JSON.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import tenure
from tenure.service.engine import waiting_rooms

PATIENCE_S = 300.0


@dataclass(frozen=True)
class Errand:
    """Who waits where, and how long one who says nothing is taken for alive."""

    url: str
    owners: Sequence[str]
    life_s: float

    def dump(self) -> bytes:
        """Write it as a line."""
        return json.dumps(asdict(self)).encode() + b"\n"


class Waiters:
    """The waiters of one process."""

    def __init__(self, ledger: tenure.AsyncLedger) -> None:
        self._ledger = ledger
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def set_down(self, owners: Sequence[str]) -> None:
        """Let everybody wait."""
        self._tasks = {owner: asyncio.create_task(self._wait(owner)) for owner in owners}

    async def _wait(self, owner: str) -> None:
        try:
            held = await self._ledger.allocate("net", owner=owner, wait_s=PATIENCE_S)
            tell({"owner": owner, "address": held.address, "generation": held.generation})
        except asyncio.CancelledError:
            tell({"owner": owner, "gone": True})
        except tenure.TenureError as error:
            tell({"owner": owner, "error": repr(error)})

    def send_away(self, owner: str) -> None:
        """Cancel one of them, unless he has been served."""
        self._tasks[owner].cancel()

    async def close(self) -> None:
        """Wait for those on their way out, and close."""
        await self._ledger.close()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


def tell(answer: Mapping[str, Any]) -> None:
    """Say something to whoever started this process."""
    print(json.dumps(answer), flush=True)


async def run(errand: Errand) -> None:
    """Do an errand."""
    # The dead are noticed sooner than a user would want it, so that a proof does not take all day.
    waiting_rooms.LIFE_US, waiting_rooms.BEAT_S = int(errand.life_s * 1_000_000), errand.life_s / 5
    waiters = Waiters(await tenure.open_async(errand.url))
    words = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
    tell({"ready": True})
    while (word := (await words.readline()).decode().split()) and word[0] != "end":
        if word[0] == "wait":
            waiters.set_down(errand.owners)
        else:
            waiters.send_away(word[1])
    await waiters.close()


if __name__ == "__main__":
    asyncio.run(run(Errand(**json.loads(sys.stdin.readline()))))
