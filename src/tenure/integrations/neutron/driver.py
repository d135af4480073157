"""The driver that Neutron calls: subnets and addresses in the words, and with the errors, of its callers."""

import logging
from typing import Any

import netaddr
from neutron.ipam import driver as ipam_base
from neutron.ipam import exceptions as ipam_exc
from neutron.ipam import requests as ipam_req
from neutron.ipam import subnet_alloc
from neutron.ipam import utils as ipam_utils
from neutron_lib import exceptions as n_exc
from neutron_lib.db import api as db_api

from tenure.integrations.neutron import installation, options
from tenure.integrations.neutron.address_requests import (
    OwnedAddressRequestFactory,
    SitedSubnetRequestFactory,
    WantedAddress,
    wanted,
)
from tenure.integrations.neutron.database import subnet_records
from tenure.integrations.neutron.database.allocation_rows import SessionBook
from tenure.integrations.neutron.database.port_of_address import is_anothers
from tenure.integrations.neutron.database.subnet_records import SubnetRecord
from tenure.integrations.neutron.neutron_errors import LedgerUnavailable, in_neutrons_words
from tenure.integrations.neutron.space_mapping import SubnetLocation, mapped_spaces
from tenure.kernel.addressing.addresses import format_address, parse_address

LOG = logging.getLogger(__name__)


class TenureSubnet(ipam_base.Subnet):  # type: ignore[misc]  # Neutron has no types
    """One subnet; it outlives the transaction it was made in."""

    def __init__(self, record: SubnetRecord, context: Any) -> None:
        self._record = record
        self._context = context

    def allocate(self, address_request: Any) -> str:
        """Hold an address in the caller's transaction: a specific one, the lowest, or any. O(log n)."""
        wish = wanted(address_request)
        with db_api.CONTEXT_WRITER.using(self._context), in_neutrons_words(self._record.neutron_subnet_id):
            keeper = installation.keeper(self._context.session)
            if wish.place is not None:
                self._check(wish)
            return format_address(keeper.allocate(self._context.session, self._record, wish))

    def _check(self, wish: WantedAddress) -> None:
        """Refuse what is held before what is out of place: callers expect this order."""
        assert wish.place is not None
        address = format_address(wish.place)
        subnet_id = self._record.neutron_subnet_id
        if SessionBook(self._context.session, self._record.id).find(wish.place) is not None:
            raise ipam_exc.IpAddressAlreadyAllocated(subnet_id=subnet_id, ip=address)
        if not ipam_utils.check_subnet_ip(self._record.cidr, address):
            raise ipam_exc.InvalidIpForSubnet(subnet_id=subnet_id, ip=address)

    def bulk_allocate(self, address_request: Any) -> list[str]:
        """Hold several addresses, all or none."""
        if not isinstance(address_request, ipam_req.BulkAddressRequest):
            return [self.allocate(address_request)]
        given: list[str] = []
        with db_api.CONTEXT_WRITER.using(self._context):
            try:
                while len(given) < address_request.num_addresses:
                    given.append(self.allocate(ipam_req.AnyAddressRequest()))
            except (ipam_exc.IpAddressGenerationFailure, LedgerUnavailable):
                # Neutron may catch this error, try another subnet and commit: nothing of this one may stay held then.
                for address in given:
                    self.deallocate(address)
                raise
        return given

    def deallocate(self, address: Any) -> None:
        """Let go of an address; one that nobody holds is no error, and one that is another port's by now stays."""
        place = parse_address(str(address))
        subnet_id = self._record.neutron_subnet_id
        with db_api.CONTEXT_WRITER.using(self._context), in_neutrons_words(subnet_id):
            session = self._context.session
            keeper = installation.keeper(session)
            # Locking: an old reading of the transaction's would tell of a holding that is gone.
            held = SessionBook(session, self._record.id).find(place, locking=True)
            if held is None:
                return
            if is_anothers(session, held.owner):
                LOG.info("%s of subnet %s is %s by now, and stays held", address, subnet_id, held.owner)
            else:
                keeper.release(session, self._record, held)

    def get_details(self) -> Any:
        """Tell what the subnet is; Neutron keeps that."""
        record = self._record
        ends = [(format_address(pool.first), format_address(pool.last)) for pool in record.pools]
        return ipam_req.SpecificSubnetRequest(
            record.project_id,
            record.neutron_subnet_id,
            netaddr.IPNetwork(record.cidr),
            record.gateway_ip,
            [netaddr.IPRange(low, high) for low, high in ends],
        )


