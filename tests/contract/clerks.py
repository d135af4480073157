"""Several processes that write the same papers at the same time: each opens the ledger for itself, all begin together.

Run as a program, this is one clerk: it opens the ledger, says that it is ready, waits for the word, tries to be the
first to write each of some papers, then counts up a paper that all clerks count up. It tells what it did.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

import tenure
from tests.infrastructure.async_module import AsyncModule, start_module


async def send_clerks(url: str, count: int, names: Sequence[str], steps: int) -> list[dict[str, Any]]:
    """Let clerks run, each in a process of its own; return what each did."""
    clerks = [await _start(url, f"clerk-{number}", names, steps) for number in range(count)]
    for process in clerks:
        assert await process.stdout.readline() == b"ready\n"
    answers = await asyncio.gather(*(process.communicate(b"go\n") for process in clerks))
    assert [process.returncode for process in clerks] == [0] * len(clerks)
    return [json.loads(out) for out, _ in answers]


async def _start(url: str, clerk: str, names: Sequence[str], steps: int) -> AsyncModule:
    words = [url, clerk, ",".join(names), str(steps)]
    return await start_module("tests.contract.clerks", *words)


async def first_to_write(ledger: tenure.AsyncLedger, clerk: str, names: Sequence[str]) -> list[str]:
    """Try to be the first to write each paper, two at once; return those that were had."""
    had: list[str] = []
    for name in names:
        document = {"by": clerk}
        pair = [tenure.WritePaper(kind=kind, name=name, document=document) for kind in ("first", "second")]
        try:
            await ledger.apply(pair if clerk[-1] in "02468" else pair[::-1])
        except tenure.AlreadyExists:
            continue
        had.append(name)
    return had


async def count_up(ledger: tenure.AsyncLedger, clerk: str, steps: int) -> int:
    """Count the paper up so many times, reading anew whenever somebody else was quicker; return how often that was."""
    beaten = 0
    for _ in range(steps):
        while True:
            paper = await ledger.paper("count", "all")
            document = {"steps": paper.document["steps"] + 1, "by": clerk}
            again = tenure.WritePaper(kind="count", name="all", document=document, revision=paper.revision)
            try:
                await ledger.apply([again])
                break
            except tenure.Conflict:
                beaten += 1
    return beaten


async def _work(url: str, clerk: str, names: str, steps: str) -> None:
    async with await tenure.open_async(url) as ledger:
        print("ready", flush=True)
        sys.stdin.readline()
        had = await first_to_write(ledger, clerk, names.split(","))
        print(json.dumps({"clerk": clerk, "had": had, "beaten": await count_up(ledger, clerk, int(steps))}))


if __name__ == "__main__":
    asyncio.run(_work(*sys.argv[1:]))
