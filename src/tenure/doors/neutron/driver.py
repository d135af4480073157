"""The driver that Neutron calls: subnets and addresses in the words, and with the errors, of its callers."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import netaddr
from neutron.ipam import driver as ipam_base
from neutron.ipam import exceptions as ipam_exc
from neutron.ipam import requests as ipam_req
from neutron.ipam import subnet_alloc
from neutron.ipam import utils as ipam_utils
from neutron_lib import exceptions as n_exc
from neutron_lib.db import api as db_api
from oslo_db import exception as db_exc

from tenure.doors.neutron.requests import OwnedAddressRequestFactory
from tenure.doors.neutron.session_book import SessionBook
from tenure.doors.neutron.tables import SubnetRow
from tenure.doors.neutron.views import KEPT, Plan
from tenure.kernel.addresses import format_address, parse_address
from tenure.kernel.ranges import AddressRange, parse_cidr

TRIES = 6
"""Picks in a row that somebody else had, after which it is read anew who holds what."""


class TenureSubnet(ipam_base.Subnet):  # type: ignore[misc]  # Neutron has no types
    """One subnet; it outlives the transaction it was made in."""

    def __init__(self, row: dict[str, Any], context: Any) -> None:
        self._row = row
        self._context = context
        self._cidr = netaddr.IPNetwork(row["cidr"])
        pools = [AddressRange(parse_address(low), parse_address(high)) for low, high in json.loads(row["pools"])]
        self._plan = Plan(row["id"], row["version"], parse_cidr(str(self._cidr.cidr)), tuple(pools))

    @property
    def _subnet_id(self) -> str | None:
        subnet_id: str | None = self._row["neutron_subnet_id"]
        return subnet_id

    def allocate(self, address_request: Any) -> str:
        """Hold an address in the caller's transaction: a specific one, the lowest, or any."""
        owner = getattr(address_request, "owner", "")
        try:
            with db_api.CONTEXT_WRITER.using(self._context):
                book = SessionBook(self._context.session, self._plan.subnet)
                if isinstance(address_request, ipam_req.SpecificAddressRequest):
                    return self._specific(book, str(address_request.address), owner)
                if isinstance(address_request, ipam_req.PreferNextAddressRequest):
                    return self._lowest(book, owner)
                return self._any(book, owner)
        except db_exc.DBReferenceError:
            raise n_exc.SubnetNotFound(subnet_id=self._subnet_id) from None

    def bulk_allocate(self, address_request: Any) -> list[str]:
        """Hold several addresses, all or none."""
        if not isinstance(address_request, ipam_req.BulkAddressRequest):
            return [self.allocate(address_request)]
        given: list[str] = []
        try:
            for _ in range(address_request.num_addresses):
                given.append(self.allocate(ipam_req.AnyAddressRequest()))
        except ipam_exc.IpAddressGenerationFailure:
            self._release(given)
            raise
        return given

    def deallocate(self, address: Any) -> None:
        """Let go of an address; one that nobody holds is no error."""
        self._release([str(address)])

    def get_details(self) -> Any:
        """Tell what the subnet is; Neutron keeps that."""
        pools = [netaddr.IPRange(low, high) for low, high in json.loads(self._row["pools"])]
        return ipam_req.SpecificSubnetRequest(
            self._row["project_id"], self._subnet_id, self._cidr, self._row["gateway_ip"], pools
        )

    def _release(self, addresses: Sequence[str]) -> None:
        places = [parse_address(address) for address in addresses]
        with db_api.CONTEXT_WRITER.using(self._context):
            SessionBook(self._context.session, self._plan.subnet).release(places)
        views = KEPT.of(self._plan)
        for place in places:
            views.give_back(place)

    def _specific(self, book: SessionBook, address: str, owner: str) -> str:
        place = parse_address(address)
        if book.holds(place):
            raise ipam_exc.IpAddressAlreadyAllocated(subnet_id=self._subnet_id, ip=address)
        if not ipam_utils.check_subnet_ip(self._cidr, address):
            raise ipam_exc.InvalidIpForSubnet(subnet_id=self._subnet_id, ip=address)
        if not book.grant(place, owner):
            raise ipam_exc.IpAddressAlreadyAllocated(subnet_id=self._subnet_id, ip=address)
        KEPT.of(self._plan).take(place)
        return format_address(place)

    def _lowest(self, book: SessionBook, owner: str) -> str:
        for pool in self._plan.pools:
            for place in book.gaps(pool.first, pool.last):
                if book.grant(place, owner):
                    KEPT.of(self._plan).take(place)
                    return format_address(place)
        raise ipam_exc.IpAddressGenerationFailure(subnet_id=self._subnet_id)

    def _any(self, book: SessionBook, owner: str) -> str:
        """Pick until the database agrees; that nothing is free is said only after reading it there."""
        views = KEPT.of(self._plan)
        if not views.loaded:
            views.load(book.held())
        refused: set[int] = set()
        fresh = False
        while True:
            place = views.pick()
            if place is None and fresh:
                raise ipam_exc.IpAddressGenerationFailure(subnet_id=self._subnet_id)
            if place is not None and book.grant(place, owner):
                return format_address(place)
            if place is not None:
                refused.add(place)
            if place is None or len(refused) % TRIES == 0:
                views.load({*book.held(fresh=True), *refused})
                fresh = True


