"""A client of the proof: a process with several callers, which writes down every call and its answer.

``python -m tests.proof.clients`` reads its errand, one line of JSON, from standard input, says ``ready`` when the
store is open, begins when it hears a line, and ends in order when it hears another (or the end of the input).
"""

import asyncio
import json
import logging
import random
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tenure
from tests.proof.faces import Face, LedgerFace, logged, open_face
from tests.proof.history import Call, Recorder, Tenancy
from tests.proof.plan import Plan

LONGEST_OUTAGE_S = 60
LONGEST_TAIL_S = 90
LAST_WORD = "network.modify"
"""The change that ends a tail; whoever starts one makes it when all else is done."""
OWNERS_EACH = 4
SHARED_OWNERS = 3


@dataclass(frozen=True)
class Errand:
    """What one process does: ``mix`` all calls until told to stop, ``fill`` the pools, or ``tail`` the log."""

    task: str
    url: str
    plan: Sequence[Sequence[str]]
    path: str
    name: str
    seed: int = 0
    callers: int = 4

    def dump(self) -> bytes:
        """Write it as a line."""
        return json.dumps(asdict(self)).encode() + b"\n"


class Caller:
    """One of a client's callers: a few owners of its own, and some that it shares with everybody."""

    def __init__(self, face: Face, recorder: Recorder, plan: Plan, name: str, seed: str) -> None:
        self._face = face
        self._recorder = recorder
        self._plan = plan
        self._chance = random.Random(seed)
        self._owners = [f"vm/{name}-{number}" for number in range(OWNERS_EACH)]
        self._mine: list[Tenancy] = []
        self._gone: list[Tenancy] = []

    async def call(self, verb: str, **args: Any) -> Call:
        """Make a call and write it down."""
        call = await self._recorder.record(verb, args, lambda request: self._face.perform(verb, args, request))
        if call.error == "store_unavailable":
            await asyncio.sleep(0.02)
        return call

    async def mix(self, stop: asyncio.Event) -> None:
        """Do a bit of everything until told to stop."""
        acts: Mapping[Callable[[], Awaitable[object]], int] = {
            self._allocate: 34, self._allocate_named: 6, self._allocate_shared: 10, self._release: 28,
            self._release_late: 6, self._release_foreign: 4, self._release_owner: 4, self._allocate_many: 5,
            self._transfer: 5,
        }  # fmt: skip
        while not stop.is_set():
            [act] = self._chance.choices(list(acts), list(acts.values()))
            await act()
            await asyncio.sleep(0)

    def _pool(self) -> dict[str, str]:
        pool = self._chance.choice(self._plan.pools)
        return {"network": pool.network, "pool": pool.name, "slot": pool.name}

    async def _allocate(self) -> None:
        args: dict[str, Any] = {**self._pool(), "owner": self._chance.choice(self._owners)}
        if self._chance.random() < 0.2:
            args["policy"] = self._chance.choice(["lowest", "random", "hashed", "sticky"])
        await self._insist(args)
        if self._chance.random() < 0.2:
            await self._insist(args)

    async def _insist(self, args: dict[str, Any]) -> None:
        """Ask, and ask the same again as long as the outcome is unknown."""
        call = await self.call("allocate", **args)
        while call.unknown:
            call = await self.call("allocate", **args)
        self._mine.extend(call.rows)

    async def _allocate_named(self) -> None:
        pool = self._pool()
        address = self._chance.choice(self._plan.order(pool["network"], pool.pop("pool")))
        await self._insist({**pool, "owner": self._chance.choice(self._owners), "address": address})

    async def _allocate_shared(self) -> None:
        await self._insist({**self._pool(), "owner": f"vm/shared-{self._chance.randrange(SHARED_OWNERS)}"})

    async def _release(self) -> None:
        if self._mine:
            held = self._mine.pop(self._chance.randrange(len(self._mine)))
            self._gone.append(held)
            generation = held.generation if self._chance.random() < 0.8 else None
            await self._end(held, held.owner, generation)

    async def _end(self, held: Tenancy, owner: str, generation: int | None) -> None:
        place = {"network": held.network, "address": held.address}
        await self.call("release", **place, owner=owner, generation=generation)

    async def _release_late(self) -> None:
        if self._gone:
            held = self._chance.choice(self._gone[-20:])
            await self._end(held, held.owner, held.generation)

    async def _release_foreign(self) -> None:
        if self._gone:
            held = self._chance.choice(self._gone[-20:])
            await self._end(held, "vm/nobody", None)

    async def _release_owner(self) -> None:
        if "release_owner" in self._face.verbs:
            await self.call("release_owner", owner=self._chance.choice(self._owners))

    async def _allocate_many(self) -> None:
        if "allocate_many" in self._face.verbs:
            owners = self._chance.sample(self._owners, self._chance.randint(2, 3))
            call = await self.call("allocate_many", **self._pool(), owners=owners)
            self._mine.extend(call.rows)

    async def _transfer(self) -> None:
        if self._mine and "transfer" in self._face.verbs:
            held = self._mine.pop(self._chance.randrange(len(self._mine)))
            self._gone.append(held)
            place = {"network": held.network, "address": held.address, "owner": held.owner}
            to = self._chance.choice(self._owners)
            call = await self.call("transfer", **place, to=to, to_slot=held.slot, generation=held.generation)
            self._mine.extend(call.rows)

    async def fill(self) -> None:
        """Take one address after the other, each for a new owner, until there is none."""
        number = 0
        while True:
            number += 1
            call = await self.call("allocate", network=self._plan.networks[0], owner=f"{self._owners[0]}-{number}")
            if call.error is not None:
                return


async def run(errand: Errand) -> None:
    """Do an errand."""
    plan = Plan(errand.plan)
    recorder = Recorder(Path(errand.path), errand.name)
    face = await _opened(errand.url, plan)
    print("ready", flush=True)
    words = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(words)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    await words.readline()
    recorder.note("begin")
    if errand.task == "tail":
        await _tail(face, recorder)
    else:
        names = [f"{errand.name}-{number}" for number in range(errand.callers)]
        callers = [Caller(face, recorder, plan, name, f"{errand.seed}-{name}") for name in names]
        await (_mix(callers, words) if errand.task == "mix" else asyncio.gather(*(c.fill() for c in callers)))
    await face.close()
    recorder.note("end")
    recorder.close()


async def _opened(url: str, plan: Plan) -> Face:
    """Open the store; where its server is away, wait for it."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LONGEST_OUTAGE_S
    while True:
        try:
            return await open_face(url, plan)
        except tenure.StoreUnavailable:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(0.1)


async def _mix(callers: Sequence[Caller], words: asyncio.StreamReader) -> None:
    stop = asyncio.Event()
    at_work = [asyncio.ensure_future(caller.mix(stop)) for caller in callers]
    listening = asyncio.ensure_future(words.readline())
    await asyncio.wait([listening, *at_work], return_when=asyncio.FIRST_COMPLETED)  # callers end first only by a fault
    stop.set()
    await asyncio.gather(*at_work)


async def _tail(face: Face, recorder: Recorder) -> None:
    """Follow the log to its last word, noting what is seen when."""
    assert isinstance(face, LedgerFace)
    async with asyncio.timeout(LONGEST_TAIL_S):
        async for change in face.ledger.tail(after=0):
            recorder.note(json.dumps(logged(change, change.network_name or "")))
            if change.verb == LAST_WORD:
                return


if __name__ == "__main__":
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)  # it tells of every try to reach a server that was killed
    asyncio.run(run(Errand(**json.loads(sys.stdin.readline()))))
