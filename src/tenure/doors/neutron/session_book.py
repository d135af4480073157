"""Holdings in Neutron's database, written through the session of the caller's transaction: they live and die with it.

An insert that finds somebody in the way changes nothing and says so, in the words of each database; no savepoint is
taken, for a lost one would hide a deadlock from Neutron's retries.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from tenure.doors.neutron.tables import AllocationRow
from tenure.kernel.addresses import key, position

ALLOCATIONS = AllocationRow.__table__
PAGE = 1000


def written(place: int) -> str:
    """Write a position so that texts sort as addresses do."""
    return key(place).hex()


def read(text: str) -> int:
    """Read what ``written`` wrote."""
    return position(bytes.fromhex(text))


class SessionBook:
    """The holdings of one subnet, as the session sees them."""

    def __init__(self, session: Any, subnet: str) -> None:
        self._session = session
        self._subnet = subnet
        self._dialect = session.get_bind().dialect.name

    def grant(self, place: int, owner: str) -> bool:
        """Hold an address unless somebody does; waits for whoever is about to. O(log n)."""
        values = {"subnet_id": self._subnet, "address": written(place), "owner": owner}
        return bool(self._session.execute(self._insert().values(values)).rowcount)

    def _insert(self) -> Any:
        if self._dialect == "postgresql":
            return postgresql.insert(ALLOCATIONS).on_conflict_do_nothing()
        if self._dialect == "sqlite":
            return sqlite.insert(ALLOCATIONS).on_conflict_do_nothing()
        return mysql.insert(ALLOCATIONS).prefix_with("IGNORE")

    def release(self, places: Sequence[int]) -> int:
        """End holdings; count those that there were."""
        texts = [written(place) for place in places]
        wanted = sa.and_(ALLOCATIONS.c.subnet_id == self._subnet, ALLOCATIONS.c.address.in_(texts))
        return int(self._session.execute(sa.delete(ALLOCATIONS).where(wanted)).rowcount)

    def clear(self) -> None:
        """End all holdings."""
        self._session.execute(sa.delete(ALLOCATIONS).where(ALLOCATIONS.c.subnet_id == self._subnet))

    def holds(self, place: int) -> bool:
        """Tell whether an address is held."""
        wanted = sa.and_(ALLOCATIONS.c.subnet_id == self._subnet, ALLOCATIONS.c.address == written(place))
        return self._session.execute(sa.select(sa.literal(1)).where(wanted)).first() is not None

    def held(self, *, fresh: bool = False) -> list[int]:
        """Read all that is held. ``fresh``: as others committed it, also where the transaction sees an older state.

        That is read beside the transaction: reading in it would need locks on rows and on the gaps between them, in
        which others who allocate would get stuck. What the transaction itself has released counts as free.
        """
        statement = sa.select(ALLOCATIONS.c.address).where(ALLOCATIONS.c.subnet_id == self._subnet)
        seen = {text for (text,) in self._session.execute(statement)}
        if fresh and self._dialect == "mysql":
            with self._session.get_bind().engine.connect() as beside:
                seen &= {text for (text,) in beside.execute(statement)}
        return [read(text) for text in seen]

    def gaps(self, first: int, last: int) -> Iterator[int]:
        """Yield what nobody holds of a range, lowest first. Costs what lies before the first gap, a page at once."""
        place = first
        while place <= last:
            columns = ALLOCATIONS.c
            wanted = (columns.subnet_id == self._subnet, columns.address >= written(place), columns.address <= written(last))
            statement = sa.select(columns.address).where(*wanted).order_by(columns.address).limit(PAGE)
            held = [read(text) for (text,) in self._session.execute(statement)]
            for taken in held:
                yield from range(place, taken)
                place = taken + 1
            if len(held) < PAGE:
                yield from range(place, last + 1)
                return
