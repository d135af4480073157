"""From a raw path to a route: segment by segment, before anything is decoded, so that ``%2F`` stays inside its name."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from tenure.doors.http.routing.endpoint import API, Endpoint
from tenure.wire.http_errors import Malformed, MethodNotAllowed, NoSuchRoute

REMEMBERED = 4096
LONGEST_REMEMBERED = 512
"""Bytes of a path; longer ones are read anew each time, so that what is remembered stays small."""

SHOWN = 120
_HALF = re.compile("%(?![0-9A-Fa-f]{2})")
NO_NAMES = frozenset({"", ".", ".."})


class Match(NamedTuple):
    """A route, and what the path says."""

    endpoint: Endpoint
    params: Mapping[str, str]


class _Pattern(NamedTuple):
    endpoint: Endpoint
    segments: tuple[str, ...]
    verb: str


class Dispatcher:
    """Finds the route of a request. Cost: a look in a dictionary for a path that was seen before."""

    def __init__(self, endpoints: Sequence[Endpoint], prefix: str = API) -> None:
        self._prefix = prefix
        self._patterns: dict[int, list[_Pattern]] = {}
        self._seen: dict[tuple[str, bytes], Match] = {}
        for endpoint in endpoints:
            path, _, verb = endpoint.path.partition(":")
            segments = _segments(path)
            self._patterns.setdefault(len(segments), []).append(_Pattern(endpoint, segments, verb))

    def find(self, method: str, raw_path: bytes) -> Match:
        """Find the route of a path, or say why there is none."""
        seen = self._seen.get((method, raw_path))
        if seen is None:
            seen = self._find(method, raw_path)
            if len(self._seen) >= REMEMBERED:
                # All at once: keeping an order of use would cost every request, and finding a path again is cheap.
                self._seen.clear()
            if len(raw_path) <= LONGEST_REMEMBERED:
                self._seen[method, raw_path] = seen
        return seen

    def _find(self, method: str, raw_path: bytes) -> Match:
        if not raw_path.isascii():
            raise Malformed("path: what is not ASCII must be percent-encoded", field="path")
        path = raw_path.decode("ascii").removeprefix(self._prefix)
        base, _, verb = path.rpartition(":")
        # What ends in a verb is that verb, for whatever method: a name that ends so has its colon encoded.
        match = self._match(method, base, verb) or self._match(method, path, "")
        if match is None:
            told = f"nothing lies at {path[:SHOWN]!r}; GET /openapi.json tells what does"
            raise NoSuchRoute(told, field="path")
        return match

    def _match(self, method: str, path: str, verb: str) -> Match | None:
        segments = _segments(path)
        patterns = self._patterns.get(len(segments), ())
        found = [each for each in patterns if each.verb == verb and _fits(each.segments, segments)]
        for pattern in found:
            if pattern.endpoint.method == method:
                return Match(pattern.endpoint, _params(pattern.segments, segments))
        if found:
            raise MethodNotAllowed(method, sorted({pattern.endpoint.method for pattern in found}))
        return None


def _segments(path: str) -> tuple[str, ...]:
    """Cut a path at its slashes; one too many, or none in front, makes it another path."""
    first, *rest = path.split("/")
    return tuple(rest) if not first else (path, "")


def _fits(pattern: Sequence[str], segments: Sequence[str]) -> bool:
    """Tell whether a path fits; a name is never empty, and never the dots that mean a place above."""
    return all(
        have not in NO_NAMES if want[0] == "{" else want == have for want, have in zip(pattern, segments, strict=True)
    )


def _params(pattern: Sequence[str], segments: Sequence[str]) -> dict[str, str]:
    return {
        want[1:-1]: _decoded(have, want[1:-1]) for want, have in zip(pattern, segments, strict=True) if want[0] == "{"
    }


def _decoded(segment: str, field: str) -> str:
    # `unquote` leaves such a % as it is, and two texts would name one thing.
    if _HALF.search(segment):
        raise Malformed(f"{field}: a % in a path stands before two hexadecimal digits", field=field)
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise Malformed(f"{field}: the path is not UTF-8", field=field) from None
