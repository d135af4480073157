"""What is written down of every request: a line in the log, and the numbers for the metrics.

Never a body, a query, a cookie or an Authorization header. Cost of a request: below 10 µs, both together.
"""

import itertools
import secrets
import time
import traceback
from collections.abc import Sequence
from typing import Any

from tenure.doors.http.observe.counters import ServerCounters
from tenure.doors.http.observe.log_format import Clock, TextCache, as_json, as_word, console_note, json_note
from tenure.doors.http.observe.log_writer import Sink
from tenure.doors.http.routing.endpoint import API, Endpoint
from tenure.doors.http.routing.principal import Visitor
from tenure.doors.http.routing.read_request import Send
from tenure.doors.http.settings import Settings
from tenure.kernel.errors import TenureError

NOBODY = "-"

Client = tuple[str, int]
"""Where a request comes from: address and port."""


class Watch:
    """One request, while it runs. What most requests never set stands in the class: that is cheaper."""

    status = 0
    size = 0
    route: Endpoint | None = None
    visitor: Visitor | None = None
    error: TenureError | None = None
    fault: BaseException | None = None

    def __init__(
        self, journal: "Journal", method: str, path: bytes, client: Client | None, request_id: str, began: float
    ) -> None:
        self._journal = journal
        self.method = method
        self.path = path
        self.client = client
        self.request_id = request_id
        self.began = began

    def wrap(self, send: Send) -> Send:
        """Note status and size of an answer that is not sent in one piece by the application itself."""

        async def noting(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            else:
                self.size += len(message.get("body", b""))
            await send(message)

        return noting

    def end(self) -> None:
        """Write it down."""
        self._journal.end(self)


class Journal:
    """Writes down what happens: requests, faults, and what the server has to say itself."""

    def __init__(self, settings: Settings, meter: ServerCounters | None = None, sink: Sink | None = None) -> None:
        self._json = settings.log == "json"
        self.meter = ServerCounters() if meter is None else meter
        self.sink = Sink() if sink is None else sink
        self._clock = Clock()
        write = as_json if self._json else as_word
        self._written = TextCache(write)
        self._routes: dict[int, str] = {}
        # Random for each process: the ids of two servers, or of one that is started again, must differ in the log.
        self._mark = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    def know(self, endpoints: Sequence[Endpoint]) -> None:
        """Learn which routes there are, before the first request."""
        self.meter.know(endpoints)
        self._routes = {id(each): as_json(f"{API}{each.path}") for each in endpoints}

    def next_id(self) -> str:
        """Return an id for a request that has none: cheaper than chance for each, and as unlikely to come twice."""
        return f"{self._mark}{next(self._numbers):08x}"

    def begin(self, method: str, path: bytes, client: Client | None, request_id: str, began: float) -> Watch:
        """Begin to watch a request."""
        self.meter.begin()
        return Watch(self, method, path, client, request_id, began)

    def end(self, watch: Watch) -> None:
        """Count a request and write its line."""
        took = time.perf_counter() - watch.began
        self.meter.end(watch.path, watch.route, watch.status, took, watch.error)
        self.sink.write((self._json_line if self._json else self._console_line)(watch, took * 1000))
        if watch.fault is not None:
            text = "".join(traceback.format_exception(watch.fault))
            self.note("fault", "error", request_id=watch.request_id, traceback=text)

    def note(self, event: str, level: str = "info", **fields: Any) -> None:
        """Write down what the server itself has to say."""
        write = json_note if self._json else console_note
        self.sink.write(write(self._clock.now(), level, event, fields))

    def _json_line(self, watch: Watch, ms: float) -> str:
        # Request id and method need no escaping: known_request_id and the parser let nothing in that would need it.
        written, client = self._written, watch.client
        route = "null" if watch.route is None else self._routes.get(id(watch.route), "null")
        actor = "null" if watch.visitor is None else written[watch.visitor.name]
        code = "" if watch.error is None else f',"code":"{watch.error.code}"'
        return (
            f'{{"time":"{self._clock.now()}","level":"{_level(watch.status)}","event":"request",'
            f'"request_id":"{watch.request_id}","actor":{actor},"method":"{watch.method}","route":{route},'
            f'"path":{written[watch.path]},"status":{watch.status},"ms":{ms:.3f},"bytes":{watch.size},'
            f'"peer":{"null" if client is None else written[client[0]]}{code}}}\n'
        )

    def _console_line(self, watch: Watch, ms: float) -> str:
        written, client = self._written, watch.client
        actor = NOBODY if watch.visitor is None else written[watch.visitor.name]
        code = "" if watch.error is None else f" {watch.error.code}"
        return (
            f"{self._clock.now()[11:23]} {_level(watch.status):<7} {watch.status} {watch.method} "
            f"{written[watch.path]} {ms:.1f}ms {watch.size}B by={actor} "
            f"from={NOBODY if client is None else written[client[0]]} id={watch.request_id}{code}\n"
        )


def _level(status: int) -> str:
    return "info" if status < 500 else "warning" if status == 503 else "error"
