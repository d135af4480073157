"""A proxy between servers and PostgreSQL that loses, holds back, delays and cuts, in a process of its own.

It reads the protocol as far as it must to know when a commit's answer passes: statements that write the log, the end of
their transaction, and the database's word that it is ready again. Each server has a port of its own, so that what goes
wrong goes wrong for one of them. Orders are lines of JSON on standard input; standard output says what came of them.
"""

import asyncio
import contextlib
import json
import random
import struct
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).parents[2]
STARTS_WITHIN_S = 30
CHUNK = 1 << 16
HEADER = struct.Struct("!ci")
ENCRYPTION_ASKED = (80877103, 80877104)
WRITES_LOG = b"INSERT INTO change"
NOTICES_S = 0.05
"""How long a server needs to notice that connections are gone."""

Deed = Literal["lose", "hold", "part", "mute"]
"""What is done at a commit's answer (``mute``: inside a transaction):

``lose``: the answer is dropped with its connection, and the server's next words are held back for some seconds.
``hold``: the answer is held back for some seconds. ``part``: the answer passes, then the database is out of reach for
some seconds. ``mute``: the connection is silent for some seconds while its transaction holds locks.
"""


@dataclass(frozen=True)
class Trap:
    """Something to do when a server's commit that mentions ``needle`` is answered."""

    number: int
    server: int
    deed: Deed
    seconds: float
    needle: str = ""
    expires: float = 0.0


@dataclass
class Line:
    """All connections of one server to its database, and what is wrong with them now."""

    server: int
    conversations: "set[Conversation]" = field(default_factory=set)
    traps: list[Trap] = field(default_factory=list)
    stalled_until: float = 0.0
    refused_until: float = 0.0
    delays: dict[str, tuple[float, float]] = field(default_factory=dict)

    def delay(self, way: str) -> float:
        """Return how long a piece that goes this way is to wait."""
        until, most = self.delays.get(way, (0.0, 0.0))
        now = time.monotonic()
        wait = random.uniform(0, most) if now < until else 0.0
        return max(wait, self.stalled_until - now) if way == "up" else wait

    def trap(self, conversation: "Conversation", deeds: tuple[Deed, ...]) -> Trap | None:
        """Take the first trap that this conversation has sprung."""
        now = time.monotonic()
        self.traps = [trap for trap in self.traps if trap.expires > now]
        for trap in self.traps:
            if trap.deed in deeds and trap.needle.encode() in conversation.said:
                self.traps.remove(trap)
                return trap
        return None


