"""``python -m bench.costly_probe PORT TOKEN NETWORK``: how long others wait, in a process of its own.

One connection asks for /healthz over and over, another one allocates in a network of its own. The line "begin" on
standard input forgets what was before; "end" prints the longest wait of each since then, as JSON.
"""

import asyncio
import json
import sys
import time

PAUSE_S = 0.005


class Caller:
    """Sends one request over and over on one connection, and keeps the longest wait for an answer."""

    def __init__(self, port: int, method: str, path: str, token: str, body: bytes = b"") -> None:
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self._port = port
        self._request = head.encode() + body
        self._longest_s = 0.0
        self._since: float | None = None

    def begin(self) -> None:
        """Forget the waits so far; one that has not ended is counted from now."""
        self._longest_s = 0.0
        self._since = None if self._since is None else time.perf_counter()

    def longest_ms(self) -> float:
        """Return the longest wait; one that has not ended is as long as it has been."""
        waits_s = 0.0 if self._since is None else time.perf_counter() - self._since
        return max(self._longest_s, waits_s) * 1000

    async def run(self) -> None:
        """Ask until cancelled."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            while True:
                self._since = time.perf_counter()
                writer.write(self._request)
                await self._answer(reader)
                self._longest_s = max(self._longest_s, time.perf_counter() - self._since)
                self._since = None
                await asyncio.sleep(PAUSE_S)
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> None:
        status, *lines = (await reader.readuntil(b"\r\n\r\n")).rstrip().split(b"\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in lines)
        body = await reader.readexactly(int(fields[b"content-length"]))
        if b" 200 " not in status:
            raise RuntimeError(f"the probe was refused: {status!r} {body!r}")


async def probe(port: int, token: str, network: str) -> None:
    """Ask until standard input ends."""
    health = Caller(port, "GET", "/healthz", token)
    other = Caller(port, "POST", f"/api/v1/networks/{network}:allocate", token, b'{"owner":"probe/1"}')
    tasks = [asyncio.create_task(caller.run()) for caller in (health, other)]
    while line := await asyncio.to_thread(sys.stdin.readline):
        for task in tasks:
            if task.done():
                task.result()
        if line.strip() == "begin":
            health.begin()
            other.begin()
        else:
            print(json.dumps({"healthz_ms": health.longest_ms(), "others_ms": other.longest_ms()}), flush=True)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(probe(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
