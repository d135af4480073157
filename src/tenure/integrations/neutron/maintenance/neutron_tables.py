"""What Neutron's own tables say: its subnets, and which port carries which address. That is the truth here."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from tenure.integrations.neutron.database.subnet_records import SubnetRecord
from tenure.integrations.neutron.database.unreadable_rows import read_column
from tenure.integrations.neutron.space_mapping import SubnetLocation
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange, parse_cidr
from tenure.kernel.errors import Invalid


def _table(name: str, *columns: str) -> Any:
    return sa.table(name, *(sa.column(column, sa.String) for column in columns))


SUBNETS = _table("subnets", "id", "project_id", "cidr", "gateway_ip", "network_id", "subnetpool_id")
POOLS = _table("ipallocationpools", "subnet_id", "first_ip", "last_ip")
SUBNET_POOLS = _table("subnetpools", "id", "address_scope_id")
PORTS = _table("ports", "id")
ALLOCATIONS = _table("ipallocations", "port_id", "ip_address", "subnet_id", "network_id")

NEUTRONS = frozenset({"subnets", "ipallocationpools", "subnetpools", "ports", "ipallocations"})


@dataclass(frozen=True, slots=True)
class TrueSubnet:
    """A subnet as Neutron has it."""

    id: str
    project_id: str | None
    cidr: str
    gateway_ip: str | None
    pools: tuple[AddressRange, ...]
    site: SubnetLocation

    def record(self, space: str | None) -> SubnetRecord:
        """Write the record that the driver would have made of it."""
        mark = str(uuid4())
        return SubnetRecord(
            self.id, self.id, self.project_id, self.cidr, self.gateway_ip, self.pools, space=space, mark=mark
        )


def subnet_ids(session: Any) -> set[str]:
    """List Neutron's subnets."""
    return set(session.execute(sa.select(SUBNETS.c.id)).scalars())


def count_allocations(session: Any) -> int:
    """Count the addresses that ports carry."""
    return int(session.execute(sa.select(sa.func.count()).select_from(ALLOCATIONS)).scalar_one())


def read_subnet(session: Any, subnet: str, *, lock: bool = False) -> TrueSubnet | None:
    """Read a subnet; with a lock, as it is now and until the transaction ends. Unreadable if it makes no sense."""
    statement = sa.select(SUBNETS).where(SUBNETS.c.id == subnet)
    row = session.execute(statement.with_for_update(read=True) if lock else statement).mappings().first()
    if row is None:
        return None
    # Read for the error alone: the texts are compared and written as Neutron has them.
    read_column(SUBNETS.name, subnet, "cidr", row["cidr"], parse_cidr)
    if row["gateway_ip"] is not None:
        read_column(SUBNETS.name, subnet, "gateway_ip", row["gateway_ip"], parse_address)
    ends = session.execute(sa.select(POOLS.c.first_ip, POOLS.c.last_ip).where(POOLS.c.subnet_id == subnet))
    pools = sorted(read_column(POOLS.name, subnet, "pool", f"{first}-{last}", _pool) for first, last in ends)
    site = SubnetLocation(row["network_id"], *_origin(session, row["subnetpool_id"]))
    return TrueSubnet(subnet, row["project_id"], row["cidr"], row["gateway_ip"], tuple(pools), site)


def _pool(text: str) -> AddressRange:
    first, last = text.split("-")
    return AddressRange(parse_address(first), parse_address(last))


def _origin(session: Any, subnet_pool: str | None) -> tuple[str | None, str | None]:
    """Return address scope and subnet pool; the pool of delegated prefixes is a word, and no pool."""
    if subnet_pool is None:
        return None, None
    found = session.execute(sa.select(SUBNET_POOLS.c.address_scope_id).where(SUBNET_POOLS.c.id == subnet_pool)).first()
    return (None, None) if found is None else (found[0], subnet_pool)


@dataclass(frozen=True, slots=True)
class Carried:
    """Which port carries which address; how the odd ones are spelt; and what is no address at all."""

    ports: dict[int, str | None]
    odd: dict[int, str]
    unreadable: dict[str, str | None]


def read_allocations(session: Any, subnet: str) -> Carried:
    """Read which port carries which address."""
    columns = (ALLOCATIONS.c.ip_address, ALLOCATIONS.c.port_id)
    carried = Carried({}, {}, {})
    for text, port in session.execute(sa.select(*columns).where(ALLOCATIONS.c.subnet_id == subnet)):
        try:
            place = parse_address(text)
        except Invalid:
            carried.unreadable[text] = port
            continue
        carried.ports[place] = port
        if format_address(place) != text:
            # Neutron's text is what its row is found by, so an odd spelling is kept beside the position.
            carried.odd[place] = text
    return carried


def locked_allocations(session: Any, subnet: str, texts: Iterable[str]) -> dict[int, str | None]:
    """Read which port carries some addresses, as it is now and until the transaction ends."""
    mine = (ALLOCATIONS.c.subnet_id == subnet, ALLOCATIONS.c.ip_address.in_(list(texts)))
    statement = sa.select(ALLOCATIONS.c.ip_address, ALLOCATIONS.c.port_id).where(*mine)
    return {parse_address(address): port for address, port in session.execute(statement.with_for_update(read=True))}
