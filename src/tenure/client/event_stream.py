"""The log as a server streams it: server-sent events, read back as changes."""

from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import msgspec

from tenure.client.transport import Transport
from tenure.kernel.holdings.holding_model import Change
from tenure.wire import decode, responses
from tenure.wire.problems import error_of

SILENCE_S = 45.0
"""A stream that says nothing for so long is dead; servers show a few times in that while that they live."""

_changes = msgspec.json.Decoder(responses.Change)
_problems = msgspec.json.Decoder(responses.Problem)


class Event(NamedTuple):
    """One server-sent event."""

    name: str
    data: bytes


async def follow(transport: Transport, after: int, opened: Callable[[], None]) -> AsyncIterator[Change]:
    """Follow the log behind a number until the stream ends; a log that no longer reaches back so far raises that.

    ``opened`` is called when the server streams, though there be nothing to tell for long.
    """
    head = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    async with transport.stream("/events", {}, head, answer_s=SILENCE_S) as chunks:
        opened()
        async for event in events_in(chunks):
            if event.name == "change":
                yield decode.change(_changes.decode(event.data))
            elif event.name == "expired":
                raise error_of(_problems.decode(event.data))


async def events_in(chunks: AsyncIterator[bytes]) -> AsyncIterator[Event]:
    """Cut a stream into its events; what is no event (comments, numbers alone) is left out."""
    # A chunk may end anywhere, even between the two line ends that end an event.
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n\n")
        for block in whole:
            if (event := _event(block)) is not None:
                yield event


def _event(block: bytes) -> Event | None:
    said = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line and not line.startswith(b":"))
    return Event(said.get(b"event", b"message").decode(), said[b"data"]) if b"data" in said else None
