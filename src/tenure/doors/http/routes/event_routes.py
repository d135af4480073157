"""The log, as it grows: server-sent events."""

from typing import Annotated

from msgspec import Meta

from tenure.doors.http.access.shares import STREAMS
from tenure.doors.http.events.sse import Stream
from tenure.doors.http.routing.endpoint import Call, RouteSection, Streaming
from tenure.doors.http.routing.log_filter import Filter, WantedChanges
from tenure.doors.http.routing.principal import Need
from tenure.doors.http.routing.read_request import Receive, Send
from tenure.doors.http.routing.send_response import ALWAYS, STREAM
from tenure.kernel.digits import LONGEST_STORED, read_digits
from tenure.kernel.errors import Invalid
from tenure.wire import responses

events = RouteSection("events", "The log as it grows, as server-sent events.")

LAST_ID = b"last-event-id"
NEWEST = 1 << 62


class Followed(WantedChanges, kw_only=True, forbid_unknown_fields=True):
    """Which entries of the log, and from where."""

    after: (
        Annotated[int, Meta(ge=0, le=NEWEST, description="Begin behind this number; else with what comes next.")] | None
    ) = None


@events.route("GET", "/events", need=Need.READ_OWN, query=Followed, answer=responses.Change, streams=True)
async def follow_changes(call: Call) -> Streaming:
    """Follow the log: every change once, in commit order, as server-sent events that can be resumed.

    Each event is named change, has the change's number as its id and the change itself as its data. A reader that
    reconnects with Last-Event-ID goes on behind it, on whichever server. Where the log no longer reaches back that far
    the answer is 410; if that happens inside a stream, an event named expired ends it.
    """
    site = call.site
    # Checked here, while a refusal can still be the whole answer; counted only when the stream begins.
    site.shares.check(STREAMS, call.visitor)
    newest = await call.ledger.last_change()
    said = _last_id(call)
    after = call.query.after if said is None else said
    after = newest if after is None else after
    if after > newest:
        raise Invalid(f"after: {after} is ahead of the log, whose newest change is {newest}", field="after")
    fits = Filter(call.query, call.visitor)
    async for _ in call.ledger.changes(after, limit=1):  # a cursor that is too old is told before the stream begins
        pass
    head = {"type": "http.response.start", "status": 200, "headers": _head(call)}

    async def stream(receive: Receive, send: Send) -> None:
        with site.shares.counted_as(STREAMS, call.visitor):  # counted before the head: others come while that is sent
            await send(head)
            await Stream(site.events, call.ledger, fits, after).run(receive, send, welcome, site.stopping)

    async def welcome() -> bool:
        good: bool = await site.access.still_good(call.visitor)
        return good

    return stream


def _last_id(call: Call) -> int | None:
    """Read where the reader left off; it comes before what the URL says, which a browser repeats."""
    text = call.headers.get(LAST_ID, b"").decode("latin-1").strip()
    if not text:
        return None
    number = read_digits(text, longest=LONGEST_STORED)
    if number is None:
        raise Invalid(f"Last-Event-ID: the number of a change is needed, not {text[:80]!r}", field="Last-Event-ID")
    return number


def _head(call: Call) -> list[tuple[bytes, bytes]]:
    return [
        STREAM,
        (b"x-accel-buffering", b"no"),  # proxies that gather answers would keep events back
        (b"x-request-id", call.request_id.encode()),
        *ALWAYS,
    ]
