"""Several processes on one socket: started, watched, started again when they die, stopped together.

Each worker is an interpreter of its own (spawned, not forked). They share the listening socket, the store, and the
file in which they count. The socket stays open while a worker is replaced: no connection is refused meanwhile.
"""

import contextlib
import multiprocessing
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import msgspec

from tenure.doors.http.observe.counters import CounterRows, make_rows
from tenure.doors.http.observe.request_log import Journal
from tenure.doors.http.process.run_server import SIGNALS, Ready, serve
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.settings import Settings
from tenure.kernel.errors import TenureError
from tenure.wire import responses
from tenure.wire.problems import error_of, problem_of

SOON_S = 5.0
"""A worker that dies sooner than this after its start is not started again at once."""

LONGEST_PAUSE_S = 10.0
KILL_AFTER_S = 5.0
"""How much longer than its grace a worker may take to stop."""


@dataclass
class WorkerProcess:
    """One worker: its process, and how often it died soon after its start."""

    number: int
    process: SpawnProcess | None = None
    pipe: Connection | None = None
    began: float = 0.0
    quick_deaths: int = 0
    start_at: float = field(default=0.0)


class Supervisor:
    """Keeps workers running until it is told to stop."""

    def __init__(self, settings: Settings, bound: socket.socket, ready: Callable[[Ready], None]) -> None:
        self._settings = settings
        self._bound = bound
        self._ready = ready
        self._journal = Journal(settings)
        self._spawn = multiprocessing.get_context("spawn")
        self._workers = [WorkerProcess(number) for number in range(settings.workers)]
        self._signalled: list[int] = []
        self._file = ""

    def run(self) -> None:
        """Start all workers, the first one first: it makes what a new ledger needs."""
        with tempfile.TemporaryDirectory(prefix="tenure-serve-") as folder, self._signals() as woken:
            self._file = str(Path(folder) / "counts")
            # Before any worker starts: each of them maps the file, and none makes it.
            make_rows(Path(self._file), len(self._workers), ENDPOINTS)
            try:
                first = self._first_ready(self._workers[0], woken)
                if first is None:
                    return
                self._ready(first)
                for worker in self._workers[1:]:
                    self._start(worker)
                self._watch(woken)
            finally:
                self._stop()

    def _first_ready(self, worker: WorkerProcess, woken: Connection) -> Ready | None:
        """Start a worker and wait until it answers; what is in its way is told as if it had happened here.

        None: we are told to stop meanwhile.
        """
        self._start(worker)
        assert worker.pipe is not None
        assert worker.process is not None
        wait([worker.pipe, worker.process.sentinel, woken])
        # Looked at first: a worker that a signal to the whole group ended has sent nothing.
        if self._signalled:
            return None
        try:
            said = worker.pipe.recv()
        except EOFError:
            raise RuntimeError("the first worker died before it served") from None
        if isinstance(said, Ready):
            return said
        raise error_of(msgspec.json.decode(said, type=responses.Problem))

    def _start(self, worker: WorkerProcess) -> None:
        ours, theirs = self._spawn.Pipe(duplex=False)
        place = CounterRows(self._file, len(self._workers), worker.number)
        worker.process = self._spawn.Process(
            target=work, args=(self._settings, self._bound, place, theirs), name=f"tenure-worker-{worker.number}"
        )
        worker.process.start()
        # With this copy open, recv() would not end when the worker dies.
        theirs.close()
        worker.pipe, worker.began = ours, time.monotonic()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[Connection]:
        """Take signals as words in a pipe, so that one wait hears everything."""
        woken, waker = self._spawn.Pipe(duplex=False)

        def heard(number: int, _: Any) -> None:
            self._signalled.append(number)
            waker.send(number)

        before = {number: signal.signal(number, heard) for number in SIGNALS}
        try:
            yield woken
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            woken.close()
            waker.close()

    def _watch(self, woken: Connection) -> None:
        """Start again whoever dies, until told to stop."""
        while not self._signalled:
            # Sleep until a worker dies, a signal comes, or the pause of a dead worker is over.
            running = {each.process.sentinel: each for each in self._workers if each.process is not None}
            absent = [each for each in self._workers if each.process is None]
            pause = min((each.start_at for each in absent), default=None)
            wait([*running, woken], None if pause is None else max(0.0, pause - time.monotonic()))
            for worker in running.values():
                if worker.process is not None and not worker.process.is_alive():
                    self._bury(worker)
            for worker in self._workers:
                if worker.process is None and worker.start_at <= time.monotonic() and not self._signalled:
                    self._start(worker)

    def _bury(self, worker: WorkerProcess) -> None:
        assert worker.process is not None
        assert worker.pipe is not None
        now, code = time.monotonic(), worker.process.exitcode
        # A worker that cannot start would otherwise be started in a tight loop.
        worker.quick_deaths = worker.quick_deaths + 1 if now - worker.began < SOON_S else 0
        pause_s = min(0.1 * 2**worker.quick_deaths, LONGEST_PAUSE_S) if worker.quick_deaths else 0.0
        told = {"worker": worker.number, "exit_code": code, "again_in_s": pause_s, "reason": _last_word(worker.pipe)}
        self._journal.note("worker died", "error", **told)
        worker.process.close()
        worker.pipe.close()
        worker.process, worker.pipe, worker.start_at = None, None, now + pause_s

    def _stop(self) -> None:
        """Let no more connections wait here, ask all workers to stop, and see that they do."""
        self._bound.close()
        alive = [each.process for each in self._workers if each.process is not None]
        for process in alive:
            process.terminate()
        deadline = time.monotonic() + self._settings.grace_s + KILL_AFTER_S
        # A second signal says that this takes too long, as it does in a single server.
        while any(process.is_alive() for process in alive) and len(self._signalled) < 2:
            if time.monotonic() > deadline:
                self._journal.note("workers do not stop", "error")
                break
            # A short wait, because a second signal must be seen, too.
            wait([process.sentinel for process in alive if process.is_alive()], 0.1)
        for process in alive:
            process.kill()
            process.join()
        self._journal.note("all workers stopped")
        self._journal.sink.flush()


def _last_word(pipe: Connection) -> str | None:
    """Return why a worker could not serve, if it said so."""
    with contextlib.suppress(EOFError, OSError):
        while pipe.poll():
            if isinstance(said := pipe.recv(), bytes):
                return msgspec.json.decode(said, type=responses.Problem).detail
    return None


def work(settings: Settings, bound: socket.socket, place: CounterRows, pipe: Connection) -> None:
    """Be a worker: serve, and tell the supervisor once it answers, or why it cannot."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of us; the supervisor says what it means

    def tell(word: Ready | bytes) -> None:
        with contextlib.suppress(OSError):  # the supervisor may be gone, and this worker about to be
            pipe.send(word)

    try:
        serve(settings, bound, tell, place)
    except TenureError as error:
        tell(msgspec.json.encode(problem_of(error)))
        os._exit(1)
    finally:
        pipe.close()
