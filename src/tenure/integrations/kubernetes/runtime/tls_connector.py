"""Connections that are closed also when the request that opens one is cancelled half way."""

import asyncio
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

CLOSES_WITHIN_S = 3.0
"""On a machine that is busy a handshake takes more than a second."""


class TlsConnector(aiohttp.TCPConnector):
    """A connector that finishes what it begins to open, whether or not a request still waits for it.

    asyncio loses a socket whose handshake is cancelled before it has begun: only the garbage collector closes it. So
    opening is shielded from the request, and a connection that no request wants is closed once it is open.
    Requests on connections that are open already pay nothing for this.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._opening: set[asyncio.Task[ResponseHandler]] = set()

    async def _create_connection(self, *words: Any) -> ResponseHandler:
        opening = asyncio.ensure_future(super()._create_connection(*words))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close)
            raise

    async def finish(self) -> None:
        """Wait a moment for connections that are being opened, so that they can be closed; give up the others."""
        if self._opening:
            _, late = await asyncio.wait(self._opening, timeout=CLOSES_WITHIN_S)
            for each in late:
                each.cancel()


def _close(opening: "asyncio.Task[ResponseHandler]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().abort()
