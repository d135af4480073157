"""The numbers of a server: the table of all metrics, and the plain cells in which they are counted.

``COUNTED`` and ``READ`` are the one home of every metric: a new one is a line there, and ``ServerCounters.count`` by
its name where it happens (a histogram has a method of its own). ``prometheus`` writes /metrics from the same lines.

Counting a request costs about a microsecond. Every series is known when the server starts (routes, status classes,
codes), so each has a fixed place in a row of floats. Each worker process counts in a row of its own; the rows of all
workers lie in one file that all have mapped, and the worker that is scraped adds them up. A worker that is started
again goes on in its predecessor's row: no counter falls back.
"""

import enum
import mmap
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from tenure.doors.http.routing.endpoint import API, Endpoint
from tenure.kernel.errors import PoolExhausted, TenureError
from tenure.kernel.holdings.holding_model import Holding, Outcome, Row, Verdict
from tenure.ports import Failed
from tenure.service.allocator.claim import Granted, Known
from tenure.service.apply.operations import Allocate, AllocateRun, Operation, Release, ReleaseOwner, Shown
from tenure.wire import problems

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
CLASSES = ("2xx", "3xx", "4xx", "5xx")
BATCHES = ("grant", "release", "lane", "apply")
OUTCOMES = tuple(outcome.value for outcome in Outcome)
CODES = tuple(sorted({*problems.CODES, "internal"}))
CONFLICTS = frozenset(code for code, status in problems.CODES.items() if status in (409, 412))
"""Codes of requests that the present state forbids."""
OUTSIDE = ("/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/web/{file}", "other")
REFUSED_KINDS = ("requests", "waiting", "streams")
"""What callers have shares of, in the order in which shares count them."""
REFUSED_BY = ("token", "server")
"""Whose limit a refusal keeps: the share of the token that asks, or the limit of the process."""


class SeriesType(enum.Enum):
    """What a metric is to Prometheus. A counted gauge is of what goes on now, so it ends with its process."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Series:
    """A metric: the name under which the code knows it, and its name, type, help and labels in /metrics."""

    name: str
    title: str
    type: SeriesType
    help: str
    labels: tuple[str, ...] = ()
    values: tuple[tuple[str, ...], ...] = ((),)
    """The combinations of labels that there are; each is counted by itself."""
    by_route: bool = False
    """Whether each route is counted by itself: then method and route come before the other labels."""
    bounds: tuple[float, ...] = ()
    """The upper bounds of a histogram's boxes."""

    @property
    def width(self) -> int:
        """Count the cells of one combination: a histogram has its boxes, one more for what is above, and the sum."""
        return len(self.bounds) + 2 if self.type is SeriesType.HISTOGRAM else 1


