"""Where log lines go: gathered for a moment, written as one; a log that cannot be written never stops a request."""

import asyncio
import os

TOGETHER_S = 0.02
"""How long a line may wait for others."""

MOST_LINES = 256
BLOCK = 4096
"""Bytes of one write: pipes keep that much together, so lines of several processes never mix."""


class Sink:
    """A file descriptor that takes lines. Cost of a line: an append; the rest is shared by all that came with it."""

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self.lost = 0
        """Lines that could not be written."""

    def write(self, line: str) -> None:
        """Take a line, which ends with a line break."""
        self._lines.append(line)
        if self._timer is None:
            try:
                self._timer = asyncio.get_running_loop().call_later(TOGETHER_S, self.flush)
            except RuntimeError:  # no loop: the server starts or ends
                self.flush()
        elif len(self._lines) >= MOST_LINES:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        block: list[bytes] = []
        size = 0
        for line in lines:
            # A lone surrogate in one line must not cost the lines that came with it.
            data = line.encode("utf-8", "backslashreplace")
            # A line that is longer than a block goes alone.
            if block and size + len(data) > BLOCK:
                self._put(block)
                block, size = [], 0
            block.append(data)
            size += len(data)
        if block:
            self._put(block)

    def _put(self, block: list[bytes]) -> None:
        data = b"".join(block)
        try:
            while data:
                # write() may take a part only, such as when a signal comes or a pipe is nearly full.
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            self.lost += len(block)
