"""Pools of a network."""

from tenure.doors.http.routing.endpoint import Call, Rests, RouteSection
from tenure.doors.http.routing.etags import edited, edited_away, tell_etag
from tenure.doors.http.routing.principal import Need
from tenure.kernel.errors import NotFound
from tenure.kernel.plan import edits
from tenure.wire import encode, responses
from tenure.wire.request_bodies import body_of, read_body

pools = RouteSection("pools", "Ranges that addresses are picked from.")


@pools.route(
    "GET",
    "/networks/{network}/pools",
    need=Need.READ,
    answer=responses.Listing[responses.Pool],
    rests=Rests.TELLS,
)
async def list_pools(call: Call) -> responses.Listing[responses.Pool]:
    """Read the ranges of a network's pools, in written order."""
    network = await call.ledger.network(call.params["network"])
    tell_etag(call, network)
    return responses.Listing(items=[encode.pool(pool) for _, pool in network.pools()])


@pools.route(
    "POST",
    "/networks/{network}/pools",
    need=Need.ADMIN,
    body=body_of(edits.AddPool, without=("network",)),
    answer=responses.Network,
    status=201,
    rests=Rests.TELLS,
)
async def add_pool(call: Call) -> responses.Network:
    """Add a range to pick from; a name that exists gains a range. The answer is the network."""
    return await edited(call, read_body(edits.AddPool, call.body, network=call.params["network"]))


@pools.route(
    "GET",
    "/networks/{network}/pools/{pool}",
    need=Need.READ,
    answer=responses.Listing[responses.Pool],
    rests=Rests.TELLS,
)
async def get_pool(call: Call) -> responses.Listing[responses.Pool]:
    """Read the ranges of a pool, found by its name or its exact range."""
    network = await call.ledger.network(call.params["network"])
    tell_etag(call, network)
    ident = call.params["pool"]
    found = [pool for _, pool in network.pools() if ident in (pool.name, str(pool.range))]
    if not found:
        raise NotFound("pool", ident, network=network.name)
    return responses.Listing(items=[encode.pool(pool) for pool in found])


@pools.route(
    "PATCH",
    "/networks/{network}/pools/{pool}",
    need=Need.ADMIN,
    body=body_of(edits.ModifyPool, without=("network", "pool")),
    answer=responses.Network,
    rests=Rests.NEEDS,
)
async def modify_pool(call: Call) -> responses.Network:
    """Change a pool, found by its name or its exact range; the answer is its network."""
    return await edited(call, read_body(edits.ModifyPool, call.body, **call.params))


@pools.route(
    "DELETE",
    "/networks/{network}/pools/{pool}",
    need=Need.ADMIN,
    rests=Rests.NEEDS,
)
async def remove_pool(call: Call) -> None:
    """Remove a pool by name, or a range from all pools it touches; holdings stay."""
    await edited_away(call, edits.RemovePool(**call.params))
