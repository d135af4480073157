"""How the ledger is told what became of a transaction of Neutron's."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from oslo_db import exception as db_exc
from sqlalchemy import exc as sa_exc
from sqlalchemy import orm

from tenure.integrations.neutron.database import subnet_records
from tenure.integrations.neutron.database.allocation_rows import HeldAddress, SessionBook
from tenure.integrations.neutron.database.subnet_records import SubnetRecord
from tenure.integrations.neutron.transaction import ledger_plan
from tenure.integrations.neutron.transaction.ledger_client import Reach, Work
from tenure.integrations.neutron.transaction.recorded_steps import (
    AddressStep,
    LetGo,
    Planned,
    Removed,
    Retook,
    Step,
    SubnetAddress,
    Took,
    last_steps,
    of_addresses,
)
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import NotFound, StoreUnavailable, TenureError
from tenure.service.apply.operations import Allocate, Cancel, Confirm, Operation, Release
from tenure.service.ledger.async_ledger import AsyncLedger


class LedgerEnds:
    """Settles steps with the ledger; what it cannot do at once is owed. Nothing here ever fails the caller.

    Cost: one transaction of the ledger's for all of a commit.
    """

    def __init__(self, reach: Reach, realm: str) -> None:
        self._reach = reach
        self._realm = realm

    def commit(self, steps: list[Step], engine: Any) -> None:
        """Confirm what was taken, release what was let go, follow plans that changed and remove what was removed."""
        first = _first_steps(steps)
        groups = [self._settled(first[step.place.key], step) for step in last_steps(steps)]
        self._tell("what Neutron committed", [*groups, *self._spares(steps)])
        self._settle_plans(_changed(steps), engine)

    def undo(self, steps: list[Step], engine: Any) -> None:
        """Cancel what was taken, and give plans back the shape that Neutron's database has."""
        self._cancel(steps)
        self._settle_plans(_changed(steps), engine)

    def go_back(self, steps: list[Step]) -> None:
        """Cancel what was taken, and give plans back the shape they had, which the database does not tell yet."""
        self._cancel(steps)
        # Backwards: of several changes of one subnet, the plan before the first one is to be left.
        for step in reversed(steps):
            if isinstance(step, Planned):
                number = step.after.id
                restore = partial(ledger_plan.become, realm=self._realm, number=number, subnet=step.before)
                self._reach.owe(f"the former plan of subnet {number}", restore)

    def doubt(self, steps: list[Step], engine: Any) -> None:
        """Look in Neutron's database what became of the steps."""
        first, last = _first_steps(steps), last_steps(steps)

        async def settle(ledger: AsyncLedger) -> None:
            # The rows are read when the debt is paid, not before. In a thread: other requests share this loop.
            rows = await asyncio.to_thread(_rows_behind, engine, [step.place for step in last])
            groups = [
                self._settled(begun, step) if _was_committed(step, row) else self._undone(begun)
                for step, row, begun in zip(last, rows, [first[step.place.key] for step in last], strict=True)
            ]
            await _one_by_one(ledger, [*groups, *self._spares(steps)])

        self._reach.owe("what became of a transaction that was lost", settle)
        self._settle_plans(_changed(steps), engine)

    def _cancel(self, steps: list[Step]) -> None:
        self._tell("what Neutron rolled back", [self._cancelled(step) for step in steps if isinstance(step, Took)])

    def _spares(self, steps: list[Step]) -> list[list[Operation]]:
        return [self._cancelled(step) for step in steps if isinstance(step, Took) and step.spare]

    def _settle_plans(self, changed: set[str], engine: Any) -> None:
        for subnet in sorted(changed):
            self._reach.owe(f"the plan of subnet {subnet}", committed_plan(engine, self._realm, subnet))

    def _tell(self, text: str, groups: list[list[Operation]]) -> None:
        operations = [operation for group in groups for operation in group]
        if not operations:
            return

        async def tell(ledger: AsyncLedger) -> None:
            try:
                # All in one transaction; where one operation is refused, it must not keep the others from being done.
                await ledger.apply(operations)
            except StoreUnavailable:
                raise
            except TenureError:
                await _one_by_one(ledger, groups)

        self._reach.owe(text, tell)

    def _settled(self, first: AddressStep, last: AddressStep) -> list[Operation]:
        """Say what becomes of an address, by the first and the last step that a transaction made with it."""
        assert isinstance(first, Took | LetGo)
        if isinstance(first, Took):
            if isinstance(last, LetGo):
                return self._cancelled(first)
            # A pending holding is confirmed under its first owner, and only then changes hands.
            confirm = [Confirm(**self._ticket(first.place, first.held))]
            return [*confirm, *self._handed_over(first, last)]
        if isinstance(last, LetGo):
            return [Release(**self._ticket(first.place, first.held))]
        return self._handed_over(first, last)

    def _handed_over(self, first: Took | LetGo, last: AddressStep) -> list[Operation]:
        """Say that an address changes hands, where another owner took it again."""
        if not isinstance(last, Retook) or last.owner == first.held.owner:
            return []
        ticket = self._ticket(first.place, first.held)
        address, owner = ticket["address"], ledger_plan.ledger_owner(self._realm, last.owner)
        wish = Allocate(network=ticket["network"], address=address, owner=owner, slot=address, reserved="force")
        return [Release(**ticket), wish]

    def _undone(self, first: AddressStep) -> list[Operation]:
        return self._cancelled(first) if isinstance(first, Took) else []

    def _cancelled(self, step: Took) -> list[Operation]:
        return [Cancel(**self._ticket(step.place, step.held))]

    def _ticket(self, place: SubnetAddress, held: HeldAddress) -> dict[str, Any]:
        return {
            "network": ledger_plan.network_name(self._realm, place.subnet.id),
            "address": format_address(place.position),
            "owner": ledger_plan.ledger_owner(self._realm, held.owner),
            # 0 on a row: its generation is not known, and the holding of that owner is meant, whichever it is.
            "generation": held.generation or None,
        }


