"""Spaces, networks, subnets, pools, reserved ranges and pre-allocations."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tenure.doors.http.routing.endpoint import Call, Rests, RouteSection
from tenure.doors.http.routing.etags import edited, tell_etag
from tenure.doors.http.routing.pages import Paged, page_of
from tenure.doors.http.routing.principal import Need
from tenure.kernel.errors import NotFound
from tenure.kernel.names import check_name
from tenure.kernel.plan import edits
from tenure.wire import encode, field_types, responses
from tenure.wire.request_bodies import body_of, read_body

spaces = RouteSection("spaces", "Scopes in which an address has at most one holder.")
networks = RouteSection("networks", "Named things machines attach to.")
subnets = RouteSection("subnets", "Blocks of a network.")
pools = RouteSection("pools", "Ranges that addresses are picked from.")
reserved = RouteSection("reserved ranges", "Ranges kept away from picking.")
preallocations = RouteSection("pre-allocations", "Addresses that wait for one owner.")

HERE = ("network",)


class NetworksQuery(Paged, kw_only=True, forbid_unknown_fields=True):
    """Which networks."""

    space: field_types.Name | None = None
    tag: field_types.Name | None = None
    text: Annotated[str, Meta(description="Part of a name or description.")] | None = None


class Removal(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How a thing is removed."""

    cascade: Annotated[bool, Meta(description="End all holdings in it, too.")] = False


class Slot(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which of an owner's slots."""

    slot: field_types.Slot = ""


@spaces.route("GET", "/spaces", need=Need.READ, answer=responses.Listing[responses.Space])
async def list_spaces(call: Call) -> responses.Listing[responses.Space]:
    """Read all spaces with their networks, in order of name."""
    return responses.Listing(items=[encode.space(each) for each in await call.ledger.spaces()])


@spaces.route("GET", "/spaces/{space}", need=Need.READ, answer=responses.Space, rests=Rests.TELLS)
async def get_space(call: Call) -> responses.Space:
    """Read one space with its networks."""
    name = call.params["space"]
    for each in await call.ledger.spaces():
        if each.name == name:
            tell_etag(call, each)
            return encode.space(each)
    raise NotFound("space", name)


@networks.route("GET", "/networks", need=Need.READ, query=NetworksQuery, answer=responses.Page[responses.Network])
async def list_networks(call: Call) -> responses.Page[responses.Network]:
    """Read networks, in order of name."""
    wanted: NetworksQuery = call.query
    for field in ("space", "tag"):
        if (said := getattr(wanted, field)) is not None:
            check_name(said, field=field)
    text = None if wanted.text is None else wanted.text.casefold()
    found = [
        network
        for space in await call.ledger.spaces()
        for network in space.networks.values()
        if wanted.space in (None, space.name)
        and (wanted.tag is None or wanted.tag in network.tags)
        and (text is None or text in network.name.casefold() or text in network.notes.description.casefold())
    ]
    found.sort(key=lambda network: network.name)
    return page_of(found, wanted, lambda network: network.name, encode.network)


@networks.route(
    "POST",
    "/networks",
    need=Need.ADMIN,
    body=body_of(edits.AddNetwork, without=("uuid",), renamed={"network": "name"}),
    answer=responses.Network,
    status=201,
    rests=Rests.TELLS,
)
async def add_network(call: Call) -> responses.Network:
    """Add a network, in a space of its own unless one is named."""
    return await edited(call, read_body(edits.AddNetwork, call.body))


@networks.route("GET", "/networks/{network}", need=Need.READ, answer=responses.Network, rests=Rests.TELLS)
async def get_network(call: Call) -> responses.Network:
    """Read a network whole: subnets, pools, reserved ranges, pre-allocations, connections."""
    network = await call.ledger.network(call.params["network"])
    tell_etag(call, network)
    return encode.network(network)


@networks.route(
    "PATCH",
    "/networks/{network}",
    need=Need.ADMIN,
    body=body_of(edits.ModifyNetwork, without=HERE),
    answer=responses.Network,
    rests=Rests.NEEDS,
)
async def modify_network(call: Call) -> responses.Network:
    """Rename, retire or otherwise change a network; what is left out stays as it is."""
    return await edited(call, read_body(edits.ModifyNetwork, call.body, network=call.params["network"]))


@networks.route("DELETE", "/networks/{network}", need=Need.ADMIN, query=Removal, rests=Rests.NEEDS)
async def remove_network(call: Call) -> None:
    """Remove a network that nobody uses; with cascade all its holdings end with it."""
    await edited(call, edits.RemoveNetwork(network=call.params["network"], cascade=call.query.cascade))


@networks.route(
    "POST",
    "/networks/{network}:connect",
    need=Need.ADMIN,
    body=body_of(edits.Connect, without=HERE),
    answer=responses.Network,
    rests=Rests.TELLS,
)
async def connect_network(call: Call) -> responses.Network:
    """Let a network reach a group of nodes, in a mode and by a link."""
    return await edited(call, read_body(edits.Connect, call.body, network=call.params["network"]))


@networks.route(
    "POST",
    "/networks/{network}:disconnect",
    need=Need.ADMIN,
    body=body_of(edits.Disconnect, without=HERE),
    answer=responses.Network,
    rests=Rests.TELLS,
)
async def disconnect_network(call: Call) -> responses.Network:
    """Let a network no longer reach a group of nodes."""
    return await edited(call, read_body(edits.Disconnect, call.body, network=call.params["network"]))


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
    answer=responses.Subnet,
    status=201,
    rests=Rests.TELLS,
)
async def add_subnet(call: Call) -> responses.Subnet:
    """Add a block to a network."""
    changed = await edited(call, read_body(edits.AddSubnet, call.body, network=call.params["network"]))
    # The ledger appends new subnets.
    return changed.subnets[-1]


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
    return await edited(call, read_body(edits.ModifySubnet, call.body, **_place(call, "subnet")))


@subnets.route("DELETE", "/networks/{network}/subnets/{subnet}", need=Need.ADMIN, query=Removal, rests=Rests.NEEDS)
async def remove_subnet(call: Call) -> None:
    """Remove a subnet with its pools and reserved ranges; with cascade its holdings end with it."""
    await edited(call, edits.RemoveSubnet(**_place(call, "subnet"), cascade=call.query.cascade))


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
    body=body_of(edits.AddPool, without=HERE),
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
        raise NotFound("pool", ident)
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
    return await edited(call, read_body(edits.ModifyPool, call.body, **_place(call, "pool")))


@pools.route(
    "DELETE",
    "/networks/{network}/pools/{pool}",
    need=Need.ADMIN,
    rests=Rests.NEEDS,
)
async def remove_pool(call: Call) -> None:
    """Remove a pool by name, or a range from all pools it touches; holdings stay."""
    await edited(call, edits.RemovePool(**_place(call, "pool")))


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
    body=body_of(edits.Reserve, without=HERE),
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
    await edited(call, edits.Unreserve(**_place(call, "range")))


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
    body=body_of(edits.Preallocate, without=HERE),
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
    await edited(call, edits.RemovePreallocation(**_place(call, "owner"), slot=call.query.slot))


def _place(call: Call, *names: str) -> dict[str, Any]:
    """Return what the path says of the thing that is meant."""
    return {name: call.params[name] for name in ("network", *names)}
