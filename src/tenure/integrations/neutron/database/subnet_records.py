"""Subnets as the driver was told of them, kept in Neutron's database and changed in the caller's transaction."""

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import netaddr
import sqlalchemy as sa

from tenure.integrations.neutron.database.agreement_lock import COLUMN, agreed_now, note
from tenure.integrations.neutron.database.tables import SubnetRow
from tenure.integrations.neutron.database.unreadable_rows import read_column
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange, parse_cidr
from tenure.kernel.errors import NotFound

TABLE = SubnetRow.__table__


@dataclass(frozen=True, slots=True)
class SubnetRecord:
    """One subnet. ``mark`` is another after every change, so that nobody takes an old plan for the new one."""

    id: str
    neutron_subnet_id: str | None
    project_id: str | None
    cidr: str
    gateway_ip: str | None
    pools: tuple[AddressRange, ...]
    space: str | None
    mark: str

    def row(self) -> dict[str, Any]:
        """Write it as a row."""
        columns = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        ends = [[format_address(pool.first), format_address(pool.last)] for pool in self.pools]
        return {**columns, "pools": json.dumps(ends)}

    def same_plan(self, other: "SubnetRecord") -> bool:
        """Tell whether two have the same block, gateway and pools."""
        return (self.cidr, self.gateway_ip, self.pools) == (other.cidr, other.gateway_ip, other.pools)

    def changed(self, **fields: Any) -> "SubnetRecord":
        """Return the subnet with other values, under another mark."""
        return dataclasses.replace(self, **fields, mark=str(uuid4()))


def new_record(request: Any, pools: Iterable[Any], space: str | None) -> SubnetRecord:
    """Make the record of a subnet that Neutron asks for."""
    return SubnetRecord(
        id=request.subnet_id or str(uuid4()),
        neutron_subnet_id=request.subnet_id,
        project_id=request.project_id,
        cidr=str(request.subnet_cidr),
        gateway_ip=None if request.gateway_ip is None else str(request.gateway_ip),
        pools=read_pools(pools, request.subnet_cidr.version),
        space=space,
        mark=str(uuid4()),
    )


def read_pools(pools: Iterable[Any], version: int) -> tuple[AddressRange, ...]:
    """Read Neutron's pools. Small IPv6 numbers would be taken for IPv4 if the version were not said."""

    def position(number: int) -> int:
        return parse_address(str(netaddr.IPAddress(number, version)))

    return tuple(AddressRange(position(pool.first), position(pool.last)) for pool in pools)


def record_of(row: Any) -> SubnetRecord:
    """Read a row; Unreadable if it is none of ours."""
    here = (TABLE.name, row["id"])
    # Read for the error alone: the record keeps cidr and gateway as the texts that Neutron gave.
    read_column(*here, "cidr", row["cidr"], parse_cidr)
    if row["gateway_ip"] is not None:
        read_column(*here, "gateway_ip", row["gateway_ip"], parse_address)
    pools = read_column(*here, "pools", row["pools"], _written_pools)
    return SubnetRecord(**{**row, "pools": pools})


def _written_pools(text: str) -> tuple[AddressRange, ...]:
    return tuple(AddressRange(parse_address(low), parse_address(high)) for low, high in json.loads(text))


def find(session: Any, number: str, *, locking: bool = False, standing: bool = False) -> SubnetRecord | None:
    """Find a subnet by its number. One indexed reading; ``locking``: as it is now, and until the transaction ends.

    ``standing``: what the deployment agrees on is read along with it, and noted as what the transaction stands on.
    """
    statement = sa.select(TABLE, agreed_now()) if standing else sa.select(TABLE)
    statement = statement.where(TABLE.c.id == number)
    found = session.execute(statement.with_for_update() if locking else statement).mappings().first()
    if found is None:
        return None
    row = dict(found)
    if standing:
        note(session, row.pop(COLUMN))
    return record_of(row)


def enter(session: Any, number: str) -> SubnetRecord:
    """Read a subnet as it is now, and keep it from being removed or reconciled until the transaction ends.

    NotFound if it is gone: MySQL's insert of an address would count that as an address that is taken.
    """
    # The weakest lock of PostgreSQL, which the foreign key of each new row takes as well: requests that allocate share
    # it, and a change of the subnet or the reconciler, which lock FOR UPDATE, wait for all of them.
    wanted = TABLE.select().where(TABLE.c.id == number).with_for_update(read=True, key_share=True)
    row = session.execute(wanted).mappings().first()
    if row is None:
        raise NotFound("subnet", number)
    return record_of(row)


def put(session: Any, record: SubnetRecord) -> SubnetRecord | None:
    """Write a new subnet; one that is told again is written over what it was, which is returned."""
    before = find(session, record.id)
    if before is None:
        session.execute(TABLE.insert().values(record.row()))
    else:
        change(session, record)
    return before


def change(session: Any, record: SubnetRecord) -> None:
    """Write a subnet over what it was."""
    session.execute(TABLE.update().where(TABLE.c.id == record.id).values(record.row()))


def remove(session: Any, record: SubnetRecord) -> None:
    """Forget a subnet."""
    session.execute(TABLE.delete().where(TABLE.c.id == record.id))
