"""``tenure serve`` as a process of its own, and what tests ask of it: over HTTP, or over a bare socket."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.infrastructure.forked_tenure import ForkedTenure, run_forked

START_S = 30
STOP_S = 30
TENURE = [sys.executable, "-W", "error", "-m", "tenure.doors.cli.main"]


@dataclass
class Answer:
    """An answer of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


@dataclass
class Serving:
    """A running server."""

    process: ForkedTenure[str]
    log: Path
    url: str = ""
    token: str | None = None
    others: dict[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> tuple[str, int]:
        """Return where it listens."""
        host, _, port = self.url.partition("://")[2].rpartition(":")
        return host, int(port)

    def ask(self, method: str, path: str, body: Any = None, *, token: str | None = "", **headers: str) -> Answer:
        """Send a request, with the first token unless said otherwise."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            given["Authorization"] = f"Bearer {token or self.token}"
        data = None
        if body is not None:
            data, given["Content-Type"] = json.dumps(body).encode(), "application/json"
        request = urllib.request.Request(self.url + path, data, given, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                return Answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read())

    def lay_out(
        self,
        name: str = "net1",
        block: str = "10.0.0.0/16",
        pool: str = "10.0.0.10-10.0.255.250",
        policy: str = "lowest",
    ) -> None:
        """Make a network to allocate from. Plain wishes for *random* go the short way, for *lowest* the long one."""
        for path, body in (
            ("/api/v1/networks", {"name": name}),
            (f"/api/v1/networks/{name}/subnets", {"cidr": block}),
            (f"/api/v1/networks/{name}/pools", {"range": pool, "name": "pool1", "policy": policy}),
        ):
            answer = self.ask("POST", path, body, If_Match="*")
            assert answer.status < 300, answer.body

    def allocate(self, owner: str) -> Answer:
        """Have an address of that network."""
        return self.ask("POST", "/api/v1/networks/net1:allocate", {"owner": owner})

    def head(self, method: str, path: str, *more: str) -> bytes:
        """Write a request's head, to be sent over a bare connection."""
        lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {self.token}", *more]
        return "\r\n".join([*lines, "", ""]).encode()

    def metrics(self) -> dict[str, float]:
        """Return all numbers of /metrics."""
        lines = self.ask("GET", "/metrics").body.decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    def lines(self) -> list[str]:
        """Return what it has logged."""
        return self.log.read_text("utf-8").splitlines()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(STOP_S)

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """Open a bare connection."""
        with socket.create_connection(self.address, timeout=30) as connection:
            yield connection


@contextlib.contextmanager
def serving(
    folder: Path, *flags: str, env: Mapping[str, str] | None = None, store: str | None = None
) -> Iterator[Serving]:
    """Run a server in a folder, on any free port, and stop it afterwards."""
    words = ["serve", "--json", *(["--port", "0"] if "--port" not in flags else []), *flags]
    words += [] if store is None else ["--store", store]
    log = Path(tempfile.mkstemp(prefix="log-", dir=folder)[1])
    with log.open("w") as errors:
        process = ForkedTenure[str](
            words, strict=True, cwd=folder, env=environment(env),
            stdout=subprocess.PIPE, stderr=errors, encoding="utf-8",
        )  # fmt: skip
    running = Serving(process, log)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise AssertionError(f"it did not start: {log.read_text('utf-8')}")
        running.others = json.loads(line)
        running.url, running.token = running.others["url"], running.others["token"]
        yield running
    finally:
        running.stop()
        assert process.stdout is not None
        process.stdout.close()


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment without settings of ours, but for those given."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")} | dict(more or {})


def refused(folder: Path, flags: Sequence[str], env: Mapping[str, str] | None = None) -> tuple[int, Any]:
    """Start a server that must not start; return its exit code and the error it told."""
    words = ["serve", "--json", *flags]
    done = run_forked(words, strict=True, cwd=folder, env=environment(env), timeout=START_S)
    assert done.stdout == ""
    return done.returncode, json.loads(done.stderr.splitlines()[-1])["error"]


def until(condition: Any, *, within_s: float = 10.0) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
