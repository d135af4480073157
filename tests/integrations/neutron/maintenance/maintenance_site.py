"""A database with Neutron's own tables in it, filled as Neutron fills them; a ledger; and what both say."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import orm

import tenure
from tenure.kernel.addressing.addresses import format_address, parse_address
from tests.infrastructure import mariadb, postgres

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Neutron imports is deprecated in places
    import neutron.db.migration.models.head  # noqa: F401  # every table of Neutron's
    from neutron_lib.db import model_base

    from tenure.integrations.neutron.database import subnet_records
    from tenure.integrations.neutron.database.allocation_rows import SessionBook, digits_of
    from tenure.integrations.neutron.maintenance import run
    from tenure.integrations.neutron.maintenance.drift import DriftOutcome, DriftReport
    from tenure.integrations.neutron.maintenance.neutron_settings import NeutronSettings
    from tenure.integrations.neutron.maintenance.ports_in_flight import BULK_S

DATABASES: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "postgresql": postgres.fresh_database,
    "mariadb": mariadb.fresh_database,
}
MODES = ("database", "ledger")
NEUTRONS = model_base.BASEV2.metadata.tables
OURS = ("tenure_subnets", "tenure_allocations", "tenure_deployment")
REALM = "neutron"


def _needed() -> list[sa.Table]:
    """List the tables that are read here, and all that they refer to."""
    waiting, found = [NEUTRONS[name] for name in ("ipallocations", "ipallocationpools", "subnetpools", *OURS)], []
    while waiting:
        table = waiting.pop()
        if table not in found:
            found.append(table)
            waiting += [key.column.table for key in table.foreign_keys]
    return found


def silent(done: int, total: int | None) -> None:
    """Take in how far it is."""


@dataclass
class Site:
    """One deployment of Neutron's."""

    settings: NeutronSettings
    engine: sa.Engine
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1 << 31)))

    def write(self, table: str, *rows: dict[str, Any]) -> None:
        """Write rows."""
        with self.engine.begin() as connection:
            connection.execute(sa.insert(NEUTRONS[table]), list(rows))

    def execute(self, statement: str, **values: Any) -> None:
        """Change something by hand."""
        with self.engine.begin() as connection:
            connection.execute(sa.text(statement), values)

    def _attributes(self, kind: str, count: int) -> list[int]:
        numbers = [next(self.numbers) for _ in range(count)]
        self.write("standardattributes", *({"id": number, "resource_type": kind} for number in numbers))
        return numbers

    def network(self) -> str:
        """Make a network."""
        network = str(uuid4())
        [number] = self._attributes("networks", 1)
        self.write(
            "networks", {"id": network, "standard_attr_id": number, "status": "ACTIVE", "vlan_transparent": None}
        )
        return network

    def subnet(self, cidr: str, pools: Sequence[tuple[str, str]], gateway: str | None = None, **fields: Any) -> str:
        """Make a subnet in a network of its own, or in the one that is named."""
        subnet = str(fields.pop("id", None) or uuid4())
        network = fields.pop("network_id", None) or self.network()
        [number] = self._attributes("subnets", 1)
        version = 6 if ":" in cidr else 4
        row = {"id": subnet, "network_id": network, "ip_version": version, "cidr": cidr, "gateway_ip": gateway}
        self.write("subnets", {**row, "project_id": "project", "standard_attr_id": number, **fields})
        for first, last in pools:
            self.write(
                "ipallocationpools", {"id": str(uuid4()), "subnet_id": subnet, "first_ip": first, "last_ip": last}
            )
        return subnet

    def ports(self, subnet: str, addresses: Sequence[str], *, names: Sequence[str] = ()) -> list[str]:
        """Make a port for each address, of these numbers or of any."""
        with self.engine.connect() as connection:
            wanted = sa.select(NEUTRONS["subnets"].c.network_id).where(NEUTRONS["subnets"].c.id == subnet)
            network = connection.execute(wanted).scalar_one()
        ports = list(names) or [str(uuid4()) for _ in addresses]
        numbers = self._attributes("ports", len(ports))
        rows = [
            {
                "id": port, "network_id": network, "mac_address": f"fa:{number:014x}", "admin_state_up": True,
                "status": "ACTIVE", "device_id": "", "device_owner": "", "standard_attr_id": number,
            }
            for port, number in zip(ports, numbers, strict=True)
        ]  # fmt: skip
        self.write("ports", *rows)
        self.allocations(subnet, network, dict(zip(addresses, ports, strict=True)))
        return ports

    def allocations(self, subnet: str, network: str, ports: dict[str, str]) -> None:
        """Let ports carry addresses."""
        rows = [
            {"port_id": port, "ip_address": address, "subnet_id": subnet, "network_id": network}
            for address, port in ports.items()
        ]
        self.write("ipallocations", *rows)

    def rows(self) -> dict[tuple[str, str], tuple[str, int]]:
        """Read our rows: owner and generation by subnet and address."""
        table = NEUTRONS["tenure_allocations"].c
        with self.engine.connect() as connection:
            found = connection.execute(sa.select(table.subnet_id, table.address, table.owner, table.generation))
            return {(row[0], row[1]): (row[2], row[3]) for row in found}

    def truth(self) -> dict[tuple[str, str], str]:
        """Read what the rows should be: owner by subnet and address."""
        table = NEUTRONS["ipallocations"].c
        with self.engine.connect() as connection:
            found = list(connection.execute(sa.select(table.subnet_id, table.ip_address, table.port_id)))
        return {(subnet, digits(address)): f"port/{port}" for subnet, address, port in found}

    def held(self) -> dict[tuple[str, str], tuple[str, int]]:
        """Read what is held in the ledger, as rows would have it; what is not simply held is told with its state."""
        found: dict[tuple[str, str], tuple[str, int]] = {}
        with tenure.open(self.settings.ledger or "") as ledger:
            for network in ledger.networks():
                if not network.name.startswith(f"{REALM}-"):
                    continue
                for each in ledger.holdings(network.name):
                    state = "" if each.state == "held" else f" {each.state}"
                    owner = str(each.owner).removeprefix(f"{REALM}:") + state
                    found[network.name.removeprefix(f"{REALM}-"), digits(each.address)] = (owner, each.generation)
        return found

    def everything(self) -> list[object]:
        """Read all that a command could change."""
        with self.engine.connect() as connection:
            tables = [sorted(map(str, connection.execute(sa.select(NEUTRONS[name])))) for name in OURS]
        if self.settings.ledger is None:
            return [*tables]
        with tenure.open(self.settings.ledger) as ledger:
            return [*tables, ledger.last_change(), [(each.kind, each.name) for each in ledger.papers("neutron")]]

    @contextmanager
    def transaction(self) -> Iterator[orm.Session]:
        """Stand in a transaction that is not committed."""
        with orm.Session(self.engine) as session:
            yield session

    @contextmanager
    def at_work(self, subnet: str) -> Iterator[tuple[orm.Session, SessionBook]]:
        """Stand in a transaction of a server's in which it has begun to allocate."""
        with self.transaction() as session:
            book = SessionBook(session, subnet)
            subnet_records.enter(session, subnet)
            yield session, book

    def verify(self) -> DriftReport:
        """Compare."""
        return run.verify(self.settings, silent)

    def reconcile(self, *, dry: bool = False, grace_s: int = BULK_S) -> DriftReport:
        """Repair."""
        return run.reconcile(self.settings, silent, dry=dry, grace_s=grace_s)

    def move_in(self, *, dry: bool = False, **may: bool) -> DriftReport:
        """Import."""
        return run.move_in(self.settings, silent, dry=dry, **may)


