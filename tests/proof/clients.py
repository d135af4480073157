"""A client of the proof: a process with several callers, which writes down every call and its answer.

``python -m tests.proof.clients`` reads its errand, one line of JSON, from standard input, says ``ready`` when the
store is open, begins when it hears a line, and ends in order when it hears another (or the end of the input).
"""

import asyncio
import json
import logging
import random
import sys
import time
from collections.abc import Mapping, Sequence
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
MIXES = {
    "mix": {
        "allocate": 34, "allocate_named": 6, "allocate_shared": 10, "release": 28, "release_late": 6,
        "release_foreign": 4, "release_owner": 4, "allocate_many": 5, "transfer": 5, "hold": 14, "confirm": 14,
        "cancel": 3, "wait": 5, "sweep": 1,
    },
    "time": {
        "allocate": 6, "allocate_shared": 4, "release": 24, "release_late": 6, "release_owner": 1, "transfer": 2,
        "hold": 24, "confirm": 10, "cancel": 8, "wait": 10, "sweep": 6,
    },
}  # fmt: skip
"""What callers do, and how often: everything, or mostly what takes time."""
OWNERS_EACH = 4
SHARED_OWNERS = 3


@dataclass(frozen=True)
class Errand:
    """What one process does: one of the MIXES until told to stop, ``fill`` the pools, or ``tail`` the log."""

    task: str
    url: str
    plan: Sequence[Sequence[str]]
    path: str
    name: str
    seed: int = 0
    callers: int = 4
    shifts: Sequence[Sequence[float]] = ()
    """When this process's clock is moved: seconds from the beginning, and how many it is off from then on."""

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
        self._pending: list[Tenancy] = []

    async def call(self, verb: str, **args: Any) -> Call:
        """Make a call and write it down."""
        call = await self._recorder.record(verb, args, lambda request: self._face.perform(verb, args, request))
        if call.error == "store_unavailable":
            await asyncio.sleep(0.02)
        return call

    async def mix(self, stop: asyncio.Event, weights: Mapping[str, int]) -> None:
        """Do a bit of everything until told to stop."""
        while not stop.is_set():
            [act] = self._chance.choices(list(weights), list(weights.values()))
            await getattr(self, f"_{act}")()
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

    def _place_of_time(self) -> dict[str, str]:
        """Name the pool in which addresses cool, or any other where there is none."""
        pools = [pool for pool in self._plan.pools if self._plan.takes_time(pool.network, pool.name)]
        pool = self._chance.choice(pools or self._plan.pools)
        return {"network": pool.network, "pool": pool.name, "slot": pool.name}

    async def _hold(self) -> None:
        if "hold" in self._face.verbs:
            args: dict[str, Any] = {"owner": self._chance.choice(self._owners)}
            if self._chance.random() < 0.6:
                args |= {**self._place_of_time(), "lasts_s": self._chance.choice([0.02, 0.02, 0.2, 60.0])}
            else:
                args |= self._pool()
            call = await self.call("hold", **args)
            self._pending.extend(call.rows)

    async def _confirm(self) -> None:
        if self._pending:
            held = self._pending.pop(self._chance.randrange(len(self._pending)))
            call = await self.call("confirm", **self._named(held))
            self._mine.extend(call.rows)
            self._gone.append(held)

    async def _cancel(self) -> None:
        if self._pending:
            held = self._pending.pop(self._chance.randrange(len(self._pending)))
            await self.call("cancel", **self._named(held))
            self._gone.append(held)

    def _named(self, held: Tenancy) -> dict[str, Any]:
        generation = held.generation if self._chance.random() < 0.8 else None
        return {"network": held.network, "address": held.address, "owner": held.owner, "generation": generation}

    async def _wait(self) -> None:
        if "hold" in self._face.verbs:
            owner, wait_s = self._chance.choice(self._owners), self._chance.choice([0.1, 0.5, 2.0])
            call = await self.call("allocate", **self._place_of_time(), owner=owner, wait_s=wait_s)
            self._mine.extend(call.rows)

    async def _sweep(self) -> None:
        if "sweep" in self._face.verbs:
            await self.call("sweep")

    async def _allocate_named(self) -> None:
        pool = self._pool()
        if self._plan.takes_time(pool["network"], pool["pool"]):
            return  # who comes for a cooling address is refused, and who comes for a free one passes the line
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
    if errand.shifts:
        move_clock(errand.shifts)
    if errand.task == "tail":
        await _tail(face, recorder)
    else:
        names = [f"{errand.name}-{number}" for number in range(errand.callers)]
        callers = [Caller(face, recorder, plan, name, f"{errand.seed}-{name}") for name in names]
        if errand.task in MIXES:
            await _mix(callers, words, MIXES[errand.task])
        else:
            await asyncio.gather(*(caller.fill() for caller in callers))
    await face.close()
    recorder.note("end")
    recorder.close()


def move_clock(shifts: Sequence[Sequence[float]]) -> None:
    """Move the clock of this process: what the time is, and not how it passes."""
    began, true_ns = time.monotonic(), time.time_ns

    def moved_ns() -> int:
        passed = time.monotonic() - began
        offset_s = next((offset for after, offset in reversed(shifts) if passed >= after), 0.0)
        return true_ns() + round(offset_s * 1_000_000_000)

    time.time_ns = moved_ns
    time.time = lambda: moved_ns() / 1_000_000_000


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


async def _mix(callers: Sequence[Caller], words: asyncio.StreamReader, weights: Mapping[str, int]) -> None:
    stop = asyncio.Event()
    at_work = [asyncio.ensure_future(caller.mix(stop, weights)) for caller in callers]
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