class Conversation:
    """One connection: what was asked in its transaction so far, and what passes."""

    def __init__(self, line: Line, to_server: asyncio.StreamWriter, to_base: asyncio.StreamWriter) -> None:
        self.line = line
        self.to_server = to_server
        self.to_base = to_base
        self.said = bytearray()
        self.muted_until = 0.0
        self._writers: set[bytes] = set()
        self._writes = False
        self._changed = False
        self._failed = False
        self._begun = False
        self._greeted = True

    def cut(self) -> None:
        """Break the connection off at both ends."""
        for writer in (self.to_server, self.to_base):
            writer.transport.abort()

    def ask(self, kind: bytes, body: bytes) -> None:
        """Take note of a message to the database."""
        if kind == b"P":
            name, _, rest = body.partition(b"\0")
            (self._writers.add if WRITES_LOG in rest else self._writers.discard)(name)
        elif kind == b"B":
            self._writes = self._writes or body.split(b"\0", 2)[1] in self._writers
        if kind in (b"P", b"B", b"Q"):
            self.said += body

    def answered(self, kind: bytes, body: bytes) -> Literal["commit", "inside", ""]:
        """Take note of a message from the database; tell whether it ends a commit, or a step inside a transaction."""
        if kind == b"C":
            self._changed = self._writes and not body.startswith((b"SELECT 0", b"ROLLBACK", b"INSERT 0 0"))
        elif kind == b"E":
            self._failed = True
        if kind != b"Z":
            return ""
        if body != b"I":
            return "inside" if self._writes and not self._failed else ""
        committed = self._changed and not self._failed
        self._writes = self._changed = self._failed = False
        return "commit" if committed else ""

    async def up(self, reader: asyncio.StreamReader) -> None:
        """Pass on what the server says."""
        await self._pass(reader, self.to_base, "up")

    async def down(self, reader: asyncio.StreamReader, tell: "Teller") -> None:
        """Pass on what the database says, as far as it is let."""
        await self._pass(reader, self.to_server, "down", tell)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str, tell: "Teller | None" = None
    ) -> None:
        rest = b""
        while piece := await reader.read(CHUNK):
            data = rest + piece
            whole = self._messages(data, tell) if tell is not None else self._questions(data)
            passing, rest = data[: whole[0]], data[whole[0] :]
            if (wait := self.line.delay(way)) > 0:
                await asyncio.sleep(wait)
            if tell is not None and whole[1] is not None and not await self._spring(whole[1], passing, tell):
                return
            if (mute := self.muted_until - time.monotonic()) > 0:
                await asyncio.sleep(mute)
            writer.write(passing)
            await writer.drain()

    def _questions(self, data: bytes) -> tuple[int, None]:
        """Read whole messages to the database; return where they end."""
        at = 0
        while not self._begun and len(data) - at >= 8:
            length, code = struct.unpack_from("!ii", data, at)
            if len(data) - at < length:
                return at, None
            at += length
            self._begun = code not in ENCRYPTION_ASKED
            self._greeted = self._begun
        while self._begun and len(data) - at >= HEADER.size:
            kind, length = HEADER.unpack_from(data, at)
            if len(data) - at <= length:
                break
            self.ask(kind, data[at + 5 : at + 1 + length])
            at += 1 + length
        return at, None

    def _messages(self, data: bytes, tell: "Teller") -> tuple[int, Trap | None]:
        """Read whole messages from the database; return where they end, and the trap that one of them sprang."""
        if not self._greeted:
            return len(data), None  # one letter: whether it will encrypt
        at, sprung = 0, None
        while len(data) - at >= HEADER.size:
            kind, length = HEADER.unpack_from(data, at)
            if len(data) - at <= length:
                break
            event = self.answered(kind, data[at + 5 : at + 1 + length])
            if event == "commit":
                tell.counts["commits"] += 1
                sprung = sprung or self.line.trap(self, ("lose", "hold", "part"))
            elif event == "inside":
                sprung = sprung or self.line.trap(self, ("mute",))
            if kind == b"Z" and data[at + 5 : at + 6] == b"I":
                self.said.clear()
            at += 1 + length
        return at, sprung

    async def _spring(self, trap: Trap, passing: bytes, tell: "Teller") -> bool:
        """Do what a trap says; tell whether the answer is still to be passed on."""
        now = time.monotonic()
        tell.sprung(trap)
        if trap.deed == "lose":
            self.line.stalled_until = max(self.line.stalled_until, now + trap.seconds)
            self.cut()
            return False
        if trap.deed == "hold":
            await asyncio.sleep(trap.seconds)
        elif trap.deed == "mute":
            self.muted_until = now + trap.seconds
        else:
            self.line.refused_until = now + trap.seconds
            for other in self.line.conversations - {self}:
                other.cut()
            await asyncio.sleep(NOTICES_S)
            self.to_server.write(passing)
            self.to_server.close()
            return False
        return True


