"""Neutron's database and a ledger in files, with the driver between them: for what needs no server of Neutron's."""

import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from oslo_db import exception as db_exc
from sqlalchemy import event, orm

import tenure
from tenure.kernel.addressing.ranges import AddressRange, parse_range

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Neutron imports is deprecated in places
    from tenure.integrations.neutron.address_requests import WantedAddress
    from tenure.integrations.neutron.database import subnet_records
    from tenure.integrations.neutron.database.subnet_records import SubnetRecord
    from tenure.integrations.neutron.database.tables import AllocationRow, SubnetRow
    from tenure.integrations.neutron.modes.ledger_mode import LedgerKeeper
    from tenure.integrations.neutron.transaction.ledger_client import Reach

REALM = "neutron"
OWNER = "port/a"
ANY = WantedAddress(OWNER)


@dataclass
class LocalSite:
    """One subnet, in a database and in a ledger."""

    engine: sa.Engine
    reach: Reach
    ledger: tenure.Ledger
    subnet: SubnetRecord

    @property
    def keeper(self) -> LedgerKeeper:
        """Return the mode that is tried."""
        return LedgerKeeper(self.reach, REALM)

    @property
    def network(self) -> str:
        """Name the network that stands for the subnet."""
        return f"{REALM}-{self.subnet.id}"

    def held(self) -> dict[str, str]:
        """Read what the ledger holds: states by address."""
        return {each.address: str(each.state) for each in self.ledger.holdings(self.network)}

    def rows(self) -> int:
        """Count the rows of addresses."""
        with orm.Session(self.engine) as session:
            return session.query(AllocationRow).count()

    @contextmanager
    def deadlock_at(self, begins: str) -> Iterator[None]:
        """Let the database raise a deadlock at statements that begin so."""

        def raised(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
            if statement.startswith(begins):
                raise db_exc.DBDeadlock

        event.listen(self.engine, "before_cursor_execute", raised)
        try:
            yield
        finally:
            event.remove(self.engine, "before_cursor_execute", raised)


def pools(*texts: str) -> tuple[AddressRange, ...]:
    """Read pools."""
    return tuple(parse_range(text) for text in texts)


@contextmanager
def local_site(folder: Path, *, gateway: str | None = "10.0.0.1") -> Iterator[LocalSite]:
    """Give a site with the subnet 10.0.0.0/29."""
    engine = sa.create_engine(f"sqlite:///{folder}/neutron.db")
    for table in (SubnetRow.__table__, AllocationRow.__table__):
        table.create(engine)
    number = str(uuid4())
    record = SubnetRecord(number, number, None, "10.0.0.0/29", gateway, pools("10.0.0.2-10.0.0.6"), None, "m")
    url = f"sqlite:///{folder}/ledger.db"
    reach = Reach(url, 30.0)
    with tenure.open(url) as ledger:
        site = LocalSite(engine, reach, ledger, record)
        with orm.Session(engine) as session, session.begin():
            subnet_records.put(session, record)
            site.keeper.follow(session, None, record)
        yield site
    reach.close()
    engine.dispose()


class Racing:
    """A ledger in which somebody else does something right after the holdings of a network were read, once."""

    def __init__(
        self, ledger: tenure.AsyncLedger, meanwhile: Callable[[tenure.AsyncLedger], Awaitable[object]]
    ) -> None:
        self._ledger = ledger
        self._meanwhile: Callable[[tenure.AsyncLedger], Awaitable[object]] | None = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def holdings(self, *words: Any, **named: Any) -> Any:
        found = await self._ledger.holdings(*words, **named)
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            await meanwhile(self._ledger)
        return found


class RacingReach:
    """A way to a ledger in which somebody else does something, once, between two looks at it."""

    def __init__(self, reach: Reach, meanwhile: Callable[[tenure.AsyncLedger], Awaitable[object]]) -> None:
        self._reach = reach
        self._meanwhile = meanwhile
        self._racing: Racing | None = None

    def ask(self, work: Callable[[Any], Awaitable[Any]], **named: Any) -> Any:
        def raced(ledger: tenure.AsyncLedger) -> Awaitable[Any]:
            self._racing = self._racing or Racing(ledger, self._meanwhile)
            return work(self._racing)

        return self._reach.ask(raced, **named)
