"""Connections that serve plain allocations themselves, by the shortcut, and leave the rest to the application."""

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle
from uvicorn.server import ServerState

from tenure.doors.http.connection.fast_allocate import Shortcut
from tenure.doors.http.connection.limits_protocol import GuardedProtocol
from tenure.doors.http.connection.repeated_heads import Head, Repeat, repeat_of
from tenure.doors.http.routing.read_request import BEFORE, Before
from tenure.doors.http.server_state import Site
from tenure.kernel.errors import TenureError
from tenure.wire.problems import status_of

CLOSE = b"connection: close\r\n"

CHANCES = 8
"""How many heads in a row are remembered that never come again; then a caller is believed to send none twice."""


class _Nobody:
    """Whom the server tells of news of a request; on the short way nobody waits for it."""

    def set(self) -> None:
        """Hear it."""


class ShortRequest:
    """A request on the short way. It stands in the place of the server's own cycle, and has what the server sets."""

    message_event = _Nobody()
    response_started = False
    response_complete = False
    disconnected = False
    keep_alive = True
    more_body = False

    def __init__(self, connection: "FastProtocol", head: Head, body: bytes = b"") -> None:
        self._connection = connection
        self.head = head
        self.client = connection.client
        self.body = body

    def answer(self, head: bytes, body: bytes) -> None:
        """Write an answer; whoever went away meanwhile gets none."""
        self.response_complete = True
        self._connection.answer_short(self, head, body)

    def refuse(self, error: TenureError, body: bytes, request_id: str) -> None:
        """Write a problem, and close."""
        self.response_complete = True
        if not self._connection.transport.is_closing():
            self._connection.write_problem(status_of(error), error, body, request_id)

    def begin_anew(self, before: Before) -> None:
        """Go the long way, where it is known what was done before."""
        self._connection.go_long_way(self, before, whole=True)


