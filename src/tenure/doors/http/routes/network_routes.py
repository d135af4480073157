"""Networks, and the groups of nodes they reach."""

from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.doors.http.routing.endpoint import Call, Rests, RouteSection
from tenure.doors.http.routing.etags import edited, edited_away, tell_etag
from tenure.doors.http.routing.pages import Paged, page_of
from tenure.doors.http.routing.principal import Need
from tenure.kernel.names import check_name
from tenure.kernel.plan import edits
from tenure.wire import encode, field_types, responses
from tenure.wire.request_bodies import body_of, read_body

networks = RouteSection("networks", "Named things machines attach to.")


class NetworksQuery(Paged, kw_only=True, forbid_unknown_fields=True):
    """Which networks."""

    space: field_types.Name | None = None
    tag: field_types.Name | None = None
    text: Annotated[str, Meta(description="Part of a name or description.")] | None = None


class Removal(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How a thing is removed."""

    cascade: Annotated[bool, Meta(description="End all holdings in it, too.")] = False


@networks.route("GET", "/networks", need=Need.READ_OWN, query=NetworksQuery, answer=responses.Page[responses.Network])
async def list_networks(call: Call) -> responses.Page[responses.Network]:
    """Read networks, in order of name."""
    wanted: NetworksQuery = call.query
    for field in ("space", "tag"):
        if (said := getattr(wanted, field)) is not None:
            check_name(said, field=field)
    text = None if wanted.text is None else wanted.text.casefold()
    own = call.visitor.own
    found = [
        network
        for space in await call.ledger.spaces()
        for network in space.networks.values()
        if (own is None or network.id in own)
        and wanted.space in (None, space.name)
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
    body=body_of(edits.ModifyNetwork, without=("network",)),
    answer=responses.Network,
    rests=Rests.NEEDS,
)
async def modify_network(call: Call) -> responses.Network:
    """Rename, retire or otherwise change a network; what is left out stays as it is."""
    return await edited(call, read_body(edits.ModifyNetwork, call.body, network=call.params["network"]))


@networks.route("DELETE", "/networks/{network}", need=Need.ADMIN, query=Removal, rests=Rests.NEEDS)
async def remove_network(call: Call) -> None:
    """Remove a network that nobody uses; with cascade all its holdings end with it."""
    await edited_away(call, edits.RemoveNetwork(network=call.params["network"], cascade=call.query.cascade))


@networks.route(
    "POST",
    "/networks/{network}:connect",
    need=Need.ADMIN,
    body=body_of(edits.Connect, without=("network",)),
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
    body=body_of(edits.Disconnect, without=("network",)),
    answer=responses.Network,
    rests=Rests.TELLS,
)
async def disconnect_network(call: Call) -> responses.Network:
    """Let a network no longer reach a group of nodes."""
    return await edited(call, read_body(edits.Disconnect, call.body, network=call.params["network"]))
