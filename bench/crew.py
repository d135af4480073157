"""Measured processes: started together, set off together, and read before any of them ends."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.jobs import Job, Result

ROOT = Path(__file__).parents[1]
LONGEST_S = 900


class WorkerFailed(Exception):
    """A measured process ended without a result; what it said is on standard error."""


@dataclass(frozen=True, slots=True)
class Sustained:
    """What an operator keeps up: until it has written all that it ever writes about what was measured."""

    rate: float
    client_us: float
    store_us: float


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement: all its processes together."""

    count: int
    rate: float
    seconds: float
    client_us: float
    store_us: float
    p50_ms: float
    p99_ms: float
    peak_mb: float
    sustained: Sustained | None = None
    failed_share: float = 0.0
    """Of the operations that were begun, those that ended with an error; the other measures are of the rest."""
    retries: float = 0.0
    """How often an operation was tried again, where that is counted."""

    @property
    def cpu_us(self) -> float:
        """Return all CPU time of an allocation, the callers' and the stores'."""
        return self.client_us + self.store_us


def run_crew(jobs: Sequence[Job], store_cpu: Callable[[], float]) -> Sample:
    """Run jobs at the same time, each in a process of its own."""
    with _processes(len(jobs)) as crew:
        for worker, job in zip(crew, jobs, strict=True):
            _say(worker, job.dump())
        for worker in crew:
            _hear(worker)
        before = store_cpu()
        for worker in crew:
            _say(worker, "go")
        results = [Result.load(_hear(worker)) for worker in crew]
        store_s = store_cpu() - before
        for worker in crew:
            worker.communicate("end\n", timeout=LONGEST_S)
    return summed(results, store_s)


def summed(results: Sequence[Result], store_s: float) -> Sample:
    """Add up what the processes of one measurement saw; waiting times are the worst of theirs."""
    count = sum(result.count for result in results)
    return Sample(
        count=count,
        rate=sum(result.count / result.seconds for result in results),
        seconds=max(result.seconds for result in results),
        client_us=sum(result.cpu_s for result in results) / count * 1e6,
        store_us=store_s / count * 1e6,
        p50_ms=max(result.p50_ms for result in results),
        p99_ms=max(result.p99_ms for result in results),
        peak_mb=max(result.peak_mb for result in results),
    )


@contextmanager
def _processes(number: int) -> Iterator[list["subprocess.Popen[str]"]]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "bench.worker"]
    crew = [
        subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, encoding="utf-8", bufsize=1) for _ in range(number)
    ]
    watchdog = threading.Timer(LONGEST_S, _end, [crew])
    watchdog.daemon = True
    watchdog.start()
    try:
        yield crew
    finally:
        watchdog.cancel()
        _end(crew)


def _end(crew: Sequence["subprocess.Popen[str]"]) -> None:
    for worker in crew:
        worker.kill()
    for worker in crew:
        worker.wait()
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                stream.close()


def _say(worker: "subprocess.Popen[str]", line: str) -> None:
    assert worker.stdin is not None
    try:
        worker.stdin.write(line + "\n")
        worker.stdin.flush()
    except BrokenPipeError as error:
        raise WorkerFailed from error


def _hear(worker: "subprocess.Popen[str]") -> str:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise WorkerFailed("a measured process ended without a result")
    return line
