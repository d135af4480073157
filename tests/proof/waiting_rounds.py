"""Rounds of waiting: processes full of waiters on a full pool, addresses given back one by one, waiters lost meanwhile.

What must come of it: each address that is given back goes to the oldest waiter who is still there, and when all is
over nobody is left in the line.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import tenure
from tenure.service.ledger.engine_ledger import server_of
from tests.infrastructure.async_module import AsyncModule, start_module
from tests.proof.crew import PATIENCE_S
from tests.proof.waiters import Errand

PROCESSES = 4
LIFE_S = 2.0
SERVED_WITHIN_S = 30.0


async def until(condition: Callable[[], Awaitable[bool]], within_s: float) -> None:
    """Look every now and then whether something is so; TimeoutError if it does not become so."""
    async with asyncio.timeout(within_s):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.02)


@dataclass(frozen=True)
class Size:
    """How many wait, how many go away by themselves, and how many processes are killed."""

    waiters: int = 40
    cancels: int = 8
    kills: int = 1


Loss = Callable[[], Coroutine[Any, Any, None]]
"""What makes somebody go away, or nobody."""

TWO_HUNDRED = Size(200, 40, 2)


@dataclass
class Party:
    """A process of waiters, and what they were answered."""

    process: AsyncModule
    owners: list[str]
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    listening: "asyncio.Task[None] | None" = None

    async def say(self, *words: str) -> None:
        """Tell it something."""
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(words).encode() + b"\n")
        await self.process.stdin.drain()

    async def listen(self) -> None:
        """Note what it says, to its end."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            said = json.loads(line)
            self.answers[said.get("owner", "")] = said

    async def has_answered(self, owner: str) -> bool:
        """Tell whether one of them has his answer; nobody's is that the process is ready."""
        return owner in self.answers

    async def kill(self) -> None:
        """Kill it (``kill -9``), and hear its last words."""
        self.process.kill()
        await self.process.wait()
        if self.listening is not None:
            await self.listening


