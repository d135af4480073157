"""Named faults of a server, each planted by itself in a server's process: the rules must notice every one of them.

They are written against what the code promises, not against how it keeps it: each takes one promise away.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import asyncpg

from tenure.kernel.errors import PoolExhausted, StoreUnavailable
from tenure.kernel.holdings.holding_model import OWNED, Row, SpaceId, Ticket, Verdict, Wish
from tenure.kernel.holdings.log_entries import release_entry
from tenure.kernel.plan.layout import Layout
from tenure.ports import Failed, Guard, Transaction
from tenure.service.allocator.claim import Claim
from tenure.service.allocator.lane import Serving
from tenure.service.apply import release_holding
from tenure.service.apply.release_holding import ReleaseRequest
from tenure.service.engine.waiting_rooms import Guest, WaitingRooms
from tenure.stores.postgres.store import PostgresStore
from tests.proof.fire import acts
from tests.proof.fire.acts import Act

TIME_OUTS = frozenset(
    {"idle_in_transaction_session_timeout", "statement_timeout", "transaction_timeout", "tcp_user_timeout"}
)
QUICK_LOCK = "100ms"
"""How long a batch waits for a lock; that is no protection from a frozen server, and stays."""


@contextmanager
def give_back_of_what_was_told() -> Iterator[None]:
    """Give back what its caller was granted, also if another answer has shown it to him."""

    async def give_back(self: WaitingRooms, guest: Guest) -> None:
        row = guest.answer.result().row

        async def taking_back(tx: Transaction) -> None:
            await tx.guard([row.space], Guard.LANE)
            [found] = await tx.rows_at(row.space, [row.first])
            if found is not None and found.generation == row.generation and found.state in OWNED:
                await tx.remove([found])
                await tx.log([release_entry(found, None, "given back")])

        await self._desk.store.transact(taking_back)
        self.wake(row.space)

    with mock.patch.object(WaitingRooms, "_give_back", give_back):
        yield


@contextmanager
def release_repeated_blindly() -> Iterator[None]:
    """Repeat a release whose answer was lost as its caller wrote it, without the generation that was seen."""
    real = release_holding._ticket

    def ticket(wanted: ReleaseRequest, seen: Row, layout: Layout) -> Ticket:
        return real(wanted, seen, layout)._replace(generation=wanted.generation)

    with mock.patch.object(release_holding, "_ticket", ticket):
        yield


@contextmanager
def batch_answered_as_one() -> Iterator[None]:
    """Repeat a batch one by one, and call all of it undone where one of it fails."""
    real = PostgresStore._grant_one_by_one

    async def one_by_one(
        self: PostgresStore, space: SpaceId, version: int, wishes: Sequence[Wish]
    ) -> list[Verdict | Failed]:
        answers = await real(self, space, version, wishes)
        if any(isinstance(answer, Failed) for answer in answers):
            raise StoreUnavailable("PostgreSQL was lost", outcome="none")
        return answers

    with mock.patch.object(PostgresStore, "_grant_one_by_one", one_by_one):
        yield


@contextmanager
def no_time_outs() -> Iterator[None]:
    """Ask PostgreSQL for no time-outs: what a frozen server has locked stays locked."""

    def without(connect: Callable[..., Any]) -> Callable[..., Any]:
        def connecting(*words: Any, **settings: Any) -> Any:
            asked = settings.pop("server_settings", None) or {}
            kept = {name: value for name, value in asked.items() if name not in TIME_OUTS}
            if kept.get("lock_timeout", QUICK_LOCK) != QUICK_LOCK:
                del kept["lock_timeout"]
            return connect(*words, server_settings=kept, **settings)

        return connecting

    with ExitStack() as stack:
        for name in ("connect", "create_pool"):
            stack.enter_context(mock.patch.object(asyncpg, name, without(getattr(asyncpg, name))))
        yield


@contextmanager
def no_sweep_before_picks() -> Iterator[None]:
    """Remove what is overdue only where nothing else is free."""
    sweep, choose = Serving.sweep, Serving._choose

    async def never(self: Serving) -> bool:
        return False

    async def choose_first(self: Serving, claim: Claim) -> Wish:
        try:
            return await choose(self, claim)
        except PoolExhausted:
            if not await sweep(self):
                raise
            return await choose(self, claim)

    with mock.patch.multiple(Serving, sweep=never, _choose=choose_first):
        yield


@dataclass(frozen=True)
class Planted:
    """A mutant: how it is planted, what is played to find it, and the rules that must be found broken."""

    plant: Callable[[], AbstractContextManager[None]]
    acts: Sequence[Act]
    rules: frozenset[str]


MUTANTS: dict[str, Planted] = {
    mutant.plant.__name__: mutant
    for mutant in (
        Planted(give_back_of_what_was_told, [acts.hang_up_while_granted] * 3, frozenset({"R3", "R4"})),
        Planted(
            release_repeated_blindly,
            [acts.release_twice_of_one_owner] * 3,
            frozenset({"R2"}),
        ),
        Planted(batch_answered_as_one, [acts.batch_one_by_one] * 4, frozenset({"R1"})),
        Planted(no_time_outs, [acts.silent_in_a_transaction], frozenset({"R8"})),
        Planted(
            no_sweep_before_picks,
            [acts.lowest_behind_cooling, acts.lowest_behind_a_deadline],
            frozenset({"R5"}),
        ),
    )
}
"""The faults that were once real, by name."""
