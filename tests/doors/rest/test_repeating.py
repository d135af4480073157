"""Heads that come again: what is read without the parser is what the parser reads, on the wire and byte by byte."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httptools
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.config import Config
from uvicorn.server import ServerState

from tenure.doors.rest.access.first import first_token
from tenure.doors.rest.app import Application
from tenure.doors.rest.catalogue import ENDPOINTS
from tenure.doors.rest.connections import Connection
from tenure.doors.rest.dispatching import Match
from tenure.doors.rest.repeating import Head, Repeat, repeat_of
from tenure.doors.rest.settings import Settings
from tenure.doors.rest.shortcut import Shortcut
from tenure.doors.rest.site import Site
from tests.doors.rest.sockets import written
from tests.doors.rest.stage import Server, running

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
    wish(b"{}").replace(b"Bearer t\r\n", b"Bearer t\n"),
    wish(b"{}").replace(b"\r\n\r\n", b"\r\n\r\n\r\n\r\n"),
    wish(b"{}").replace(b"Content-Length: 2", b"Content-Length:  2"),
    b"\r\n" + wish(b"{}"),
], ids=["bare-line-feed", "blank-lines-as-body", "two-blanks", "blank-line-before"])  # fmt: skip
def test_a_head_whose_end_is_not_clear_is_not_remembered(data: bytes) -> None:
    parsed = Parsed(data)
    repeat = repeat_of(data, Head(MATCH, parsed.url, dict(parsed.headers)), parsed.body)

    assert repeat is None or repeat.read(data) == (repeat.head, parsed.body)


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
    for place, gone, put in places:
        at = place % (len(data) + 1)
        data = data[:at] + put + data[at + gone :]
    found, parsed = repeat.read(data), Parsed(data)

    assert found is None or (parsed.whole and found == (Head(MATCH, parsed.url, dict(parsed.headers)), parsed.body))


@given(places=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), BYTES), max_size=3))
def test_whatever_is_remembered_is_read_as_before(places: list[tuple[int, int, bytes]]) -> None:
    data = wish(b"{}", *KEYED)
    for place, gone, put in places:
        at = place % (len(data) + 1)
        data = data[:at] + put + data[at + gone :]
    parsed = Parsed(data)
    repeat = repeat_of(data, Head(MATCH, parsed.url, dict(parsed.headers)), parsed.body) if parsed.whole else None

    assert repeat is None or repeat.read(data) == (repeat.head, parsed.body)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    async with running(log="json") as started, started.client() as client:
        await client.post("/networks", {"name": "wide"})
        await client.post("/networks/wide/subnets", {"cidr": "10.0.0.0/16"}, headers={"If-Match": "*"})
        pool = {"range": "10.0.1.0-10.0.250.0", "name": "p", "policy": "random"}
        await client.post("/networks/wide/pools", pool, headers={"If-Match": "*"})
        await client.post("/networks/wide:allocate", {"owner": "vm/first"})
        yield started


class Line:
    """One connection that is kept."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def __aenter__(self) -> "Line":
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def ask(self, owner: str, *lines: bytes, token: str | None = None, pieces: int = 1) -> dict[str, object]:
        """Ask for an address; return the answer's status, owner and request id."""
        said = b"Authorization: Bearer %b" % (token or self._server.admin).encode()
        body = json.dumps({"owner": owner}).encode()
        data = written("POST", PATH, said, b"Content-Type: application/json", *lines, body=body)
        for piece in range(pieces):
            self._writer.write(data[piece * len(data) // pieces : (piece + 1) * len(data) // pieces])
            if pieces > 1:
                await asyncio.sleep(0.02)
        return await self.answer()

    async def answer(self) -> dict[str, object]:
        """Take the next answer."""
        head = (await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), 10)).lower()
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
        document = json.loads(await self._reader.readexactly(int(fields[b"content-length"])))
        told = {"status": int(head[9:12]), "request": fields[b"x-request-id"].decode()}
        return {**told, **{name: document.get(name) for name in ("owner", "address", "code")}}

    def write(self, data: bytes) -> None:
        """Send something else."""
        self._writer.write(data)


async def test_one_connection_that_asks_again_and_again_gets_an_address_for_each_owner(server: Server) -> None:
    async with Line(server) as line:
        owners = [f"vm/{'x' * (n % 7)}{n}" for n in range(60)]
        answers = [await line.ask(owner) for owner in owners]

    assert [answer["owner"] for answer in answers] == owners
    assert len({answer["address"] for answer in answers}) == len(owners)
    assert len({answer["request"] for answer in answers}) == len(owners)