@dataclass
class WaitingRound:
    """One round, as it is seen by the process that gives addresses back."""

    ledger: tenure.AsyncLedger
    size: Size
    chance: random.Random
    parties: list[Party]
    figures: Counter[str] = field(default_factory=Counter)
    leaving: dict[str, int] = field(default_factory=dict)
    """From which number of the log on somebody may be gone."""
    left: dict[str, int] = field(default_factory=dict)
    """From which number of the log on somebody is gone for certain."""
    findings: list[str] = field(default_factory=list)

    async def play(self) -> None:
        """Give addresses back, one by one, as long as there is somebody who waits."""
        held = await self.ledger.holdings("net")
        await self._set_down()
        losses = iter(self._losses())
        for holding in held:
            if not self._living():
                break
            loss = next(losses, self._nothing)
            if self.chance.random() < 0.5:
                await loss()
                await self._give_back(holding)
            else:
                await asyncio.gather(loss(), self._give_back(holding))

    def _losses(self) -> list[Loss]:
        """Decide when somebody is lost; whole processes in the first half, while many of theirs still wait."""
        quiet = self.size.waiters // 2 - self.size.cancels
        losses: list[Loss] = [self._cancel] * self.size.cancels + [self._nothing] * quiet
        self.chance.shuffle(losses)
        for _ in range(self.size.kills):
            losses.insert(self.chance.randrange(len(losses) // 2), self._kill)
        return losses

    async def _set_down(self) -> None:
        for party in self.parties:
            await party.say("wait")

        async def all_wait() -> bool:
            return len(await self.ledger.waiting("net")) == self.size.waiters

        await until(all_wait, PATIENCE_S)

    def _waiting(self) -> list[tuple[Party, str]]:
        """List those who live and have no answer yet."""
        return [
            (party, owner)
            for party in self.parties
            for owner in party.owners
            if owner not in self.leaving and owner not in party.answers
        ]

    def _living(self) -> int:
        return len(self._waiting())

    async def _nothing(self) -> None:
        """Lose nobody."""

    async def _cancel(self) -> None:
        """Let somebody go away: one of those who are next, or anyone."""
        first = [str(claim.owner) for claim in (await self.ledger.waiting("net"))[:3]]
        waiting = self._waiting()
        if len(waiting) < 2:
            return
        party, owner = self.chance.choice([pair for pair in waiting if pair[1] in first] or waiting)
        self.leaving[owner] = await self._number()
        await party.say("cancel", owner)
        await until(partial(party.has_answered, owner), SERVED_WITHIN_S)
        if "gone" not in party.answers[owner]:
            del self.leaving[owner]  # he was served first
            return
        self.left[owner] = await self._number()
        self.figures["cancelled"] += 1

    async def _kill(self) -> None:
        """Kill a process with all its waiters."""
        parties = [party for party, _ in self._waiting()]
        if len({party.process.pid for party in parties}) < 2:
            return
        party = self.chance.choice(parties)
        lost = [owner for owner in party.owners if owner not in party.answers]
        self.leaving |= dict.fromkeys(lost, await self._number())
        await party.kill()
        await asyncio.sleep(0.2)  # what it had asked of the store's server may still take effect
        self.left |= dict.fromkeys(lost, await self._number())
        self.figures["killed"] += len(lost)

    async def _number(self) -> int:
        return await server_of(self.ledger).store.last_change()

    async def _give_back(self, holding: tenure.Holding) -> None:
        """Release one address, and wait until somebody has it who did not go away."""
        after = await self._number()
        await self.ledger.release("net", holding.address, owner=str(holding.owner))
        self.figures["released"] += 1
        try:
            await until(partial(self._served, after, holding.address), SERVED_WITHIN_S)
        except TimeoutError:
            if self._living():
                self.findings.append(f"{holding.address} was given back, and nobody was served")

    async def _served(self, after: int, address: str) -> bool:
        if not self._living():
            return True
        verbs = [change.verb async for change in self.ledger.changes(after=after) if change.address == address]
        return bool(verbs) and verbs[-1] == "grant"

    async def reckon(self) -> None:
        """Hold the log, the answers and what is left against what was promised."""
        changes = [change async for change in self.ledger.changes(after=0)]
        self.findings += [*self._turns(changes), *self._answers(changes), *await self._left_behind()]
        self.figures["served"] = sum("address" in said for party in self.parties for said in party.answers.values())

    def _turns(self, changes: Sequence[tenure.Change]) -> list[str]:
        """Check that each grant went to the lowest ticket of those who were there."""
        line: dict[str, int] = {}
        found: list[str] = []
        for change in changes:
            owner = change.owner or ""
            if change.verb == "wait":
                line[owner] = change.details["ticket"]
            elif change.verb == "leave":
                line.pop(owner, None)
            elif change.verb == "grant" and owner.startswith("vm/"):
                ticket = line.pop(owner, None)
                if ticket is None or change.seq > self.left.get(owner, change.seq):
                    found.append(f"{owner} was served at {change.seq} and was not in the line, or gone")
                    continue
                older = [o for o, t in line.items() if t < ticket and change.seq <= self.leaving.get(o, change.seq)]
                found.extend(f"{owner} was served at {change.seq} before {other}" for other in older)
        return found

    def _answers(self, changes: Sequence[tenure.Change]) -> list[str]:
        """Check that what the living were answered is what the log says, and that the others hold nothing."""
        held: dict[str, tuple[str | None, int | None]] = {}
        for change in changes:
            if change.verb == "grant":
                held[change.owner or ""] = (change.address, change.generation)
            elif change.verb == "release":
                held.pop(change.owner or "", None)
        found: list[str] = []
        for party in self.parties:
            for owner in party.owners:
                said, has = party.answers.get(owner, {}), held.get(owner)
                if "gone" in said and has is not None:
                    found.append(f"{owner} went away, and holds {has}")
                if owner not in self.leaving and (said.get("address"), said.get("generation")) != has:
                    found.append(f"{owner} was answered {said}, and holds {has}")
        return found

    async def _left_behind(self) -> list[str]:
        await asyncio.sleep(LIFE_S)
        await self.ledger.sweep()
        found = [f"left in line: {claim}" for claim in await self.ledger.waiting()]
        found += [f"breach: {breach}" for breach in await self.ledger.verify()]
        store = server_of(self.ledger).store
        for space, name in await store.spaces():
            configuration = await store.configuration(space)
            if configuration is not None and configuration.queued:
                found.append(f"space {name} is still marked as queued")
        return found


async def waiting_round(url: str, seed: int, size: Size) -> WaitingRound:
    """Play a round on an empty ledger and reckon."""
    async with await tenure.open_async(url) as ledger, parties(url, size) as crew:
        await ledger.add_network("net")
        await ledger.add_subnet("net", "10.0.0.0/22")
        await ledger.add_pool("net", f"10.0.1.0-10.0.1.{size.waiters - 1}")
        await ledger.allocate_many("net", owners=[f"old/{number}" for number in range(size.waiters)])
        played = WaitingRound(ledger, size, random.Random(seed), crew)
        await played.play()
        for party in crew:
            if party.process.returncode is None:
                await party.say("end")
                await asyncio.wait_for(party.process.wait(), PATIENCE_S)
        await played.reckon()
    return played


@asynccontextmanager
async def parties(url: str, size: Size) -> AsyncIterator[list[Party]]:
    """Start the processes, and see to it that none is left."""
    crew: list[Party] = []
    try:
        for number in range(PROCESSES):
            owners = [f"vm/{number}-{each}" for each in range(size.waiters // PROCESSES)]
            crew.append(await _start(Errand(url, owners, LIFE_S)))
        for party in crew:
            await until(partial(party.has_answered, ""), PATIENCE_S)
        yield crew
    finally:
        for party in crew:
            if party.process.returncode is None:
                await party.kill()


async def _start(errand: Errand) -> Party:
    process = await start_module("tests.proof.waiters")
    party = Party(process, list(errand.owners))
    party.listening = asyncio.create_task(party.listen())
    process.stdin.write(errand.dump())
    await process.stdin.drain()
    return party
