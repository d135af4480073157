"""Claims that wait: ask, ask again, withdraw, look at the line."""

from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.doors.http.routing.endpoint import Call, RouteSection
from tenure.doors.http.routing.principal import Need
from tenure.service.apply.operations import Allocate
from tenure.wire import encode, field_types, responses
from tenure.wire.request_bodies import body_of

claims = RouteSection("claims", "Wishes that wait for a free address.")

Patience = Annotated[float, Meta(gt=0, le=86_400 * 366, description="Keep the place in line so many seconds.")]
LongPoll = Annotated[float, Meta(ge=0, le=60, description="Let the answer wait for a grant, so many seconds at most.")]


AskedClaim = body_of(
    Allocate,
    name="ClaimBody",
    without=("network", "key", "address", "reserved"),
    more=[("patience_s", Patience, 60.0), ("wait_s", LongPoll, 0.0)],
)


class Withdrawal(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose claim is to leave the line."""

    owner: field_types.Owner
    slot: field_types.Slot = ""
    request_id: field_types.RequestId | None = None


@claims.route("GET", "/claims", need=Need.READ_OWN, answer=responses.Listing[responses.WaitingClaim])
async def list_claims(call: Call) -> responses.Listing[responses.WaitingClaim]:
    """Read who waits, space by space in order of arrival."""
    found = [each for each in await call.ledger.waiting() if call.visitor.may(Need.READ, each.network)]
    return responses.Listing(items=[encode.waiting_claim(each) for each in found])


@claims.route("GET", "/networks/{network}/claims", need=Need.READ, answer=responses.Listing[responses.WaitingClaim])
async def list_network_claims(call: Call) -> responses.Listing[responses.WaitingClaim]:
    """Read who waits for an address of a network."""
    found = await call.ledger.waiting(call.params["network"])
    return responses.Listing(items=[encode.waiting_claim(each) for each in found])


@claims.route(
    "POST", "/networks/{network}:claim", need=Need.ALLOCATE, body=AskedClaim, answer=responses.ClaimStatus, waits=True
)
async def claim(call: Call) -> responses.ClaimStatus:
    """Ask for an address without an error where none is free: the claim waits in line, and is asked for again.

    With wait_s the answer itself waits (a long poll), and the claim keeps its place behind it; whoever closes the
    connection meanwhile leaves the line. Events tell of a grant, too.
    """
    body = call.body
    said = {name: value for name in body.__struct_fields__ if (value := getattr(body, name)) is not None}
    return encode.claim_status(await call.ledger.claim(call.params["network"], key=call.key, **said))


@claims.route(
    "POST", "/networks/{network}:withdraw", need=Need.ALLOCATE, body=Withdrawal, answer=responses.Withdrawn, keyed=False
)
async def withdraw(call: Call) -> responses.Withdrawn:
    """Take a waiting claim out of the line. What it was granted is not touched.

    With request_id, the X-Request-ID of a waiting request whose answer was never seen, what that very request was
    granted is given back, unless another answer has reported the holding meanwhile.
    """
    body = call.body
    found = await call.ledger.withdraw(
        call.params["network"], owner=body.owner, slot=body.slot, request_id=body.request_id
    )
    return responses.Withdrawn(withdrawn=found)
