"""Claims that wait: ask, ask again, withdraw, look at the line."""

from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.doors.rest.endpoints import Call, Section
from tenure.doors.rest.visitors import Need
from tenure.remote import fields, shapes, writing
from tenure.remote.bodies import body_of
from tenure.service.operations import Allocate

claims = Section("claims", "Wishes that wait for a free address.")

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

    owner: fields.Owner
    slot: fields.Slot = ""
    request_id: fields.RequestId | None = None


@claims.route("GET", "/claims", need=Need.READ, answer=shapes.Listing[shapes.WaitingClaim])
async def list_claims(call: Call) -> shapes.Listing[shapes.WaitingClaim]:
    """Read who waits, space by space in order of arrival."""
    return shapes.Listing(items=[writing.waiting_claim(each) for each in await call.ledger.waiting()])


@claims.route("GET", "/networks/{network}/claims", need=Need.READ, answer=shapes.Listing[shapes.WaitingClaim])
async def list_network_claims(call: Call) -> shapes.Listing[shapes.WaitingClaim]:
    """Read who waits for an address of a network."""
    found = await call.ledger.waiting(call.params["network"])
    return shapes.Listing(items=[writing.waiting_claim(each) for each in found])


@claims.route(
    "POST", "/networks/{network}:claim", need=Need.ALLOCATE, body=AskedClaim, answer=shapes.ClaimStatus, waits=True
)
async def claim(call: Call) -> shapes.ClaimStatus:
    """Ask for an address without an error where none is free: the claim waits in line, and is asked for again.

    With wait_s the answer itself waits (a long poll), and the claim keeps its place behind it; whoever closes the
    connection meanwhile leaves the line. Events tell of a grant, too.
    """
    body = call.body
    said = {name: value for name in body.__struct_fields__ if (value := getattr(body, name)) is not None}
    return writing.claim_status(await call.ledger.claim(call.params["network"], key=call.key, **said))


@claims.route(
    "POST", "/networks/{network}:withdraw", need=Need.ALLOCATE, body=Withdrawal, answer=shapes.Withdrawn, keyed=False
)
async def withdraw(call: Call) -> shapes.Withdrawn:
    """Take a waiting claim out of the line. What it was granted is not touched.

    With request_id, the X-Request-ID of a waiting request whose answer was never seen, what that very request was
    granted is given back, unless another answer has reported the holding meanwhile.
    """
    body = call.body
    found = await call.ledger.withdraw(
        call.params["network"], owner=body.owner, slot=body.slot, request_id=body.request_id
    )
    return shapes.Withdrawn(withdrawn=found)
