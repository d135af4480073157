"""Twelve named faults, each switched on by itself: the proof must notice every one of them."""

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.errors import AddressInUse, NotFound, PoolExhausted
from tenure.kernel.holdings.holding_model import Outcome, Reply, Row, SpaceId, State, Ticket, Verdict, Wish
from tenure.kernel.holdings.idempotency import reply_to
from tenure.kernel.holdings.log_entries import grant_entry
from tenure.kernel.names import Owner
from tenure.kernel.plan.layout import Layout
from tenure.ports import KeyTaken, Transaction
from tenure.service.allocator import allocation
from tenure.service.allocator.claim import Claim, Granted
from tenure.service.allocator.waiting_line import Queue, Seat
from tenure.service.apply import apply_operations, holding_effects, release_holding
from tenure.service.apply.context import Ground, check_holder
from tenure.service.apply.operations import Confirm
from tenure.stores import serial_grants
from tenure.stores.memory.transaction import MemoryTransaction
from tenure.stores.postgres.sql import SQL
from tests.proof.simulated import SimulatedStore
from tests.proof.simulation import first_unexplained
from tests.proof.timely import first_unexplained_in_time

FAR_OFF_US = 1 << 62


@contextmanager
def unsorted_batch() -> Iterator[None]:
    """Insert a batch's rows in the order they were chosen."""
    unsorted = {name: sql.replace("ORDER BY wish.first\n", "\n") for name, sql in SQL.items()}
    assert unsorted != SQL
    with mock.patch.dict(SQL, unsorted):
        yield


@contextmanager
def view_trusted_for_exhaustion() -> Iterator[None]:
    """Say that a pool is exhausted when the doubtful view says so."""
    real = allocation._pick

    async def pick(claim: Claim, layout: Layout, policy: object, desk: object) -> object:
        view = desk.doubtful(layout).lines.get(allocation.line_key(claim))  # type: ignore[attr-defined]
        if view is not None and view.loaded and not view.free.free:
            raise PoolExhausted(claim.network, claim.pool)
        return await real(claim, layout, policy, desk)  # type: ignore[arg-type]

    with mock.patch.object(allocation, "_pick", pick):
        yield


@contextmanager
def release_by_address_only() -> Iterator[None]:
    """End whatever is held at the address."""
    with mock.patch.object(Ticket, "names", return_value=True):
        yield


