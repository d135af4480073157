"""The ledger as a whole: several operations as one, verify, sweep, trim, archive."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Union

import msgspec
from msgspec import Meta

from tenure.doors.http.routing.endpoint import Call, RouteSection
from tenure.doors.http.routing.principal import ANY_NETWORK, Need, Visitor
from tenure.doors.http.routing.send_response import in_turns
from tenure.kernel.errors import Invalid
from tenure.kernel.plan.edits import Edit
from tenure.service.apply.operations import (
    Allocate,
    AllocateRun,
    Expect,
    ExpectHolding,
    ExpectNoHoldings,
    ExpectNoPapers,
    ExpectPaper,
    IgnoreConflicts,
    Operation,
    ReleaseOwner,
    RemovePaper,
    WritePaper,
)
from tenure.service.ledger.ledger_api import MOST_DAYS
from tenure.wire import encode, responses
from tenure.wire.request_bodies import OPERATION_BODIES, operation_of

whole = RouteSection("ledger", "The ledger as a whole.")

MOST_OPERATIONS = 10_000
"""Operations of one request: they are one transaction, for which whoever writes in the same spaces waits."""

DEEPEST = 64
RUN: Any = OPERATION_BODIES[AllocateRun]
PAPERS = (WritePaper, RemovePaper, ExpectPaper, ExpectNoPapers)
OWN_PAPERS = "rest."

AnyOperation: Any = Union[tuple(OPERATION_BODIES.values())]  # noqa: UP007  # made at run time


class Operations(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Operations that take effect together or not at all."""

    operations: Annotated[list[AnyOperation], Meta(min_length=1, max_length=MOST_OPERATIONS)]


