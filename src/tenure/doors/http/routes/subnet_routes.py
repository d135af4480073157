"""Subnets of a network."""

import msgspec

from tenure.doors.http.routes.network_routes import Removal
from tenure.doors.http.routing.endpoint import Call, Rests, RouteSection
from tenure.doors.http.routing.etags import edited, edited_away, tell_etag
from tenure.doors.http.routing.principal import Need
from tenure.kernel.plan import edits
from tenure.wire import encode, responses
from tenure.wire.request_bodies import body_of, read_body

subnets = RouteSection("subnets", "Blocks of a network.")


@subnets.route(
    "GET",
    "/networks/{network}/subnets",
    need=Need.READ,
    answer=responses.Listing[responses.Subnet],
    rests=Rests.TELLS,
)
async def list_subnets(call: Call) -> responses.Listing[responses.Subnet]:
    """Read the subnets of a network, in written order."""
    network = await call.ledger.network(call.params["network"])
    tell_etag(call, network)
    return responses.Listing(items=[encode.subnet(each) for each in network.subnets])


@subnets.route(
    "POST",
    "/networks/{network}/subnets",
    need=Need.ADMIN,
    body=body_of(edits.AddSubnet, without=("network", "uuid")),
    answer=responses.AddedSubnet,
    status=201,
    rests=Rests.TELLS,
)
async def add_subnet(call: Call) -> responses.AddedSubnet:
    """Add a block to a network."""
    changed = await edited(call, read_body(edits.AddSubnet, call.body, network=call.params["network"]))
    # The ledger appends new subnets.
    return responses.AddedSubnet(**msgspec.structs.asdict(changed.subnets[-1]), warnings=changed.warnings)


@subnets.route(
    "GET", "/networks/{network}/subnets/{subnet}", need=Need.READ, answer=responses.Subnet, rests=Rests.TELLS
)
async def get_subnet(call: Call) -> responses.Subnet:
    """Read a subnet, found by name, block or uuid."""
    network = await call.ledger.network(call.params["network"])
    tell_etag(call, network)
    return encode.subnet(network.subnet(call.params["subnet"]))


@subnets.route(
    "PATCH",
    "/networks/{network}/subnets/{subnet}",
    need=Need.ADMIN,
    body=body_of(edits.ModifySubnet, without=("network", "subnet")),
    answer=responses.Network,
    rests=Rests.NEEDS,
)
async def modify_subnet(call: Call) -> responses.Network:
    """Change a subnet; the answer is its network. The ETag is the network's."""
    return await edited(call, read_body(edits.ModifySubnet, call.body, **call.params))


@subnets.route("DELETE", "/networks/{network}/subnets/{subnet}", need=Need.ADMIN, query=Removal, rests=Rests.NEEDS)
async def remove_subnet(call: Call) -> None:
    """Remove a subnet with its pools and reserved ranges; with cascade its holdings end with it."""
    await edited_away(call, edits.RemoveSubnet(**call.params, cascade=call.query.cascade))
