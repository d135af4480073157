"""Search, why and history."""

from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.doors.http.routing.endpoint import Call, RouteSection
from tenure.doors.http.routing.holding_pages import LabelTexts, read_label
from tenure.doors.http.routing.principal import Need
from tenure.doors.http.routing.send_response import in_turns
from tenure.service.read.search import ObjectKind
from tenure.wire import encode, field_types, responses

reading = RouteSection("reading", "Search, why, history.")

SearchText = Annotated[str, Meta(description="An address, block or range; or part of a name, owner, description.")]
KindText = Annotated[str, field_types.one_of("What is searched for.", ObjectKind)]
MOST_FOUND = 10_000


class InNetwork(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """In which network, if not in all of them."""

    network: field_types.Name | None = None


class AtTime(InNetwork, kw_only=True, forbid_unknown_fields=True):
    """At which time, if not ever."""

    at: responses.Time | None = None


class SearchQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is searched for."""

    text: SearchText | None = None
    label: LabelTexts = msgspec.field(default_factory=list)
    kind: KindText | None = None
    network: field_types.Name | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_FOUND, description="How many at most.")] = 100


@reading.route("GET", "/search", need=Need.READ, query=SearchQuery, answer=responses.Listing[responses.Found])
async def search(call: Call) -> responses.Listing[responses.Found]:
    """Find networks, subnets, pools, reserved ranges, pre-allocations and holdings by text, labels or place."""
    wanted: SearchQuery = call.query
    labels = dict(read_label(text) for text in wanted.label)
    found = await call.ledger.search(
        wanted.text, labels=labels or None, kind=wanted.kind, network=wanted.network, limit=wanted.limit
    )
    return responses.Listing(items=await in_turns(found, encode.found))


@reading.route("GET", "/addresses/{address}/why", need=Need.READ, query=InNetwork, answer=responses.Explanation)
async def why(call: Call) -> responses.Explanation:
    """Explain an address: who, since when, by which request; or why it is not free; in every network it lies in."""
    return encode.explanation(await call.ledger.why(call.params["address"], network=call.query.network))


@reading.route("GET", "/addresses/{address}/history", need=Need.READ, query=AtTime, answer=responses.History)
async def history(call: Call) -> responses.History:
    """Tell who held an address, from when until when, and how it ended; at a time, or ever."""
    found = await call.ledger.history(call.params["address"], network=call.query.network, at=call.query.at)
    return encode.history(found)
