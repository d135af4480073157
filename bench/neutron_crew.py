"""Processes of Neutron's: each serves one site until it is told to end."""

import subprocess
import sys
import threading

from bench.crew import LONGEST_S, ROOT, WorkerFailed
from bench.neutron_jobs import Order, Site


class Child:
    """One process of Neutron's; it is getting ready when this returns."""

    def __init__(self, site: Site) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "bench.neutron_child"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, encoding="utf-8", bufsize=1)
        self._say(site.dump())
        self._subnet: str | None = None

    def subnet(self) -> str:
        """Return the number of its subnet, as soon as it is ready."""
        if self._subnet is None:
            self._subnet = self.answer()
        return self._subnet

    def order(self, order: Order) -> None:
        """Tell it what to do; the answer is to be asked for."""
        self._say(order.dump())

    def answer(self) -> str:
        """Wait for its next answer."""
        assert self._process.stdout is not None
        watchdog = threading.Timer(LONGEST_S, self._process.kill)
        watchdog.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        if not line:
            raise WorkerFailed("a process of Neutron's ended without an answer")
        return line.strip()

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise WorkerFailed from error
