"""Two servers on one PostgreSQL, to be mistreated: clients speak HTTP with whichever of them answers."""

import json
import os
import secrets
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.infrastructure.forked_tenure import ForkedTenure
from tests.infrastructure.free_port import free_port
from tests.infrastructure.postgres import private_postgres
from tests.proof.faces import WHO_ASKS
from tests.proof.rounds import Fragile

ROOT = Path(__file__).parents[2]
STARTS_WITHIN_S = 60


class Pair:
    """Two servers that share a ledger. Killed is one of them, in turn; the other goes on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = ""
        self._turn = 0
        self._ports: list[int] = []
        self._running: list[ForkedTenure[bytes]] = []

    def begin(self, store: str) -> str:
        """Serve another ledger; return the URL that names both servers."""
        self.end()
        self._store, self._ports = store, [free_port(), free_port()]
        self._running = [self._start(port) for port in self._ports]
        for port in self._ports:
            wait_until_ready(port)
        return "http://" + ",".join(f"127.0.0.1:{port}" for port in self._ports)

    def _start(self, port: int) -> ForkedTenure[bytes]:
        words = ["serve", "--store", self._store, "--port", str(port), "--log", "json", "--grace-s", "5"]
        token = self.folder / f"token-{self._ports[0]}"
        with (self.folder / "log").open("ab") as log:
            return ForkedTenure[bytes](
                [*words, "--first-token-file", str(token)],
                cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    @property
    def token(self) -> str:
        """Return the token of the ledger that is served."""
        return (self.folder / f"token-{self._ports[0]}").read_text("ascii").strip()

    def kill(self) -> None:
        """Kill one server; the next time it is the other."""
        self._turn = 1 - self._turn
        self._running[self._turn].kill()
        self._running[self._turn].wait()

    def start(self) -> None:
        """Start what was killed, where it was."""
        self._running[self._turn] = self._start(self._ports[self._turn])
        wait_until_ready(self._ports[self._turn])

    def end(self) -> None:
        """Stop both, in order; that must not take long."""
        for server in self._running:
            server.terminate()
        for server in self._running:
            server.wait(timeout=30)
        self._running = []


def wait_until_ready(port: int) -> None:
    """Wait until the server on a port is ready."""
    deadline = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
                json.load(answer)
                return
        except (OSError, urllib.error.HTTPError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@contextmanager
def fragile_http() -> Iterator[Fragile]:
    """Give two servers on a PostgreSQL, with a ledger a round."""
    with private_postgres() as server:
        pair = Pair(server.folder)

        def place(_: Path) -> str:
            url = pair.begin(f"{server.url}&schema=t_{secrets.token_hex(6)}")
            os.environ[WHO_ASKS] = pair.token
            return url

        try:
            yield Fragile("http", place, pair)
        finally:
            pair.end()
            os.environ.pop(WHO_ASKS, None)
