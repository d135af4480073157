"""Measuring the HTTP door: a crowd against a server, pages in turn, a walk through a long list."""

import asyncio
import json
import statistics
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict

from bench.cases import Case, Pair
from bench.crew import ROOT, Sample
from bench.filling import count_rows, make_ground
from bench.http_cases import ALLOCATE, HELLO, KEYED, LIST, MAP, WALK
from bench.http_load import Crowd, Told
from bench.http_servers import Server, hello_server, tenure_server
from bench.measuring import Measured, Progress, RowsLost
from bench.places import Places

WARM_S = 0.5
PAGES = 60
NETWORK = "net0"
PATHS = {
    MAP: f"/api/v1/networks/{NETWORK}/map?cells=256",
    LIST: f"/api/v1/networks/{NETWORK}/holdings?limit=100",
    WALK: f"/api/v1/networks/{NETWORK}/holdings?limit=1000",
}


class HttpBench:
    """Measures cases; servers on grounds that are kept live as long as it."""

    def __init__(self, places: Places, seconds: float) -> None:
        self._places = places
        self._seconds = seconds
        self._kept: dict[Case, Server] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "HttpBench":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def measure(self, case: Case) -> Sample:
        """Measure a case once."""
        if case.work == HELLO:
            async with hello_server() as server:
                return await self._crowd(case, server)
        if case.work in (ALLOCATE, KEYED):
            async with self._places.fresh(case.store) as url:
                return await self._allocations(case, url)
        server = await self._server(case)
        walk = _walk if case.work == WALK else _pages
        return await asyncio.to_thread(walk, server, PATHS[case.work], case)

    async def _allocations(self, case: Case, url: str) -> Sample:
        await make_ground(case.store, url, case.plan, case.held)
        async with tenure_server(url) as server:
            before = await count_rows(case.store, url, "holding")
            sample = await self._crowd(case, server)
            found = await count_rows(case.store, url, "holding") - before
        if found < sample.count:
            raise RowsLost(f"{case}: {sample.count} rows acknowledged, {found} found")
        return sample

    async def _crowd(self, case: Case, server: Server) -> Sample:
        path = "/" if case.work == HELLO else f"/api/v1/networks/{NETWORK}:allocate"
        crowd = Crowd(server.port, path, case.callers, self._seconds, server.token, case.work == KEYED)
        await _run(Crowd(**{**asdict(crowd), "seconds": WARM_S, "marker": "w"}))
        cpu, store = server.cpu_s(), self._places.cpu_s(case.store)
        told = await _run(crowd)
        cpu, store = server.cpu_s() - cpu, self._places.cpu_s(case.store) - store
        if told.refused:
            raise RuntimeError(f"{case}: {told.refused} requests were refused")
        each_ms = case.callers * told.seconds / told.answered * 1000
        return Sample(
            count=told.answered,
            rate=told.answered / told.seconds,
            seconds=told.seconds,
            client_us=cpu / told.answered * 1e6,
            store_us=store / told.answered * 1e6,
            p50_ms=each_ms,
            p99_ms=each_ms,
            peak_mb=server.peak_mb(),
        )

    async def _server(self, case: Case) -> Server:
        if case not in self._kept:
            self._kept[case] = await self._stack.enter_async_context(self._filled(case))
        return self._kept[case]

    @asynccontextmanager
    async def _filled(self, case: Case) -> AsyncIterator[Server]:
        async with self._places.fresh(case.store) as url:
            await make_ground(case.store, url, case.plan, case.held)
            async with tenure_server(url) as server:
                yield server


async def _run(crowd: Crowd) -> Told:
    command = [sys.executable, "-m", "bench.http_load", json.dumps(asdict(crowd))]
    child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    output, _ = await child.communicate()
    if child.returncode:
        raise RuntimeError("the crowd did not come through; what it said is on standard error")
    return Told(**json.loads(output))


def _get(server: Server, path: str) -> bytes:
    head = {"Authorization": f"Bearer {server.token}"}
    asked = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers=head)
    with urllib.request.urlopen(asked, timeout=600) as answer:  # noqa: S310
        return bytes(answer.read())


def _pages(server: Server, path: str, case: Case) -> Sample:
    """Read one page over and over; the first reading may build what the others use."""
    _get(server, path)
    cpu, began = server.cpu_s(), time.perf_counter()
    taken = []
    for _ in range(PAGES):
        start = time.perf_counter()
        _get(server, path)
        taken.append((time.perf_counter() - start) * 1000)
    return _sample(server, taken, began, cpu, PAGES)


def _walk(server: Server, path: str, case: Case) -> Sample:
    """Read a list to its end, page by page."""
    cpu, began = server.cpu_s(), time.perf_counter()
    taken: list[float] = []
    rows, after = 0, ""
    while True:
        start = time.perf_counter()
        page = json.loads(_get(server, path + after))
        taken.append((time.perf_counter() - start) * 1000)
        rows += len(page["items"])
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    if rows != case.held:
        raise RowsLost(f"{case}: {case.held} are held, {rows} were listed")
    return _sample(server, taken, began, cpu, rows)


def _sample(server: Server, taken: Sequence[float], began: float, cpu: float, count: int) -> Sample:
    seconds = time.perf_counter() - began
    return Sample(
        count=count,
        rate=count / seconds,
        seconds=seconds,
        client_us=(server.cpu_s() - cpu) / count * 1e6,
        store_us=0.0,
        p50_ms=statistics.median(taken),
        p99_ms=max(taken),
        peak_mb=server.peak_mb(),
    )


async def measure_http(
    places: Places, pairs: Sequence[Pair], rounds: int, seconds: float, progress: Progress
) -> list[Measured]:
    """Measure all pairs in rounds; the hello and what is compared with it stand next to each other."""
    measured = [Measured(pair) for pair in pairs]
    async with HttpBench(places, seconds) as bench:
        for number in range(1, rounds + 1):
            for each in measured:
                progress.step(f"round {number}/{rounds}  {each.pair.name}")
                assert each.pair.base is not None
                each.base.append(await bench.measure(each.pair.base))
                each.subject.append(await bench.measure(each.pair.subject))
    return measured
