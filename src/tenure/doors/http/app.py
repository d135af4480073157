"""The application: one request in, one answer out; whoever asks is known, counted, logged and kept within limits."""

import asyncio
import contextlib
import time
from dataclasses import replace
from typing import Any

from tenure.doors.http.access.shares import WAITING
from tenure.doors.http.non_api.non_api_routes import Outside
from tenure.doors.http.observe.request_log import Watch
from tenure.doors.http.routing.disconnects import while_there
from tenure.doors.http.routing.dispatcher import Dispatcher, Match
from tenure.doors.http.routing.endpoint import API, Call, Endpoint, Rests, Streaming
from tenure.doors.http.routing.etags import is_known
from tenure.doors.http.routing.principal import Visitor
from tenure.doors.http.routing.read_request import (
    BEFORE,
    Before,
    Gone,
    Receive,
    Scope,
    Send,
    check_headers,
    header,
    known_request_id,
    read_if_match,
    read_json,
    read_key,
    read_query,
    read_whole,
)
from tenure.doors.http.routing.send_response import (
    STREAM,
    WHOLE,
    send_bytes,
    send_json,
    send_problem,
    unfinished,
    written_whole,
)
from tenure.doors.http.routing.side_loop import distant
from tenure.doors.http.server_state import Site
from tenure.kernel.errors import KeyReused, StoreUnavailable, TenureError
from tenure.wire.http_errors import Fault, Forbidden, Overloaded, RateLimited, Unauthorised
from tenure.wire.problems import status_of

BELOW = API.encode()
BEFORE_THE_LEDGER = (Forbidden, Overloaded, RateLimited, StoreUnavailable, Unauthorised)
"""Refusals that tell nothing of what the ledger did when the same was asked before."""


