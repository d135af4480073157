"""Heads that come again, on the wire: whoever keeps his connection is served as anybody else."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from uvicorn.config import Config
from uvicorn.server import ServerState

from tenure.doors.http.access.bootstrap_token import first_token
from tenure.doors.http.app import Application
from tenure.doors.http.connection.fast_allocate import Shortcut
from tenure.doors.http.connection.fast_protocol import FastProtocol
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.server_state import Site
from tenure.doors.http.settings import Settings
from tests.doors.http.sockets import written
from tests.doors.http.stage import Client, Server, running

PATH = b"/api/v1/networks/wide:allocate"


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    async with running(log="json") as started, started.client() as client:
        await made(client)
        yield started


async def made(client: Client) -> None:
    """Make a wide network, on which somebody holds something."""
    await client.post("/networks", {"name": "wide"})
    await client.post("/networks/wide/subnets", {"cidr": "10.0.0.0/16"}, headers={"If-Match": "*"})
    pool = {"range": "10.0.1.0-10.0.250.0", "name": "p", "policy": "random"}
    await client.post("/networks/wide/pools", pool, headers={"If-Match": "*"})
    await client.post("/networks/wide:allocate", {"owner": "vm/first"})


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


async def test_a_bad_request_behind_one_that_is_served_takes_no_answer_away(server: Server) -> None:
    bad = b"GET http:///x HTTP/1.1\r\nHost: here\r\n\r\n"
    said = (b"Authorization: Bearer %b" % server.admin.encode(), b"Content-Type: application/json")
    for owner, first in ((b"vm/short", ()), (b"vm/long", (b"If-None-Match: x",))):
        async with Line(server) as line:
            for n in range(3):
                await line.ask(f"vm/{n}")
            line.write(written("POST", PATH, *said, *first, body=b'{"owner":"%b"}' % owner) + bad)
            answer = await line.answer()

        assert (answer["status"], answer["owner"]) == (200, owner.decode())
    assert "Traceback" not in server.log


async def test_whoever_offers_another_protocol_and_wants_to_close_is_closed(server: Server) -> None:
    said = (b"Authorization: Bearer %b" % server.admin.encode(), b"Content-Type: application/json")
    offer = (b"Connection: Upgrade, close", b"Upgrade: h2c")
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(written("POST", PATH, *said, *offer, body=b'{"owner":"vm/offers"}'))
    answer = await asyncio.wait_for(reader.read(), 10)  # to its end: the server closes
    writer.close()
    await writer.wait_closed()

    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer.lower()


async def test_limits_of_heads_hold_for_heads_that_come_again() -> None:
    async with running(log="json", limits={"head_bytes": 1024}) as server, server.client() as client:
        await made(client)
        async with Line(server) as line:
            for n in range(600):  # line breaks between requests are no part of a head
                assert (await line.ask(f"vm/{n % 5}"))["status"] == 200
                line.write(b"\r\n")
                await asyncio.sleep(0.001)
        async with Line(server) as line:
            for n in range(3):
                assert (await line.ask(f"vm/{n}", b"X-Request-Id: short"))["status"] == 200
            assert (await line.ask("vm/9", b"X-Request-Id: " + b"x" * 2000))["status"] == 431


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
        connection = FastProtocol(site, Shortcut(site, ENDPOINTS), config, ServerState(), {})
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