class TenurePool(subnet_alloc.SubnetAllocator):  # type: ignore[misc]  # Neutron has no types
    """What Neutron makes for every call; it holds nothing of its own."""

    def get_subnet(self, subnet_id: str) -> TenureSubnet:
        """Find a subnet by Neutron's id."""
        with db_api.CONTEXT_READER.using(self._context):
            row = self._find(subnet_id)
        return TenureSubnet(row, self._context)

    def allocate_subnet(self, subnet_request: Any) -> TenureSubnet:
        """Take in a new subnet; out of a subnet pool the block is chosen first."""
        if self._subnetpool:
            subnet_request = super().allocate_subnet(subnet_request).get_details()
        if not isinstance(subnet_request, ipam_req.SpecificSubnetRequest):
            raise ipam_exc.InvalidSubnetRequestType(subnet_type=type(subnet_request))
        pools = subnet_request.allocation_pools or ipam_utils.generate_pools(
            subnet_request.subnet_cidr, subnet_request.gateway_ip
        )
        row = {
            "id": str(uuid4()),
            "neutron_subnet_id": subnet_request.subnet_id,
            "project_id": subnet_request.project_id,
            "cidr": str(subnet_request.subnet_cidr),
            "gateway_ip": None if subnet_request.gateway_ip is None else str(subnet_request.gateway_ip),
            "pools": _written_pools(pools, subnet_request.subnet_cidr.version),
            "version": 1,
        }
        with db_api.CONTEXT_WRITER.using(self._context):
            self._context.session.execute(SubnetRow.__table__.insert().values(row))
        return TenureSubnet(row, self._context)

    def update_subnet(self, subnet_request: Any) -> TenureSubnet | None:
        """Follow a change of pools, block or gateway; what is held stays held."""
        if not subnet_request.subnet_id:
            raise ipam_exc.InvalidSubnetRequest(reason="An identifier must be specified when updating a subnet")
        if subnet_request.allocation_pools is None:
            return None
        with db_api.CONTEXT_WRITER.using(self._context):
            row = self._find(subnet_request.subnet_id)
            changed = {
                "cidr": str(subnet_request.subnet_cidr),
                "pools": _written_pools(subnet_request.allocation_pools, subnet_request.subnet_cidr.version),
                "version": row["version"] + 1,
            }
            if subnet_request.gateway_ip is not None:  # not said, or taken away: the request cannot tell
                changed["gateway_ip"] = str(subnet_request.gateway_ip)
            table = SubnetRow.__table__
            self._context.session.execute(table.update().where(table.c.id == row["id"]).values(changed))
        return TenureSubnet({**row, **changed}, self._context)

    def remove_subnet(self, subnet_id: str) -> None:
        """Forget a subnet and all that is held in it."""
        table = SubnetRow.__table__
        with db_api.CONTEXT_WRITER.using(self._context):
            row = self._find(subnet_id)
            SessionBook(self._context.session, row["id"]).clear()
            self._context.session.execute(table.delete().where(table.c.id == row["id"]))

    def get_address_request_factory(self) -> Any:
        """Let requests say which port they are for."""
        return OwnedAddressRequestFactory

    def needs_rollback(self) -> bool:
        """Say that nothing is to be compensated: all is written in Neutron's own transaction."""
        return False

    def _find(self, subnet_id: str) -> dict[str, Any]:
        table = SubnetRow.__table__
        statement = table.select().where(table.c.neutron_subnet_id == subnet_id).order_by(table.c.id).limit(1)
        row = self._context.session.execute(statement).mappings().first()
        if row is None:
            raise n_exc.SubnetNotFound(subnet_id=subnet_id)
        return dict(row)


def _written_pools(pools: Sequence[Any], version: int) -> str:
    """Write pools as JSON; small IPv6 numbers would be taken for IPv4 if the version were not said."""
    ends = [(netaddr.IPAddress(pool.first, version), netaddr.IPAddress(pool.last, version)) for pool in pools]
    return json.dumps([[str(first), str(last)] for first, last in ends])
