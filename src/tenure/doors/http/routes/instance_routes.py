"""Instances: machines that doors keep documents of, and what they hold."""

from tenure.doors.http.routes.paper_routes import NamedPapers, paper_page
from tenure.doors.http.routing.endpoint import Call, RouteSection
from tenure.doors.http.routing.principal import Need
from tenure.kernel.errors import NotFound
from tenure.kernel.names import Owner
from tenure.wire import encode, responses

instances = RouteSection("instances", "Machines: what is written of them, and what they hold.")

INSTANCE = "instance"


@instances.route("GET", "/instances", need=Need.READ, query=NamedPapers, answer=responses.Page[responses.Instance])
async def list_instances(call: Call) -> responses.Page[responses.Instance]:
    """Read the machines that doors keep documents of, with what they hold, in order of name."""
    page = await paper_page(call, INSTANCE, call.query)
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
