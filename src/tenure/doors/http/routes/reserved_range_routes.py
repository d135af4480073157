"""Reserved ranges of a network."""

from tenure.doors.http.routing.endpoint import Call, Rests, RouteSection
from tenure.doors.http.routing.etags import edited, edited_away, tell_etag
from tenure.doors.http.routing.principal import Need
from tenure.kernel.plan import edits
from tenure.wire import encode, responses
from tenure.wire.request_bodies import body_of, read_body

reserved = RouteSection("reserved ranges", "Ranges kept away from picking.")


@reserved.route(
    "GET",
    "/networks/{network}/reserved",
    need=Need.READ,
    answer=responses.Listing[responses.Reserved],
    rests=Rests.TELLS,
)
async def list_reserved(call: Call) -> responses.Listing[responses.Reserved]:
    """Read the reserved ranges of a network, and on whose word they are."""
    network = await call.ledger.network(call.params["network"])
    tell_etag(call, network)
    return responses.Listing(items=[encode.reserved(each) for subnet in network.subnets for each in subnet.reserved])


@reserved.route(
    "POST",
    "/networks/{network}/reserved",
    need=Need.ADMIN,
    body=body_of(edits.Reserve, without=("network",)),
    answer=responses.Network,
    status=201,
    rests=Rests.TELLS,
)
async def reserve(call: Call) -> responses.Network:
    """Keep a range away from picking. Held addresses in it stay held. The answer is the network."""
    return await edited(call, read_body(edits.Reserve, call.body, network=call.params["network"]))


@reserved.route(
    "DELETE",
    "/networks/{network}/reserved/{range}",
    need=Need.ADMIN,
    rests=Rests.NEEDS,
)
async def unreserve(call: Call) -> None:
    """Lift a reservation, wholly or in part."""
    await edited_away(call, edits.Unreserve(**call.params))
