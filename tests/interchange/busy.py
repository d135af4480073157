"""Processes beside a copy: some work on the ledger meanwhile, others stop half way and wait to be killed.

``python -m tests.interchange.busy work URL NAME`` allocates, hands over, labels and releases until its input ends.
``python -m tests.interchange.busy backup SOURCE PATH STAGE`` (or ``restore PATH TARGET STAGE``) comes half way in a
stage.
"""

import asyncio
import random
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import tenure
from tenure.interchange.copy_ledger import backup, restore
from tests.infrastructure.async_module import AsyncModule, start_module

FOR_EVER_S = 3600


async def start(*words: str) -> AsyncModule:
    """Start a process and wait until it is where it should be."""
    process = await start_module("tests.interchange.busy", *words)
    assert await process.stdout.readline() == b"there\n"
    return process


@asynccontextmanager
async def load(url: str, processes: int) -> AsyncIterator[None]:
    """Let processes work on a ledger."""
    crew = [await start("work", url, str(number)) for number in range(processes)]
    try:
        yield
    finally:
        await asyncio.gather(*(process.communicate(b"") for process in crew))
    assert [process.returncode for process in crew] == [0] * processes


def work(url: str, name: str) -> None:
    """Keep a ledger busy until the input ends."""
    over = threading.Event()
    threading.Thread(target=wait_for_the_end, args=(over,), daemon=True).start()
    chance = random.Random(name)
    with tenure.open(url) as ledger:
        turn, held = 0, [ledger.allocate("wide", owner=f"pod/{name}-first")]
        print("there", flush=True)
        while not over.is_set():
            turn += 1
            owner = f"pod/{name}-{turn}"
            held.extend(ledger.allocate_many("wide", owners=[f"{owner}-{number}" for number in range(3)]))
            given = held.pop(chance.randrange(len(held)))
            held.append(ledger.transfer("wide", given.address, owner=given.owner, to=owner))
            ledger.modify_holding("wide", held[0].address, owner=held[0].owner, labels={"turn": str(turn)})
            for _ in range(2):
                gone = held.pop(chance.randrange(1, len(held)))
                ledger.release("wide", gone.address, owner=gone.owner)


def wait_for_the_end(over: threading.Event) -> None:
    """Read the input until nobody is there to write it."""
    sys.stdin.read()
    over.set()


def stop_at(wanted: str, stage: str, done: int, total: int) -> None:
    """Wait to be killed when half of a stage is done; of one that is not seen from inside, when it begins."""
    if stage == wanted and (2 * done > total or stage == "verifying"):
        print("there", flush=True)
        time.sleep(FOR_EVER_S)


def main() -> None:
    """Do what the command line says."""
    role, source, target, *stage = sys.argv[1:]
    if role == "work":
        work(source, target)
    else:
        verb = {"backup": backup, "restore": restore}[role]
        asyncio.run(verb(source, target, progress=lambda *told: stop_at(stage[0], *told)))


if __name__ == "__main__":
    main()
