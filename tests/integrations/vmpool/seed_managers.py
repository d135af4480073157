"""Go managers of a pool beside ours: a program that behaves as two generations of them do (``seed_manager/``)."""

import json
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.build_kube import find_program

LONGEST_S = 300


@dataclass(frozen=True)
class Done:
    """What the program reports of one operation; ``error`` is empty if it was done."""

    operation: str
    node: str
    id: str
    ip: str
    error: str
    attempts: int
    seconds: float


@dataclass(frozen=True)
class Spent:
    """What nodes took from their cue to their end."""

    seconds: float
    cpu_s: float
    peak_mb: float


@dataclass(frozen=True)
class SeedManagers:
    """Go managers of one pool: ``overwrite`` as those of today, else as those of the time of the design."""

    kubeconfig: Path
    namespace: str
    pool: Sequence[str]
    name: str = "byom-ip-pool-state"
    node: str = "go-node"
    overwrite: bool = False
    more: Sequence[str] = field(default_factory=tuple)

    def allocate(self, *ids: str) -> list[Done]:
        """Allocate for ids, one after the other."""
        return self._ran("allocate", *ids)

    def deallocate(self, *ids: str) -> list[Done]:
        """Deallocate ids, one after the other."""
        return self._ran("deallocate", *ids)

    def start(self) -> Done:
        """Do what a manager does when its process starts: release what its node had, and repair."""
        [done] = self._ran("start")
        return done

    def on_cue(self, *, nodes: int = 1, count: int = 1, release_every: int = 0) -> "Cued":
        """Return nodes that are ready to allocate, each so many times, as soon as they get the cue."""
        words = ["--nodes", str(nodes), "--count", str(count), "--release-every", str(release_every), "--on-cue"]
        return Cued([*self._words(), *words, "run"])

    def _ran(self, *words: str) -> list[Done]:
        done = subprocess.run(
            [*self._words(), *words], capture_output=True, encoding="utf-8", timeout=LONGEST_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return read_lines(done.stdout)

    def _words(self) -> list[str]:
        words = [str(find_program("seed-manager")), "--kubeconfig", str(self.kubeconfig), "--namespace", self.namespace]
        words += ["--pool", ",".join(self.pool), "--name", self.name, "--node", self.node, *self.more]
        return [*words, "--overwrite"] if self.overwrite else words


class Cued(AbstractContextManager["Cued"]):
    """Nodes that wait for their cue; at the end of the block they are gone."""

    def __init__(self, words: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, encoding="utf-8")

    def __enter__(self) -> Self:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def begin(self) -> None:
        """Give the cue."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def ended(self) -> tuple[list[Done], Spent]:
        """Wait until all have ended, and return what they did, and what it took."""
        printed, _ = self.process.communicate(timeout=LONGEST_S)
        lines, _, last = printed.rstrip("\n").rpartition("\n")
        return read_lines(lines), Spent(**json.loads(last))


def read_lines(text: str) -> list[Done]:
    """Read what the program printed."""
    return [Done(**json.loads(line)) for line in text.splitlines()]