class TenurePool(subnet_alloc.SubnetAllocator):  # type: ignore[misc]  # Neutron has no types
    """What Neutron makes for every call; it holds nothing of its own."""

    def get_subnet(self, subnet_id: str) -> TenureSubnet:
        """Find a subnet by Neutron's id."""
        with db_api.CONTEXT_READER.using(self._context), in_neutrons_words(subnet_id):
            standing = installation.may_stand(self._context.session)
            return TenureSubnet(self._find(subnet_id, standing=standing), self._context)

    def allocate_subnet(self, subnet_request: Any) -> TenureSubnet:
        """Take in a new subnet; out of a subnet pool the block is chosen first."""
        site = getattr(subnet_request, "site", SubnetLocation())  # the allocator of subnet pools makes the request anew
        if self._subnetpool:
            subnet_request = super().allocate_subnet(subnet_request).get_details()
        if not isinstance(subnet_request, ipam_req.SpecificSubnetRequest):
            raise ipam_exc.InvalidSubnetRequestType(subnet_type=type(subnet_request))
        pools = subnet_request.allocation_pools or ipam_utils.generate_pools(
            subnet_request.subnet_cidr, subnet_request.gateway_ip
        )
        record = subnet_records.new_record(subnet_request, pools, mapped_spaces(options.register()).at(site))
        with db_api.CONTEXT_WRITER.using(self._context), in_neutrons_words(subnet_request.subnet_id):
            # The record comes before the ledger's network: the reconciler waits for it before it removes a network.
            before = subnet_records.put(self._context.session, record)
            installation.keeper(self._context.session).follow(self._context.session, before, record)
        return TenureSubnet(record, self._context)

    def update_subnet(self, subnet_request: Any) -> TenureSubnet | None:
        """Follow a change of pools, block or gateway; what is held stays held."""
        if not subnet_request.subnet_id:
            raise ipam_exc.InvalidSubnetRequest(reason="An identifier must be specified when updating a subnet")
        if subnet_request.allocation_pools is None:
            return None
        with db_api.CONTEXT_WRITER.using(self._context), in_neutrons_words(subnet_request.subnet_id):
            # Locked: of two changes at once, the second must begin with what the first has left.
            before = self._find(subnet_request.subnet_id, locking=True)
            after = _updated(before, subnet_request)
            if after.same_plan(before):  # Neutron calls on every update, also of a name
                return TenureSubnet(before, self._context)
            subnet_records.change(self._context.session, after)
            installation.keeper(self._context.session).follow(self._context.session, before, after)
        return TenureSubnet(after, self._context)

    def remove_subnet(self, subnet_id: str) -> None:
        """Forget a subnet and all that is held in it."""
        with db_api.CONTEXT_WRITER.using(self._context), in_neutrons_words(subnet_id):
            record = self._find(subnet_id)
            SessionBook(self._context.session, record.id).clear()
            subnet_records.remove(self._context.session, record)
            installation.keeper(self._context.session).follow(self._context.session, record, None)

    def get_address_request_factory(self) -> Any:
        """Let requests say which port they are for."""
        return OwnedAddressRequestFactory

    def get_subnet_request_factory(self) -> Any:
        """Let requests say where the subnet is."""
        return SitedSubnetRequestFactory

    def needs_rollback(self) -> bool:
        """Say that nothing is to be compensated: what is done follows Neutron's own transaction."""
        return False

    def _find(self, subnet_id: str, *, locking: bool = False, standing: bool = False) -> SubnetRecord:
        record = subnet_records.find(self._context.session, subnet_id, locking=locking, standing=standing)
        if record is None:
            raise n_exc.SubnetNotFound(subnet_id=subnet_id)
        return record


def _updated(before: SubnetRecord, request: Any) -> SubnetRecord:
    """Return a subnet as a request wants it; a gateway that it does not speak of stays."""
    gateway = None if request.gateway_ip is None else str(request.gateway_ip)
    if not getattr(request, "tells_gateway", gateway is not None):
        gateway = before.gateway_ip
    pools = subnet_records.read_pools(request.allocation_pools, request.subnet_cidr.version)
    return before.changed(cidr=str(request.subnet_cidr), gateway_ip=gateway, pools=pools)