def _each(words: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    return tuple((word,) for word in words)


COUNTER, GAUGE, HISTOGRAM = SeriesType
_ROUTE, _FAMILY = ("method", "route"), ("network", "family")
_CONFLICTS, _PROBLEMS = (_each(c for c in CODES if (c in CONFLICTS) is conflicts) for conflicts in (True, False))

COUNTED = (
    Series("requests", "tenure_http_requests", COUNTER, "Requests that were answered.",
           (*_ROUTE, "status"), _each(CLASSES), by_route=True),
    Series("seconds", "tenure_http_request_duration_seconds", HISTOGRAM,
           "How long answers took; streams are not in it.", _ROUTE, by_route=True, bounds=SECONDS),
    Series("in_flight", "tenure_http_requests_in_flight", GAUGE, "Requests that are worked on."),
    Series("waiting", "tenure_waiting_calls", GAUGE, "Calls that wait (wait_s)."),
    Series("streams", "tenure_event_streams", GAUGE, "Streams of events that are read."),
    Series("conflicts", "tenure_conflicts", COUNTER, "Requests that the present state forbade, by code.",
           ("code",), _CONFLICTS),
    Series("problems", "tenure_problems", COUNTER, "Other requests that were refused, by code.", ("code",), _PROBLEMS),
    Series("exhausted", "tenure_pool_exhausted", COUNTER, "Requests that found nothing free."),
    Series("shortcuts", "tenure_shortcuts", COUNTER, "Plain allocations that were answered on the short way."),
    Series("refused_connections", "tenure_refused_connections", COUNTER,
           "Connections that were refused, because there were too many."),
    Series("bad_requests", "tenure_bad_requests", COUNTER,
           "Connections that did not speak HTTP, or too slowly, or said too much."),
    Series("refused", "tenure_refused", COUNTER, "Refusals of one more at a time, by kind and by whose limit.",
           ("kind", "limit"), tuple(product(REFUSED_KINDS, REFUSED_BY))),
    Series("allocations", "tenure_allocations", COUNTER, "Addresses that were given to owners."),
    Series("releases", "tenure_releases", COUNTER, "Holdings that were ended."),
    Series("grants", "tenure_grants", COUNTER, "What the store answered to picks, by outcome.",
           ("outcome",), _each(OUTCOMES)),
    Series("batch_size", "tenure_batch_size", HISTOGRAM, "How many shared one call of the store.",
           ("kind",), _each(BATCHES), bounds=SIZES),
)  # fmt: skip
"""What workers count, in the order of /metrics."""

READ = (
    Series("store_up", "tenure_store_up", GAUGE, "Whether the store answers."),
    Series("networks", "tenure_networks", GAUGE, "Networks of the ledger."),
    Series("held", "tenure_network_held_units", GAUGE,
           "Addresses (or prefixes) that are held, pending or draining.", _FAMILY),
    Series("free", "tenure_network_free_units", GAUGE, "Those that could be picked now.", _FAMILY),
    Series("cooling", "tenure_network_cooling_units", GAUGE,
           "Those that were released and are not handed out yet.", _FAMILY),
    Series("reserved", "tenure_network_reserved_units", GAUGE,
           "Those that are kept away from picking, and nobody holds.", _FAMILY),
    Series("utilisation", "tenure_network_utilisation_ratio", GAUGE,
           "The share of what can be used that is held or cooling.", _FAMILY),
    Series("waiting_claims", "tenure_network_waiting_claims", GAUGE, "Claims that wait for an address.", ("network",)),
    Series("log_entries", "tenure_log_entries", GAUGE, "Changes in the log."),
    Series("archived_entries", "tenure_archived_entries", GAUGE, "Changes in the archive."),
    Series("kept_replies", "tenure_kept_replies", GAUGE, "Answers kept under idempotency keys."),
    Series("ledger_bytes", "tenure_ledger_bytes", GAUGE, "Bytes that the ledger takes where it is kept."),
    Series("log_seq", "tenure_log_seq", GAUGE, "The number of the newest change this server saw."),
)  # fmt: skip
"""What is read from the ledger for each scrape, in the order of /metrics."""


class Route(NamedTuple):
    """What is counted by itself: a method on a path."""

    method: str
    path: str


@dataclass(frozen=True, slots=True)
class CounterRows:
    """Where the rows of all workers lie, and which one is ours."""

    file: str
    rows: int
    own: int


class Cells:
    """Where each number lies in a row: the first cell of each series and combination of labels.

    Series that have nothing to do with routes come first, so they have the same places whatever routes there are.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self.places: dict[str, dict[tuple[str, ...], int]] = {}
        self.width = 0
        for series in sorted(COUNTED, key=lambda each: each.by_route):
            found = self.places[series.name] = {}
            for labels in _labels(series, routes):
                found[labels] = self.width
                self.width += series.width
        self.plain = {
            "_".join((series.name, *labels)): place
            for series in COUNTED
            if series.type is not HISTOGRAM and not series.by_route
            for labels, place in self.places[series.name].items()
        }
        """The single cells by the name of their series, with the labels it has: ``refused_streams_token``."""


def _labels(series: Series, routes: Sequence[Route]) -> Iterator[tuple[str, ...]]:
    if not series.by_route:
        yield from series.values
        return
    for route in routes:
        for values in series.values:
            yield (*route, *values)


# Cells without routes come first in every row, so these places hold for every application.
_FIXED = Cells([])
_PLAIN = _FIXED.plain
_IN_FLIGHT = _PLAIN["in_flight"]
_CODES = {code: place for name in ("conflicts", "problems") for (code,), place in _FIXED.places[name].items()}
_OUTCOMES = {outcome: place for (outcome,), place in _FIXED.places["grants"].items()}
_BATCHES = {kind: place for (kind,), place in _FIXED.places["batch_size"].items()}


def cells_of(endpoints: Sequence[Endpoint]) -> Cells:
    """Lay out the cells for the routes of an application."""
    own = (Route(each.method, f"{API}{each.path}") for each in endpoints)
    return Cells([*own, *(Route("any", path) for path in OUTSIDE)])


def _of_route(cells: Cells, method: str, path: str) -> tuple[int, int]:
    """Return where a route's answers begin, a cell for each class of status, and where their seconds do."""
    return cells.places["requests"][method, path, CLASSES[0]], cells.places["seconds"][method, path]


def make_rows(file: Path, rows: int, endpoints: Sequence[Endpoint]) -> None:
    """Make the file in which workers count."""
    file.write_bytes(bytes(8 * rows * cells_of(endpoints).width))


class ServerCounters:
    """Counts what one process does; adds up what all have done."""

    def __init__(self, place: CounterRows | None = None) -> None:
        self._place = place
        self._own: MutableSequence[float]
        self._rows: list[Any] = []
        # The supervisor's journal counts without routes; a server lays the cells out again for its own.
        self.know([])

    def know(self, endpoints: Sequence[Endpoint]) -> None:
        """Learn which routes there are, before the first request."""
        self.cells = cells = cells_of(endpoints)
        # By id, because hashing all fields of an endpoint would cost more than the count itself.
        self._routes = {id(each): _of_route(cells, each.method, f"{API}{each.path}") for each in endpoints}
        self._outside = {path.encode(): _of_route(cells, "any", path) for path in OUTSIDE}
        # The rows of the file have the width that routes give them; without routes a row is narrower, and is kept in
        # memory.
        if self._place is None or not endpoints:
            self._rows = [array("d", bytes(8 * cells.width))]
            self._own = self._rows[0]
            return
        with Path(self._place.file).open("r+b") as file:
            # The mapping stays when the file is closed, and the views below keep the mapping.
            every = memoryview(mmap.mmap(file.fileno(), 0)).cast("d")
        self._rows = [every[row * cells.width : (row + 1) * cells.width] for row in range(self._place.rows)]
        self._own = self._rows[self._place.own]
        for series in COUNTED:
            if series.type is GAUGE:  # of what the process before this one worked on
                for place in cells.places[series.name].values():
                    self._own[place] = 0.0

    def totals(self) -> list[float]:
        """Add up all rows."""
        return [sum(column) for column in zip(*self._rows, strict=True)]

    def begin(self) -> None:
        """Count a request that came in."""
        self._own[_IN_FLIGHT] += 1.0

    def begin_anew(self) -> None:
        """Count a request no longer that another way will count again."""
        self._own[_IN_FLIGHT] -= 1.0

    def end(self, path: bytes, route: Endpoint | None, status: int, took_s: float, error: TenureError | None) -> None:
        """Count a request that was answered. How long a stream was read says nothing of the server."""
        own = self._own
        own[_IN_FLIGHT] -= 1.0
        requests, seconds = self._outside_of(path) if route is None else self._routes[id(route)]
        own[requests + (status // 100 - 2 if 200 <= status < 600 else 2)] += 1.0  # the classes, in their order
        if route is None or not route.streams:
            own[seconds + bisect_left(SECONDS, took_s)] += 1.0
            own[seconds + len(SECONDS) + 1] += took_s
        if error is not None:
            own[_CODES.get(error.code, _CODES["internal"])] += 1.0
            if isinstance(error, PoolExhausted):
                self.count("exhausted")

    def _outside_of(self, path: bytes) -> tuple[int, int]:
        known = self._outside.get(path)
        return self._outside[b"/web/{file}" if path.startswith(b"/web/") else b"other"] if known is None else known

    def count(self, name: str, by: float = 1.0) -> None:
        """Count a series without labels by its name; one with labels by its name and theirs, joined by ``_``."""
        self._own[_PLAIN[name]] += by

    def _batch(self, kind: str, size: int) -> None:
        place = _BATCHES[kind]
        self._own[place + bisect_left(SIZES, size)] += 1.0
        self._own[place + len(SIZES) + 1] += size

    def grants(self, verdicts: Sequence[Verdict | Failed]) -> None:
        """Count a batch of grants, and how the store answered each."""
        self._batch("grant", len(verdicts))
        answered = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]
        others = [verdict.outcome for verdict in answered if verdict.outcome is not Outcome.GRANTED]
        for outcome in others:
            self._own[_OUTCOMES[outcome.value]] += 1.0
        granted = len(answered) - len(others)
        self._own[_OUTCOMES[Outcome.GRANTED.value]] += granted
        self.count("allocations", granted)

    def releases(self, rows: Sequence[Row | Failed | None]) -> None:
        """Count a batch of releases."""
        self._batch("release", len(rows))
        self.count("releases", sum(isinstance(row, Row) for row in rows))

    def lane(self, answers: Sequence[object]) -> None:
        """Count a batch that was served in a lane; what an owner had before is answered alike, and not counted."""
        self._batch("lane", len(answers))
        new = (answer for answer in answers if isinstance(answer, Granted) and not isinstance(answer, Known))
        self.count("allocations", len({answer.row.generation for answer in new}))

    def applied(self, operations: Sequence[Operation], answers: Sequence[Shown]) -> None:
        """Count a group of operations that took effect together."""
        self._batch("apply", len(operations))
        for operation, answer in zip(operations, answers, strict=True):
            many = len(answer) if isinstance(answer, list) else int(isinstance(answer, Holding))
            if isinstance(operation, Allocate | AllocateRun):
                self.count("allocations", many)
            elif isinstance(operation, Release | ReleaseOwner):
                self.count("releases", many)
