"""A wire that breaks: a TCP proxy between client and server that does to each connection what the test says."""

import asyncio
import contextlib
import enum
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Fault(enum.Enum):
    """What happens to one connection."""

    NONE = "passed on"
    REFUSED = "closed before anything is passed on"
    LOST = "passed on, and the answer lost"
    CUT = "passed on, and the answer cut in the middle"
    GARBAGE = "answered with garbage"
    GATEWAY = "answered 502 by somebody in between, after it was passed on"
    MUTE = "passed on, and never answered"


BAD_GATEWAY = (
    b"HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\ncontent-length: 3\r\nconnection: close\r\n\r\nno!"
)


class Wire:
    """A proxy to one server; the faults to come are used up one a connection, and then there are none."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self.faults: deque[Fault] = deque()
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    def will(self, *faults: Fault) -> None:
        """Say what happens to the next connections."""
        self.faults.extend(faults)

    @property
    def url(self) -> str:
        """Return the URL of the server by way of the wire."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}{self._target.path}"

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._suffer(self.faults.popleft() if self.faults else Fault.NONE, reader, writer)
        finally:
            self._talks.discard(task)
            writer.close()

    async def _suffer(self, fault: Fault, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if fault is Fault.REFUSED:
            return
        if fault is Fault.GARBAGE:
            await reader.read(1)
            writer.write(b"\x00\xffnonsense\r\n\r\n")
            await writer.drain()
            return
        there, back = await asyncio.open_connection(self._target.hostname, self._target.port)
        try:
            await self._passed(fault, reader, writer, there, back)
        finally:
            back.close()

    async def _passed(
        self,
        fault: Fault,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        there: asyncio.StreamReader,
        back: asyncio.StreamWriter,
    ) -> None:
        going = asyncio.ensure_future(_pump(reader, back))
        try:
            if fault is Fault.NONE:
                await asyncio.wait(
                    [going, asyncio.ensure_future(_pump(there, writer))], return_when=asyncio.FIRST_COMPLETED
                )
                return
            first = await there.read(65536)  # the server has done it
            if fault is Fault.CUT:
                writer.write(first[: len(first) // 2])
            elif fault is Fault.GATEWAY:
                writer.write(BAD_GATEWAY)
            elif fault is Fault.MUTE:
                await asyncio.sleep(3600)
            await writer.drain()
        finally:
            going.cancel()

    def cut(self) -> None:
        """Cut all connections there are."""
        for task in list(self._talks):
            task.cancel()

    async def close(self) -> None:
        """Cut everything, and let nobody in any more."""
        assert self._server is not None
        self._server.close()
        talks = list(self._talks)
        self.cut()
        await asyncio.gather(*talks, return_exceptions=True)

    async def open(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()


@asynccontextmanager
async def wire_to(url: str, faults: Iterable[Fault] = ()) -> AsyncIterator[Wire]:
    """Lay a wire to a server."""
    wire = Wire(url)
    wire.will(*faults)
    await wire.open()
    try:
        yield wire
    finally:
        await wire.close()