@contextmanager
def log_outside_the_transaction() -> Iterator[None]:
    """Commit the holdings first and log them in a transaction of its own, which a death can prevent."""
    real = serial_grants.grant_rows

    async def grant(self: SimulatedStore, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        entries: list[object] = []

        async def without_log(tx: Transaction) -> Sequence[Verdict]:
            async def keep(logged: Sequence[object]) -> int:
                entries.extend(logged)
                return 0

            with mock.patch.object(tx, "log", keep):
                return await real(tx, space, version, wishes)

        truth = self.world.truth
        verdicts = await self._call(lambda: truth.transact(without_log), self._may_insert(space, wishes))
        if entries:
            await self._call(lambda: truth.transact(lambda tx: tx.log(entries)))  # type: ignore[arg-type]
        return verdicts

    with mock.patch.object(SimulatedStore, "grant", grant):
        yield


@contextmanager
def no_version_guard() -> Iterator[None]:
    """Grant under whatever configuration there is."""
    real = serial_grants.grant_rows

    async def grant_rows(tx: Transaction, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        current = (await tx.configurations([space]))[0].version
        return await real(tx, space, current, wishes)

    with mock.patch.object(serial_grants, "grant_rows", grant_rows):
        yield


@contextmanager
def again_read_as_taken() -> Iterator[None]:
    """Take an undecided answer for a refusal."""
    real = allocation._settled

    async def settled(
        claim: Claim, wish: Wish, layout: Layout, verdict: Verdict, desk: allocation.AllocationEngine
    ) -> object:
        if verdict.outcome is Outcome.AGAIN and claim.address is not None:
            return AddressInUse(claim.network, "somebody")
        return await real(claim, wish, layout, verdict, desk)

    with mock.patch.object(allocation, "_settled", settled):
        yield


@contextmanager
def stale_generation_accepted() -> Iterator[None]:
    """End the owner's holding of the address, whichever grant it came from."""

    def names(ticket: Ticket, row: Row) -> bool:
        return (ticket.network, ticket.owner) == (row.network, row.owner)

    def check(row: Row, network: int, owner: Owner, generation: int | None, network_name: str) -> None:
        check_holder(row, network, owner, None, network_name)

    with mock.patch.object(Ticket, "names", names), mock.patch.object(release_holding, "check_holder", check):
        yield


@contextmanager
def key_stored_after_the_effect() -> Iterator[None]:
    """Commit the effect first and keep its answer under the key in a transaction of its own."""
    real_grant, real_transact = SimulatedStore.grant, SimulatedStore.transact

    async def keep(store: SimulatedStore, late: Sequence[Reply]) -> None:
        with contextlib.suppress(KeyTaken):
            if late:
                await real_transact(store, lambda tx: tx.keep_replies(late))

    async def transact(self: SimulatedStore, work: Callable[[Transaction], Awaitable[Any]]) -> Any:
        late: list[Reply] = []

        async def without_keys(tx: Transaction) -> Any:
            async def put_off(replies: Sequence[Reply]) -> None:
                late[:] = replies

            with mock.patch.object(tx, "keep_replies", put_off):
                return await work(tx)

        answer = await real_transact(self, without_keys)
        await keep(self, late)
        return answer

    async def grant(self: SimulatedStore, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        known = await self._call(lambda: self.world.truth.transact(lambda tx: _replies(tx, wishes)), writes=False)
        if any(known):
            return await real_grant(self, space, version, wishes)
        verdicts = await real_grant(self, space, version, [wish._replace(key=None) for wish in wishes])
        pairs = zip(wishes, verdicts, strict=True)
        granted = [(wish, each) for wish, each in pairs if wish.key and each.outcome is Outcome.GRANTED]
        await keep(self, [reply_to(wish, each) for wish, each in granted])
        return verdicts

    with mock.patch.multiple(SimulatedStore, grant=grant, transact=transact):
        yield


async def _replies(tx: Transaction, wishes: Sequence[Wish]) -> Sequence[Reply | None]:
    return await tx.replies([wish.key for wish in wishes if wish.key is not None])


@contextmanager
def cooling_ignored() -> Iterator[None]:
    """Free at once what its pool wants to cool."""
    with mock.patch.object(Layout, "pool_cooling_us", return_value=0):
        yield


@contextmanager
def cooling_cut_short() -> Iterator[None]:
    """Take what cools for overdue, whatever its deadline, so that picks yield it."""

    async def overdue(self: MemoryTransaction, space: SpaceId, *, limit: int = 1000) -> Sequence[Row]:
        rows = self._store.books[space].rows.values()
        return [
            row for row in rows if row.state is State.COOLING or (row.until_us or FAR_OFF_US) <= self._store.clock()
        ]

    with mock.patch.object(MemoryTransaction, "overdue", overdue):
        yield


@contextmanager
def confirm_after_removal() -> Iterator[None]:
    """Confirm a pending holding that its deadline has ended, by making it anew."""
    real = holding_effects.confirm

    async def confirm(ground: Ground, operation: Confirm) -> Granted:
        try:
            return await real(ground, operation)
        except NotFound:
            space = ground.space_of(operation.network)
            network, place = ground.now[space].network(operation.network).id, parse_address(operation.address)
            [verdict] = await ground.tx.insert(space, [Wish(network, place, place, operation.owner)])
            if verdict.outcome is not Outcome.GRANTED or verdict.row is None:
                raise
            ground.entries.append(grant_entry(verdict.row))
            return Granted(verdict.row, ground.layout(space))

    with mock.patch.dict(apply_operations.SINGLE, {Confirm: confirm}):
        yield


@contextmanager
def line_ignored() -> Iterator[None]:
    """Serve whoever is here, and keep nothing free for those who wait at other servers."""
    real = Queue._line

    def line(queue: Queue, seats: Sequence[Seat]) -> list[tuple[Claim, int | None]]:
        return [(claim, number) for claim, number in real(queue, seats) if number is not None]

    with mock.patch.object(Queue, "_line", line):
        yield


Search = Callable[[Iterable[int]], tuple[int, list[str]] | None]

SIMULATED: dict[str, tuple[Callable[[], AbstractContextManager[None]], Search]] = {
    **{
        mutant.__name__: (mutant, first_unexplained)
        for mutant in (
            view_trusted_for_exhaustion,
            release_by_address_only,
            log_outside_the_transaction,
            no_version_guard,
            again_read_as_taken,
            stale_generation_accepted,
        )
    },
    **{
        mutant.__name__: (mutant, first_unexplained_in_time)
        for mutant in (
            key_stored_after_the_effect,
            cooling_ignored,
            cooling_cut_short,
            confirm_after_removal,
            line_ignored,
        )
    },
}
"""Mutants that random simulation must catch, and the simulation that does."""
