"""Seven named faults, each switched on by itself: the proof must notice every one of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

from tenure.kernel.errors import AddressInUse, PoolExhausted
from tenure.kernel.layout import Layout
from tenure.kernel.values import Outcome, Row, SpaceId, Ticket, Verdict, Wish
from tenure.ports import Transaction
from tenure.service import allocating
from tenure.service.claims import Claim
from tenure.stores import plain
from tenure.stores.postgres import transaction
from tests.proof.simulated import SimulatedStore


@contextmanager
def unsorted_batch() -> Iterator[None]:
    """Insert a batch's rows in the order they were chosen."""
    unsorted = {name: sql.replace("ORDER BY wish.first\n", "\n") for name, sql in transaction.SQL.items()}
    assert unsorted != transaction.SQL
    with mock.patch.dict(transaction.SQL, unsorted):
        yield


@contextmanager
def view_trusted_for_exhaustion() -> Iterator[None]:
    """Say that a pool is exhausted when the doubtful view says so."""
    real = allocating._pick

    async def pick(claim: Claim, layout: Layout, policy: object, desk: object) -> object:
        view = desk.doubtful(layout).lines.get(allocating.line_key(claim))  # type: ignore[attr-defined]
        if view is not None and view.loaded and not view.free.free:
            raise PoolExhausted(claim.network, claim.pool)
        return await real(claim, layout, policy, desk)  # type: ignore[arg-type]

    with mock.patch.object(allocating, "_pick", pick):
        yield


@contextmanager
def release_by_address_only() -> Iterator[None]:
    """End whatever is held at the address."""
    with mock.patch.object(Ticket, "names", return_value=True):
        yield


@contextmanager
def log_outside_the_transaction() -> Iterator[None]:
    """Commit the holdings first and log them in a transaction of its own, which a death can prevent."""
    real = plain.grant_rows

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
    real = plain.grant_rows

    async def grant_rows(tx: Transaction, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict]:
        current = (await tx.configurations([space]))[0].version
        return await real(tx, space, current, wishes)

    with mock.patch.object(plain, "grant_rows", grant_rows):
        yield


@contextmanager
def again_read_as_taken() -> Iterator[None]:
    """Take an undecided answer for a refusal."""
    real = allocating._settled

    def settled(claim: Claim, wish: Wish, layout: Layout, verdict: Verdict) -> object:
        if verdict.outcome is Outcome.AGAIN and claim.address is not None:
            return AddressInUse(claim.network, "somebody")
        return real(claim, wish, layout, verdict)

    with mock.patch.object(allocating, "_settled", settled):
        yield


@contextmanager
def stale_generation_accepted() -> Iterator[None]:
    """End the owner's holding of the address, whichever grant it came from."""

    def names(ticket: Ticket, row: Row) -> bool:
        return (ticket.network, ticket.owner) == (row.network, row.owner)

    with mock.patch.object(Ticket, "names", names):
        yield


SIMULATED = {
    mutant.__name__: mutant
    for mutant in (
        view_trusted_for_exhaustion,
        release_by_address_only,
        log_outside_the_transaction,
        no_version_guard,
        again_read_as_taken,
        stale_generation_accepted,
    )
}
"""Mutants that random simulation must catch."""
