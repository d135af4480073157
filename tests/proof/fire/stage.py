"""Where a round takes place: servers, their database, those who ask, and a note of everything that is done to them."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.infrastructure.postgres_proxy import PostgresProxy
from tests.proof.fire.asking import Asker, Book, now_us
from tests.proof.fire.bases import AWAY, Base
from tests.proof.fire.effects import Mark, seen_in
from tests.proof.fire.evidence import Event, Excuse
from tests.proof.fire.fleet import Fleet
from tests.proof.fire.http_client import HttpConnection
from tests.proof.fire.sse import events_of

LOOKS_EVERY_S = 0.04
STILL_RECOVERS_US = 1_000_000
"""How long what was done to a server may be felt behind its end."""


@dataclass
class Stage:
    """Everything of a round while it lasts."""

    base: Base
    fleet: Fleet
    seed: int
    book: Book = field(default_factory=Book)
    excuses: list[Excuse] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    marks: list[Mark] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def servers(self) -> int:
        """Return how many servers there are."""
        return len(self.fleet.ports)

    @property
    def proxy(self) -> PostgresProxy:
        """Return the proxy; there must be one."""
        assert self.base.proxy is not None
        return self.base.proxy

    def asker(self, name: str) -> Asker:
        """Let somebody ask."""
        chance = random.Random(f"{self.seed}-{name}")
        return Asker(name, self.fleet.ports, self.fleet.token, self.book, chance)

    @contextmanager
    def excused(self, fault: str, server: int | None, lasts: float = 0.0) -> Iterator[None]:
        """Count a fault, and note that a server (or all of them) may be slow while it lasts, or so many seconds."""
        self.faults[fault] += 1
        begin = now_us()
        try:
            yield
        finally:
            end = max(now_us(), begin + int(lasts * 1_000_000)) + STILL_RECOVERS_US
            self.excuses.append(Excuse(server, begin, end))

    async def look(self) -> None:
        """Look at the log from outside, again and again, and note when it had got how far."""
        while not self.over.is_set():
            before = now_us()
            with contextlib.suppress(*AWAY):
                seq = await self.base.newest()
                self.marks.append(Mark(before, now_us(), seq))
            await asyncio.sleep(LOOKS_EVERY_S)

    async def follow(self) -> None:
        """Follow the stream of events, at another server whenever one goes away."""
        chance = random.Random(f"{self.seed}-follower")
        while not self.over.is_set():
            connection = HttpConnection(self.fleet.ports[chance.randrange(self.servers)], self.fleet.token)
            after = self.events[-1][0] if self.events else 0
            try:
                async for event in events_of(await connection.follow(after)):
                    self.events.append(seen_in(event))
            except (OSError, EOFError, TimeoutError, ValueError):
                pass
            finally:
                connection.hang_up()
            await asyncio.sleep(0.2)
