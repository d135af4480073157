"""What goes out: JSON, problems, and the few headers that every answer has."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence, Sized
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from tenure.doors.http.routing.read_request import Send
from tenure.kernel.errors import StoreUnavailable, TenureError
from tenure.wire import http_errors, responses
from tenure.wire.problems import problem_of, status_of

encode = msgspec.json.Encoder().encode

JSON = (b"content-type", b"application/json")
PROBLEM = (b"content-type", b"application/problem+json")
STREAM = (b"content-type", b"text/event-stream; charset=utf-8")
ALWAYS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
USUAL = b"".join(
    [
        b"content-type: application/json\r\ncontent-length: %d\r\nx-request-id: %b\r\n",
        *(b"%b: %b\r\n" % pair for pair in ALWAYS),
        b"\r\n",
    ]
)
RETRY_AFTER_S = 1

SLICE = 500
"""Things that are shown or written at once: a few milliseconds of work."""

T = TypeVar("T")
S = TypeVar("S")

WHOLE = "tenure.whole_answer"
"""The extension of ASGI by which an answer is written in one piece, where the server has it."""

Whole = Callable[[int, bytes, bytes], bool]
"""Writes status, head and body in one piece, and tells whether it did."""


def written_whole(whole: Whole | None, status: int, answer: Any, head: dict[str, str], request_id: str) -> int:
    """Write an answer in one piece where the server can, and its head is the usual one; else return 0."""
    if whole is None or head or status != 200 or (type(answer) is responses.Listing and len(answer.items) > SLICE):
        return 0
    body = encode(answer)
    # The connection may decline, such as for a reader who is behind; then the usual way sends the answer.
    return len(body) if whole(200, USUAL % (len(body), request_id.encode()), body) else 0


# A lock belongs to the loop that waits for it; one lock of the module would fail on a second loop, as tests have it.
_SLICING: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


@asynccontextmanager
async def _slice_of_the_loop() -> AsyncIterator[None]:
    """Let one slice be worked on, and then all others have a turn.

    One slice a turn of the loop, whoever asks: of sixty long answers at a time, sixty slices would follow each other.
    """
    loop = asyncio.get_running_loop()
    async with _SLICING.setdefault(loop, asyncio.Lock()):
        yield
        await asyncio.sleep(0)


async def in_turns(values: Iterable[T], shown: Callable[[T], S]) -> list[S]:
    """Return what is shown of each value; of many, a slice at a time, between which others have a turn."""
    if isinstance(values, Sized) and len(values) <= SLICE:
        return [shown(each) for each in values]
    found: list[S] = []
    left = iter(values)
    while True:
        async with _slice_of_the_loop():
            some = [shown(each) for each in islice(left, SLICE)]
        found += some
        if len(some) < SLICE:
            return found


async def encoded_in_turns(items: Sequence[Any]) -> bytes:
    """Write a long list as JSON, a slice at a time, between which others have a turn."""
    pieces = []
    for start in range(0, len(items), SLICE):
        async with _slice_of_the_loop():
            # Without its brackets, so that the pieces make up one list.
            pieces.append(encode(items[start : start + SLICE])[1:-1])
    return b'{"items":[%b]}' % b",".join(pieces)


async def send_json(send: Send, status: int, answer: Any, head: dict[str, str], request_id: str) -> int:
    """Send an answer; return how many bytes it has."""
    if type(answer) is responses.Listing and len(answer.items) > SLICE:
        body = await encoded_in_turns(answer.items)
    else:
        body = b"" if answer is None and status in (204, 304) else encode(answer)
    kind = [JSON] if body else []
    await send_bytes(send, status, body, [*kind, *_said(head)], request_id)
    return len(body)


async def send_problem(send: Send, error: TenureError, request_id: str) -> int:
    """Send an error as a problem document; return how many bytes it has."""
    body = encode(problem_of(error, request_id))
    await send_bytes(send, status_of(error), body, [PROBLEM, *_said(problem_head(error))], request_id)
    return len(body)


def unfinished() -> TenureError:
    """Say to whoever still waits when a server can wait no longer that nobody knows what becomes of his request."""
    return StoreUnavailable("the server stopped before this was done", outcome="unknown")


def problem_head(error: TenureError) -> dict[str, str]:
    """Return what the head of a refusal says beside its status."""
    if isinstance(error, http_errors.Unauthorised):
        return {"www-authenticate": 'Bearer realm="tenure"'}
    if isinstance(error, http_errors.MethodNotAllowed):
        return {"allow": ", ".join(error.allowed)}
    if isinstance(error, http_errors.RateLimited):
        # Whole seconds, and never 0, by which the caller would ask again at once.
        return {"retry-after": str(max(1, round(error.after_s)))}
    return {"retry-after": str(RETRY_AFTER_S)} if status_of(error) == 503 else {}


async def send_bytes(send: Send, status: int, body: bytes, head: list[tuple[bytes, bytes]], request_id: str) -> None:
    """Send a whole answer."""
    # RFC 9110 forbids content-length on 204; on 304 it would be the length of the body that is not sent.
    length = [] if status in (204, 304) else [(b"content-length", str(len(body)).encode())]
    headers = [*head, *length, (b"x-request-id", request_id.encode()), *ALWAYS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _said(head: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in head.items()]
