"""Pre-allocations of a network."""

import msgspec

from tenure.doors.http.routing.endpoint import Call, Rests, RouteSection
from tenure.doors.http.routing.etags import edited, edited_away, tell_etag
from tenure.doors.http.routing.principal import Need
from tenure.kernel.plan import edits
from tenure.wire import encode, field_types, responses
from tenure.wire.request_bodies import body_of, read_body

preallocations = RouteSection("pre-allocations", "Addresses that wait for one owner.")


class Slot(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which of an owner's slots."""

    slot: field_types.Slot = ""


@preallocations.route(
    "GET",
    "/networks/{network}/preallocations",
    need=Need.READ,
    answer=responses.Listing[responses.Preallocation],
    rests=Rests.TELLS,
)
async def list_preallocations(call: Call) -> responses.Listing[responses.Preallocation]:
    """Read which addresses of a network wait for whom."""
    network = await call.ledger.network(call.params["network"])
    tell_etag(call, network)
    return responses.Listing(items=[encode.preallocation(each) for each in network.preallocations])


@preallocations.route(
    "POST",
    "/networks/{network}/preallocations",
    need=Need.ADMIN,
    body=body_of(edits.Preallocate, without=("network",)),
    answer=responses.Network,
    status=201,
    rests=Rests.TELLS,
)
async def preallocate(call: Call) -> responses.Network:
    """Let an address wait for one owner. The answer is the network."""
    return await edited(call, read_body(edits.Preallocate, call.body, network=call.params["network"]))


@preallocations.route(
    "DELETE",
    "/networks/{network}/preallocations/{owner}",
    need=Need.ADMIN,
    query=Slot,
    rests=Rests.NEEDS,
)
async def remove_preallocation(call: Call) -> None:
    """Forget that an address waits for an owner."""
    await edited_away(call, edits.RemovePreallocation(**call.params, slot=call.query.slot))