async def test_each_request_has_its_own_key_and_its_own_id(server: Server) -> None:
    async with Line(server) as line:
        asked = [(f"vm/{n}", b"Idempotency-Key: %d" % n, b"X-Request-Id: id-%d" % n) for n in (1, 2, 3, 10, 200, 3000)]
        once = [await line.ask(*each) for each in asked]
        again = [await line.ask(*each) for each in asked]
        misused = await line.ask("vm/other", b"Idempotency-Key: 1", b"X-Request-Id: id-9")

    assert [answer["request"] for answer in once] == [f"id-{n}" for n in (1, 2, 3, 10, 200, 3000)]
    assert once == again
    assert (misused["status"], misused["code"], misused["request"]) == (422, "key_reused", "id-9")


async def test_whoever_is_revoked_is_refused_on_the_connection_that_he_has(server: Server) -> None:
    async with server.client() as client, Line(server) as line:
        made = await client.post("/tokens", {"name": "soon-gone", "scopes": ["allocate:wide"]})
        before = [await line.ask(f"vm/{n}", token=made["token"]) for n in range(5)]
        other = await line.ask("vm/o", token="tnr_0123456789abcdef_" + "0" * 64)
        await client.post(f"/tokens/{made['id']}:revoke")
        after = await line.ask("vm/5", token=made["token"])
        good = await line.ask("vm/6")

    assert [answer["status"] for answer in before] == [200] * 5
    assert [answer["status"] for answer in (other, after, good)] == [401, 401, 200]


async def test_pieces_and_requests_in_line_are_read_as_ever(server: Server) -> None:
    async with Line(server) as line:
        for n in range(4):
            await line.ask(f"vm/{n}")
        slow = await line.ask("vm/slow", pieces=5)
        said = (b"Authorization: Bearer %b" % server.admin.encode(), b"Content-Type: application/json")
        line.write(b"".join(written("POST", PATH, *said, body=b'{"owner":"vm/line-%d"}' % n) for n in range(3)))
        in_line = [await line.answer() for _ in range(3)]
        half = written("POST", PATH, *said, body=b'{"owner":"vm/half"}')
        line.write(half + half[:50])
        await asyncio.sleep(0.05)
        line.write(half[50:])
        halves = [await line.answer() for _ in range(2)]

    assert slow["owner"] == "vm/slow"
    assert [answer["owner"] for answer in in_line] == ["vm/line-0", "vm/line-1", "vm/line-2"]
    assert halves[0]["address"] == halves[1]["address"]


async def test_a_wrong_body_under_a_known_head_is_refused_and_the_connection_goes_on(server: Server) -> None:
    said = (b"Authorization: Bearer %b" % server.admin.encode(), b"Content-Type: application/json")
    async with Line(server) as line:
        for n in range(3):
            await line.ask(f"vm/{n}")
        line.write(written("POST", PATH, *said, body=b'{"owner":"nope"}'))
        wrong = await line.answer()
        line.write(written("POST", PATH, *said, body=b"no json"))
        broken = await line.answer()
        fine = await line.ask("vm/fine")

    assert (wrong["status"], broken["status"], fine["status"]) == (422, 400, 200)


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: asyncio.Queue[bytes] = asyncio.Queue()

    def is_closing(self) -> bool:
        return False

    def write(self, data: object) -> None:
        assert isinstance(data, bytes)
        self.answers.put_nowait(data)


class CountingParser:
    """A parser that counts how often it is asked."""

    def __init__(self, parser: Any) -> None:
        self._parser = parser
        self.asked = 0

    def feed_data(self, data: bytes) -> None:
        self.asked += 1
        self._parser.feed_data(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)


async def test_the_parser_is_not_asked_about_a_head_that_it_has_read(tmp_path: Path) -> None:
    site = Site(Settings(store=f"sqlite:///{tmp_path / 'ledger.db'}"))
    app = Application(site, [*ENDPOINTS])
    await site.open()
    try:
        await site.ledger.add_network("wide")
        await site.ledger.add_subnet("wide", "10.0.0.0/16")
        await site.ledger.add_pool("wide", "10.0.1.0-10.0.250.0", policy="random")
        token = await first_token(site.ledger)
        assert token is not None
        config = Config(app, loop="none", http="httptools", log_config=None)
        config.load()
        connection = Connection(site, Shortcut(site, ENDPOINTS), config, ServerState(), {})
        wire, parser = Wire(), CountingParser(connection.parser)
        connection.connection_made(wire)
        connection.parser = parser  # type: ignore[assignment]
        said = (b"Authorization: Bearer %b" % token.encode(), b"Content-Type: application/json")
        for number in range(10):
            connection.data_received(written("POST", PATH, *said, body=b'{"owner":"vm/%d"}' % number))
            answer = await asyncio.wait_for(wire.answers.get(), 10)
            assert answer.startswith(b"HTTP/1.1 200")
    finally:
        await site.close()

    assert parser.asked <= 3  # who is new goes the long way; then the head is read once
