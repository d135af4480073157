"""The world of a simulation: the truth, a real memory store, and the transactions that are open on it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tenure.kernel.holdings.holding_model import NetworkId, Outcome, Reply, Row, SpaceId, Verdict, Waiter, Wish
from tenure.kernel.holdings.idempotency import reply_to
from tenure.kernel.holdings.log_entries import grant_entry
from tenure.kernel.plan.plan_model import Configuration
from tenure.kernel.run_inline import run_inline
from tenure.ports import Effects, Guard, NotAll
from tenure.stores.memory.store import MemoryStore
from tenure.stores.memory.transaction import MemoryTransaction
from tests.proof.scheduling import Scheduler

T = TypeVar("T")

WRITES = {
    "log", "bump", "put_networks", "remove_networks", "add_space", "rename_space", "remove_space", "rewrite",
    "remember", "linger", "leave", "forget_replies",
}  # fmt: skip


BEGIN_US = 1_000_000_000_000_000


@dataclass
class World:
    """The truth, and what is in flight."""

    scheduler: Scheduler
    truth: MemoryStore = field(default_factory=lambda: MemoryStore(clock=lambda: 1))
    faults_left: int = 0
    quick_lane: bool = True
    frees: dict[SpaceId, int] = field(default_factory=dict)
    open: "list[SimulatedTransaction]" = field(default_factory=list)
    lost: int = 0
    shifts: int = 0
    skew_us: int = 0
    plans: list[tuple[int, Configuration]] = field(default_factory=list)

    def clock_us(self) -> int:
        """Tell the store's time, which is nobody else's: it may stand an hour off."""
        return BEGIN_US + round(asyncio.get_running_loop().time() * 1_000_000) + self.skew_us

    def died(self, server: str) -> None:
        """Roll back what a dead server had open."""
        for tx in [tx for tx in self.open if tx.server == server]:
            tx.end()

    def guarded(self, space: SpaceId, strengths: tuple[Guard, ...], but: "SimulatedTransaction | None" = None) -> bool:
        """Tell whether somebody else holds a space that strongly."""
        return any(tx.guards.get(space) in strengths for tx in self.open if tx is not but)

    def fault(self) -> str:
        """Choose whether an answer is lost, and whether before or after the effect."""
        if self.faults_left <= 0:
            return "none"
        fault = ("none", "before", "after")[self.scheduler.chooser.choose(3)]
        if fault != "none":
            self.faults_left -= 1
            self.lost += 1
        return fault

    def note_plan(self) -> None:
        """Remember the plans as of the newest change."""
        for book in self.truth.books.values():
            self.plans.append((self.truth.seq, book.configuration))


class SimulatedTransaction:
    """A transaction whose every verb is a point.

    Writes are kept as steps and done again on a scratch of the truth for every reading, so that nobody else sees them
    before the commit, which does them for good.
    """

    def __init__(self, world: World, server: str) -> None:
        self.world = world
        self.server = server
        self.guards: dict[SpaceId, Guard] = {}
        self.pending: list[tuple[SpaceId, Wish]] = []
        self.keys: set[str] = set()
        self.freed: set[SpaceId] = set()
        self._steps: list[Callable[[MemoryTransaction], Coroutine[Any, Any, Any]]] = []

    def blocks(self, space: SpaceId, wishes: Sequence[Wish]) -> bool:
        """Tell whether somebody must wait for this transaction's end to learn whether these wishes collide."""
        return any(wish.key in self.keys for wish in wishes) or any(
            other.claim == wish.claim or (space == mine and other.first <= wish.last and wish.first <= other.last)
            for mine, other in self.pending
            for wish in wishes
        )

    def end(self) -> None:
        """Let go of everything."""
        if self in self.world.open:
            self.world.open.remove(self)
        self.guards.clear()
        self.pending.clear()
        self.keys.clear()

    def commit(self) -> None:
        """Do all steps for good."""
        tx = MemoryTransaction(self.world.truth)
        for step in self._steps:
            run_inline(step(tx))
        for space in self.freed:
            self.world.frees[space] = self.world.frees.get(space, 0) + 1
        self.world.note_plan()

    async def _on_scratch(self, verb: Callable[[MemoryTransaction], Coroutine[Any, Any, T]]) -> T:
        """See the truth as it is now, with this transaction's own steps on top."""
        scratch = MemoryTransaction(self.world.truth)
        truth = self.world.truth
        counters = (truth.generation, truth.next_network, truth.next_space, truth.next_ticket)
        try:
            for step in self._steps:
                run_inline(step(scratch))
            return run_inline(verb(scratch))
        finally:
            scratch.undo()
            truth.generation, truth.next_network, truth.next_space, truth.next_ticket = counters

    async def _read(self, verb: Callable[[MemoryTransaction], Coroutine[Any, Any, T]]) -> T:
        await self.world.scheduler.point(self.server)
        return await self._on_scratch(verb)

    async def _write(self, verb: Callable[[MemoryTransaction], Coroutine[Any, Any, T]]) -> T:
        answer = await self._on_scratch(verb)
        self._steps.append(verb)
        return answer

    async def guard(self, spaces: Sequence[SpaceId], strength: Guard) -> dict[SpaceId, int]:
        """Wait for the spaces, then hold them."""
        conflicting = (Guard.LANE, Guard.EDIT) if strength is Guard.LANE else tuple(Guard)
        if strength is Guard.GRANT:
            conflicting = (Guard.EDIT,)

        def ready() -> bool:
            return not any(self.world.guarded(space, conflicting, but=self) for space in spaces)

        await self.world.scheduler.point(self.server, ready)
        self.guards.update(dict.fromkeys(spaces, strength))
        return await self._on_scratch(lambda tx: tx.guard(spaces, strength))

    async def open_lane(self, space: SpaceId, after: int) -> tuple[int | None, Effects]:
        """Hold the lane, then read."""
        version = (await self.guard([space], Guard.LANE)).get(space)
        return version, await self.effects(space, after)

    async def grant_all(
        self, space: SpaceId, version: int, frees: int, wishes: Sequence[Wish]
    ) -> tuple[Sequence[Row], int]:
        """Insert and log all, or spend the transaction."""
        verdicts = await self.insert(space, wishes)
        rows = [verdict.row for verdict in verdicts if verdict.outcome is Outcome.GRANTED and verdict.row is not None]
        keyed = [wish for wish in wishes if wish.key is not None]
        if len(rows) < len(wishes) or any(await self.replies([wish.key for wish in keyed])):
            raise NotAll
        if keyed:
            pairs = zip(wishes, verdicts, strict=True)
            await self.keep_replies([reply_to(wish, verdict) for wish, verdict in pairs if wish.key is not None])
        return rows, await self._write(lambda tx: tx.log([grant_entry(row) for row in rows]))

    async def insert(self, space: SpaceId, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        """Insert, waiting for whoever may be in the way."""
        others = [tx for tx in self.world.open if tx is not self]
        await self.world.scheduler.point(self.server, lambda: not any(tx.blocks(space, wishes) for tx in others))
        verdicts = await self._on_scratch(lambda tx: tx.insert(space, wishes))
        granted = [w for w, v in zip(wishes, verdicts, strict=True) if v.outcome is Outcome.GRANTED]
        self.pending.extend((space, wish) for wish in granted)
        rows = [verdict.row for verdict in verdicts if verdict.outcome is Outcome.GRANTED and verdict.row is not None]
        # Rows keep the generation that was answered, whatever others do before the commit.
        self.world.truth.generation += len(rows)
        self._steps.append(lambda tx: _add_rows(tx, rows))
        return verdicts

    async def remove(self, rows: Sequence[Row]) -> None:
        """Remove rows."""
        await self._write(lambda tx: tx.remove(rows))
        self.freed |= {row.space for row in rows}

    async def join(self, waiter: Waiter, lasts_us: int) -> Waiter:
        """Put a claim in line; its ticket is taken for good, as a sequence does."""
        joined = await self._on_scratch(lambda tx: tx.join(waiter, lasts_us))
        self.world.truth.next_ticket = max(self.world.truth.next_ticket, joined.ticket + 1)
        self._steps.append(lambda tx: tx.join(joined, lasts_us))
        return joined

    async def keep_replies(self, replies: Sequence[Reply]) -> None:
        """Keep answers, waiting for whoever may keep one under the same key."""
        mine = {reply.key for reply in replies}
        others = [tx for tx in self.world.open if tx is not self]
        await self.world.scheduler.point(self.server, lambda: all(tx.keys.isdisjoint(mine) for tx in others))
        await self._write(lambda tx: tx.keep_replies(replies))
        self.keys |= mine

    async def next_network(self) -> NetworkId:
        """Take a number for good, as a sequence does."""
        await self.world.scheduler.point(self.server)
        return await MemoryTransaction(self.world.truth).next_network()

    async def effects(self, space: SpaceId, after: int) -> Effects:
        """Read what happened, and how often something was freed."""
        effects = await self._read(lambda tx: tx.effects(space, after))
        return Effects(effects.upto, effects.steps, effects.complete, self.world.frees.get(space, 0))

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Pass every other verb on: reads at a point of their own, writes as steps."""

        async def verb(*values: Any, **options: Any) -> Any:
            def call(tx: MemoryTransaction) -> Coroutine[Any, Any, Any]:
                answer: Coroutine[Any, Any, Any] = getattr(tx, name)(*values, **options)
                return answer

            return await (self._write(call) if name in WRITES else self._read(call))

        return verb


async def _add_rows(tx: MemoryTransaction, rows: Sequence[Row]) -> None:
    for row in rows:
        tx.restore(row)
