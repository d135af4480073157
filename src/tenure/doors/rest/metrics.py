"""The numbers of a server, in plain cells: counting a request costs about a microsecond.

Every series is known when the server starts (routes, status classes, codes), so each has a fixed place in a row of
floats. Each worker process counts in a row of its own; rows of all workers lie in one file that all have mapped, and
whoever is asked adds them up. A worker that is started again goes on in its predecessor's row: no counter falls back.
"""

import mmap
from array import array
from bisect import bisect_left
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tenure.doors.rest.endpoints import API, Endpoint
from tenure.kernel.errors import PoolExhausted, TenureError
from tenure.kernel.values import Holding, Outcome, Row, Verdict
from tenure.ports import Failed
from tenure.remote import problems
from tenure.service.claims import Granted, Known
from tenure.service.operations import Allocate, AllocateRun, Operation, Release, ReleaseOwner, Shown

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
CLASSES = ("2xx", "3xx", "4xx", "5xx")
BATCHES = ("grant", "release", "lane", "apply")
OUTCOMES = tuple(outcome.value for outcome in Outcome)
CODES = tuple(sorted({*problems.CODES, "internal"}))
OUTSIDE = ("/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/web/{file}", "other")
REFUSED_KINDS = ("requests", "waiting", "streams")
"""What callers have shares of, in the order in which shares count them."""
REFUSED_BY = ("token", "server")
"""Whose limit a refusal keeps: the share of the token that asks, or the limit of the process."""
PLAIN = (
    "in_flight", "waiting", "streams", "allocations", "releases", "exhausted", "shortcuts", "refused_connections",
    "bad_requests", *(f"refused_{kind}_{by}" for kind in REFUSED_KINDS for by in REFUSED_BY),
)  # fmt: skip
GONE = ("in_flight", "waiting", "streams")
"""What ends with the process: a worker that takes a row over begins these at nothing."""

_BOX = len(SIZES) + 2
_ROUTE = len(CLASSES) + len(SECONDS) + 2


class Route(NamedTuple):
    """What is counted by itself: a method on a path."""

    method: str
    path: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rows of all workers lie, and which one is ours."""

    file: str
    rows: int
    own: int


class Cells:
    """Where each number lies in a row."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = tuple(routes)
        self.plain = {name: place for place, name in enumerate(PLAIN)}
        self.codes = {code: len(PLAIN) + place for place, code in enumerate(CODES)}
        begin = len(PLAIN) + len(CODES)
        self.outcomes = {outcome: begin + place for place, outcome in enumerate(OUTCOMES)}
        begin += len(OUTCOMES)
        self.batches = {kind: begin + place * _BOX for place, kind in enumerate(BATCHES)}
        begin += len(BATCHES) * _BOX
        self.of_route = {route: begin + place * _ROUTE for place, route in enumerate(self.routes)}
        self.width = begin + len(self.routes) * _ROUTE


def cells_of(endpoints: Sequence[Endpoint]) -> Cells:
    """Lay out the cells for the routes of an application."""
    return Cells([*(Route(each.method, f"{API}{each.path}") for each in endpoints), *(Route("", p) for p in OUTSIDE)])


def make_rows(file: Path, rows: int, endpoints: Sequence[Endpoint]) -> None:
    """Make the file in which workers count."""
    file.write_bytes(bytes(8 * rows * cells_of(endpoints).width))


class Meter:
    """Counts what one process does; adds up what all have done."""

    def __init__(self, place: Place | None = None) -> None:
        self._place = place
        self._own: MutableSequence[float]
        self._rows: list[Any] = []
        self.know([])

    def know(self, endpoints: Sequence[Endpoint]) -> None:
        """Learn which routes there are, before the first request."""
        self.cells = cells = cells_of(endpoints)
        self._routes = {id(each): cells.of_route[Route(each.method, f"{API}{each.path}")] for each in endpoints}
        self._outside = {path.encode(): cells.of_route[Route("", path)] for path in OUTSIDE}
        if self._place is None or not endpoints:
            self._rows = [array("d", bytes(8 * cells.width))]
            self._own = self._rows[0]
            return
        with Path(self._place.file).open("r+b") as file:
            every = memoryview(mmap.mmap(file.fileno(), 0)).cast("d")
        self._rows = [every[row * cells.width : (row + 1) * cells.width] for row in range(self._place.rows)]
        self._own = self._rows[self._place.own]
        for name in GONE:
            self._own[cells.plain[name]] = 0.0

    def totals(self) -> list[float]:
        """Add up all rows."""
        return [sum(column) for column in zip(*self._rows, strict=True)]

    def begin(self) -> None:
        """Count a request that came in."""
        self._own[0] += 1.0

    def begin_anew(self) -> None:
        """Count a request no longer that another way will count again."""
        self._own[0] -= 1.0

    def end(self, path: bytes, route: Endpoint | None, status: int, took_s: float, error: TenureError | None) -> None:
        """Count a request that was answered. How long a stream was read says nothing of the server."""
        own = self._own
        own[0] -= 1.0
        place = self._outside_of(path) if route is None else self._routes[id(route)]
        own[place + (status // 100 - 2 if 200 <= status < 600 else 2)] += 1.0
        if route is None or not route.streams:
            place += len(CLASSES)
            own[place + bisect_left(SECONDS, took_s)] += 1.0
            own[place + len(SECONDS) + 1] += took_s
        if error is not None:
            own[self.cells.codes.get(error.code, self.cells.codes["internal"])] += 1.0
            if isinstance(error, PoolExhausted):
                self.count("exhausted")

    def _outside_of(self, path: bytes) -> int:
        known = self._outside.get(path)
        return self._outside[b"/web/{file}" if path.startswith(b"/web/") else b"other"] if known is None else known

    def count(self, name: str, by: float = 1.0) -> None:
        """Count something by its name."""
        self._own[self.cells.plain[name]] += by

    def _batch(self, kind: str, size: int) -> None:
        place = self.cells.batches[kind]
        self._own[place + bisect_left(SIZES, size)] += 1.0
        self._own[place + len(SIZES) + 1] += size

    def grants(self, verdicts: Sequence[Verdict | Failed]) -> None:
        """Count a batch of grants, and how the store answered each."""
        self._batch("grant", len(verdicts))
        answered = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]
        others = [verdict.outcome for verdict in answered if verdict.outcome is not Outcome.GRANTED]
        for outcome in others:
            self._own[self.cells.outcomes[outcome.value]] += 1.0
        granted = len(answered) - len(others)
        self._own[self.cells.outcomes[Outcome.GRANTED.value]] += granted
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


CONFLICTS = frozenset(code for code, status in problems.CODES.items() if status in (409, 412))
"""Codes of requests that the present state forbids."""
