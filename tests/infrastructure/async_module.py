"""A module of this project as a process that begins at once, for tests with an event loop: see ``forked_tenure``."""

import asyncio
import subprocess
from contextlib import suppress

from tests.infrastructure.forked_tenure import ForkedModule

ENDS_S = 2.0
"""So long what a process wrote may take to be read after its end."""


class AsyncModule:
    """`python -m MODULE WORDS` with pipes, as ``asyncio.create_subprocess_exec`` gives it."""

    def __init__(
        self,
        process: "ForkedModule[bytes]",
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        reading: asyncio.BaseTransport,
    ) -> None:
        self._process = process
        self._reading = reading
        self.pid = process.pid
        self.stdin = stdin
        self.stdout = stdout

    @property
    def returncode(self) -> int | None:
        """Return the exit code, or the negative number of the signal that ended it; None while it runs."""
        return self._process.poll()

    async def wait(self) -> int:
        """Wait for its end, and return the exit code."""
        code = await asyncio.to_thread(self._process.wait)
        self.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDS_S):
                while not self._reading.is_closing():  # noqa: ASYNC110 - what it wrote last is read by then
                    await asyncio.sleep(0.001)
        self._reading.close()
        return code

    async def communicate(self, said: bytes = b"") -> tuple[bytes, None]:
        """Write what is to be said and nothing more; return what it writes until its end."""
        if said:
            self.stdin.write(said)
        self.stdin.close()
        told = await self.stdout.read()
        await self.wait()
        return told, None

    def kill(self) -> None:
        """Kill it (``kill -9``)."""
        self._process.kill()


async def start_module(module: str, *words: str) -> AsyncModule:
    """Start a module of this project as a process of its own."""
    process = ForkedModule[bytes](module, *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    loop = asyncio.get_running_loop()
    stdout = asyncio.StreamReader()
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdout), process.stdout)
    writing = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, process.stdin)
    return AsyncModule(process, asyncio.StreamWriter(*writing, None, loop), stdout, reading)
