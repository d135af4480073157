"""Servers of a measurement: Tenure's as shipped, with token check, log and metrics on; and the bare hello beside it."""

import asyncio
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from bench.crew import ROOT

STARTS_WITHIN_S = 60.0
TENURE = [sys.executable, "-m", "tenure.doors.cli"]


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers."""

    port: int
    token: str
    process: psutil.Process

    def cpu_s(self) -> float:
        """Return the CPU time of all its processes."""
        spent = [each.cpu_times() for each in (self.process, *self.process.children(recursive=True))]
        return float(sum(each.user + each.system for each in spent))

    def peak_mb(self) -> float:
        """Return the most memory that one of its processes ever had."""
        every = (self.process, *self.process.children(recursive=True))
        return max(_peak_mb(each.pid) for each in every)

    def reset_peak_mb(self) -> float:
        """Count the most memory from now on; return what its largest process has now."""
        every = (self.process, *self.process.children(recursive=True))
        for each in every:
            Path(f"/proc/{each.pid}/clear_refs").write_text("5", "ascii")
        return max(_told_mb(each.pid, "VmRSS:") for each in every)


def _peak_mb(pid: int) -> float:
    return _told_mb(pid, "VmHWM:")


def _told_mb(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} does not tell its memory")


@asynccontextmanager
async def hello_server() -> AsyncIterator[Server]:
    """Run the bare hello."""
    port = _free_port()
    async with _running([sys.executable, "-m", "bench.http_hello", str(port)], port, "/", None) as process:
        yield Server(port, "", process)


@asynccontextmanager
async def tenure_server(store: str) -> AsyncIterator[Server]:
    """Run Tenure's server on a store, as anybody would; its log goes to a file."""
    port = _free_port()
    with TemporaryDirectory(prefix="tenure-bench-") as name:
        token = Path(name) / "token"
        words = ["serve", "--store", store, "--port", str(port), "--log", "json", "--first-token-file", str(token)]
        async with _running([*TENURE, *words], port, "/readyz", Path(name) / "log") as process:
            yield Server(port, token.read_text("ascii").strip(), process)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@asynccontextmanager
async def _running(command: list[str], port: int, path: str, log: Path | None) -> AsyncIterator[psutil.Process]:
    child = await asyncio.to_thread(_start, command, log)
    try:
        await asyncio.to_thread(_wait, child, f"http://127.0.0.1:{port}{path}", log)
        yield psutil.Process(child.pid)
    finally:
        child.terminate()
        await asyncio.to_thread(child.wait)


def _start(command: list[str], log: Path | None) -> "subprocess.Popen[bytes]":
    with (log or Path("/dev/null")).open("wb") as errors:
        return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)


def _wait(child: "subprocess.Popen[bytes]", url: str, log: Path | None) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and child.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310  # our own server on loopback
                return
        except urllib.error.HTTPError:
            return  # it answers; what it says to a GET is its own business
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"the server did not start: {log.read_text('utf-8') if log else ''}")
