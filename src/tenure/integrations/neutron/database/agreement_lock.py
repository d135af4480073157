"""What a transaction stands on: the agreement of its deployment, read as it is now and kept until the transaction ends.

A server compares its configuration once. Every transaction that does something reads the agreement again, where it can
with the record of its subnet, and keeps it in common with others like it. Whoever replaces it waits for all of them,
and who comes later reads the new one. So no address is given under an agreement that is no longer there.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from tenure.integrations.neutron.database.tables import DeploymentRow

TABLE = DeploymentRow.__table__
THE_ROW, THE_NUMBER = 1, 2
"""What is agreed on now; and the number by which the deployment is known, or will be, in a ledger."""

KEY = "tenure-standing"
COLUMN = "tenure_agreed"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Where a deployment keeps its addresses."""

    mode: str
    realm: str
    ledger: str = ""


class Stand(NamedTuple):
    """What was read (None: nothing was there), and in which transaction or savepoint."""

    agreement: Agreement | None
    transaction: Any


def agreed_now() -> Any:
    """Return the agreement as a column for a reading of something else, in one text: MySQL locks just what it reads.

    It is read as it is now, whatever the transaction saw before, and nobody replaces it until the transaction ends.
    """
    text = TABLE.c.mode + " " + TABLE.c.realm + " " + TABLE.c.ledger
    statement = sa.select(text).where(TABLE.c.id == THE_ROW).with_for_update(read=True)
    return statement.scalar_subquery().label(COLUMN)


def note(session: Any, text: str | None) -> None:
    """Note what the column said."""
    # Not split(): in mode database the ledger's number is empty. None of the three parts can hold a space.
    agreement = None if text is None else Agreement(*text.split(" "))
    session.info[KEY] = Stand(agreement, _innermost(session))


def noted(session: Any) -> Stand | None:
    """Return what the open transaction stands on; what a savepoint read is gone with it, and with it the lock."""
    stand: Stand | None = session.info.get(KEY)
    transaction = _innermost(session)
    while stand is not None and transaction is not None:
        if transaction is stand.transaction:
            return stand
        transaction = transaction.parent
    return None


def now(session: Any) -> Agreement | None:
    """Return the agreement that the open transaction stands on; it is read unless that was done before."""
    stand = noted(session)
    if stand is None:
        note(session, session.execute(sa.select(agreed_now())).scalar_one())
        stand = noted(session)
    assert stand is not None
    return stand.agreement


def leave(session: Any) -> None:
    """Forget what was read; it is read again."""
    session.info.pop(KEY, None)


def _innermost(session: Any) -> Any:
    return session.get_nested_transaction() or session.get_transaction()
