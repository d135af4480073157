"""A simulated store with the concurrency of PostgreSQL: points, locks, lost answers, deaths.

The truth is a real memory store. What is simulated is time: every call may be delayed before it takes effect and
before its answer arrives; transactions interleave, hold guards, and block whoever wants what they have not yet
committed. Faults come from the chooser.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.holdings.holding_model import (
    Change,
    NetworkId,
    Outcome,
    Paper,
    Rewrite,
    Row,
    SpaceId,
    Ticket,
    Verdict,
    Wish,
)
from tenure.kernel.plan.plan_model import Configuration
from tenure.kernel.run_inline import run_inline
from tenure.kernel.snapshot import Section
from tenure.ports import Abilities, CallerTransaction, Effects, Guard, Size, Transaction
from tenure.stores import serial_grants
from tests.proof.world import SimulatedTransaction, World

T = TypeVar("T")


class SimulatedStore:
    """One server's connection to the world."""

    def __init__(self, world: World, server: str) -> None:
        self.world = world
        self.server = server
        self.abilities = Abilities(ledger=True, mixed_units=True, parallel_writes=True, quick_lane=world.quick_lane)

    async def _call(
        self,
        effect: Callable[[], Coroutine[Any, Any, T]],
        ready: Callable[[], bool] = lambda: True,
        *,
        writes: bool = True,
    ) -> T:
        """Take effect at one point, answer at another; the answer may be lost on the way."""
        point = self.world.scheduler.point
        await point(self.server, ready)
        fault = self.world.fault() if writes else "none"
        if fault == "before":
            raise StoreUnavailable("lost", outcome="unknown")
        answer = run_inline(effect())
        if writes and self.world.scheduler.crashes_left:
            await point(self.server)  # a server may die between the effect and its answer
        if fault == "after":
            raise StoreUnavailable("lost", outcome="unknown")
        return answer

    def _may_insert(self, space: SpaceId, wishes: Sequence[Wish]) -> Callable[[], bool]:
        def ready() -> bool:
            return not self.world.guarded(space, (Guard.EDIT,)) and not any(
                tx.blocks(space, wishes) for tx in self.world.open
            )

        return ready

    async def grant(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        """Grant as one statement."""
        assert len({wish.first for wish in wishes}) == len(wishes) == len({wish.claim for wish in wishes})
        return await self._call(
            lambda: self.world.truth.transact(lambda tx: serial_grants.grant_rows(tx, space, version, wishes)),
            self._may_insert(space, wishes),
        )

    async def grant_unless_freed(
        self, space: SpaceId, version: int, frees: int, wishes: Sequence[Wish]
    ) -> Sequence[Verdict] | None:
        """Grant all or none, in the lane."""

        async def effect() -> Sequence[Verdict] | None:
            if self.world.frees.get(space, 0) != frees:
                return None

            async def work(tx: Transaction) -> Sequence[Verdict]:
                verdicts = await serial_grants.grant_rows(tx, space, version, wishes)
                if any(verdict.outcome is not Outcome.GRANTED for verdict in verdicts):
                    raise _NotAll
                return verdicts

            try:
                return await self.world.truth.transact(work)
            except _NotAll:
                return None

        may_insert = self._may_insert(space, wishes)
        return await self._call(
            effect, lambda: may_insert() and not self.world.guarded(space, (Guard.LANE, Guard.EDIT))
        )

    async def release(
        self, space: SpaceId, tickets: Sequence[Ticket], *, version: int | None = None
    ) -> Sequence[Row | None]:
        """Release as one statement, in the lane."""

        async def effect() -> Sequence[Row | None]:
            self.world.frees[space] = self.world.frees.get(space, 0) + 1
            return await self.world.truth.transact(lambda tx: serial_grants.release_rows(tx, space, tickets, version))

        return await self._call(effect, lambda: not self.world.guarded(space, (Guard.LANE, Guard.EDIT)))

    async def rewrite_unchanged(
        self, space: SpaceId, version: int, groups: Sequence[Sequence[Rewrite]]
    ) -> Sequence[bool]:
        """Write rows again as one statement, in the lane."""
        return await self._call(
            lambda: self.world.truth.rewrite_unchanged(space, version, groups),
            lambda: not self.world.guarded(space, (Guard.LANE, Guard.EDIT)),
        )

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run work step by step among others; commit at one point."""
        tx = SimulatedTransaction(self.world, self.server)
        self.world.open.append(tx)
        try:
            result = await work(cast(Transaction, tx))  # verbs that only pass on are made by __getattr__
            await self.world.scheduler.point(self.server)
            fault = self.world.fault()
            if fault == "before":
                raise StoreUnavailable("lost", outcome="unknown")
            tx.commit()
        finally:
            tx.end()
        if self.world.scheduler.crashes_left:
            await self.world.scheduler.point(self.server)
        if fault == "after":
            raise StoreUnavailable("lost", outcome="unknown")
        return result

    def inside(self, connection: object) -> CallerTransaction:
        """Refuse: there are no connections here."""
        raise NotImplementedError

    async def held(self, space: SpaceId, *, after: int = -1) -> AsyncIterator[Sequence[Row]]:
        """Stream holdings."""
        async for page in self.world.truth.held(space, after=after):
            yield page

    async def by_owner(self, owners: Sequence[str]) -> Sequence[Row]:
        """Read, then wait: what was read may be old when it arrives."""
        return await self._call(lambda: self.world.truth.by_owner(owners), writes=False)

    async def watch(self, after: int, *, limit: int = 1000, space: SpaceId | None = None) -> Sequence[Change]:
        """Read the log."""
        return await self._call(lambda: self.world.truth.watch(after, limit=limit, space=space), writes=False)

    async def effects(self, space: SpaceId, after: int) -> Effects:
        """Read what happened."""
        return await self._call(lambda: self._effects(space, after), writes=False)

    async def _effects(self, space: SpaceId, after: int) -> Effects:
        effects = await self.world.truth.effects(space, after)
        return Effects(effects.upto, effects.steps, effects.complete, self.world.frees.get(space, 0))

    async def spans(self, space: SpaceId, first: int, last: int) -> tuple[int, Sequence[tuple[int, int]]]:
        """Read held spans."""
        return await self._call(lambda: self.world.truth.spans(space, first, last), writes=False)

    async def spaces(self) -> Sequence[tuple[SpaceId, str]]:
        """List spaces."""
        return await self._call(self.world.truth.spaces, writes=False)

    async def locate(self, networks: Sequence[str]) -> dict[str, SpaceId]:
        """Find networks' spaces."""
        return await self._call(lambda: self.world.truth.locate(networks), writes=False)

    async def space_named(self, name: str) -> SpaceId | None:
        """Find a space."""
        return await self._call(lambda: self.world.truth.space_named(name), writes=False)

    async def configuration(self, space: SpaceId) -> Configuration | None:
        """Read a configuration."""
        return await self._call(lambda: self.world.truth.configuration(space), writes=False)

    @property
    def newest(self) -> int:
        """The number of the newest change of all."""
        return self.world.truth.seq

    async def rows_at(self, space: SpaceId, positions: Sequence[int]) -> Sequence[Row | None]:
        """Read rows by address."""
        return await self._call(lambda: self.world.truth.rows_at(space, positions), writes=False)

    async def last_change(self) -> int:
        """Read the counter."""
        return await self._call(self.world.truth.last_change, writes=False)

    async def try_write(self) -> None:
        """Try to write, which changes nothing."""
        await self._call(self.world.truth.try_write, writes=False)

    async def now_us(self) -> int:
        """Read the clock."""
        return await self._call(self.world.truth.now_us, writes=False)

    async def rows_within(
        self, space: SpaceId, first: int, last: int, *, network: NetworkId | None = None, limit: int = 1000
    ) -> Sequence[Row]:
        """Read rows over a range."""
        return await self._call(
            lambda: self.world.truth.rows_within(space, first, last, network=network, limit=limit), writes=False
        )

    async def changes_at(self, firsts: Sequence[int], *, after: int = 0, limit: int = 1000) -> Sequence[Change]:
        """Read the log of some addresses."""
        return await self._call(lambda: self.world.truth.changes_at(firsts, after=after, limit=limit), writes=False)

    async def archived(self, after: int, *, limit: int = 1000) -> Sequence[Change]:
        """Read the archive."""
        return await self._call(lambda: self.world.truth.archived(after, limit=limit), writes=False)

    async def size(self) -> Size:
        """Count what there is."""
        return await self._call(self.world.truth.size, writes=False)

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Paper]:
        """Read papers of a kind."""
        truth = self.world.truth
        return await self._call(lambda: truth.papers(kind, prefix=prefix, after=after, limit=limit), writes=False)

    def contents(self) -> AsyncGenerator[Section, None]:
        """Refuse: nobody copies a simulated ledger."""
        raise NotImplementedError

    async def fill(self, sections: AsyncIterator[Section]) -> None:
        """Refuse, likewise."""
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing to let go of."""


class _NotAll(Exception):
    pass
