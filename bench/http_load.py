"""A crowd of keep-alive connections in closed loop: each sends its next request when the answer has come.

It speaks just enough HTTP to be no part of what is measured: some 15 µs a request.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from typing import cast

import uvloop

HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length: "


@dataclass(frozen=True, slots=True)
class Crowd:
    """What is sent, by how many, for how long."""

    port: int
    path: str
    connections: int
    seconds: float
    token: str = ""
    keyed: bool = False
    marker: str = "b"


@dataclass(frozen=True, slots=True)
class Told:
    """What came of it."""

    answered: int
    refused: int
    seconds: float


def request_maker(crowd: Crowd) -> Callable[[], bytes]:
    """Return a function that writes the next request: an owner that never asked before."""
    numbers = count()
    token = f"authorization: Bearer {crowd.token}\r\n" if crowd.token else ""
    head = f"POST {crowd.path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{token}content-type: application/json\r\n"

    def make() -> bytes:
        owner = f"{crowd.marker}-{next(numbers)}"
        body = f'{{"owner":"bench/{owner}"}}'
        key = f"idempotency-key: {owner}\r\n" if crowd.keyed else ""
        return f"{head}{key}content-length: {len(body)}\r\n\r\n{body}".encode()

    return make


class Caller(asyncio.Protocol):
    """One connection."""

    def __init__(self, make: Callable[[], bytes], until: Callable[[], bool]) -> None:
        self._make = make
        self._over = until
        self._buffer = b""
        self._transport: asyncio.WriteTransport | None = None
        self.answered = 0
        self.refused = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is one, but does not say so
        self._transport.write(self._make())

    def data_received(self, data: bytes) -> None:
        """Take answers; send the next request for each."""
        self._buffer += data
        while (end := self._buffer.find(HEAD_END)) >= 0:
            at = self._buffer.find(LENGTH, 0, end) + len(LENGTH)
            whole = end + 4 + int(self._buffer[at : self._buffer.find(b"\r", at)])
            if len(self._buffer) < whole:
                return
            good = self._buffer.startswith(b"HTTP/1.1 2")
            self.answered += good
            self.refused += not good
            self._buffer = self._buffer[whole:]
            self._next()

    def _next(self) -> None:
        assert self._transport is not None
        if not self._over():
            self._transport.write(self._make())
        elif not self.done.done():
            self.done.set_result(None)
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """End; a server that hangs up early is a failed measurement."""
        if not self.done.done():
            self.done.set_exception(error or ConnectionResetError("the server hung up"))


async def run(crowd: Crowd) -> Told:
    """Let the crowd ask until the time is over; what was asked is still answered."""
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    make = request_maker(crowd)
    pairs = [
        await loop.create_connection(
            lambda: Caller(make, lambda: time.perf_counter() - began >= crowd.seconds), "127.0.0.1", crowd.port
        )
        for _ in range(crowd.connections)
    ]
    callers = [caller for _, caller in pairs]
    await asyncio.gather(*(caller.done for caller in callers))
    spent = time.perf_counter() - began
    return Told(sum(caller.answered for caller in callers), sum(caller.refused for caller in callers), spent)


def main() -> None:
    """Read a crowd as JSON from the command line, and tell what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("crowd", help="a Crowd as JSON")
    crowd = Crowd(**json.loads(parser.parse_args().crowd))
    json.dump(asdict(uvloop.run(run(crowd))), sys.stdout)


if __name__ == "__main__":
    main()
