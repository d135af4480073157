"""A deployment: a database of Neutron's, perhaps a ledger, its servers, and what the books of all three say."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

import tenure
from tenure.kernel.addressing.addresses import format_address, position
from tests.infrastructure import mariadb, postgres
from tests.integrations.neutron.stage.server import Server, started
from tests.integrations.neutron.stage.settings import Settings

REALM = "neutron"
MODES = ("database", "ledger")
DATABASES: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "postgresql": postgres.fresh_database,
    "mariadb": mariadb.fresh_database,
}

IN_NEUTRON = "SELECT ip_address, port_id FROM ipallocations WHERE subnet_id = :subnet"
IN_ROWS = "SELECT address, owner FROM tenure_allocations WHERE subnet_id = :subnet"
POOLS_IN_NEUTRON = "SELECT first_ip, last_ip FROM ipallocationpools WHERE subnet_id = :subnet"
POOLS_IN_ROWS = "SELECT pools FROM tenure_subnets WHERE id = :subnet"

WAITING = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'",
    "mysql": "SELECT count(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p"
    " ON p.id = t.trx_mysql_thread_id WHERE p.db = database() AND t.trx_state = 'LOCK WAIT'",
}
"""How many transactions wait for another, by the database that is asked."""

PATIENCE_S = 60

Book = dict[str, str]
"""Who holds what: ports by address."""


@dataclass
class Deployment:
    """One deployment, with a server that is up."""

    settings: Settings
    folder: Path
    engine: sa.Engine
    ledger: tenure.Ledger | None
    server: Server

    @contextmanager
    def one_more(self, **settings: Any) -> Iterator[Server]:
        """Give one more server, which may be configured otherwise, and end it."""
        with started(replace(self.settings, **settings), self.folder / "server.log") as server:
            yield server

    def subnet(self, cidr: str = "10.0.0.0/24", **fields: Any) -> tuple[str, str]:
        """Make a network with a subnet, and return the numbers of both."""
        network = self.server.network()
        answer = self.server.subnet(network, cidr, **fields)
        assert answer.status == 201, answer
        return network, str(answer.body["subnet"]["id"])

    def in_neutron(self, subnet: str) -> Book:
        """Read Neutron's own book."""
        return {address: f"port/{port}" for address, port in self._rows(IN_NEUTRON, subnet)}

    def in_rows(self, subnet: str) -> Book:
        """Read the driver's rows."""
        rows = self._rows(IN_ROWS, subnet)
        return {format_address(position(bytes.fromhex(text))): owner for text, owner in rows}

    def in_ledger(self, subnet: str) -> Book:
        """Read the ledger; what is not simply held is told with its state."""
        assert self.ledger is not None
        try:
            holdings = list(self.ledger.holdings(network=f"{REALM}-{subnet}"))
        except tenure.NotFound:
            return {}
        return {holding.address: _holder(holding) for holding in holdings}

    def books(self, subnet: str) -> dict[str, Book]:
        """Read every book that this deployment has."""
        kept = {"neutron": self.in_neutron(subnet), "rows": self.in_rows(subnet)}
        return kept if self.ledger is None else {**kept, "ledger": self.in_ledger(subnet)}

    def held(self, subnet: str) -> Book:
        """Return who holds what, on which all books agree."""
        books = self.books(subnet)
        assert all(book == books["neutron"] for book in books.values()), books
        return books["neutron"]

    def kept(self, subnet: str) -> Book:
        """Return who holds what by the driver's books alone, for what was done beside Neutron's."""
        books = self.books(subnet)
        assert all(book == books["rows"] for name, book in books.items() if name != "neutron"), books
        return books["rows"]

    def plans(self, subnet: str) -> dict[str, list[str]]:
        """Read the pools of a subnet from every book that has them."""
        written = [pool for (text,) in self._rows(POOLS_IN_ROWS, subnet) for pool in json.loads(text)]
        kept = {
            "neutron": sorted(f"{low}-{high}" for low, high in self._rows(POOLS_IN_NEUTRON, subnet)),
            "rows": sorted(f"{low}-{high}" for low, high in written),
        }
        if self.ledger is None:
            return kept
        pools = [pool.range for _, pool in self.ledger.network(f"{REALM}-{subnet}").pools()]
        return {**kept, "ledger": sorted(f"{format_address(one.first)}-{format_address(one.last)}" for one in pools)}

    def plan_for(self, pools: list[str]) -> dict[str, list[str]]:
        """Write what every book should say of a subnet with these pools."""
        return dict.fromkeys(("neutron", "rows") if self.ledger is None else ("neutron", "rows", "ledger"), pools)

    def networks(self) -> set[tuple[str, str]]:
        """Return the subnets that there are, each with the book that says so."""
        with self.engine.connect() as connection:
            found = {
                ("rows", number) for number in connection.execute(sa.text("SELECT id FROM tenure_subnets")).scalars()
            }
        if self.ledger is not None:
            found |= {("ledger", network.name.removeprefix(f"{REALM}-")) for network in self.ledger.networks()}
        return found

    def knowing(self, subnet: str) -> set[str]:
        """Return the books that know of a subnet."""
        return {book for book, number in self.networks() if number == subnet}

    @property
    def all_books(self) -> set[str]:
        """Return the books in which the driver keeps subnets."""
        return {"rows"} if self.ledger is None else {"rows", "ledger"}

    def settle(self) -> None:
        """Wait until no server owes the ledger anything: what was in doubt is looked up in the background."""
        if self.ledger is not None:
            self.server.scene("settled")

    def wait_until_blocked(self) -> None:
        """Wait until a request waits in the database for a transaction that is open."""
        deadline = time.monotonic() + PATIENCE_S
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            while not connection.scalar(sa.text(WAITING[self.engine.dialect.name])):
                assert time.monotonic() < deadline, "nothing waits"
                time.sleep(0.25)  # InnoDB shows an old state to whoever asks more often

    def reconcile(self) -> None:
        """Have an operator reconcile the deployment."""
        self.server.scene("reconcile")

    def _rows(self, statement: str, subnet: str) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(sa.text(statement), {"subnet": subnet}))


def _holder(holding: tenure.Holding) -> str:
    owner = str(holding.owner).removeprefix(f"{REALM}:")
    return owner if holding.state == "held" else f"{owner} {holding.state}"


@contextmanager
def deployed(mode: str, database: str, ledger: str | None = None, **tenure_options: str) -> Iterator[Deployment]:
    """Give a deployment of its own; its ledger is found in order at the end."""
    own_ledger = postgres.schema_in_thread() if mode == "ledger" and ledger is None else nullcontext(ledger or "")
    with tempfile.TemporaryDirectory(prefix="tenure-stage-") as folder, own_ledger as url, DATABASES[database]() as db:
        engine = sa.create_engine(db, poolclass=sa.NullPool)
        settings = Settings(database=db, mode=mode, ledger=url, tenure=tenure_options)
        opened = tenure.open(url) if url else nullcontext()
        first = started(replace(settings, makes_tables=True), Path(folder) / "server.log")
        with opened as book, first as server:
            yield Deployment(settings, Path(folder), engine, book, server)
            assert book is None or book.verify() == []
