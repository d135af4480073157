"""Callers: each asks for addresses for a few owners, hangs up now and then, and asks again, here or elsewhere."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tests.proof.fire.asking import Asker
from tests.proof.fire.attempts import Attempt, Row, Wish
from tests.proof.fire.fire_plan import COOL, HOT, LINE, fire_plan
from tests.proof.fire.stage import Stage

CALLERS = 24
OWNERS = 3
HANGS_UP = 0.15
KEYED = 0.3
ASKS_AGAIN = 3
IMPATIENCE_S = 2.0
"""How long two of three callers wait for an answer; the third waits for as long as it takes."""

PLAN = fire_plan()


class Caller:
    """One caller."""

    def __init__(self, stage: Stage, number: int) -> None:
        self._asker: Asker = stage.asker(f"c{number}")
        self._chance: random.Random = self._asker.chance
        self._number = number
        self._patience_s = 40.0 if number % 3 == 0 else IMPATIENCE_S
        self._held: dict[tuple[str, str], Row] = {}
        self._waiting: asyncio.Task[None] | None = None
        self._kinds: dict[Callable[[], Awaitable[None]], int] = {
            self._allocate: 12, self._stand_in_line: 8, self._hold: 6, self._release: 16, self._transfer: 3,
            self._apply: 3, self._run: 2, self._many: 3, self._settle: 8, self._release_all: 2,
        }  # fmt: skip

    async def live(self, until: float) -> None:
        """Ask until it is time to go."""
        while time.monotonic() < until:
            kind = self._chance.choices(list(self._kinds), list(self._kinds.values()))[0]
            await kind()
            await asyncio.sleep(self._chance.expovariate(200))
        if self._waiting is not None:
            await self._waiting
        self._asker.close()

    def _owner(self) -> str:
        """Choose an owner: one of the caller's own, or one that others ask for as well."""
        if self._chance.random() < 0.1:
            return f"vm/shared-{self._chance.randrange(4)}"
        return f"vm/{self._number}-{self._chance.randrange(OWNERS)}"

    async def _insist(self, verb: str, wishes: list[Wish], *, keyed: float = KEYED, **more: Any) -> Attempt:
        """Ask; who hung up or does not know what came of it asks again, at another server or the same."""
        chance, server = self._chance, self._chance.randrange(self._asker.servers)
        key = self._asker.book.key() if chance.random() < keyed else None
        wait_s = more.get("wait_s", 0.0)
        for _ in range(ASKS_AGAIN):
            gone = asyncio.ensure_future(asyncio.sleep(self._leaves_after(wait_s)))
            try:
                attempt = await self._asker.ask(
                    server, verb, wishes, key=key, gone=gone, patience_s=self._patience_s + wait_s, **more
                )
            finally:
                gone.cancel()
            self._note(attempt)
            if attempt.outcome != "unknown":
                break
            if chance.random() < 0.7:
                server = chance.randrange(self._asker.servers)
        return attempt

    def _leaves_after(self, wait_s: float) -> float:
        if self._chance.random() >= HANGS_UP:
            return 1e6
        return self._chance.uniform(0, wait_s) if wait_s else self._chance.expovariate(100)

    def _note(self, attempt: Attempt) -> None:
        """Remember what is held, as far as the caller knows."""
        if attempt.verb in ("release", "cancel", "transfer") and attempt.outcome == "done":
            self._held.pop((attempt.wishes[0].network or "", attempt.wishes[0].owner), None)
        for row in attempt.acknowledged:
            self._held[row.network, row.owner] = row

    async def _allocate(self) -> None:
        network = self._chance.choice((HOT, HOT, HOT, COOL))
        pool = self._chance.choice(("low", "low", "any", "hash")) if network == HOT else "cool"
        named = self._chance.choice(PLAN.order(network, pool)) if self._chance.random() < 0.15 else None
        await self._insist("allocate", [Wish("grant", network, self._owner(), named, pool=pool)])

    async def _stand_in_line(self) -> None:
        """Wait for an address, or claim one, beside all else; one at a time."""
        if self._waiting is not None:
            if not self._waiting.done():
                return
            await self._waiting
        self._waiting = asyncio.create_task(self._chance.choice((self._wait, self._claim))())

    async def _wait(self) -> None:
        wait_s = round(self._chance.uniform(0.1, 1.5), 2)
        await self._insist("allocate", [Wish("grant", LINE, self._owner(), pool="line")], wait_s=wait_s)

    async def _claim(self) -> None:
        wait_s = self._chance.choice((0.0, 0.3, 0.8))
        await self._insist("claim", [Wish("grant", LINE, self._owner(), pool="line")], keyed=0.1, wait_s=wait_s)

    async def _hold(self) -> None:
        wish = Wish("grant", COOL, self._owner(), pool="cool")
        await self._insist("hold", [wish], lasts_s=round(self._chance.uniform(0.5, 4.0), 2))

    def _some(self, *states: str) -> Row | None:
        """Choose something that the caller believes to be held."""
        found = [row for row in self._held.values() if row.state in states]
        return self._chance.choice(found) if found else None

    def _of(self, verb: str, row: Row, **more: Any) -> Wish:
        generation = row.generation if self._chance.random() < 0.5 else None
        return Wish(verb, row.network, row.owner, row.address, generation, **more)

    async def _release(self) -> None:
        row = self._some("held", "pending")
        if row is None:
            return
        await self._insist("release", [self._of("release", row)], keyed=0.2)
        if self._chance.random() < 0.2:  # at once the same again, for the same owner
            await self._insist("allocate", [Wish("grant", row.network, row.owner, row.address)])

    async def _settle(self) -> None:
        row = self._some("pending")
        if row is not None:
            verb = self._chance.choice(("confirm", "confirm", "cancel"))
            await self._insist(verb, [self._of(verb, row)], keyed=0.2)

    async def _transfer(self) -> None:
        row = self._some("held")
        if row is not None:
            to = self._owner()
            if to != row.owner:
                await self._insist("transfer", [self._of("transfer", row, to=to)], keyed=0.2)

    async def _apply(self) -> None:
        row = self._some("held")
        if row is not None:
            grant = Wish("grant", HOT, self._owner(), pool=self._chance.choice(("low", "any")))
            await self._insist("apply", [self._of("release", row), grant])

    async def _run(self) -> None:
        """Ask for a run of one, now and then for an owner that waits or has just hung up."""
        await self._insist("run", [Wish("grant", LINE, self._owner(), pool="line")])

    async def _many(self) -> None:
        owners = [f"vm/{self._number}-{name}" for name in range(self._chance.randrange(2, OWNERS + 1))]
        wishes = [Wish("grant", HOT, owner, pool="any") for owner in owners]
        await self._insist("allocate_many", wishes, together=self._chance.random() < 0.5)

    async def _release_all(self) -> None:
        owner = self._owner()
        await self._insist("release_owner", [Wish("release", None, owner)], keyed=0.2)
        self._held = {place: row for place, row in self._held.items() if place[1] != owner}
