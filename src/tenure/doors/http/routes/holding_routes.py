"""Holdings and owners: allocate, release, confirm, transfer; who holds what."""

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tenure.doors.http.routing.endpoint import Call, Rests, RouteSection
from tenure.doors.http.routing.etags import applied, expected_holding, tell_etag
from tenure.doors.http.routing.holding_pages import HoldingsQuery, OwnedHoldings, list_everywhere, list_owned, list_page
from tenure.doors.http.routing.principal import ANY_NETWORK, Need
from tenure.doors.http.routing.send_response import in_turns
from tenure.kernel.errors import KeyReused, TenureError, nobody_holds
from tenure.kernel.holdings.actor import Asker
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.names import Owner, check_name
from tenure.service.allocator.claim import Claim, plain_claim
from tenure.service.apply.operations import (
    Allocate,
    Cancel,
    Confirm,
    EndCooling,
    ModifyHolding,
    Operation,
    Release,
    ReleaseOwner,
    Transfer,
)
from tenure.service.ledger.async_ledger import serve_claim
from tenure.wire import encode, field_types, request_bodies, responses
from tenure.wire.problems import problem_of
from tenure.wire.request_bodies import body_of, read_body

holdings = RouteSection("holdings", "Addresses held by owners.")
owners = RouteSection("owners", "Who holds, and all that it holds.")

MOST_WISHES = 10_000
AT_ONCE = 250
"""Wishes that stand each on its own and are asked for together: what others ask for meanwhile waits for no more."""

OF_PATH = ("network", "key")
AT_PATH = ("network", "address")

Wait = Annotated[float, Meta(ge=0, le=300, description="Wait so many seconds for a free address.", examples=[30])]
Wish = body_of(Allocate, without=OF_PATH)
LettingGo = body_of(Release, without=("network",))

OneWish = body_of(Allocate, name="OneWish", without=OF_PATH, more=[("wait_s", Wait | None, None)])


