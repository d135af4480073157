"""ETags: which reading of a thing a change rests on.

A network is known by its uuid and its serial number, which every edit raises; what lies in a network has the network's.
A holding is known by its generation and a mark of all that is written on it, a space by its version, a paper by its
revision. What ``If-Match`` says is made sure of inside the transaction that makes the change.
"""

import json
from collections.abc import Sequence

from tenure.doors.http.routing.endpoint import Call
from tenure.kernel.digits import LONGEST_STORED, read_digits
from tenure.kernel.errors import Conflict, NotOwner
from tenure.kernel.holdings.fingerprint import mark_of
from tenure.kernel.holdings.holding_model import Holding, Paper
from tenure.kernel.plan.edits import AddNetwork, Edit
from tenure.kernel.plan.plan_model import Configuration, Network
from tenure.service.apply.operations import Expect, ExpectHolding, Operation
from tenure.wire import encode, responses
from tenure.wire.http_errors import PreconditionFailed

ANY = "*"
WARNINGS = "x-warnings"
"""The header of an answer without body that says what an edit did beside what was asked."""
LONGEST_WARNINGS = 4000
"""Characters of that header: proxies refuse heads of more than 8 kB."""
RESTED_ON = frozenset({"serial", "mark", "generation"})
"""Fields of a Conflict that tell that a thing is no longer as it was read."""


def etag_of(thing: Network | Holding | Configuration | Paper) -> str:
    """Return the ETag of a thing as it is."""
    if isinstance(thing, Network):
        return f'"{thing.uuid}.{thing.serial}"'
    if isinstance(thing, Holding):
        return f'"{thing.generation}.{mark_of(thing.row)}"'
    if isinstance(thing, Configuration):
        return f'"{thing.space}.{thing.version}"'
    return f'"{thing.revision}"'


def tell_etag(call: Call, thing: Network | Holding | Configuration | Paper) -> None:
    """Say in the answer's head which reading this is."""
    call.head["etag"] = etag_of(thing)


def is_known(call: Call) -> bool:
    """Tell whether whoever asks has this very reading already (If-None-Match)."""
    etag = call.head.get("etag")
    said = [_bare(each) for each in (call.if_none_match or "").split(",")]
    return etag is not None and (ANY in said or _bare(etag) in said)


def _bare(etag: str) -> str:
    """Return an ETag without its quotes; compression on the way may have made it a weak one."""
    return etag.strip().removeprefix("W/").strip('"')


async def edited(call: Call, edit: Edit) -> responses.Network:
    """Make one edit as ``_edited`` does, and return the network, which is still there."""
    network = await _edited(call, edit)
    assert network is not None, "only the removal of a network leaves none"
    return network


async def _edited(call: Call, edit: Edit) -> responses.Network | None:
    """Make one edit under the idempotency key and, where the caller said so, only on the network he has read.

    Returns None if the edit removed the network.
    """
    operations: list[Operation] = [edit]
    # A network that is only being added has no earlier reading to rest on.
    if call.if_match is not None and _bare(call.if_match) != ANY and not isinstance(edit, AddNetwork):
        operations.insert(0, _expectation(call.if_match, edit.network))
    # The last answer: the expectation stands before the edit, and has an answer, too.
    network = (await applied(call, operations))[-1]
    if not isinstance(network, Network):
        return None
    tell_etag(call, network)
    return encode.network(network)


async def edited_away(call: Call, edit: Edit) -> None:
    """Make one edit that removes something: the answer has no body, so its head says what the edit did beside that."""
    network = await _edited(call, edit)
    if network is not None and network.warnings:
        call.head[WARNINGS] = warnings_text(network.warnings)


def warnings_text(warnings: Sequence[str]) -> str:
    """Write warnings as a list in JSON, in ASCII; of many as many as a head can carry, and how many more there are."""
    written: list[str] = []
    length = 0
    for text in map(json.dumps, warnings):
        length += len(text) + len(", ")
        if length > LONGEST_WARNINGS:  # no more can fit, so no more are written: there may be thousands
            break
        written.append(text)
    else:
        return f"[{', '.join(written)}]"
    # The words on how many more there are need room, too.
    while written:
        more = json.dumps(f"and {len(warnings) - len(written)} more")
        if len(head := f"[{', '.join([*written, more])}]") <= LONGEST_WARNINGS:
            return head
        written.pop()
    return json.dumps([f"{len(warnings)} warnings"])


async def applied(call: Call, operations: list[Operation]) -> list[object]:
    """Make several operations one, and tell whoever rests on an old reading that it is old."""
    try:
        return [*await call.ledger.apply(operations, key=call.key)]
    except Conflict as error:
        # Exactly Conflict: its other subclasses (a name that exists, …) have nothing to do with If-Match.
        old = isinstance(error, NotOwner) or (type(error) is Conflict and error.field in RESTED_ON)
        if old and call.if_match is not None:
            raise PreconditionFailed(f"If-Match: {error.message}; read it again", field="If-Match") from None
        raise


def _expectation(if_match: str, network: str) -> Expect:
    # From the right: an imported network keeps its uuid, which may be any name, and have dots.
    uuid, _, serial = _bare(if_match).rpartition(".")
    number = read_digits(serial, longest=LONGEST_STORED)
    if number is None or not uuid:
        raise no_etag(if_match, "network")
    return Expect(network=network, serial=number, uuid=uuid)


def expected_holding(if_match: str, holding: Holding) -> list[Operation]:
    """Return what makes sure that a holding is as it was read, or say that it is not."""
    given = _bare(if_match)
    if given == ANY:
        return []
    said, _, mark = given.rpartition(".")
    generation = read_digits(said, longest=LONGEST_STORED)
    if generation is None or not mark.isalnum():
        raise no_etag(if_match, "holding")
    address, owner = holding.address, holding.owner
    return [ExpectHolding(network=holding.network, address=address, owner=owner, generation=generation, mark=mark)]


def no_etag(if_match: str, kind: str) -> PreconditionFailed:
    """Say that what was sent is the ETag of no such thing."""
    return PreconditionFailed(f"If-Match: {if_match[:80]!r} is no ETag of a {kind}; read it again", field="If-Match")
