"""Connections that keep to the limits: heads that are too large or too slow, readers who do not read.

The server's parser takes heads of any size and waits for them for ever. Here every connection counts its head, and
once a second all are looked at: no timer is set for a request.
"""

import asyncio
from typing import Any

import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from tenure.doors.rest.answers import ALWAYS, PROBLEM, WHOLE, encode, problem_head
from tenure.doors.rest.site import Site
from tenure.kernel.errors import TenureError
from tenure.remote.problems import problem_of, status_of
from tenure.remote.refusals import Malformed, Overloaded, TooLarge, TooSlow

LINGER_S = 5.0
"""How long the rest of a body is still taken in, after its answer was sent: or the caller might not see the answer."""

HEAD_TOO_LARGE = 431


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

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self._site.limits.connections:
            self._refuse(Overloaded("too many connections; try again"))

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head; the rest is the parser's."""
        self._idle_since = None
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_since is None:
                self._head_since = self.loop.time()
        super().data_received(data)
        if self._in_head and self._head_bytes > self._most_head and not self.transport.is_closing():
            self._refuse(self._too_large())

    def on_headers_complete(self) -> None:
        """Begin the request, unless its head, which came in one piece, is too large."""
        if self._head_bytes > self._most_head:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > self._most_head:
                self._refusal = self._too_large()
                raise ValueError("the head is too large")
        self._in_head = False
        self._head_bytes = 0
        self._head_since = None
        self._body_since = self.loop.time()
        super().on_headers_complete()
        self.scope["extensions"] = self._extensions  # type: ignore[typeddict-item]

    def on_message_complete(self) -> None:
        """End the request; the next head may come."""
        self._in_head = True
        self._body_since = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, if one waits; else note since when nothing happens: a timer would cost more."""
        if self.pipeline:
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            self._idle_since = self.loop.time()

    def answer_whole(self, status: int, head: bytes, body: bytes) -> bool:
        """Write an answer in one piece, if nothing stands in the way; the usual way costs some 15 µs more."""
        cycle = self.cycle
        if cycle.response_started or cycle.disconnected or not cycle.keep_alive or self.pipeline:
            return False
        if self.flow.write_paused:
            return False
        cycle.response_started = cycle.response_complete = True
        self.transport.write(b"".join((STATUS_LINE[status], self._always(), head, body)))
        cycle.message_event.set()
        cycle.on_response()
        return True

    def _always(self) -> bytes:
        """Return the lines that the server itself puts into every head; they change once a second."""
        defaults = self.server_state.default_headers
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
        if self._stalls(now):
            self.transport.abort()
        elif self._head_since is not None and now - self._head_since > limits.head_s:
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
        peer = None if self.client is None else self.client[0]
        self._site.journal.note("refused", "info", code=error.code, reason=error.message, peer=peer)
        self._in_head, self._head_since = False, None
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        status = HEAD_TOO_LARGE if isinstance(error, TooLarge) else status_of(error)
        body = encode(msgspec.structs.replace(problem_of(error), status=status))
        head = [PROBLEM, (b"content-length", b"%d" % len(body)), (b"connection", b"close"), *ALWAYS]
        head += [(name.encode(), value.encode()) for name, value in problem_head(error).items()]
        lines = b"".join(b"%b: %b\r\n" % pair for pair in head)
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[status], lines, body))
        self.transport.close()
