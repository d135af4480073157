"""A small HTTP client on plain sockets: cheap, and able to hang up at any moment."""

import asyncio
import json
from typing import Any, NamedTuple

CONNECTS_WITHIN_S = 20.0


class HttpAnswer(NamedTuple):
    """A status and the document that came with it."""

    status: int
    document: Any


class HttpConnection:
    """One connection that is kept for the next request while all goes well."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def connect(self) -> None:
        """Connect, if it is not done; OSError if nobody listens."""
        if self._streams is None:
            async with asyncio.timeout(CONNECTS_WITHIN_S):
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)

    async def post(self, path: str, body: dict[str, Any], request_id: str, key: str | None) -> HttpAnswer:
        """Ask, and return the answer; OSError or EOFError if there is none."""
        assert self._streams is not None
        reader, writer = self._streams
        writer.write(self._request(path, json.dumps(body).encode(), request_id, key))
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        content = await reader.readexactly(int(fields.get("content-length", "0")))
        if fields.get("connection") == "close":
            self.hang_up()
        return HttpAnswer(int(lines[0].split(" ", 2)[1]), json.loads(content) if content else None)

    def _request(self, path: str, body: bytes, request_id: str, key: str | None) -> bytes:
        more = "" if key is None else f"Idempotency-Key: {key}\r\n"
        head = (
            f"POST /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nX-Request-Id: {request_id}\r\n{more}Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def follow(self, after: int) -> "asyncio.StreamReader":
        """Begin to follow the events behind a number; return what they come on."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._streams = reader, writer
        head = (
            f"GET /api/v1/events?after={after} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"Authorization: Bearer {self._token}\r\n\r\n"
        )
        writer.write(head.encode())
        await reader.readuntil(b"\r\n\r\n")
        return reader

    def hang_up(self, *, abruptly: bool = True) -> None:
        """Close the connection, whatever is under way; abruptly, or in order."""
        if self._streams is not None:
            transport = self._streams[1].transport
            transport.abort() if abruptly else transport.close()
            self._streams = None
