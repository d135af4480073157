"""Holdings in Neutron's database, written through the session of the caller's transaction: they live and die with it.

An insert that finds somebody in the way changes nothing and says so, in the words of each database; no savepoint is
taken, for a lost one would hide a deadlock from Neutron's retries.
"""

import re
import time
from collections.abc import Collection
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from tenure.integrations.neutron.database.tables import AllocationRow
from tenure.integrations.neutron.database.unreadable_rows import read_column
from tenure.kernel.addressing.addresses import key

ALLOCATIONS = AllocationRow.__table__
_DIGITS = re.compile("04[0-9a-f]{8}|06[0-9a-f]{32}")


class HeldAddress(NamedTuple):
    """An address that is held: by whom, as which holding of a shared ledger (0: of none, or unknown), since when."""

    place: int
    owner: str
    generation: int
    since_s: int | None = None


def digits_of(place: int) -> str:
    """Write a position so that texts sort as addresses do."""
    return key(place).hex()


def is_digits(text: str) -> bool:
    """Tell whether a text is one that ``digits_of`` may have written."""
    return _DIGITS.fullmatch(text) is not None


def place_of(text: str) -> int:
    """Read what ``digits_of`` wrote, and nothing else."""
    if not is_digits(text):
        raise ValueError("not the digits of an address")
    return int(text, 16)


def insert_unless_there(table: Any, dialect: str) -> Any:
    """Begin an insert that leaves alone, and counts as nothing, what is there already."""
    if dialect == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    if dialect == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing()
    # IGNORE passes over a missing subnet (the foreign key) as well; ``subnet_records.enter`` tells the two apart.
    return mysql.insert(table).prefix_with("IGNORE")


class SessionBook:
    """The holdings of one subnet, as the session sees them."""

    def __init__(self, session: Any, subnet: str) -> None:
        self._session = session
        self._subnet = subnet
        self._dialect = dialect_of(session)
        self._mine = ALLOCATIONS.c.subnet_id == subnet

    def grant(self, place: int, owner: str, generation: int = 0) -> bool:
        """Hold an address unless somebody does; waits for whoever is about to. O(log n)."""
        values = {
            "subnet_id": self._subnet,
            "address": digits_of(place),
            "owner": owner,
            "generation": generation,
            "since_s": int(time.time()),
        }
        # No look beforehand: the primary key decides, also against rows that other transactions have not committed yet.
        insert = insert_unless_there(ALLOCATIONS, self._dialect).values(values)
        return bool(self._session.execute(insert).rowcount)

    def regrant(self, place: int, owner: str, generation: int) -> None:
        """Write another owner or generation on a holding that this transaction made."""
        self._session.execute(
            sa.update(ALLOCATIONS)
            .where(self._mine, ALLOCATIONS.c.address == digits_of(place))
            .values(owner=owner, generation=generation)
        )

    def end(self, place: int) -> None:
        """End a holding."""
        self._session.execute(sa.delete(ALLOCATIONS).where(self._mine, ALLOCATIONS.c.address == digits_of(place)))

    def clear(self) -> None:
        """End all holdings."""
        self._session.execute(sa.delete(ALLOCATIONS).where(self._mine))

    def find(self, place: int, *, locking: bool = False) -> HeldAddress | None:
        """Find who holds an address; ``locking``: as it is now, and until the transaction ends."""
        columns = (ALLOCATIONS.c.owner, ALLOCATIONS.c.generation, ALLOCATIONS.c.since_s)
        statement = sa.select(*columns).where(self._mine, ALLOCATIONS.c.address == digits_of(place))
        found = self._session.execute(statement.with_for_update() if locking else statement).first()
        return None if found is None else HeldAddress(place, *found)

    def all(self) -> list[tuple[str, str, int, int | None]]:
        """Read all rows as they are written: address, owner, generation, since when; in the order of addresses."""
        columns = ALLOCATIONS.c
        wanted = (columns.address, columns.owner, columns.generation, columns.since_s)
        return list(self._session.execute(sa.select(*wanted).where(self._mine).order_by(columns.address)))

    def held(self) -> list[int]:
        """Read which addresses are held, as the transaction sees it."""
        return [self._place(text) for text in self._addresses(self._session)]

    def held_now(self, refused: Collection[int]) -> list[int]:
        """Read what is held as others committed it, also where the transaction sees an older state (MySQL's).

        That is read beside the transaction: reading in it would need locks on rows and on the gaps between them, in
        which others who allocate would get stuck. What the two readings do not agree on may be free: it was released
        or taken, by the transaction itself or by others, and an insert will tell; of what was ``refused`` before, one
        reading that knows of it is enough.
        """
        seen = self._addresses(self._session)
        if self._dialect in MYSQL:
            with self._session.get_bind().engine.connect() as connection:
                beside = self._addresses(connection)
            seen = (seen & beside) | ({digits_of(place) for place in refused} & (seen | beside))
        return [self._place(text) for text in seen]

    def _addresses(self, executor: Any) -> set[str]:
        return {text for (text,) in executor.execute(sa.select(ALLOCATIONS.c.address).where(self._mine))}

    def _place(self, text: str) -> int:
        return read_column(ALLOCATIONS.name, self._subnet, "address", text, place_of)


MYSQL = ("mysql", "mariadb")


def dialect_of(session: Any) -> str:
    """Name the database that a session talks to."""
    return str(session.get_bind().dialect.name)
