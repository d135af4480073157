"""Search, why, history, the log, papers and instances."""

from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.doors.http.routing.endpoint import Call, Rests, RouteSection
from tenure.doors.http.routing.etags import tell_etag
from tenure.doors.http.routing.holding_pages import LabelTexts, read_label
from tenure.doors.http.routing.log_filter import Filter, WantedChanges
from tenure.doors.http.routing.pages import Paged
from tenure.doors.http.routing.principal import Need
from tenure.doors.http.routing.send_response import in_turns
from tenure.kernel.errors import Invalid, NotFound
from tenure.kernel.holdings.holding_model import Change, Paper
from tenure.kernel.names import Owner
from tenure.service.read.search import ObjectKind
from tenure.wire import encode, field_types, responses

reading = RouteSection("reading", "Search, why, history.")
log = RouteSection("changes", "The ordered log of everything that happened.")
papers = RouteSection("papers", "Documents that doors keep in the ledger.")
instances = RouteSection("instances", "Machines: what is written of them, and what they hold.")

INSTANCE = "instance"
SearchText = Annotated[str, Meta(description="An address, block or range; or part of a name, owner, description.")]
KindText = Annotated[str, field_types.one_of("What is searched for.", ObjectKind)]
MOST_CHANGES = 1000
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


class Changes(WantedChanges, kw_only=True, forbid_unknown_fields=True):
    """Which entries of the log."""

    after: Annotated[int, Meta(ge=0, le=1 << 62, description="The number of the last entry that was read.")] = 0
    limit: Annotated[int, Meta(ge=1, le=MOST_CHANGES)] = 100


class NamedPapers(Paged, kw_only=True, forbid_unknown_fields=True):
    """Which papers of a kind."""

    prefix: field_types.Text = ""


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


@log.route("GET", "/changes", need=Need.READ, query=Changes, answer=responses.ChangePage)
async def list_changes(call: Call) -> responses.ChangePage:
    """Read the log behind a number, in commit order; with filters a page may be short and still not the last."""
    wanted: Changes = call.query
    # Read before the page, which may have newer entries; `last` below is the larger of the two.
    fits, newest = Filter(wanted), await call.ledger.last_change()
    items: list[Change] = []
    after = wanted.after
    # With a filter, the entries that are looked at are limited; `next` moves on also where none of them fits.
    async for change in call.ledger.changes(wanted.after, limit=wanted.limit if fits.takes_all else 10 * MOST_CHANGES):
        after = change.seq
        if fits(change):
            items.append(change)
            if len(items) == wanted.limit:
                break
    return responses.ChangePage(items=[encode.change(each) for each in items], next=after, last=max(newest, after))


@papers.route("GET", "/papers/{kind}", need=Need.READ, query=NamedPapers, answer=responses.Page[responses.Paper])
async def list_papers(call: Call) -> responses.Page[responses.Paper]:
    """Read papers of a kind, in order of name."""
    return await _papers(call, _open_kind(call.params["kind"]), call.query)


@papers.route("GET", "/papers/{kind}/{name}", need=Need.READ, answer=responses.Paper, rests=Rests.TELLS)
async def get_paper(call: Call) -> responses.Paper:
    """Read one paper."""
    found = await call.ledger.paper(_open_kind(call.params["kind"]), call.params["name"])
    tell_etag(call, found)
    return encode.paper(found)


async def _papers(call: Call, kind: str, wanted: NamedPapers) -> responses.Page[responses.Paper]:
    found: list[Paper] = await call.ledger.papers(
        kind, prefix=wanted.prefix, after=wanted.after or "", limit=wanted.limit + 1
    )
    items = found[: wanted.limit]
    more = len(found) > len(items)
    return responses.Page(items=[encode.paper(each) for each in items], next=items[-1].name if more else None)


def _open_kind(kind: str) -> str:
    """Return a kind of papers that may be read: tokens and their like are nobody's business."""
    if kind.startswith("rest."):
        raise Invalid(f"kind: papers of kind {kind!r} are the server's own", field="kind")
    return kind


@instances.route("GET", "/instances", need=Need.READ, query=NamedPapers, answer=responses.Page[responses.Instance])
async def list_instances(call: Call) -> responses.Page[responses.Instance]:
    """Read the machines that doors keep documents of, with what they hold, in order of name."""
    page = await _papers(call, INSTANCE, call.query)
    items = [await _instance(call, paper.name, paper) for paper in page.items]
    return responses.Page(items=items, next=page.next)


@instances.route("GET", "/instances/{instance}", need=Need.READ, answer=responses.Instance)
async def get_instance(call: Call) -> responses.Instance:
    """Read one machine: its document, if a door keeps one, and what it holds."""
    name = call.params["instance"]
    # Papers come in order of name, so the very name comes before all that only begin so.
    found = await call.ledger.papers(INSTANCE, prefix=name, limit=1)
    paper = encode.paper(found[0]) if found and found[0].name == name else None
    instance = await _instance(call, name, paper)
    if paper is None and not instance.holdings:
        raise NotFound(INSTANCE, name)
    return instance


async def _instance(call: Call, name: str, paper: responses.Paper | None) -> responses.Instance:
    held = await call.ledger.holdings(owner=Owner(f"{INSTANCE}/{name}"))
    return responses.Instance(
        name=name,
        revision=0 if paper is None else paper.revision,
        document={} if paper is None else paper.document,
        holdings=[encode.holding(each) for each in held],
    )
