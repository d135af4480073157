"""Raw requests, byte by byte: what no client would send."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

WITHIN_S = 20


@dataclass(frozen=True)
class RawAnswer:
    """What came back."""

    status: int
    head: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


def written(method: str, path: bytes, *lines: bytes, body: bytes | None = None) -> bytes:
    """Write a request, with as much in its head as is said."""
    said = [method.encode() + b" " + path + b" HTTP/1.1", b"Host: here", *lines]
    if body is not None:
        said.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(said) + b"\r\n\r\n" + (body or b"")


async def send(port: int, data: bytes, *, answers: int = 1) -> list[RawAnswer]:
    """Send bytes on a connection of their own; read so many answers, or as many as come before it is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        found: list[RawAnswer] = []
        async with asyncio.timeout(WITHIN_S):
            while len(found) < answers:
                found.append(await _answer(reader))
        return found
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def _answer(reader: asyncio.StreamReader) -> RawAnswer:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    head = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    status = int(first.split()[1])
    if status == 100:
        return await _answer(reader)
    return RawAnswer(status, head, await reader.readexactly(int(head.get("content-length", "0"))))
