"""Spaces."""

from tenure.doors.http.routing.endpoint import Call, Rests, RouteSection
from tenure.doors.http.routing.etags import tell_etag
from tenure.doors.http.routing.principal import Need
from tenure.kernel.errors import NotFound
from tenure.wire import encode, responses

spaces = RouteSection("spaces", "Scopes in which an address has at most one holder.")


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