def committed_plan(engine: Any, realm: str, subnet: str) -> Work[None]:
    """Make the ledger's plan of a subnet what Neutron's database has when it is done, whatever was wanted before.

    It looks again behind it: of two who settle at once, the last to write has seen the last that was committed.
    """

    async def settle(ledger: AsyncLedger) -> None:
        # Read when the debt is paid: the plan may have changed again since it was made.
        record = await asyncio.to_thread(_committed, engine, subnet)
        while True:
            await ledger_plan.become(ledger, realm, subnet, record)
            again = await asyncio.to_thread(_committed, engine, subnet)
            if again == record:
                return
            record = again

    return settle


def _committed(engine: Any, subnet: str) -> SubnetRecord | None:
    with _beside(engine) as session:
        return subnet_records.find(session, subnet)


@contextmanager
def _beside(engine: Any) -> Iterator[Any]:
    """Open Neutron's database for a look; that it is away for a moment must not be the end of what is owed."""
    try:
        with orm.Session(bind=engine) as session:
            try:
                yield session
            finally:
                session.rollback()
    except (db_exc.DBError, sa_exc.SQLAlchemyError) as error:
        raise StoreUnavailable(f"Neutron's database does not answer: {error}", outcome="none") from error


def _changed(steps: list[Step]) -> set[str]:
    """Number the subnets that a transaction made, changed or removed."""
    planned = {step.after.id for step in steps if isinstance(step, Planned)}
    return planned | {step.subnet.id for step in steps if isinstance(step, Removed)}


def _was_committed(last: AddressStep, row: HeldAddress | None) -> bool:
    """Tell by the row whether the last step with an address was committed."""
    if isinstance(last, LetGo):
        return row is None
    return row is not None and row.owner == (last.owner if isinstance(last, Retook) else last.held.owner)


def _first_steps(steps: list[Step]) -> dict[tuple[str, int], AddressStep]:
    # Backwards, so that the first step of each address is the one that stays.
    return {step.place.key: step for step in reversed(of_addresses(steps))}


async def _one_by_one(ledger: AsyncLedger, groups: list[list[Operation]]) -> None:
    """Tell the ledger what can be told, group by group; raise the first error at the end."""
    failed: TenureError | None = None
    for group in groups:
        try:
            if group:
                await ledger.apply(group)
        except StoreUnavailable:
            raise
        except NotFound as error:
            gone = error.kind == "network" and all(isinstance(each, Release | Cancel) for each in group)
            failed = failed or (None if gone else error)  # what was held in a network that is gone is gone with it
        except TenureError as error:
            failed = failed or error
    if failed is not None:
        raise failed


def _rows_behind(engine: Any, places: list[SubnetAddress]) -> list[HeldAddress | None]:
    """Find the rows of places as they are committed, waiting for whoever is still about to write one."""
    with _beside(engine) as session:
        return [_row_behind(session, place) for place in places]


def _row_behind(session: Any, place: SubnetAddress) -> HeldAddress | None:
    book = SessionBook(session, place.subnet.id)
    try:
        # The insert waits for a transaction that is still open on the address; ``_beside`` rolls the row back. The
        # savepoint keeps the session usable where the insert itself fails.
        with session.begin_nested():
            return None if book.grant(place.position, "nobody") else book.find(place.position, locking=True)
    except db_exc.DBReferenceError:
        return None  # the subnet is not there, so the transaction that made it is not either