class Wishes(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Many addresses: all or none of them, or each on its own."""

    wishes: Annotated[list[Wish], Meta(min_length=1, max_length=MOST_WISHES)]  # type: ignore[valid-type]
    all_or_none: bool = True


class Releases(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Many releases: all or none of them, or each on its own."""

    releases: Annotated[list[LettingGo], Meta(min_length=1, max_length=MOST_WISHES)]  # type: ignore[valid-type]
    all_or_none: bool = True


class OwnedBy(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """In which network, if not in all of them."""

    network: field_types.Name | None = None


@holdings.route(
    "POST", "/networks/{network}:allocate", need=Need.ALLOCATE, body=OneWish, answer=responses.Holding, waits=True
)
async def allocate(call: Call) -> responses.Holding:
    """Give an address to an owner: this one, or the next free one that the policy picks. Asking again answers the same.

    Cost: that of the ledger's allocate, and some 60 µs around it.
    """
    claim = wished_claim(call.params["network"], call.body, call.key)
    return encode.holding(await serve_claim(call.ledger, claim, call.body.wait_s))


def wished_claim(network: str, wish: Any, key: str | None, asker: Asker | None = None) -> Claim:
    """Read what ``POST …:allocate`` accepts; this route does, and the short way to it.

    ``wait_s`` is no part of the claim: how long an answer is waited for is what sets the two ways apart.
    """
    if wish == type(wish)(owner=wish.owner):  # most wishes say no more
        return plain_claim(check_name(network, field="network"), wish.owner, key, asker)
    read: Allocate = read_body(Allocate, wish, network=network, key=key)
    return read.claim().asked_by(asker)


@holdings.route(
    "POST",
    "/networks/{network}:allocate_many",
    need=Need.ALLOCATE,
    body=Wishes,
    answer=responses.Listing[responses.Each],
)
async def allocate_many(call: Call) -> responses.Listing[responses.Each]:
    """Give addresses for many wishes: all of them or none, or each on its own with its own answer.

    Under an idempotency key each wish that stands on its own has a key of its own: its place in the list behind it.
    """
    wishes = call.body.wishes
    if call.body.all_or_none:
        return await _together(call, Allocate, wishes)
    return await _each(call, (_allocated(call, wish, _nth(call.key, number)) for number, wish in enumerate(wishes)))


async def _allocated(call: Call, wish: Any, key: str | None) -> Holding:
    return await serve_claim(call.ledger, wished_claim(call.params["network"], wish, key))


@holdings.route(
    "POST",
    "/networks/{network}:release",
    need=Need.ALLOCATE,
    body=LettingGo,
    answer=responses.Answer,
)
async def release(call: Call) -> responses.Answer:
    """End an owner's holding of an address. Answers what was held, or nothing if nobody held it (any more)."""
    return encode.answer(await _released(call, call.body, call.key))


async def _released(call: Call, body: Any, key: str | None) -> Holding | None:
    return await call.ledger.release(
        call.params["network"],
        body.address,
        owner=body.owner,
        generation=body.generation,
        lingers_s=body.lingers_s,
        request=body.request,
        key=key,
    )


@holdings.route(
    "POST",
    "/networks/{network}:release_many",
    need=Need.ALLOCATE,
    body=Releases,
    answer=responses.Listing[responses.Each],
)
async def release_many(call: Call) -> responses.Listing[responses.Each]:
    """End many holdings: all of them or none, or each on its own with its own answer."""
    releases = call.body.releases
    if call.body.all_or_none:
        return await _together(call, Release, releases)
    return await _each(call, (_released(call, each, _nth(call.key, number)) for number, each in enumerate(releases)))


async def _together(call: Call, kind: type, wishes: Sequence[Any]) -> responses.Listing[responses.Each]:
    def read(wish: Any) -> Operation:
        made: Operation = read_body(kind, wish, network=call.params["network"])
        return made

    operations = await in_turns(wishes, read)
    answers = await call.ledger.apply(operations, key=call.key)
    return responses.Listing(items=await in_turns(answers, _told))


async def _each(call: Call, works: Iterator[Awaitable[Holding | None]]) -> responses.Listing[responses.Each]:
    """Let wishes stand each on its own.

    A slice of them is asked at once, so that they share the ledger's commits; between slices everybody else has a turn.
    """
    items: list[responses.Each] = []
    while some := list(islice(works, AT_ONCE)):
        answers = await asyncio.gather(*some, return_exceptions=True)
        for answer in answers:
            # An error of ours is no answer to one wish; it ends the whole request.
            if isinstance(answer, BaseException) and not isinstance(answer, TenureError):
                raise answer
        items += [_told(call.own_words(answer) if isinstance(answer, KeyReused) else answer) for answer in answers]
    return responses.Listing(items=items)


def _told(answer: object) -> responses.Each:
    if isinstance(answer, TenureError):
        return responses.Each(problem=problem_of(answer))
    return responses.Each(holding=encode.holding(answer) if isinstance(answer, Holding) else None)


def _nth(key: str | None, number: int) -> str | None:
    """Return the idempotency key of one of several that stand each on its own."""
    return None if key is None else f"{key}/{number}"


@holdings.route("GET", "/holdings", need=Need.READ_OWN, query=HoldingsQuery, answer=responses.Page[responses.Holding])
async def list_all_holdings(call: Call) -> responses.Page[responses.Holding]:
    """Read the holdings of all networks, network by network in order of their numbers."""
    return await list_everywhere(call.ledger, call.query, call.visitor.own)


@holdings.route(
    "GET", "/networks/{network}/holdings", need=Need.READ, query=OwnedHoldings, answer=responses.Page[responses.Holding]
)
async def list_holdings(call: Call) -> responses.Page[responses.Holding]:
    """Read the holdings of a network, in order of address."""
    if call.query.owner is not None:
        return await list_owned(call.ledger, call.params["network"], call.query)
    return await list_page(call.ledger, call.params["network"], call.query)


@holdings.route(
    "GET", "/networks/{network}/holdings/{address}", need=Need.READ, answer=responses.Holding, rests=Rests.TELLS
)
async def get_holding(call: Call) -> responses.Holding:
    """Read who holds an address (or the prefix it lies in)."""
    found = await call.ledger.holding(call.params["network"], call.params["address"])
    tell_etag(call, found)
    return encode.holding(found)


@holdings.route(
    "PATCH",
    "/networks/{network}/holdings/{address}",
    need=Need.ALLOCATE,
    body=body_of(ModifyHolding, name="HoldingBody", without=(*AT_PATH, "owner", "generation")),
    answer=responses.Holding,
    rests=Rests.NEEDS,
)
async def edit_holding(call: Call) -> responses.Holding:
    """Change what is written on a holding that was read, whoever holds it; what is left out stays as it is."""
    found = await call.ledger.holding(call.params["network"], call.params["address"])
    change = read_body(
        ModifyHolding, call.body, network=found.network, address=found.address, owner=found.owner,
        generation=found.generation,
    )  # fmt: skip
    answer = (await applied(call, [*expected_holding(call.if_match or "", found), change]))[-1]
    assert isinstance(answer, Holding)
    tell_etag(call, answer)
    return encode.holding(answer)


@holdings.route(
    "POST",
    "/networks/{network}/holdings/{address}:modify",
    need=Need.ALLOCATE,
    body=body_of(ModifyHolding, name="ModifyHoldingBody", without=AT_PATH),
    answer=responses.Holding,
)
async def modify_holding(call: Call) -> responses.Holding:
    """Change what is written on a holding, or its state: draining frees the slot, held takes it back."""
    return await _one(call, ModifyHolding)


@holdings.route(
    "POST",
    "/networks/{network}/holdings/{address}:confirm",
    need=Need.ALLOCATE,
    body=body_of(Confirm, without=AT_PATH),
    answer=responses.Holding,
)
async def confirm(call: Call) -> responses.Holding:
    """Make a pending holding a held one."""
    return await _one(call, Confirm)


@holdings.route(
    "POST",
    "/networks/{network}/holdings/{address}:transfer",
    need=Need.ALLOCATE,
    body=body_of(Transfer, without=AT_PATH),
    answer=responses.Holding,
)
async def transfer(call: Call) -> responses.Holding:
    """Hand a holding over to another owner; nobody else can get the address in between."""
    return await _one(call, Transfer)


@holdings.route(
    "POST",
    "/networks/{network}/holdings/{address}:cancel",
    need=Need.ALLOCATE,
    body=body_of(Cancel, without=AT_PATH),
    answer=responses.Answer,
)
async def cancel(call: Call) -> responses.Answer:
    """End a pending holding. Answers what it was, or nothing if nobody held it (any more)."""
    return await _maybe(call, Cancel)


@holdings.route(
    "POST",
    "/networks/{network}/holdings/{address}:release",
    need=Need.ALLOCATE,
    body=body_of(Release, name="ReleaseHoldingBody", without=AT_PATH),
    answer=responses.Answer,
)
async def release_holding(call: Call) -> responses.Answer:
    """End an owner's holding of this address."""
    return await _maybe(call, Release)


@holdings.route(
    "POST",
    "/networks/{network}/holdings/{address}:end_cooling",
    need=Need.ALLOCATE,
    body=body_of(EndCooling, without=AT_PATH),
    answer=responses.Answer,
)
async def end_cooling(call: Call) -> responses.Answer:
    """Let an address that this owner released cool no longer."""
    return await _maybe(call, EndCooling)


@owners.route("GET", "/owners/{owner}", need=Need.READ_OWN, query=OwnedBy, answer=responses.Listing[responses.Holding])
async def get_owner(call: Call) -> responses.Listing[responses.Holding]:
    """Read all that an owner holds, in all networks or in one."""
    call.visitor.check_read(call.query.network)
    own = call.visitor.own
    held = await call.ledger.holdings(call.query.network, owner=call.params["owner"])
    found = [each for each in held if own is None or each.row.network in own]
    return responses.Listing(items=await in_turns(found, encode.holding))


@owners.route(
    "POST",
    "/owners/{owner}:release",
    need=Need.ALLOCATE,
    body=body_of(ReleaseOwner, without=("owner",)),
    answer=responses.Listing[responses.Holding],
)
async def release_owner(call: Call) -> responses.Listing[responses.Holding]:
    """End all holdings of an owner, in all networks, as one; answers what was held."""
    call.visitor.check(Need.ALLOCATE, ANY_NETWORK)
    found = await call.ledger.release_owner(Owner(call.params["owner"]), request=call.body.request, key=call.key)
    return responses.Listing(items=await in_turns(found, encode.holding))


async def _one(call: Call, kind: type) -> responses.Holding:
    [answer] = await call.ledger.apply([_operation(call, kind)], key=call.key)
    if not isinstance(answer, Holding):
        raise nobody_holds(call.params["address"], call.params["network"])
    return encode.holding(answer)


async def _maybe(call: Call, kind: type) -> responses.Answer:
    [answer] = await call.ledger.apply([_operation(call, kind)], key=call.key)
    return encode.answer(answer)


def _operation(call: Call, kind: type) -> Operation:
    made: Operation = request_bodies.read_body(
        kind, call.body, network=call.params["network"], address=call.params["address"]
    )
    return made
