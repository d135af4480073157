"""Server-sent events, read from a chunked answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

SILENT_S = 30.0
"""After so long without a word (a frozen server says nothing) a reader goes elsewhere."""


async def events_of(reader: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
    """Yield the changes that a stream tells, until it ends."""
    rest = b""
    while True:
        async with asyncio.timeout(SILENT_S):
            size = int(await reader.readuntil(b"\r\n"), 16)
            chunk = await reader.readexactly(size + 2)
        if not size:
            return
        *whole, rest = (rest + chunk[:-2]).split(b"\n\n")
        for block in whole:
            lines = [line.partition(b": ") for line in block.split(b"\n")]
            data = b"\n".join(value for name, _, value in lines if name == b"data")
            if data and (b"event", b"change") in [(name, value) for name, _, value in lines]:
                yield json.loads(data)
