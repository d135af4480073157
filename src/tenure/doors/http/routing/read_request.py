"""What comes in: headers, query and body, read within limits and refused by name where they are wrong."""

import asyncio
import json
import re
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec

from tenure.doors.http.routing.endpoint import Endpoint
from tenure.kernel.errors import Invalid, TenureError
from tenure.kernel.names import MAX_NAME, check_name
from tenure.wire.http_errors import Malformed, NotJson, PreconditionRequired, TooLarge, TooSlow

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

MOST_QUERY = 8192
SHOWN = 80
MOST_KEY = MAX_NAME - 64
"""Letters of an idempotency key; the token's id stands before it in the ledger."""

ONCE = frozenset(
    {b"authorization", b"content-type", b"cookie", b"host", b"idempotency-key", b"if-match", b"if-none-match",
     b"last-event-id", b"x-request-id"}
)  # fmt: skip
"""Headers that must not be there twice: whoever reads the first and whoever reads the last would disagree."""

OLD_VERSION = "1.0"
"""The version of HTTP that knows no Host."""

_PLACE = re.compile(r" - at `\$\.?([^`]*)`$")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/-]{1,64}")

JSON = b"application/json"

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_query_hints: dict[type, dict[str, Any]] = {}


BEFORE = "tenure.before"
"""Where a request's scope says what was done for it already, if anything was."""


class Before(NamedTuple):
    """What was done for a request before it went the long way."""

    request_id: str
    began: float
    in_doubt: bool
    """What it wants may have been done already: then it is not true that nothing was changed."""


class Gone(Exception):
    """Whoever asked went away before the request was whole."""


def check_headers(pairs: Sequence[tuple[bytes, bytes]], headers: Mapping[bytes, bytes], version: str) -> None:
    """Raise Malformed if HTTP/1.1 has no Host, or a header is there twice that must not be. Cost: next to nothing."""
    if b"host" not in headers and version != OLD_VERSION:
        raise Malformed("Host: a request of HTTP/1.1 must say it", field="Host")
    # The usual case: no header comes twice, so there is nothing to walk through.
    if len(headers) == len(pairs):
        return
    seen: set[bytes] = set()
    for name, _ in pairs:
        if name in seen and name in ONCE:
            told = name.decode("latin-1").title()
            raise Malformed(f"{told}: said twice", field=told)
        seen.add(name)


def header(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    """Return a header's text, if it is there."""
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")


def known_request_id(headers: Mapping[bytes, bytes]) -> str | None:
    """Return the request id that the caller gave, if it is one: nothing else gets into logs and answers."""
    given = headers.get(b"x-request-id")
    return given.decode("ascii") if given is not None and _REQUEST_ID.fullmatch(given) else None


def read_key(headers: Mapping[bytes, bytes], visitor: str) -> str | None:
    """Return the idempotency key, if there is one, as the ledger knows it: behind the visitor's id, to each its own."""
    given = headers.get(b"idempotency-key")
    if given is None:
        return None
    try:
        key = check_name(given.strip(b" \t").decode("utf-8"), field="Idempotency-Key")
    except UnicodeDecodeError:
        raise Malformed("Idempotency-Key: not UTF-8", field="Idempotency-Key") from None
    if len(key) > MOST_KEY:
        raise Invalid(f"Idempotency-Key: at most {MOST_KEY} characters, not {len(key)}", field="Idempotency-Key")
    return f"{visitor}/{key}"


def read_if_match(headers: Mapping[bytes, bytes], *, needed: bool) -> str | None:
    """Return which reading a change rests on, if it does or must."""
    given = header(headers, b"if-match")
    if given is None and needed:
        raise PreconditionRequired(
            "If-Match: send the ETag of the reading that this change rests on, or * for whatever it is now",
            field="If-Match",
        )
    if given is not None and not given.strip():
        raise Malformed("If-Match: an ETag or * is needed", field="If-Match")
    return given


async def read_whole(headers: Mapping[bytes, bytes], receive: Receive, *, most: int, within_s: float) -> bytes:
    """Read a body, unless it is too large, comes too slowly, or is packed in a way that nobody unpacks here."""
    packed = headers.get(b"content-encoding", b"identity")
    if packed.lower() != b"identity":
        told = packed.decode("latin-1")[:SHOWN]
        raise NotJson(f"Content-Encoding: {told!r} is not unpacked here; send it as it is", field="Content-Encoding")
    # A look at the announced length refuses a large body before it is read; _all counts what really comes.
    announced = headers.get(b"content-length", b"0")
    if announced.isdigit() and int(announced) > most:
        raise TooLarge(f"the body has {announced.decode()} bytes; at most {most} are taken")
    reading = _all(receive, most)
    try:
        waits = reading.send(None)  # most bodies are there with their heads: then no clock is needed
    except StopIteration as done:
        whole: bytes = done.value
        return whole
    try:
        async with asyncio.timeout(within_s):
            return await StartedCoroutine(reading, waits)
    except TimeoutError:
        raise TooSlow(f"the body did not come within {within_s:g} s") from None


class StartedCoroutine:
    """The rest of a coroutine whose first step was made by hand, and which waits for something since."""

    def __init__(self, rest: Coroutine[Any, Any, bytes], waits: Any) -> None:
        self._rest = rest
        self._waits = waits

    def __await__(self) -> Generator[Any, Any, bytes]:
        waits = self._waits
        while True:
            try:
                try:
                    sent = yield waits
                # A cancellation, such as by the time limit, must reach the coroutine that waits.
                except BaseException as error:
                    waits = self._rest.throw(error)
                else:
                    waits = self._rest.send(sent)
            except StopIteration as done:
                return bytes(done.value)


async def _all(receive: Receive, most: int) -> bytes:
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body += message.get("body", b"")
        if len(body) > most:
            raise TooLarge(f"the body has more than {most} bytes")
        if not message.get("more_body", False):
            return body


def read_query(endpoint: Endpoint, raw: bytes) -> Any:
    """Read the query; what a route does not know is refused, or a misspelt filter would show everything."""
    if not raw:
        return None if endpoint.query is None else endpoint.query()
    if len(raw) > MOST_QUERY:
        raise TooLarge(f"the query has more than {MOST_QUERY} bytes")
    try:
        # strict_parsing takes `a=1&` and an empty text for errors; both are harmless, so empty pieces go first.
        text = "&".join(filter(None, raw.decode("ascii").split("&")))
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), errors="strict")
    except ValueError:
        raise Malformed("query: cannot be read", field="query") from None
    hints = {} if endpoint.query is None else parameter_types(endpoint.query)
    said: dict[str, Any] = {}
    for name, value in pairs:
        if name not in hints:
            takes = ", ".join(hints) or "none"
            raise Invalid(f"{name[:SHOWN]}: no parameter of this route; it takes {takes}", field=name[:SHOWN])
        if _takes_many(hints[name]):
            said.setdefault(name, []).append(value)
        elif name in said:
            raise Invalid(f"{name}: said twice", field=name)
        else:
            said[name] = value
    if endpoint.query is None:
        return None
    return endpoint.query(**{name: _converted(name, value, hints[name]) for name, value in said.items()})


