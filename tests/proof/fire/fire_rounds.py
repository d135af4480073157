"""A round under fire: servers on a fresh ledger, callers, a storm of faults and aimed acts; then the reckoning."""

import asyncio
import contextlib
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import tenure
from tenure.service.engine import waiting_rooms
from tests.infrastructure.postgres import PostgresServer
from tests.proof.fire import acts
from tests.proof.fire.acts import Act, Player, play
from tests.proof.fire.asking import now_us
from tests.proof.fire.bases import Base, postgres_base, sqlite_base
from tests.proof.fire.callers import CALLERS, Caller
from tests.proof.fire.effects import effect_of
from tests.proof.fire.evidence import Breach, Evidence
from tests.proof.fire.faults import storm
from tests.proof.fire.fire_plan import fire_plan, lay_fire_plan
from tests.proof.fire.fleet import Fleet
from tests.proof.fire.rules import check
from tests.proof.fire.server_mutants import MUTANTS
from tests.proof.fire.sse import SILENT_S
from tests.proof.fire.stage import Stage
from tests.proof.waiting_rounds import until

LONG_FROM_S = 29.0
"""Rounds of so many seconds have time for the long act."""

ROUNDS_A_LONG_ACT = 4
STREAM_WITHIN_S = SILENT_S + 10.0
"""A follower whose server says nothing goes elsewhere before that."""


@dataclass(frozen=True)
class Setting:
    """A kind of round: a database, how many servers, which callers and faults, and a mutant if one is planted."""

    open_base: Callable[[Path], AbstractAsyncContextManager[Base]]
    servers: int
    callers: int = CALLERS
    stormy: bool = True
    aimed: Sequence[Act] | None = None
    """Acts to be played once each, in this order; else they are chosen by chance, as long as there is time."""
    mutant: str | None = None


def on_postgres(server: PostgresServer) -> Setting:
    """Return four servers on a PostgreSQL."""
    return Setting(lambda _: postgres_base(server, 4), 4)


def on_sqlite(servers: int) -> Setting:
    """Return servers on one file."""
    return Setting(lambda folder: sqlite_base(folder, servers), servers)


def with_mutant(server: PostgresServer, name: str) -> Setting:
    """Return two servers with a named fault in them, and no more than the acts that are to find it."""
    mutant = MUTANTS[name]
    return Setting(lambda _: postgres_base(server, 2), 2, callers=0, stormy=False, aimed=mutant.acts, mutant=name)


@dataclass
class FireRound:
    """What a round came to."""

    seed: int
    evidence: Evidence
    faults: Counter[str]
    breaches: Sequence[Breach]

    @property
    def figures(self) -> Counter[str]:
        """Count attempts by what came of them, effects, faults and breaches."""
        attempts = self.evidence.attempts
        effects = Counter(effect.because or effect.verb for effect in self.evidence.log)
        return Counter(
            {
                "attempts": len(attempts),
                "answered": sum(attempt.status is not None for attempt in attempts),
                "abandoned": sum(attempt.hung_up for attempt in attempts),
                "unknown": sum(attempt.said == "unknown" for attempt in attempts),
                "nothing_changed": sum(attempt.outcome == "none" for attempt in attempts),
                "granted": effects["grant"],
                "given_back": effects["given back"],
                "entries": len(self.evidence.log),
                "breaches": len(self.breaches),
                **{f"fault_{name}": count for name, count in self.faults.items()},
                **{f"broken_{rule}": count for rule, count in Counter(b.rule for b in self.breaches).items()},
            }
        )


async def fire_round(setting: Setting, seed: int, seconds: float) -> FireRound:
    """Run a round of about so many seconds."""
    async with _stage(setting, seed) as stage:
        watching = [asyncio.create_task(stage.look()), asyncio.create_task(stage.follow())]
        try:
            await _fire(stage, setting, seconds)
            await _stream_ends(stage)
        finally:
            stage.over.set()
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
        await asyncio.to_thread(stage.fleet.end)
        evidence = await _evidence(stage)
    return FireRound(seed, evidence, stage.faults, check(evidence))


@asynccontextmanager
async def _stage(setting: Setting, seed: int) -> AsyncIterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="tenure-fire-") as name:
        folder = Path(name)
        async with setting.open_base(folder) as base:
            await lay_fire_plan(base.direct)
            fleet = Fleet(folder, base.stores, setting.mutant)
            try:
                await fleet.begin()
                yield Stage(base, fleet, seed)
            except Exception as error:
                error.add_note(fleet.last_words())
                raise
            finally:
                await asyncio.to_thread(fleet.end)


async def _fire(stage: Stage, setting: Setting, seconds: float) -> None:
    """Let callers ask, faults come and acts be played, all at once."""
    end = time.monotonic() + seconds
    work = [Caller(stage, number).live(end) for number in range(setting.callers)]
    if setting.stormy:
        work.append(storm(stage, end))
    await asyncio.gather(*work, _play(stage, setting, end))
    if stage.base.proxy is not None:
        stage.proxy.calm()
        stage.faults["commits_seen"] += (await stage.proxy.counts()).get("commits", 0)


async def _play(stage: Stage, setting: Setting, end: float) -> None:
    player = Player(stage)
    if setting.aimed is not None:
        for act in setting.aimed:
            await play(player, act)
    else:
        chance = random.Random(f"{stage.seed}-acts")
        behind = stage.base.proxy is not None
        known = acts.BEHIND_A_PROXY if behind else acts.ANYWHERE
        if behind and end - time.monotonic() >= LONG_FROM_S and stage.seed % ROUNDS_A_LONG_ACT == 0:
            await play(player, acts.LONG)
        while time.monotonic() < end:
            await play(player, chance.choice(known))
            await asyncio.sleep(chance.uniform(0, 1.0))
    player.asker.close()


async def _stream_ends(stage: Stage) -> None:
    """Give the stream of events time to reach the log's end."""
    asked = now_us()

    async def reached() -> bool:
        newest = stage.marks[-1] if stage.marks else None
        return bool(stage.events) and newest is not None and newest.before > asked and stage.events[-1][0] >= newest.seq

    with contextlib.suppress(TimeoutError):  # then the rules say what is missing
        await until(reached, STREAM_WITHIN_S)


async def _evidence(stage: Stage) -> Evidence:
    """Read everything from the ledger itself, once its servers are gone."""
    async with await tenure.open_async(stage.base.direct) as ledger:
        deadline = time.monotonic() + waiting_rooms.LIFE_US / 1_000_000 + 2
        in_time, left = True, await ledger.waiting()
        while left and in_time:  # of servers that were killed, until they are taken for dead
            await asyncio.sleep(0.2)
            # Asked once more after the deadline: on a busy machine an answer may be older than the deadline.
            in_time, left = time.monotonic() <= deadline, await ledger.waiting()
        await ledger.sweep()
        verified = [f"left in line: {claim}" for claim in left] + [str(each) for each in await ledger.verify()]
        log = [effect_of(change) async for change in ledger.changes(after=0)]
    return Evidence(
        fire_plan(), stage.book.attempts, log, stage.marks, stage.events, verified, stage.excuses
    )  # fmt: skip
