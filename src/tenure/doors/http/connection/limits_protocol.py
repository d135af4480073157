"""Connections that keep to the limits: heads that are too large or too slow, readers who do not read.

The server's parser takes heads of any size and waits for them for ever. Here every connection counts its head, and
once a second all are looked at: no timer is set for a request.
"""

import asyncio
from typing import Any

import httptools
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from tenure.doors.http.routing.send_response import ALWAYS, PROBLEM, WHOLE, encode, problem_head
from tenure.doors.http.server_state import Site
from tenure.kernel.errors import TenureError
from tenure.wire.http_errors import Malformed, Overloaded, TooLarge, TooSlow, VersionNotSupported
from tenure.wire.problems import problem_of, status_of

MOST_IN_LINE = 128
"""Requests on one connection that may wait for the answers before theirs."""

UPGRADING = frozenset({b"connection", b"http2-settings", b"upgrade"})
"""Headers by which a client offers to speak something else."""

LINGER_S = 5.0
"""How long the rest of a body is still taken in, after its answer was sent: or the caller might not see the answer."""

HEAD_TOO_LARGE = 431

UNREAD = "0.0"
"""What the parser says of a version that it could not read."""


class Flow(FlowControl):
    """Reads on only when no request waits in line: a body that is waited for lies before those who do."""

    def __init__(self, connection: "GuardedProtocol") -> None:
        super().__init__(connection.transport)
        self._line = connection.pipeline

    def resume_reading(self) -> None:
        """Read on, if nobody waits in line."""
        if not self._line:
            super().resume_reading()