def parameter_types(query: type[msgspec.Struct]) -> dict[str, Any]:
    """Return what each parameter is, once it is there: then it is not null, even if it says so."""
    known = _query_hints.get(query)
    if known is None:
        hints = get_type_hints(query, include_extras=True)
        known = _query_hints[query] = {name: _present(hint) for name, hint in hints.items()}
    return known


def _present(hint: Any) -> Any:
    if isinstance(hint, types.UnionType) or get_origin(hint) is Union:
        return next(piece for piece in get_args(hint) if piece is not type(None))
    return hint


def _takes_many(hint: Any) -> bool:
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return get_origin(plain) is list


def _converted(name: str, value: Any, hint: Any) -> Any:
    try:
        return msgspec.convert(value, hint, strict=False)
    except msgspec.ValidationError as error:
        raise wrong_shape(error, name) from None


def read_json(kind: Any, body: bytes, content_type: bytes | None) -> Any:
    """Read a JSON body of a kind, or say which field is wrong."""
    # The usual Content-Type needs no reading, and a request without a body needs none at all.
    if content_type != JSON and (content_type is not None or body):
        _check_type(content_type)
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        # No body stands for an empty object: the fields of some requests all have defaults.
        read = decoder.decode(body or b"{}")
        # Behind the typed decoder, which has refused a body that is no JSON.
        check_keys(body)
        return read
    except msgspec.ValidationError as error:
        raise wrong_shape(error) from None
    except msgspec.DecodeError as error:
        raise Malformed(f"body: not JSON ({error})", field="body") from None
    except UnicodeDecodeError:
        raise Malformed("body: not UTF-8", field="body") from None
    except RecursionError:
        raise Malformed("body: too many things inside each other", field="body") from None


def check_keys(body: bytes) -> None:
    """Raise Invalid if an object of a body that is JSON has a key twice: readers differ in which of the two counts.

    Cost: 0.1 µs for a body with one key, which most plain allocations have, 2 µs for one with a few, 20 ms for 1 MB.
    """
    # A body with a single colon has no second key.
    if body.count(b":") > 1:
        _twice.decode(body.decode())


def _check_pairs(pairs: list[tuple[str, object]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise Invalid(f"{key[:SHOWN]}: said twice", field=key[:SHOWN])
        seen.add(key)


# Numbers stay text: their values do not matter here, and int() raises ValueError for very long ones.
_twice = json.JSONDecoder(object_pairs_hook=_check_pairs, parse_int=str, parse_float=str)
"""Reads a body once more, for the keys only: the typed decoder takes the last of two without a word."""


def _check_type(content_type: bytes | None) -> None:
    """Refuse what does not say that it is JSON; what it says beside that is let be."""
    if content_type is None:
        raise NotJson("Content-Type: application/json is needed", field="Content-Type")
    told = content_type.decode("latin-1")
    if told.partition(";")[0].strip().lower() != "application/json":
        raise NotJson(f"Content-Type: application/json is needed, not {told[:SHOWN]!r}", field="Content-Type")


def wrong_shape(error: msgspec.ValidationError, name: str | None = None) -> TenureError:
    """Tell which field is not as it must be."""
    text = str(error)
    place = _PLACE.search(text)
    field = name or (place[1] if place else None) or _named(text)
    said = text[: place.start()] if place else text
    return Invalid(f"{field or 'body'}: {said[:1].lower()}{said[1:]}".replace("`", "'"), field=field or "body")


def _named(text: str) -> str | None:
    """Find the field that is missing, or that nobody knows."""
    found = re.search(r"field `([^`]+)`", text)
    return found[1] if found else None