class FastProtocol(GuardedProtocol):
    """One connection. What may go the short way is known when its head is there, and decided when its body is."""

    def __init__(
        self,
        site: Site,
        shortcut: Shortcut,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(site, config, server_state, app_state, _loop)
        self._shortcut = shortcut
        self._short: ShortRequest | None = None
        """A request whose head is there, and whose body may follow at once."""
        self._between = True
        """Whether the last request has been read to its end, and nothing of the next."""
        self._taken: ShortRequest | None = None
        """A request that went the short way by what came last."""
        self._repeat: Repeat | None = None
        self._chances = CHANCES

    def data_received(self, data: bytes) -> None:
        """Read what has come; a body that did not come with its head is waited for on the long way."""
        # Read before the parser runs, which changes it: only data that begins with a head can be remembered as one.
        between = self._between
        if between and self._repeat is not None and self._is_idle() and self._served_again(data):
            return
        super().data_received(data)
        taken, self._taken = self._taken, None
        if taken is not None and between and self._chances:
            self._chances -= 1
            # Two requests in one piece give no head to keep; the remembered head stays good.
            self._repeat = repeat_of(data, taken.head, taken.body) or self._repeat
        if self._short is not None:
            short, self._short = self._short, None
            if not self.transport.is_closing():  # else it was no HTTP behind its head, and was told so
                self.go_long_way(short, None, whole=False)

    def _served_again(self, data: bytes) -> bool:
        """Serve a request whose head came before; tell whether it is one."""
        assert self._repeat is not None
        # Only the parser's way counts the bytes of a head; a head that a long key makes too large is refused there.
        again = self._repeat.read(data)
        if again is None or len(data) - len(again[1]) > self._most_head:
            return False
        # data_received of the base class resets these, and this request does not pass through it.
        self._idle_since = self._head_since = None
        self._head_bytes = 0
        self._chances = CHANCES
        self._serve(ShortRequest(self, *again))
        return True

    def on_message_begin(self) -> None:
        """Begin a head; what only the long way needs is made when it is gone."""
        self._between = False
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        """Begin the request, or wait for its body if it may go the short way."""
        # The parser stops behind an offer to speak something else; only the base class feeds the request again.
        may = self.parser.get_method() == b"POST" and self._is_free() and not self.parser.should_upgrade()
        head = self._shortcut.leads_to(self.url, self.headers) if may else None
        if head is not None:
            self._end_head()
            self._short = ShortRequest(self, head)
            return
        # The base class empties these when a message begins, so they are put back after its late call.
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(headers)
        super().on_headers_complete()

    def _is_free(self) -> bool:
        """Tell whether a request would be answered next, over a connection that stays."""
        parser = self.parser
        # The scope and the status line of the short way say HTTP/1.1, and no `100 Continue` is ever sent there.
        if self.expect_100_continue or not parser.should_keep_alive() or parser.get_http_version() != "1.1":
            return False
        return self._is_idle()

    def _is_idle(self) -> bool:
        """Tell whether nothing is to be answered before a request that comes now."""
        answered = self.cycle is None or self.cycle.response_complete
        return answered and not self.flow.write_paused and not self.transport.is_closing()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        if self._short is None:
            super().on_body(body)
        else:
            self._short.body += body

    def on_message_complete(self) -> None:
        """End the request; on the short way it is served now."""
        self._between = True
        if self._short is None:
            super().on_message_complete()
            return
        short, self._short = self._short, None
        # What the base class does at the end of a message; here there is no cycle of the server to end.
        self._in_head = True
        self._body_since = None
        if self._serve(short):
            self._taken = short

    def _serve(self, short: ShortRequest) -> bool:
        """Serve a whole request; tell whether it could go the short way."""
        self.cycle = short  # type: ignore[assignment]
        taken = self._shortcut.take(short)
        if not taken:
            self.go_long_way(short, None, whole=True)
        return taken

    def answer_short(self, short: ShortRequest, head: bytes, body: bytes) -> None:
        """Write the answer of a request that went the short way, and go on with the next."""
        if not self.transport.is_closing():
            # A server that stops takes keep_alive away, and so does a refusal of what came behind this request.
            last = b"" if short.keep_alive else CLOSE
            self.transport.write(b"".join((STATUS_LINE[200], self._always(), last, head, body)))
            if last:
                self.transport.close()
        self.on_response_complete()

    def go_long_way(self, short: ShortRequest, before: Before | None, *, whole: bool) -> None:
        """Hand a request to the application, as the server would have; what was sent after it waits for its turn."""
        cycle = RequestResponseCycle(
            scope=self._scope_of(short, before),  # type: ignore[arg-type]
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            # A request that expects `100 Continue` is never on the short way.
            expect_100_continue=False,
            keep_alive=short.keep_alive,
            on_response=self.on_response_complete,
        )
        cycle.body += short.body
        cycle.more_body = not whole
        # The connection may have been lost during the batch: the base class noted that on the short request.
        cycle.disconnected = short.disconnected
        # `receive` of the server waits for this event, and behind a whole body no more data comes that would set it.
        if short.body or whole:
            cycle.message_event.set()
        # Another request may be the connection's newest cycle by now. It must stay so: the parser adds its body there.
        if self.cycle is short or not whole:  # type: ignore[comparison-overlap]
            self.cycle = cycle
        self._start_asgi_task(cycle, self.app)

    def _scope_of(self, short: ShortRequest, before: Before | None) -> dict[str, Any]:
        return {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            # `leads_to` lets no header in that comes twice, so the dictionary has lost none.
            "headers": [*short.head.fields.items()],
            "state": {},
            "method": "POST",
            # PLAIN_PATH lets nothing encoded in, so the path and the raw path are the same.
            "path": short.head.url.decode("ascii"),
            "raw_path": short.head.url,
            "query_string": b"",
            "extensions": self._extensions,
            BEFORE: before,
        }
