"""The servers under fire: real processes on one ledger, to be frozen, woken, killed and started again."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.infrastructure.free_port import free_port
from tests.proof.http_pair import wait_until_ready

ROOT = Path(__file__).parents[3]
STOPS_WITHIN_S = 60


class Fleet:
    """Servers by number, each with its own way to the ledger."""

    def __init__(self, folder: Path, stores: Sequence[str], mutant: str | None = None) -> None:
        self.ports = [free_port() for _ in stores]
        self._folder = folder
        self._stores = stores
        self._mutant = mutant
        self._running: list[subprocess.Popen[bytes]] = []

    async def begin(self) -> None:
        """Start all of them; the first makes the token."""
        self._running = [self._start(0)]
        await asyncio.to_thread(wait_until_ready, self.ports[0])
        self._running += [self._start(number) for number in range(1, len(self.ports))]
        for port in self.ports:
            await asyncio.to_thread(wait_until_ready, port)

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        program = ["tenure.doors.cli"] if self._mutant is None else ["tests.proof.fire.mutant_server", self._mutant]
        words = ["serve", "--store", self._stores[number], "--port", str(self.ports[number]), "--log", "json"]
        words += ["--grace-s", "5", "--first-token-file", str(self._folder / "token")]
        with (self._folder / f"log-{number}").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *program, *words],
                cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    @property
    def token(self) -> str:
        """Return the token that the first server made."""
        return (self._folder / "token").read_text("ascii").strip()

    def freeze(self, number: int) -> None:
        """Stop a server where it stands."""
        os.kill(self._running[number].pid, signal.SIGSTOP)

    def wake(self, number: int) -> None:
        """Let a frozen server go on."""
        os.kill(self._running[number].pid, signal.SIGCONT)

    async def replace(self, number: int) -> None:
        """Kill a server (``kill -9``) and start another in its place."""
        self._running[number].kill()
        self._running[number].wait()
        self._running[number] = self._start(number)
        await asyncio.to_thread(wait_until_ready, self.ports[number])

    def end(self) -> None:
        """Stop all of them, in order."""
        for server in self._running:
            server.send_signal(signal.SIGCONT)
            server.terminate()
        for server in self._running:
            try:
                server.wait(timeout=STOPS_WITHIN_S)
            except subprocess.TimeoutExpired:
                server.kill()
                raise
        self._running = []

    def last_words(self) -> str:
        """Return what the servers wrote last, for a round that could not be finished."""
        return "\n".join(path.read_text("utf-8")[-1500:] for path in sorted(self._folder.glob("log-*")))