class GuardedProtocol(HttpToolsProtocol):
    """One connection. Cost of a request beside the parser's own: three looks at the loop's clock."""

    def __init__(
        self,
        site: Site,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._read_afresh()
        self._site = site
        self._most_head = site.limits.head_bytes
        self._in_head = True
        self._head_bytes = 0
        self._head_since: float | None = self.loop.time()
        self._body_since: float | None = None
        self._unread_since: float | None = None
        self._unread = 0
        self._refusal: TenureError | None = None
        self._idle_since: float | None = None
        self._extensions = {WHOLE: self.answer_whole}
        self._defaults: list[tuple[bytes, bytes]] = []
        self._default_lines = b""
        self._served: RequestResponseCycle | None = None
        self._offered = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, unless there are too many."""
        super().connection_made(transport)
        # The base class has just made a plain FlowControl, which would read on while requests wait in line.
        self.flow = Flow(self)
        # The base class has counted this connection already.
        if len(self.connections) > self._site.limits.connections:
            self._refuse(Overloaded("too many connections; try again"))

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head; the rest is the parser's."""
        self._idle_since = None
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_since is None:
                self._head_since = self.loop.time()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if self._offered:
                self._decline(data[offer.args[0] :])
        except httptools.HttpParserError:
            # Called for the refusal that it notes, which send_400_response then takes.
            self._check_version()
            self.send_400_response("")
        # A head that is still coming has not met _end_head, which looks at whole heads only.
        if self._in_head and self._head_bytes > self._most_head and not self.transport.is_closing():
            self._refuse(self._too_large())

    def _read_afresh(self) -> None:
        """Begin with a parser of our own: it takes any version, so that other ones are refused for what they are."""
        self.parser = httptools.HttpRequestParser(self)
        # uvicorn sets the first leniency, too: bytes behind `connection: close` must not spoil the answer before them.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True, lenient_version=True)

    def _check_version(self) -> bool:
        """Tell whether the head speaks HTTP/1; of another major version, HTTP/2's preface too, the refusal is noted."""
        version = self.parser.get_http_version()
        if version[:2] == "1." or version == UNREAD:
            return True
        self._refusal = VersionNotSupported(f"HTTP/{version} is not spoken here; send HTTP/1.1")
        return False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; what comes behind a body as one is let be, or it would count as one, however much there is."""
        if self._in_head:
            super().on_header(name, value)

    def _decline(self, rest: bytes) -> None:
        """Read a request on as if it had not offered to speak something else, which the parser takes for granted."""
        version = self.parser.get_http_version().encode()
        head = [b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, version)]
        head += [b"%b: %b\r\n" % pair for pair in self.headers if pair[0] not in UPGRADING]
        # The header `connection` is among those left out above; that it asked for an end must not be lost.
        head += [] if self.parser.should_keep_alive() else [b"connection: close\r\n"]
        self._offered = False
        # The head is fed once more below, and counted once more.
        self._head_bytes = 0
        self._read_afresh()
        self.data_received(b"".join([*head, b"\r\n", rest]))

    def on_headers_complete(self) -> None:
        """Begin the request, unless its head, which came in one piece, is too large, or it waits with too many."""
        if not self._check_version():
            # The parser wraps what a callback raises in HttpParserError; data_received then sends the noted refusal.
            raise ValueError("another major version of HTTP")
        # The parser stops behind a head with an offer; data_received then feeds the request again without the offer.
        self._offered = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        if self._offered:
            return
        if len(self.pipeline) >= MOST_IN_LINE:
            self._refusal = Overloaded(f"more than {MOST_IN_LINE} requests before their answers on one connection")
            raise ValueError("too many requests wait in line")
        self._end_head()
        super().on_headers_complete()
        self.scope["extensions"] = self._extensions  # type: ignore[typeddict-item]

    def _end_head(self) -> None:
        # _head_bytes counts whole pieces of data, which may hold a body, too. The exact size is added up only above it.
        if self._head_bytes > self._most_head:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > self._most_head:
                self._refusal = self._too_large()
                raise ValueError("the head is too large")
        self._in_head = False
        self._head_bytes = 0
        self._head_since = None
        self._body_since = self.loop.time()

    def on_message_complete(self) -> None:
        """End the request; the next head may come."""
        if self._offered:
            return
        self._in_head = True
        self._body_since = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, if one waits; else note since when nothing happens: a timer would cost more."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.pipeline:
            # The base class puts requests in at the left, so the oldest request is at the right.
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        else:
            self._idle_since = self.loop.time()
        # Last, because Flow reads on only when the line is empty.
        self.flow.resume_reading()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        # With requests in line, `cycle` of the base class is the newest of them; a lost connection must reach this one.
        self._served = cycle
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of all requests; those in line are not begun any more."""
        self._forget_requests()
        super().connection_lost(exc)

    def _forget_requests(self) -> None:
        self.pipeline.clear()
        if self._served is not None:
            self._served.disconnected = True
            self._served.message_event.set()

    def answer_whole(self, status: int, head: bytes, body: bytes) -> bool:
        """Write an answer in one piece, if nothing stands in the way; the usual way costs some 15 µs more."""
        cycle = self.cycle
        # With requests in line, `cycle` is not the request that is answered now; `send` knows its own cycle.
        # Where the connection is to end, the server's own way says `connection: close`, and closes.
        if cycle.response_started or cycle.disconnected or not cycle.keep_alive or self.pipeline:
            return False
        # A reader who is behind is waited for on the server's own way.
        if self.flow.write_paused:
            return False
        cycle.response_started = cycle.response_complete = True
        self.transport.write(b"".join((STATUS_LINE[status], self._always(), head, body)))
        # As the server's own `send` does at the end of an answer: work that waits in `receive` learns of the end.
        cycle.message_event.set()
        cycle.on_response()
        return True

    def _always(self) -> bytes:
        """Return the lines that the server itself puts into every head; they change once a second."""
        defaults = self.server_state.default_headers
        # The server makes a new list each second, so comparing identities is enough.
        if defaults is not self._defaults:
            self._defaults = defaults
            self._default_lines = b"".join(b"%b: %b\r\n" % pair for pair in defaults)
        return self._default_lines

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, as a problem document like all others."""
        self._refuse(self._refusal or Malformed("the request is not HTTP that can be read"))

    def look(self, now: float) -> None:
        """Close the connection if it is too slow."""
        limits = self._site.limits
        # First of all: the call also notes how much is unread now, for the next look.
        if self._stalls(now):
            self._forget_requests()
            # `close` would first wait until the reader has taken the rest.
            self.transport.abort()
        elif self._head_since is not None and now - self._head_since > limits.head_s:
            # A connection on which nothing was ever sent gets no answer: a client may open connections in advance.
            if self._head_bytes:
                self._refuse(TooSlow(f"the head did not come within {limits.head_s:g} s"))
            else:
                self.transport.close()
        elif self._lingers(now):
            self.transport.abort()
        elif self._idle_since is not None and now - self._idle_since > limits.keep_alive_s:
            self.transport.close()

    def _lingers(self, now: float) -> bool:
        """Tell whether the rest of a body that was answered already is not worth waiting for."""
        if self._body_since is None or self.cycle is None or not self.cycle.response_complete:
            return False
        return now - self._body_since > self._site.limits.body_s + LINGER_S

    def _stalls(self, now: float) -> bool:
        """Tell whether the reader has taken nothing of what waits for him, for too long."""
        unread, before = self.transport.get_write_buffer_size(), self._unread
        self._unread = unread
        if unread == 0 or unread < before or self._unread_since is None:
            self._unread_since = now if unread else None
            return False
        return now - self._unread_since > self._site.limits.stall_s

    def _too_large(self) -> TenureError:
        return TooLarge(f"the head of the request has more than {self._most_head} bytes")

    def _refuse(self, error: TenureError) -> None:
        """Answer a request that never became one, and close; an answer that is under way is let be."""
        self._site.meter.count("refused_connections" if isinstance(error, Overloaded) else "bad_requests")
        peer, request_id = None if self.client is None else self.client[0], self._site.journal.next_id()
        said = {"code": error.code, "reason": error.message, "peer": peer, "request_id": request_id}
        self._site.journal.note("refused", "info", **said)
        # Bytes that still come must not be refused as a head once more.
        self._in_head, self._head_since = False, None
        if self.cycle is not None and not self.cycle.response_complete:
            if not self.cycle.more_body or self.cycle.response_started or self.pipeline:  # it is about a later one
                # The answer that is under way ends the connection, so nothing more is read.
                self.cycle.keep_alive = False
                self.flow.pause_reading()
                return
            self.cycle.disconnected = True  # the rest of its body will not come: nobody need wait for it
            self.cycle.message_event.set()
        # TooLarge is 413 for a body; RFC 6585 has another status for a head.
        status = HEAD_TOO_LARGE if isinstance(error, TooLarge) else status_of(error)
        body = encode(msgspec.structs.replace(problem_of(error, request_id), status=status))
        self.write_problem(status, error, body, request_id)

    def write_problem(self, status: int, error: TenureError, body: bytes, request_id: str) -> None:
        """Write a problem as the last thing on this connection."""
        head = [PROBLEM, (b"content-length", b"%d" % len(body)), (b"connection", b"close"), *ALWAYS]
        head.append((b"x-request-id", request_id.encode()))
        head += [(name.encode(), value.encode()) for name, value in problem_head(error).items()]
        lines = b"".join(b"%b: %b\r\n" % pair for pair in head)
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[status], lines, body))
        self.transport.close()
