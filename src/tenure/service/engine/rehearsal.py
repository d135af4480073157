"""Operations that are only tried: done as ``apply`` does them, told, and taken back."""

from collections.abc import Sequence
from functools import partial

from tenure.kernel.errors import Conflict
from tenure.kernel.holdings.actor import Asker
from tenure.kernel.holdings.holding_model import SpaceId
from tenure.ports import KeyTaken, Transaction
from tenure.service.allocator.lane import Restart
from tenure.service.apply.operations import Operation, Shown
from tenure.service.engine.engine import Engine
from tenure.service.engine.lanes import RESTARTS
from tenure.service.engine.lost_try import Tried


class Rehearsed(Exception):
    """Ends a transaction that was only tried; carries what it would have answered."""

    def __init__(self, answers: list[Shown]) -> None:
        super().__init__()
        self.answers = answers


async def rehearse(server: Engine, operations: Sequence[Operation], asker: Asker | None) -> list[Shown]:
    """Return what operations would answer now. Costs what they cost, but for the commit."""
    for attempt in range(RESTARTS):
        spaces = await server.spaces_for(operations)
        async with server.lanes.alone_in(spaces):
            try:
                await server.store.transact(partial(_rehearse_once, server, operations, spaces, asker))
            except Rehearsed as done:
                return done.answers
            except (Restart, KeyTaken):
                await server.pause(attempt)
            finally:
                server.lanes.settle(spaces, kept=False)
    raise Conflict("the ledger kept changing while the operations were tried; try again")


async def _rehearse_once(
    server: Engine, operations: Sequence[Operation], spaces: Sequence[SpaceId], asker: Asker | None, tx: Transaction
) -> None:
    # Not bounded: nothing is committed here, so what is overdue cannot be removed in transactions before.
    answers, _ = await server.apply_once(operations, spaces, None, b"", asker, Tried(), tx, bounded=False)
    raise Rehearsed(answers)