class Application:
    """The ASGI application over one site."""

    def __init__(self, site: Site, endpoints: list[Endpoint]) -> None:
        self._site = site
        self._limits = site.limits
        self._dispatcher = Dispatcher(endpoints)
        self._outside = Outside(site)
        site.journal.know(endpoints)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Cost beside the ledger's work: some 60 µs, and as many in the server's parser."""
        # A request that tried the short way first brings its id and its start along, so it has one id and one log line.
        before: Before | None = scope.get(BEFORE)
        began = time.perf_counter() if before is None else before.began
        # Of a header that comes twice this keeps the last only; `check_headers` refuses headers that must not come
        # twice.
        headers = dict(scope["headers"])
        request_id = known_request_id(headers) if before is None else before.request_id
        request_id = request_id or self._site.journal.next_id()
        watch = self._site.journal.begin(scope["method"], scope["raw_path"], scope.get("client"), request_id, began)
        try:
            await self._serve(scope, headers, receive, send, watch)
        except Gone:
            # No answer is sent: the number is for the log and the counters alone.
            watch.status = 499
        except TenureError as error:
            watch.error = _doubtful(error) if before is not None and before.in_doubt else error
            watch.status = status_of(watch.error)
            with contextlib.suppress(RuntimeError):  # the answer may have begun
                watch.size = await send_problem(send, watch.error, request_id)
        except asyncio.CancelledError:  # the server stops and could wait no longer; nobody waits for this task
            watch.error = unfinished()
            watch.status = status_of(watch.error)
            with contextlib.suppress(RuntimeError):
                watch.size = await send_problem(send, watch.error, request_id)
        except Exception as error:  # a fault of ours: the caller learns nothing of it but its number
            watch.fault = error
            watch.status = 500
            with contextlib.suppress(RuntimeError):  # the answer may have begun
                watch.size = await send_problem(send, _internal(), request_id)
        finally:
            watch.end()

    async def _serve(
        self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send, watch: Watch
    ) -> None:
        """Find out what is asked and by whom, read it, and do it."""
        # Inside of `_serve`, so that a refusal has a line in the log and a problem document like all others.
        check_headers(scope["headers"], headers, scope["http_version"])
        if not scope["raw_path"].startswith(BELOW):
            await self._outside(scope, headers, receive, watch.wrap(send), watch.request_id)
            return
        match = self._dispatcher.find("GET" if scope["method"] == "HEAD" else scope["method"], scope["raw_path"])
        watch.route = match.endpoint
        access, shares = self._site.access, self._site.shares
        # `known` answers from memory without a task switch; it leaves everything unusual to `admit`.
        visitor = access.known(headers, match) or await access.admit(scope, headers, match)
        watch.visitor = visitor
        share = shares.admit(visitor)  # before the body, which may come slowly
        try:
            await self._admitted(scope, headers, receive, send, watch, match, visitor)
        finally:
            shares.end(share)

    async def _admitted(
        self,
        scope: Scope,
        headers: dict[bytes, bytes],
        receive: Receive,
        send: Send,
        watch: Watch,
        match: Match,
        visitor: Visitor,
    ) -> None:
        """Read what a caller wants who may ask it, and do it."""
        raw = b""
        if match.endpoint.body is not None:
            limits = self._limits
            raw = await read_whole(headers, receive, most=limits.body_bytes, within_s=limits.body_s)
        call = self._read(scope, headers, raw, match, visitor, watch.request_id)
        if match.endpoint.streams:
            call.headers = headers
            await self._stream(scope, receive, watch.wrap(send), match.endpoint, call)
        elif match.endpoint.waits and call.body.wait_s:
            with self._site.shares.counted_as(WAITING, visitor):
                await while_there(receive, self._do(match.endpoint, call, scope, send, watch), self._site.stopping)
        else:
            await self._do(match.endpoint, call, scope, send, watch)

    def _read(
        self, scope: Scope, headers: dict[bytes, bytes], raw: bytes, match: Match, visitor: Visitor, request_id: str
    ) -> Call:
        endpoint = match.endpoint
        query = read_query(endpoint, scope["query_string"])
        body = None if endpoint.body is None else read_json(endpoint.body, raw, headers.get(b"content-type"))
        if_match = read_if_match(headers, needed=endpoint.rests is Rests.NEEDS)
        if_none_match = header(headers, b"if-none-match")
        key = read_key(headers, visitor.id) if endpoint.method == "POST" else None
        ledger = self._site.ledger.asked_by(visitor.actor, request_id=request_id)
        return Call(self._site, ledger, visitor, match.params, query, body, key, if_match, if_none_match, request_id)

    async def _stream(self, scope: Scope, receive: Receive, send: Send, endpoint: Endpoint, call: Call) -> None:
        stream: Streaming = await endpoint.handler(call)
        if scope["method"] == "HEAD":
            await send_bytes(send, 200, b"", [STREAM], call.request_id)
        else:
            await stream(receive, send)

    async def _apart(self, endpoint: Endpoint, call: Call) -> Any:
        """Have a request worked on beside this loop; what it asks of the ledger is done here."""
        apart = replace(call, ledger=distant(call.ledger))
        return await self._site.side.run(lambda: endpoint.handler(apart), call.visitor.id)

    async def _do(self, endpoint: Endpoint, call: Call, scope: Scope, send: Send, watch: Watch) -> None:
        try:
            answer = await (self._apart(endpoint, call) if endpoint.apart else endpoint.handler(call))
        except KeyReused as error:
            raise call.own_words(error) from None
        if endpoint.edits:
            # At once on this server; the others hear of it from the log, or look again within two seconds.
            self._site.access.forget_names()
        status = 204 if endpoint.answer is None else endpoint.status
        # Only after the handler: it is the handler that puts the ETag into the head.
        if call.if_none_match is not None and endpoint.method == "GET" and is_known(call):
            status, answer = 304, None
        watch.status = status
        whole = scope["extensions"].get(WHOLE) if "extensions" in scope and scope["method"] != "HEAD" else None
        # 0 says that nothing was written: an answer in one piece is never empty.
        watch.size = written_whole(whole, status, answer, call.head, call.request_id) or await send_json(
            send, status, answer, call.head, call.request_id
        )


def _doubtful(error: TenureError) -> TenureError:
    """Tell of a refusal after a first try of which nobody knows the end: what the ledger itself says, it knows."""
    return StoreUnavailable(error.message, outcome="unknown") if isinstance(error, BEFORE_THE_LEDGER) else error


def _internal() -> TenureError:
    return Fault("the server met a fault of its own; its log tells more under this request id")
