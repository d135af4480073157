"""Papers: documents that doors keep in the ledger."""

from tenure.doors.http.routing.endpoint import Call, Rests, RouteSection
from tenure.doors.http.routing.etags import tell_etag
from tenure.doors.http.routing.pages import Paged
from tenure.doors.http.routing.principal import Need
from tenure.kernel.errors import Invalid
from tenure.kernel.holdings.holding_model import Paper
from tenure.wire import encode, field_types, responses

papers = RouteSection("papers", "Documents that doors keep in the ledger.")


class NamedPapers(Paged, kw_only=True, forbid_unknown_fields=True):
    """Which papers of a kind."""

    prefix: field_types.Text = ""


@papers.route("GET", "/papers/{kind}", need=Need.READ, query=NamedPapers, answer=responses.Page[responses.Paper])
async def list_papers(call: Call) -> responses.Page[responses.Paper]:
    """Read papers of a kind, in order of name."""
    return await paper_page(call, _open_kind(call.params["kind"]), call.query)


@papers.route("GET", "/papers/{kind}/{name}", need=Need.READ, answer=responses.Paper, rests=Rests.TELLS)
async def get_paper(call: Call) -> responses.Paper:
    """Read one paper."""
    found = await call.ledger.paper(_open_kind(call.params["kind"]), call.params["name"])
    tell_etag(call, found)
    return encode.paper(found)


async def paper_page(call: Call, kind: str, wanted: NamedPapers) -> responses.Page[responses.Paper]:
    """Read a page of the papers of a kind."""
    # One more than the page has: it says whether there is a next page.
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
