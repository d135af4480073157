"""Measuring costly requests: how long each takes, how much the server's memory grows, and how long others wait."""

import asyncio
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.costly_ground import make_costly_ground
from bench.costly_requests import PROBE, Costly
from bench.crew import ROOT
from bench.http_servers import Server, tenure_server
from bench.measuring import Progress
from bench.places import Places

BAR_MS = 500.0
"""Nothing that a token may send may hold up /healthz for longer."""

WITHIN_S = 300.0
SETTLES_S = 0.3
COUNTS_S = 2.0
"""So long a server that was just started may count its networks."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one request cost."""

    request: Costly
    status: int
    sent: int
    answered: int
    seconds: float
    grown_mb: float
    healthz_ms: float
    others_ms: float

    @property
    def holds(self) -> bool:
        """Tell whether /healthz was answered in time."""
        return self.healthz_ms <= BAR_MS


class Prober:
    """The process that asks for little while others ask for much."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self._child = child

    def begin(self) -> None:
        """Forget what was before."""
        self._say("begin")

    def end(self) -> dict[str, float]:
        """Return the longest waits since the beginning."""
        self._say("end")
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError("the probe ended; what it said is on standard error")
        waits: dict[str, float] = json.loads(line)
        return waits

    def _say(self, line: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(f"{line}\n")
        self._child.stdin.flush()


@contextmanager
def probing(server: Server) -> Iterator[Prober]:
    """Run the probe beside a server."""
    command = [sys.executable, "-m", "bench.costly_probe", str(server.port), server.token, PROBE]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as child:
        yield Prober(child)
        child.communicate(timeout=WITHIN_S)


async def measure_costly(places: Places, store: str, wanted: Sequence[Costly], progress: Progress) -> list[Cost]:
    """Ask one server for each request in turn, while others ask for little."""
    if not wanted:
        return []
    async with places.fresh(store) as url:
        await make_costly_ground(url)
        async with tenure_server(url) as server:
            return await asyncio.to_thread(_measure_all, server, wanted, progress)


def _measure_all(server: Server, wanted: Sequence[Costly], progress: Progress) -> list[Cost]:
    tokens = {scope: _token(server, scope) for scope in sorted({each.scope for each in wanted})}
    costs: list[Cost] = []
    with probing(server) as prober:
        time.sleep(COUNTS_S)
        for each in wanted:
            progress.step(f"costly {each.name}")
            costs.append(_measure(server, prober, tokens[each.scope], each))
    return costs


def _measure(server: Server, prober: Prober, token: str, wanted: Costly) -> Cost:
    body = wanted.sent()
    time.sleep(SETTLES_S)
    before = server.reset_peak_mb()
    prober.begin()
    began = time.perf_counter()
    status, answer = _ask(server, wanted.method, f"/api/v1{wanted.path}", token, body)
    seconds = time.perf_counter() - began
    time.sleep(SETTLES_S)
    waits = prober.end()
    if (status >= 400) is not wanted.refused:
        raise RuntimeError(f"{wanted.name}: {status} {answer[:300]!r}")
    return Cost(wanted, status, len(body), len(answer), seconds, server.peak_mb() - before, **waits)


def _ask(server: Server, method: str, path: str, token: str, body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WITHIN_S)
    try:
        head = {"authorization": f"Bearer {token}", "content-type": "application/json", "if-match": "*"}
        connection.request(method, path, body or None, head)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _token(server: Server, scope: str) -> str:
    said = json.dumps({"name": f"bench {scope}", "scopes": [scope]}).encode()
    status, answer = _ask(server, "POST", "/api/v1/tokens", server.token, said)
    if status >= 300:
        raise RuntimeError(f"no token: {status} {answer!r}")
    return str(json.loads(answer)["token"])


def costs_table(costs: Sequence[Cost]) -> list[str]:
    """Lay the costs out as Markdown: the table of docs/reference/costs.md."""
    head = ["route", "largest input", "scope", "sent", "answer", "time", "memory", "`/healthz`", "another network"]
    rows = [head, ["---"] * len(head), *(_row(cost) for cost in costs)]
    return [f"| {' | '.join(row)} |" for row in rows]


def _row(cost: Cost) -> list[str]:
    asked = cost.request
    answer = str(cost.status) if cost.status >= 400 else _bytes(cost.answered)
    path = asked.path.partition("?")[0]
    times = (f"{cost.healthz_ms:.0f} ms", f"{cost.others_ms:.0f} ms")
    size = f"{max(cost.grown_mb, 0):.0f} MB"
    return [f"`{asked.method} {path}`", asked.what, f"`{asked.scope}`", _bytes(cost.sent), answer,
            f"{cost.seconds:.2f} s", size, *times]  # fmt: skip


def _bytes(number: int) -> str:
    return "" if not number else f"{number / 1e6:.1f} MB" if number >= 50_000 else f"{number / 1e3:.1f} kB"


def too_long(costs: Sequence[Cost]) -> list[str]:
    """Name what held up /healthz for longer than the bar."""
    return [f"{each.request.name}: /healthz waited {each.healthz_ms:.0f} ms" for each in costs if not each.holds]


def costs_document(costs: Sequence[Cost]) -> list[dict[str, object]]:
    """Put costs into JSON."""
    names = ("status", "sent", "answered", "seconds", "grown_mb", "healthz_ms", "others_ms", "holds")
    return [{"name": cost.request.name, **{name: getattr(cost, name) for name in names}} for cost in costs]
