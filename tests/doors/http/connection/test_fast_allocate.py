"""The short way of plain allocations: whatever is asked, it is answered, logged and counted as on the long way."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from zlib import crc32

import pytest
import pytest_asyncio

from tests.doors.http.sockets import RawAnswer, send, written
from tests.doors.http.stage import Server, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = b"If-None-Match: x"
"""A header that changes nothing, and that the short way leaves to the long one."""

PATH = b"/api/v1/networks/%b:allocate"
SHORTCUTS = "tenure_shortcuts_total"
ANSWERED = 'tenure_http_requests_total{method="POST",route="/api/v1/networks/{network}:allocate",status="2xx"}'
OF_ITS_OWN = ("address", "last_address", "generation", "since", "request_id", "owner", "until")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Server]:
    """Run a server with a wide network and a small one, on both of which somebody holds something."""
    async with running(log="json") as started, started.client() as client:
        for name, subnet, pool in (
            ("wide", "10.0.0.0/16", "10.0.1.0-10.0.250.0"),
            ("small", "10.1.0.0/29", "10.1.0.2-10.1.0.3"),
        ):
            await client.post("/networks", {"name": name})
            await client.post(f"/networks/{name}/subnets", {"cidr": subnet}, headers={"If-Match": "*"})
            made = {"range": pool, "name": "p", "policy": "random"}
            await client.post(f"/networks/{name}/pools", made, headers={"If-Match": "*"})
            await client.post(f"/networks/{name}:allocate", {"owner": "vm/first"})
        yield started


def wish(server: Server, body: object, *lines: bytes, network: bytes = b"wide", token: str | None = None) -> bytes:
    """Write a request for an address."""
    said = (b"Authorization: Bearer %b" % (token or server.admin).encode(), b"Content-Type: application/json", *lines)
    return written("POST", PATH % network, *said, body=json.dumps(body).encode())


async def ask(server: Server, body: object, *lines: bytes, **more: Any) -> RawAnswer:
    """Ask for an address."""
    [answer] = await send(server.port, wish(server, body, *lines, **more))
    return answer


def told(answer: RawAnswer) -> tuple[int, list[str], Any]:
    """Return what both ways must tell alike."""
    document = {name: value for name, value in answer.json.items() if name not in OF_ITS_OWN}
    return answer.status, sorted(answer.head), document


@pytest.mark.parametrize("more", [
    {}, {"slot": "eth1"}, {"labels": {"team": "ops"}, "description": "d"}, {"carrier": "vm-1", "plan": "p1"},
    {"pool": "p"}, {"subnet": "10.0.0.0/16"}, {"policy": "hashed"}, {"policy": "lowest"}, {"request": "r1"},
    {"pending": True}, {"pending": True, "lasts_s": 60}, {"wait_s": 1},
], ids=str)  # fmt: skip
async def test_both_ways_answer_alike(server: Server, more: dict[str, Any]) -> None:
    number = crc32(str(more).encode())
    long = await ask(server, {"owner": f"vm/long-{number}", **more}, LONG)
    async with server.client() as client:
        # A server that got no CPU for a while looks the token up anew, which is the long way.
        for attempt in range(5):
            before = await counted(client, SHORTCUTS)
            short = await ask(server, {"owner": f"vm/short-{number}-{attempt}", **more})
            taken = await counted(client, SHORTCUTS) - before
            if taken:
                break

    assert (short.status, taken) == (200, 1)
    assert told(short) == told(long)
    assert short.json["address"] != long.json["address"]


@pytest.mark.parametrize("body", [
    {}, {"owner": 1}, {"owner": "nobody"}, {"owner": "vm/a", "unknown": 1}, [], "text", {"owner": "vm/a", "lasts_s": 5},
    {"owner": "vm/a", "pool": "q"}, {"owner": "vm/a", "address": "10.9.0.1"}, {"owner": "vm/a", "labels": {"a": 1}},
], ids=str)  # fmt: skip
async def test_both_ways_refuse_alike_and_nothing_is_changed(server: Server, body: object) -> None:
    async with server.client() as client:
        before = await client.get("/changes/last")
        short, long = await ask(server, body), await ask(server, body, LONG)

        assert short.status >= 400
        assert told(short) == told(long)
        assert await client.get("/changes/last") == before


@pytest.mark.parametrize(
    "body", [b'{"owner":"vm/twice","owner":"vm/other"}', b'{"owner":"vm/twice","labels":{"a":"b","a":"b"}}']
)
async def test_a_key_that_comes_twice_is_refused_on_both_ways(server: Server, body: bytes) -> None:
    said = (b"Authorization: Bearer %b" % server.admin.encode(), b"Content-Type: application/json")
    [short] = await send(server.port, written("POST", PATH % b"wide", *said, body=body))
    [long] = await send(server.port, written("POST", PATH % b"wide", *said, LONG, body=body))
    async with server.client() as client:
        held = [(await client.get(f"/owners/vm%2F{name}"))["items"] for name in ("twice", "other")]

    assert (short.status, short.json["detail"]) in [(422, "owner: said twice"), (422, "a: said twice")]
    assert told(short) == told(long)
    assert held == [[], []]


async def test_who_asks_again_has_the_same_address(server: Server) -> None:
    answers = [await ask(server, {"owner": "vm/again"}) for _ in range(5)]

    assert len({answer.json["address"] for answer in answers}) == 1


async def test_a_key_answers_the_same_even_after_a_release_and_is_good_for_one_wish(server: Server) -> None:
    key = b"Idempotency-Key: once"
    first = await ask(server, {"owner": "vm/keyed"}, key)
    async with server.client() as client:
        await client.post("/networks/wide:release", {"address": first.json["address"], "owner": "vm/keyed"})
    again, long = await ask(server, {"owner": "vm/keyed"}, key), await ask(server, {"owner": "vm/keyed"}, key, LONG)
    other = await ask(server, {"owner": "vm/other"}, key)

    assert first.json == again.json == long.json
    assert (other.status, other.json["code"]) == (422, "key_reused")


async def test_many_of_one_key_at_once_get_one_address(server: Server) -> None:
    asked = (ask(server, {"owner": "vm/crowd"}, b"Idempotency-Key: crowd") for _ in range(30))
    answers = await asyncio.gather(*asked)

    assert {answer.status for answer in answers} == {200}
    assert len({answer.json["address"] for answer in answers}) == 1


async def test_a_full_pool_is_told_and_what_is_released_is_given_again(server: Server) -> None:
    answers = await asyncio.gather(*(ask(server, {"owner": f"vm/{n}"}, network=b"small") for n in range(6)))
    [got] = [answer.json for answer in answers if answer.status == 200]
    async with server.client() as client:
        await client.post("/networks/small:release", {"address": got["address"], "owner": got["owner"]})
    next_one = await ask(server, {"owner": "vm/next"}, network=b"small")

    assert {answer.json.get("code") for answer in answers} == {None, "pool_exhausted"}
    assert (next_one.status, next_one.json["address"]) == (200, got["address"])


async def test_nobody_gets_in_by_the_short_way_who_would_not_by_the_long_one(server: Server) -> None:
    small = await server.token("small-only", "allocate:small")
    reader = await server.token("reader", "read")
    for token, status in ((small, 403), (reader, 403), ("tnr_0123456789abcdef_" + "0" * 64, 401), ("x", 401)):
        for _ in range(2):  # the second time he is known
            answer = await ask(server, {"owner": "vm/no"}, token=token)
            assert answer.status == status
    async with server.client() as client:
        assert (await client.get("/owners/vm%2Fno"))["items"] == []


async def test_who_is_revoked_is_refused_from_then_on(server: Server) -> None:
    async with server.client() as client:
        made = await client.post("/tokens", {"name": "soon-gone", "scopes": ["allocate:wide"]})
        before = [await ask(server, {"owner": f"vm/gone-{n}"}, token=made["token"]) for n in range(2)]
        await client.post(f"/tokens/{made['id']}:revoke")
        after = await ask(server, {"owner": "vm/gone-late"}, token=made["token"])

    assert [answer.status for answer in (*before, after)] == [200, 200, 401]


async def test_a_body_that_comes_after_its_head_is_waited_for(server: Server) -> None:
    whole = wish(server, {"owner": "vm/late-body"})
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for piece in (whole[:-9], whole[-9:-3], whole[-3:]):
        writer.write(piece)
        await asyncio.sleep(0.05)
    answer = await asyncio.wait_for(reader.readuntil(b"}"), 10)
    writer.close()
    await writer.wait_closed()

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"vm/late-body" in answer


@pytest.mark.parametrize("lines", [
    (b"Connection: close",), (b"Connection: keep-alive",), (b"Expect: 100-continue",), (b"Cookie: a=b",),
    (b"X-Other: y",),
    (b"Authorization: twice",), (b"Content-Encoding: gzip",), (b"If-Match: *",), (b"X-Request-Id: mine",),
    (b"X-Request-Id: not an id",), (b"Idempotency-Key: ",), (b"Idempotency-Key: " + b"x" * 300,),
], ids=str)  # fmt: skip
async def test_what_a_head_says_means_the_same_on_both_ways(server: Server, lines: tuple[bytes, ...]) -> None:
    short = await ask(server, {"owner": "vm/head"}, *lines)
    long = await ask(server, {"owner": "vm/head"}, *lines, LONG)

    assert told(short) == told(long)


async def test_a_connection_that_ends_is_told_so(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(wish(server, {"owner": "vm/ends"}, b"Connection: close"))
    answer = await asyncio.wait_for(reader.read(), 10)  # to its end: the server closes
    writer.close()
    await writer.wait_closed()

    assert b"connection: close" in answer.lower()


async def test_whoever_goes_away_before_his_answer_disturbs_nobody(server: Server) -> None:
    for number in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(wish(server, {"owner": f"vm/went-{number}"}))
        writer.transport.abort()
    fine = await ask(server, {"owner": "vm/stayed"})
    async with server.client() as client:
        metrics = (await client.ask("GET", "/metrics", below="")).body.decode()

    assert fine.status == 200
    assert "\ntenure_http_requests_in_flight 1.0" in metrics  # this one, which asks
    assert "Traceback" not in server.log


async def test_requests_of_all_kinds_on_one_connection_are_answered_in_order(server: Server) -> None:
    short = [wish(server, {"owner": f"vm/line-{n}"}) for n in range(3)]
    long = wish(server, {"owner": "vm/line-long"}, LONG)
    health = written("GET", b"/healthz")
    answers = await send(server.port, b"".join([short[0], health, short[1], long, short[2], health]), answers=6)

    seen = [answer.json.get("owner") or answer.json["status"] for answer in answers]
    assert seen == ["vm/line-0", "ok", "vm/line-1", "vm/line-long", "vm/line-2", "ok"]


async def test_both_ways_are_logged_alike_and_counted_alike(server: Server) -> None:
    async with server.client() as client:
        first = await counted(client, ANSWERED)
        for lines in ((), (LONG,)):
            await ask(server, {"owner": f"vm/logged-{len(lines)}"}, b"X-Request-Id: logged-%d" % len(lines), *lines)
        second = await counted(client, ANSWERED)
    await asyncio.sleep(0.2)
    lines_of = [json.loads(line) for line in server.log.splitlines() if '"request_id":"logged-' in line]

    assert second - first == 2
    assert len(lines_of) == 2
    short, long = (
        {n: v for n, v in line.items() if n not in ("time", "request_id", "ms", "bytes")} for line in lines_of
    )
    assert short == long
    assert short["route"] == "/api/v1/networks/{network}:allocate"


async def counted(client: Any, name: str) -> float:
    """Return what a metric says."""
    lines = (await client.ask("GET", "/metrics", below="")).body.decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


async def test_a_body_that_is_no_http_is_refused_once_and_gets_nothing(server: Server) -> None:
    head = wish(server, {"owner": "vm/spoilt"}).partition(b"Content-Length")[0]
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    await writer.wait_closed()
    async with server.client() as client:
        held = await client.get("/owners/vm%2Fspoilt")

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert held["items"] == []
