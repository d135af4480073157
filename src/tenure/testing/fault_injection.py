"""Faults on demand: a ledger's store that fails, loses answers, is slow, or whose clock is moved, as a test says."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Literal, TypeVar

from tenure.kernel.errors import Invalid, StoreUnavailable
from tenure.kernel.holdings.holding_model import Change, NetworkId, Row, SpaceId
from tenure.kernel.names import CENTURY_S, shown
from tenure.kernel.plan.plan_model import Configuration
from tenure.ports import Effects, Transaction
from tenure.stores.memory.store import MemoryStore

T = TypeVar("T")

Fault = Literal["store", "answer"]


class Faults:
    """What is to go wrong. Each fault meets the next calls of the ledger to its store, in the order they were ordered.

    The ledger itself asks again when an answer was lost, up to three times: a loss that its caller is to see must be
    ordered four times in a row.
    """

    def __init__(self) -> None:
        self.met = 0
        self.slow_s = 0.0
        self._ahead_us = 0
        self._coming: deque[Fault] = deque()
        self._down = False
        self._losing = False

    def lose_store(self, times: int = 1) -> None:
        """Let the next calls find no store: nothing is done, ``StoreUnavailable`` says ``none``."""
        self._coming.extend(["store"] * _count(times))

    def lose_answer(self, times: int = 1) -> None:
        """Let the next change take effect and lose its answer (``unknown``), and so often what follows."""
        self._coming.extend(["answer"] * _count(times))

    def take_down(self) -> None:
        """Let every call find no store, until ``bring_back``."""
        self._down = True

    def bring_back(self) -> None:
        """Let the store answer again, and drop all faults still to come."""
        self._down = False
        self._coming.clear()

    def slow_down(self, seconds: float) -> None:
        """Let every call take so much longer; 0 ends it."""
        if _seconds(seconds) < 0:
            raise Invalid(f"seconds: cannot be less than nothing, as {shown(seconds)} is", field="seconds")
        self.slow_s = seconds

    def advance(self, seconds: float) -> None:
        """Move the store's clock: deadlines pass, addresses cool off. Negative moves it back."""
        self._ahead_us += round(_seconds(seconds) * 1_000_000)

    def now_us(self) -> int:
        """Read the store's clock."""
        return time.time_ns() // 1000 + self._ahead_us

    async def before(self) -> None:
        """Meet a fault before a call is made, if one is due."""
        if self.slow_s:
            await asyncio.sleep(self.slow_s)
        if self._down or (self._coming and self._coming[0] == "store"):
            # A store that is taken down fails every call, and uses up none of the ordered faults.
            if not self._down:
                self._coming.popleft()
            self.met += 1
            raise StoreUnavailable("the store is away, as the test says", outcome="none")

    async def after(self, *, changed: bool) -> None:
        """Meet a fault after a call was made, if one is due; the first of a row waits for a change."""
        # The ledger looks again behind a lost answer; in a row, that look loses its answer although it changes nothing.
        losing, self._losing = self._losing, False
        if self._coming and self._coming[0] == "answer" and (changed or losing):
            self._coming.popleft()
            self.met += 1
            self._losing = True
            raise StoreUnavailable("the answer was lost, as the test says", outcome="unknown")


def _count(times: int) -> int:
    if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= 1000:
        raise Invalid(f"times: a number from 1 to 1000 is needed, not {shown(times)}", field="times")
    return times


def _seconds(value: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not -CENTURY_S <= value <= CENTURY_S:
        raise Invalid(f"seconds: a number is needed, not {shown(value)}", field="seconds")
    return value


class FaultyStore(MemoryStore):
    """A ledger in memory that meets the faults a test orders. Every effect goes through ``transact``."""

    def __init__(self, faults: Faults) -> None:
        # A test moves the store's clock, because no other clock decides about deadlines.
        super().__init__(clock=faults.now_us)
        self.faults = faults
        self._transacting = False

    async def _meet(self) -> None:
        """Meet a fault, but not inside a transaction: nothing may come between its steps."""
        if not self._transacting:
            await self.faults.before()

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run work, with faults around it."""
        await self._meet()
        # Effects are logged: a higher number shows that the transaction had one.
        before = self.seq
        self._transacting = True
        try:
            result = await super().transact(work)
        finally:
            self._transacting = False
        await self.faults.after(changed=self.seq > before)
        return result

    async def held(self, space: SpaceId, *, after: int = -1) -> AsyncIterator[Sequence[Row]]:
        """Stream holdings in pages."""
        await self._meet()
        async for page in super().held(space, after=after):
            yield page

    async def by_owner(self, owners: Sequence[str]) -> Sequence[Row]:
        """Find holdings by owner."""
        await self._meet()
        return await super().by_owner(owners)

    async def watch(self, after: int, *, limit: int = 1000, space: SpaceId | None = None) -> Sequence[Change]:
        """Read the log."""
        await self._meet()
        return await super().watch(after, limit=limit, space=space)

    async def effects(self, space: SpaceId, after: int) -> Effects:
        """Read what happened to a space's addresses."""
        await self._meet()
        return await super().effects(space, after)

    async def locate(self, networks: Sequence[str]) -> dict[str, SpaceId]:
        """Find networks' spaces."""
        await self._meet()
        return await super().locate(networks)

    async def configuration(self, space: SpaceId) -> Configuration | None:
        """Read a configuration."""
        await self._meet()
        return await super().configuration(space)

    async def rows_within(
        self, space: SpaceId, first: int, last: int, *, network: NetworkId | None = None, limit: int = 1000
    ) -> Sequence[Row]:
        """Find rows over a range."""
        await self._meet()
        return await super().rows_within(space, first, last, network=network, limit=limit)