class Nothing(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An empty body."""


class Trim(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Up to where the log is dropped."""

    before: Annotated[int, Meta(ge=1, le=1 << 62, examples=[1000])]


class Archive(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How long changes stay in the log."""

    keep_days: Annotated[float, Meta(ge=0, le=MOST_DAYS, examples=[90.0])]


class Self(responses.Shape, frozen=True, kw_only=True):
    """Who asks, and what he may do. ``csrf`` is what his unsafe requests must carry, if he came by a cookie."""

    name: str
    read: bool
    admin: bool
    networks: list[str]
    anonymous: bool
    csrf: str | None


@whole.route("GET", "/self", need=Need.OPEN, answer=Self)
async def get_self(call: Call) -> Self:
    """Tell who asks, and what he may do."""
    visitor = call.visitor
    return Self(
        name=visitor.name,
        read=visitor.may(Need.READ),
        admin=visitor.admin,
        networks=sorted(visitor.networks),
        anonymous=visitor.anonymous,
        csrf=visitor.csrf,
    )


@whole.route("POST", ":apply", need=Need.OPEN, body=Operations, answer=responses.Listing[responses.Answer])
async def apply(call: Call) -> responses.Listing[responses.Answer]:
    """Make several edits, allocations, releases and transfers one transaction: all of it, or nothing.

    Each operation has one answer. Those that edit one network have the network as all of them left it: the last of
    them has it whole, the others say by network_at where it stands; a network that is gone is in none.
    """
    operations = await _operations(call)
    answers = await call.ledger.apply(operations, key=call.key)
    if any(isinstance(operation, Edit) for operation in operations):
        call.site.access.forget_names()
    return responses.Listing(items=await in_turns(encode.answers(answers), _itself))


def _itself(answer: responses.Answer) -> responses.Answer:
    return answer


@whole.route(
    "POST", ":rehearse", need=Need.OPEN, body=Operations, answer=responses.Listing[responses.Answer], keyed=False
)
async def rehearse(call: Call) -> responses.Listing[responses.Answer]:
    """Tell what :apply would answer now, or refuse what it would refuse; nothing is changed, kept or logged."""
    answers = await call.ledger.rehearse(await _operations(call))
    return responses.Listing(items=await in_turns(encode.answers(answers), _itself))


async def _operations(call: Call) -> list[Operation]:
    """Return the operations of a body, all of which whoever asks may do."""
    asked = sum(len(body.owners) if type(body) is RUN else 1 for body in call.body.operations)
    if asked > MOST_OPERATIONS:
        told = f"operations: at most {MOST_OPERATIONS}, each owner of a run counted, not {asked}"
        raise Invalid(told, field="operations")

    def read(body: Any) -> Operation:
        operation = operation_of(body)
        check_may(call.visitor, operation)
        return _own_key(call.visitor, operation)

    return await in_turns(call.body.operations, read)


def _own_key(visitor: Visitor, operation: Operation) -> Operation:
    """Keep one visitor's idempotency keys apart from another's."""
    if isinstance(operation, Allocate) and operation.key is not None:
        return replace(operation, key=f"{visitor.id}/{operation.key}")
    return operation


def check_may(visitor: Visitor, operation: Operation) -> None:
    """Refuse an operation that whoever asks may not do."""
    if isinstance(operation, PAPERS):
        # Before the scope is looked at: these papers are closed to an admin, too.
        if operation.kind.startswith(OWN_PAPERS):
            raise Invalid(f"kind: papers of kind {operation.kind!r} are the server's own", field="kind")
        visitor.check(Need.ADMIN)
        if isinstance(operation, WritePaper):
            _check_depth(operation.document)
    elif isinstance(operation, ReleaseOwner):
        visitor.check(Need.ALLOCATE, ANY_NETWORK)
    elif isinstance(operation, Expect | ExpectHolding | ExpectNoHoldings):
        visitor.check(Need.READ, operation.network)
    elif isinstance(operation, Edit | IgnoreConflicts):
        visitor.check(Need.ADMIN)
    else:
        visitor.check(Need.ALLOCATE, operation.network)


def _check_depth(document: object) -> None:
    """Refuse a document with so many things inside each other that somebody could not read it again."""
    # Level by level, without recursion, which such a document would exhaust.
    inside: list[object] = [document]
    for _ in range(DEEPEST):
        inside = [each for thing in inside for each in _parts(thing)]
        if not inside:
            return
    raise Invalid(f"document: more than {DEEPEST} things inside each other", field="document")


def _parts(thing: object) -> Iterable[object]:
    if isinstance(thing, Mapping):
        return thing.values()
    return thing if isinstance(thing, list) else ()


@whole.route("POST", ":verify", need=Need.ADMIN, body=Nothing, answer=responses.Listing[responses.Breach], keyed=False)
async def verify(call: Call) -> responses.Listing[responses.Breach]:
    """Check every invariant; an empty list is a clean ledger."""
    return responses.Listing(items=[encode.breach(each) for each in await call.ledger.verify()])


@whole.route("POST", ":sweep", need=Need.ADMIN, body=Nothing, answer=responses.Listing[responses.Holding], keyed=False)
async def sweep(call: Call) -> responses.Listing[responses.Holding]:
    """Remove what is overdue: pending and cooling holdings, dead claims, old idempotency keys."""
    return responses.Listing(items=await in_turns(await call.ledger.sweep(), encode.holding))


@whole.route("POST", "/changes:trim", need=Need.ADMIN, body=Trim, answer=responses.Newest, keyed=False)
async def trim_changes(call: Call) -> responses.Newest:
    """Drop the log below a number, and what is archived of it; readers who still need it will be told."""
    await call.ledger.trim_changes(call.body.before)
    return responses.Newest(last=await call.ledger.last_change())


@whole.route("POST", "/changes:archive", need=Need.ADMIN, body=Archive, answer=responses.Archived, keyed=False)
async def archive_changes(call: Call) -> responses.Archived:
    """Move changes older than so many days from the log into the archive, which history still reads."""
    return responses.Archived(moved=await call.ledger.archive_changes(call.body.keep_days))


@whole.route("GET", "/changes/last", need=Need.READ_OWN, answer=responses.Newest)
async def last_change(call: Call) -> responses.Newest:
    """Read the number of the newest entry of the log."""
    return responses.Newest(last=await call.ledger.last_change())
