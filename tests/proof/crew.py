"""The crew of a proof: client processes started, told, killed; and their history gathered at the end."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.infrastructure.async_module import AsyncModule, start_module
from tests.proof.checking import Finding, check_calls
from tests.proof.clients import Errand
from tests.proof.faces import open_face
from tests.proof.history import History, read_calls
from tests.proof.plan import Plan
from tests.proof.replaying import check_log

PATIENCE_S = 90


@dataclass
class Client:
    """A running client process."""

    name: str
    process: AsyncModule

    async def say(self, word: str = "") -> None:
        """Let it begin, or stop."""
        self.process.stdin.write(word.encode() + b"\n")
        await self.process.stdin.drain()

    async def finish(self) -> None:
        """Wait for its end, which must be in order."""
        async with asyncio.timeout(PATIENCE_S):
            code = await self.process.wait()
        assert code == 0, f"client {self.name} ended with {code}"

    async def kill(self) -> None:
        """Kill it (``kill -9``), if it still runs."""
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


@dataclass
class Crew:
    """All client processes on one store."""

    url: str
    plan: Plan
    folder: Path
    seed: int = 0
    clients: list[Client] = field(default_factory=list)
    _hired: int = 0

    async def __aenter__(self) -> "Crew":
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self.clients:
            await client.kill()

    async def hire(self, task: str, *, callers: int = 4, shifts: Sequence[Sequence[float]] = ()) -> Client:
        """Start a client and wait until it is ready."""
        self._hired += 1
        name = f"c{self._hired}"
        path = self.folder / f"{task}-{name}.jsonl"
        errand = Errand(task, self.url, self.plan.pools, str(path), name, self.seed, callers, shifts)
        process = await start_module("tests.proof.clients")
        client = Client(name, process)
        self.clients.append(client)
        process.stdin.write(errand.dump())
        await process.stdin.drain()
        async with asyncio.timeout(PATIENCE_S):
            assert await process.stdout.readline() == b"ready\n", f"client {name} did not start"
        return client

    async def hire_many(self, task: str, count: int, *, callers: int) -> list[Client]:
        """Start several clients at once."""
        return list(await asyncio.gather(*(self.hire(task, callers=callers) for _ in range(count))))

    async def history(self) -> tuple[History, list[str]]:
        """Gather what was called, what is held and logged, and what ``verify`` says, once all is quiet."""
        calls = read_calls(self.folder.glob("*-c*.jsonl"))
        async with AsyncExitStack() as stack:
            face = await open_face(self.url, self.plan)
            stack.push_async_callback(face.close)
            left = await face.settle()
            while True:
                log = await face.log()
                final, cooling, breaches = await face.final(), await face.cooling(), await face.verify()
                # A statement that a killed client left behind may still be running in the store's server.
                if await face.log() == log:
                    return History(calls, final, log, cooling), breaches + left
                await asyncio.sleep(0.1)

    def explain(self, history: History, *, exact: bool) -> list[Finding]:
        """Hold the whole history against the promises."""
        return [*check_calls(history, self.plan), *check_log(history, self.plan, exact=exact)]


async def begin(clients: Sequence[Client]) -> None:
    """Give all of them the word."""
    for client in clients:
        await client.say()
