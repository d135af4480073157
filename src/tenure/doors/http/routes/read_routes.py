"""Search, why and history."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.doors.http.routing.endpoint import Call, RouteSection
from tenure.doors.http.routing.holding_pages import LabelTexts, read_label
from tenure.doors.http.routing.principal import Need
from tenure.doors.http.routing.send_response import in_turns
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.service.read.explain import Explanation, Finding
from tenure.service.read.search import Found, ObjectKind
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


@reading.route("GET", "/search", need=Need.READ_OWN, query=SearchQuery, answer=responses.Listing[responses.Found])
async def search(call: Call) -> responses.Listing[responses.Found]:
    """Find networks, subnets, pools, reserved ranges, pre-allocations and holdings by text, labels or place."""
    wanted: SearchQuery = call.query
    labels = dict(read_label(text) for text in wanted.label)
    found: list[Found] = []
    for name in await _networks_asked(call, wanted.network):
        if len(found) < wanted.limit:
            found += await call.ledger.search(
                wanted.text,
                labels=labels or None,
                kind=wanted.kind,
                network=name,
                limit=wanted.limit - len(found),
            )
    return responses.Listing(items=await in_turns(found, encode.found))


@reading.route("GET", "/addresses/{address}/why", need=Need.READ_OWN, query=InNetwork, answer=responses.Explanation)
async def why(call: Call) -> responses.Explanation:
    """Explain an address: who, since when, by which request; or why it is not free; in every network it lies in."""
    return encode.explanation(await _explained(call, call.params["address"]))


async def _explained(call: Call, address: str) -> Explanation:
    """Explain an address as far as the visitor may know: of what is held in networks of others, only that."""
    findings: list[Finding] = []
    names = await _networks_asked(call, call.query.network)
    for name in names:
        told = await call.ledger.why(address, network=name)
        for each in told.findings:
            shown = each if name is None or call.visitor.may(Need.READ, each.network) else _held_elsewhere(name)
            # An address has one holder in a space, who is told of in each of its networks that are asked for.
            if shown not in findings:
                findings.append(shown)
    return Explanation(format_address(parse_address(address)), tuple(findings))


def _held_elsewhere(network: str) -> Finding:
    text = f"not free in network {network}: held in another network of the same space"
    return Finding(network, "held elsewhere", text)


async def _networks_asked(call: Call, network: str | None) -> Sequence[str | None]:
    """Return the networks that a question is about: one that it names, else all (None), or those he may read."""
    call.visitor.check_read(network)
    own = call.visitor.own
    if network is not None or own is None:
        return [network]
    return [each.name for each in await call.ledger.networks() if each.id in own]


@reading.route("GET", "/addresses/{address}/history", need=Need.READ_OWN, query=AtTime, answer=responses.History)
async def history(call: Call) -> responses.History:
    """Tell who held an address, from when until when, and how it ended; at a time, or ever."""
    call.visitor.check_read(call.query.network)
    found = await call.ledger.history(call.params["address"], network=call.query.network, at=call.query.at)
    own = call.visitor.own
    open_to = tuple(each for each in found if own is None or each.network_id in own)
    return encode.history(replace(found, tenures=open_to))