def site_of(database: str, mode: str, ledger: str | None, engine: sa.Engine) -> Site:
    """Give a deployment that somebody else has made."""
    return Site(NeutronSettings(database, mode, REALM, ledger), engine)


def moved_in(database: str, ledger: str, progress: Callable[[int, int | None], None]) -> DriftReport:
    """Import into a ledger."""
    return run.move_in(NeutronSettings(database, "ledger", REALM, ledger), progress)


def long_ago() -> int:
    """Say since when a row is there whose port will not come."""
    return int(time.time()) - BULK_S - 1


def digits(address: str) -> str:
    """Write an address as our rows do."""
    return digits_of(parse_address(address))


def places(first: str, count: int) -> list[str]:
    """Write addresses that follow each other."""
    start = parse_address(first)
    return [format_address(start + number) for number in range(count)]


def kinds(report: DriftReport, *outcomes: str) -> list[str]:
    """List the kinds of drift that ended so, in the order they were found."""
    return [drift.kind for drift in report.of(*(DriftOutcome(name) for name in outcomes))]


@contextmanager
def built(database: str, mode: str, **settings: Any) -> Iterator[Site]:
    """Give a deployment without any subnet."""
    with ExitStack() as opened:
        url = opened.enter_context(DATABASES[database]())
        ledger = opened.enter_context(postgres.schema_in_thread()) if mode == "ledger" else None
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        model_base.BASEV2.metadata.create_all(engine, tables=_needed())
        yield Site(NeutronSettings(url, mode, REALM, ledger, **settings), engine)
