"""Several processes on one store at the same time: each opens it for itself, all begin together.

Run as a program, this is one of the crowd: it reads its errand from standard input, opens the store, says that it is
ready, waits for the word, and writes down what the store answered.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tenure.kernel.holdings.holding_model import Outcome, Verdict, Wish
from tests.contract.providers import Ground, provider_named
from tests.infrastructure.async_module import AsyncModule, start_module

Asked = tuple[int, str, str]
"""First address, owner and slot of a wish."""


@dataclass(frozen=True, slots=True)
class Errand:
    """What one process does: grant these batches, one after the other."""

    provider: str
    url: str
    ground: Ground
    batches: Sequence[Sequence[Asked]]


async def send_crowd(errands: Sequence[Errand]) -> list[list[tuple[Asked, Outcome]]]:
    """Let every errand run in a process of its own; return what each was answered."""
    crowd = [await _start(errand) for errand in errands]
    for process in crowd:
        assert await process.stdout.readline() == b"ready\n"
    answers = await asyncio.gather(*(process.communicate(b"go\n") for process in crowd))
    assert [process.returncode for process in crowd] == [0] * len(crowd)
    return [[((asked[0], asked[1], asked[2]), Outcome(word)) for asked, word in json.loads(out)] for out, _ in answers]


async def _start(errand: Errand) -> AsyncModule:
    process = await start_module("tests.contract.crowd")
    process.stdin.write(json.dumps(asdict(errand)).encode() + b"\n")
    await process.stdin.drain()
    return process


async def _run(errand: dict[str, Any]) -> list[tuple[Asked, str]]:
    store = await provider_named(errand["provider"]).connect(errand["url"])
    print("ready", flush=True)
    sys.stdin.readline()
    ground = errand["ground"]
    heard: list[tuple[Asked, str]] = []
    try:
        for batch in errand["batches"]:
            wishes = [Wish(ground["networks"][0], first, first, owner, slot) for first, owner, slot in batch]
            verdicts = await store.grant(ground["space"], ground["version"], wishes)
            pairs = zip(batch, verdicts, strict=True)
            heard.extend((asked, verdict.outcome.value) for asked, verdict in pairs if isinstance(verdict, Verdict))
    finally:
        await store.close()
    return heard


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_run(json.loads(sys.stdin.readline())))))
