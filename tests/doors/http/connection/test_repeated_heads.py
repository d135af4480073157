"""Heads that come again: what is read without the parser is what the parser reads, on the wire and byte by byte."""

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.doors.http.connection.fast_allocate import UNUSUAL
from tenure.doors.http.connection.repeated_heads import Head, Repeat, repeat_of
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.routing.dispatcher import Match
from tests.doors.http.sockets import written

PATH = b"/api/v1/networks/wide:allocate"
MATCH = Match(ENDPOINTS[0], {})
LINES = (b"Authorization: Bearer t", b"Content-Type: application/json")


class Parsed:
    """What the parser tells of some bytes."""

    def __init__(self, data: bytes) -> None:
        self.url = self.body = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.begun = self.complete = 0
        self.good = True
        parser = httptools.HttpRequestParser(self)
        try:
            parser.feed_data(data)
            self.good = parser.get_method() == b"POST" and parser.should_keep_alive()
        except httptools.HttpParserError:
            self.good = False

    def on_message_begin(self) -> None:
        self.begun += 1

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.complete += 1

    @property
    def whole(self) -> bool:
        """Tell whether it was one request, with nothing behind it."""
        return self.good and (self.begun, self.complete) == (1, 1)


def wish(body: bytes, *lines: bytes) -> bytes:
    return written("POST", PATH, *LINES, *lines, body=body)


def mangled(data: bytes, places: list[tuple[int, int, bytes]]) -> bytes:
    """Take some bytes out of a request, and put others in."""
    for place, gone, put in places:
        at = place % (len(data) + 1)
        data = data[:at] + put + data[at + gone :]
    return data


def learn(data: bytes) -> Repeat | None:
    """Remember a head as a connection would."""
    parsed = Parsed(data)
    assert parsed.whole
    return repeat_of(data, Head(MATCH, parsed.url, dict(parsed.headers)), parsed.body)


def known(*lines: bytes) -> Repeat:
    repeat = learn(wish(b'{"owner":"vm/a"}', *lines))
    assert repeat is not None
    return repeat


KEYED = (b"Idempotency-Key: k-1", b"X-Request-Id: r-1")


@pytest.mark.parametrize(("before", "now", "body"), [
    ((), (), b'{"owner":"vm/b"}'),
    ((), (), b'{"owner":"vm/a-longer-one"}'),
    (KEYED, (b"Idempotency-Key: k-2", b"X-Request-Id: another"), b'{"owner":"vm/b"}'),
    (KEYED, KEYED, b"{}"),
], ids=["same", "longer", "other-key", "shorter"])  # fmt: skip
def test_the_same_head_is_read_as_the_parser_reads_it(
    before: tuple[bytes, ...], now: tuple[bytes, ...], body: bytes
) -> None:
    data = wish(body, *now)
    found = known(*before).read(data)

    assert found == (Head(MATCH, PATH, dict(Parsed(data).headers)), body)


@pytest.mark.sampled
@pytest.mark.parametrize("data", [
    b"",
    wish(b"{}")[:-1],
    wish(b"{}") + b"x",
    wish(b"{}") + wish(b"{}"),
    b"\r\n" + wish(b"{}"),
    wish(b"{}").replace(b"Bearer t", b"Bearer u"),
    wish(b"{}").replace(b"wide", b"other"),
    wish(b"{}").replace(b"POST", b"GET"),
    wish(b"{}").replace(b"Content-Length: 2", b"Content-Length: 02"),
    wish(b"{}").replace(b"Content-Length: 2", b"Content-Length: 1"),
    wish(b"{}").replace(b"Content-Length: 2", b"Content-Length: 2 "),
    wish(b"{}").replace(b"Content-Length: 2", b"Content-Length: 2\r\nContent-Length: 3"),
    wish(b"{}").replace(b"Content-Length: 2", b"Transfer-Encoding: chunked"),
    wish(b"{}", b"Connection: close"),
    wish(b"{}", b"Idempotency-Key: k"),
], ids=lambda data: str(data[-60:]))  # fmt: skip
def test_whatever_else_differs_is_the_parsers(data: bytes) -> None:
    assert known().read(data) is None


@pytest.mark.parametrize("data", [
    wish(b"{}").replace(b"Content-Length: 2", b"Content-Length:  2"),
    wish(b"{}").replace(b"Content-Length: 2", b"Content-Length: 2 "),
    wish(b"{}").replace(b"Content-Length: 2", b"Content-Length: 02"),
    b"\r\n" + wish(b"{}"),
    wish(b"{}") + b"\r\n",
], ids=["two-blanks", "blank-behind", "nought-before", "line-before", "line-behind"])  # fmt: skip
def test_a_head_that_is_not_plain_is_not_remembered(data: bytes) -> None:
    assert learn(data) is None


BYTES = st.sampled_from([b"\r", b"\n", b"\r\n", b"\r\n\r\n", b" ", b":", b"0", b"2", b"\x00", b"\xff", b"chunked", b""])


@given(
    keyed=st.booleans(),
    key=st.binary(max_size=6) | st.sampled_from([b"k\r\nX: y", b"k\n", b"k\t", b"\xc3\xa4", b""]),
    body=st.binary(max_size=12),
    places=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), BYTES), max_size=3),
)
def test_nothing_is_read_otherwise_than_by_the_parser(
    keyed: bool, key: bytes, body: bytes, places: list[tuple[int, int, bytes]]
) -> None:
    """Whatever is done to a request: if it is read at all, the parser takes it for one request that says the same."""
    repeat = known(*(KEYED if keyed else ()))
    data = wish(body, *((b"Idempotency-Key: %b" % key, b"X-Request-Id: r-2") if keyed else ()))
    data = mangled(data, places)
    found, parsed = repeat.read(data), Parsed(data)

    assert found is None or (parsed.whole and found == (Head(MATCH, parsed.url, dict(parsed.headers)), parsed.body))


@given(
    learned=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), BYTES), max_size=3),
    later=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), BYTES), max_size=2),
    values=st.tuples(*[st.sampled_from([b"k", b"2", b"", b"k v", b"k\n", b"+2", b"2,2", b"k\r\n y"])] * 2),
)
def test_whatever_is_remembered_is_read_as_by_the_parser(
    learned: list[tuple[int, int, bytes]], later: list[tuple[int, int, bytes]], values: tuple[bytes, bytes]
) -> None:
    """However a head was mangled that is remembered, and however the next one is."""
    data = mangled(wish(b"{}", *KEYED), learned)
    parsed = Parsed(data)
    fields = dict(parsed.headers)
    if not parsed.whole or len(fields) < len(parsed.headers) or not UNUSUAL.isdisjoint(fields):
        return
    repeat = repeat_of(data, Head(MATCH, parsed.url, fields), parsed.body)
    if repeat is None:
        return
    another = mangled(data.replace(b"k-1", values[0]).replace(b"r-1", values[1]), later)
    found, parsed = repeat.read(another), Parsed(another)

    assert found is None or (parsed.whole and found == (Head(MATCH, parsed.url, dict(parsed.headers)), parsed.body))