class Teller:
    """Tells the orderer what happened."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def sprung(self, trap: Trap) -> None:
        """Tell that a trap was sprung."""
        self.counts[trap.deed] += 1
        self.say({"sprung": trap.number})

    def say(self, word: dict[str, Any]) -> None:
        """Write a line."""
        sys.stdout.write(json.dumps(word) + "\n")
        sys.stdout.flush()


class Proxy:
    """The lines of all servers."""

    def __init__(self, socket: str, servers: int) -> None:
        self._socket = socket
        self._lines = [Line(server) for server in range(servers)]
        self._tell = Teller()

    async def serve(self) -> None:
        """Listen, tell the ports, and follow orders until there are no more."""
        listening = [await asyncio.start_server(self._accepted(line), "127.0.0.1", 0) for line in self._lines]
        self._tell.say({"ports": [each.sockets[0].getsockname()[1] for each in listening]})
        orders = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
        while order := await orders.readline():
            self._follow(json.loads(order))

    def _accepted(self, line: Line) -> Any:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._converse(line, reader, writer)
            writer.transport.abort()

        return accept

    async def _converse(self, line: Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if time.monotonic() < line.refused_until:
            return
        base_reader, base = await asyncio.open_unix_connection(self._socket)
        conversation = Conversation(line, writer, base)
        line.conversations.add(conversation)
        ways = [
            asyncio.create_task(conversation.up(reader)),
            asyncio.create_task(conversation.down(base_reader, self._tell)),
        ]
        try:
            _, rest = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for task in rest:
                task.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            line.conversations.discard(conversation)
            base.transport.abort()

    def _follow(self, order: dict[str, Any]) -> None:
        """Do what an order says, to the line of the server that it names."""
        now, line = time.monotonic(), self._lines[order.get("server", 0)]
        match order["do"]:
            case "trap":
                line.traps.append(Trap(**order["trap"] | {"expires": now + order["lasts"]}))
            case "delay":
                line.delays[order["way"]] = (now + order["lasts"], order["seconds"])
            case "cut":
                for conversation in [each for each in line.conversations if random.random() < order["share"]]:
                    conversation.cut()
            case "calm":
                for each in self._lines:
                    each.traps.clear()
                    each.delays.clear()
                    each.stalled_until = each.refused_until = 0.0
                    for conversation in each.conversations:
                        conversation.muted_until = 0.0
            case "count":
                self._tell.say({"counts": dict(self._tell.counts)})


class PostgresProxy:
    """The proxy's process, as whoever gives the orders sees it."""

    def __init__(self, process: Process, ports: list[int]) -> None:
        self.ports = ports
        self._process = process
        self._number = 0
        self._sprung: dict[int, asyncio.Future[None]] = {}
        self._counts: asyncio.Future[dict[str, int]] | None = None

    async def trap(self, server: int, deed: Deed, seconds: float, needle: str = "", lasts: float = 5.0) -> bool:
        """Set a trap and wait until it is sprung, or not any more; tell which."""
        return await self.set(server, deed, seconds, needle, lasts)

    def set(
        self, server: int, deed: Deed, seconds: float, needle: str = "", lasts: float = 5.0
    ) -> "asyncio.Task[bool]":
        """Set a trap; the task tells whether it was sprung in its time."""
        self._number += 1
        number = self._number
        self._sprung[number] = asyncio.get_running_loop().create_future()
        trap = Trap(number, server, deed, seconds, needle)
        self._order(do="trap", server=server, trap=asdict(trap), lasts=lasts)
        return asyncio.create_task(self._awaited(number, lasts))

    async def _awaited(self, number: int, lasts: float) -> bool:
        done, _ = await asyncio.wait([self._sprung[number]], timeout=lasts + 0.5)
        del self._sprung[number]
        return bool(done)

    def delay(self, server: int, way: str, seconds: float, lasts: float) -> None:
        """Delay each piece one way (``up`` is to the database) by up to so many seconds."""
        self._order(do="delay", server=server, way=way, seconds=seconds, lasts=lasts)

    def cut(self, server: int, share: float) -> None:
        """Cut a share of a server's connections."""
        self._order(do="cut", server=server, share=share)

    def calm(self) -> None:
        """Let everything pass again."""
        self._order(do="calm")

    async def counts(self) -> dict[str, int]:
        """Return how many commits passed, and how often each trap was sprung."""
        self._counts = asyncio.get_running_loop().create_future()
        self._order(do="count")
        return await asyncio.wait_for(self._counts, STARTS_WITHIN_S)

    def _order(self, **order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def listen(self) -> None:
        """Hear what the proxy tells, to its end."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            told = json.loads(line)
            if "counts" in told and self._counts is not None:
                self._counts.set_result(told["counts"])
            elif (waited := self._sprung.get(told.get("sprung", 0))) is not None and not waited.done():
                waited.set_result(None)


@asynccontextmanager
async def postgres_proxy(folder: Path, servers: int) -> AsyncIterator[PostgresProxy]:
    """Run a proxy with a port a server in front of the PostgreSQL in a folder."""
    words = ["-m", "tests.infrastructure.postgres_proxy", str(folder / ".s.PGSQL.5432"), str(servers)]
    process = await asyncio.create_subprocess_exec(sys.executable, *words, cwd=ROOT, stdin=PIPE, stdout=PIPE)
    try:
        assert process.stdout is not None
        first = await asyncio.wait_for(process.stdout.readline(), STARTS_WITHIN_S)
        proxy = PostgresProxy(process, json.loads(first)["ports"])
        listening = asyncio.create_task(proxy.listen())
        try:
            yield proxy
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(Proxy(sys.argv[1], int(sys.argv[2])).serve())
