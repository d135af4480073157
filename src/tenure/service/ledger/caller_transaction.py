"""The third driver: the ledger inside a transaction that its caller has open and will end.

There is no batcher here. Each call holds the lane of its spaces until the caller's transaction ends, and picks from
exact views that only such calls use: the lane itself keeps them apart. What a call did may yet be rolled back, so
nothing of it is kept; the log tells the next one.
"""

import uuid
from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from tenure.kernel.errors import Conflict
from tenure.kernel.holdings.holding_model import Holding, SpaceId
from tenure.kernel.names import Owner
from tenure.kernel.plan.edits import AddNetwork, AddSubnet
from tenure.kernel.run_inline import run_inline
from tenure.ports import CallerTransaction, Chance, KeyTaken
from tenure.service.allocator.exact_view import ExactViews
from tenure.service.allocator.lane import Restart
from tenure.service.apply.apply_operations import Applying
from tenure.service.apply.operations import (
    Allocate,
    Operation,
    Release,
    ReleaseOwner,
    Shown,
    check_operations,
    networks_of,
)
from tenure.service.read.presenter import show


class AsyncInside:
    """Allocate, release and apply in a transaction of the caller's."""

    def __init__(self, tx: CallerTransaction, chance: Chance, exact: MutableMapping[SpaceId, ExactViews]) -> None:
        self._tx = tx
        self._chance = chance
        self._exact = exact

    async def allocate(self, network: str, *, owner: str, **wish: Any) -> Holding:
        """Give an address to an owner; the same words as the ledger's own ``allocate``."""
        [holding] = await self.apply([Allocate(network=network, owner=owner, **wish)])
        assert isinstance(holding, Holding)
        return holding

    async def release(self, network: str, address: str, *, owner: str, generation: int | None = None) -> Holding | None:
        """End an owner's holding; the same words as the ledger's own ``release``."""
        [holding] = await self.apply([Release(network=network, address=address, owner=owner, generation=generation)])
        assert holding is None or isinstance(holding, Holding)
        return holding

    async def apply(self, operations: Sequence[Operation]) -> list[Shown]:
        """Make several operations one; undone alone if it fails, whatever else the transaction holds."""
        check_operations(operations)
        operations = with_uuids(operations)
        # Where the transaction has logged before, the log as it sees it tells of what may yet be rolled back.
        exact = {} if await self._tx.begin_call() else self._exact
        failed = True
        try:
            # Not bounded: only the caller commits, so what is overdue cannot be removed in transactions before.
            applying = Applying(self._tx, self._chance, exact, {}, bounded=False)
            await applying.open(operations, await self._spaces_for(operations))
            results = await applying.run(operations)
            shown = [show(result) for result in results]
            await applying.finish()
            failed = False
        except (KeyTaken, Restart):
            raise Conflict("the ledger changed while the operations were applied; try again") from None
        finally:
            for views in exact.values():
                views.lift()
            await self._tx.end_call(failed=failed)
        return shown

    async def _spaces_for(self, operations: Sequence[Operation]) -> list[SpaceId]:
        """Find the spaces that operations touch and that exist."""
        names = sorted(networks_of(operations))
        added = [edit.space or edit.network for edit in operations if isinstance(edit, AddNetwork)]
        owners = [Owner(operation.owner) for operation in operations if isinstance(operation, ReleaseOwner)]
        found = {*(await self._tx.locate(names)).values(), *await self._tx.spaces_named(added)}
        found |= {row.space for row in await self._tx.rows_of(owners)}
        return sorted(found)


class Inside:
    """The same for callers who block: nothing waits but the caller's own connection."""

    def __init__(self, inside: AsyncInside) -> None:
        self._inside = inside

    def allocate(self, network: str, *, owner: str, **wish: Any) -> Holding:
        """Give an address to an owner; the same words as the ledger's own ``allocate``."""
        return run_inline(self._inside.allocate(network, owner=owner, **wish))

    def release(self, network: str, address: str, *, owner: str, generation: int | None = None) -> Holding | None:
        """End an owner's holding; the same words as the ledger's own ``release``."""
        return run_inline(self._inside.release(network, address, owner=owner, generation=generation))

    def apply(self, operations: Sequence[Operation]) -> list[Shown]:
        """Make several operations one; undone alone if it fails, whatever else the transaction holds."""
        return run_inline(self._inside.apply(operations))


def with_uuids(operations: Sequence[Operation]) -> list[Operation]:
    """Give new networks and subnets their uuids, before anything is tried: a second try makes the same."""
    return [_with_uuid(operation) for operation in operations]


def _with_uuid(operation: Operation) -> Operation:
    """Give a new network or subnet its uuid: chance belongs out here, not in the rules."""
    if isinstance(operation, AddNetwork | AddSubnet) and operation.uuid is None:
        return replace(operation, uuid=str(uuid.uuid4()))
    return operation
