"""Shares: whoever takes as much at a time as one token may have is refused with 429, and nobody else notices."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any

import pytest

from tenure.doors.http.access.shares import MOST_REMEMBERED, REQUESTS, STREAMS, WAITING, Shares
from tenure.doors.http.observe.counters import ServerCounters
from tenure.doors.http.routing.principal import Visitor
from tenure.doors.http.settings import Limits
from tenure.wire.http_errors import Overloaded, ShareUsedUp
from tests.doors.http.sockets import RawAnswer, send, written
from tests.doors.http.stage import Server, running

FEW = {"requests_at_once": 12, "requests_share": 0.25, "waiting_at_once": 12, "streams": 12, "body_s": 60}
SHARE = 3
"""A quarter of each."""

JSON = b"Content-Type: application/json"
KINDS = ("requests", "waiting", "streams")
GAUGES = {"waiting": "tenure_waiting_calls", "streams": "tenure_event_streams"}

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def asked(kind: str, token: str, owner: str = "vm/greedy") -> bytes:
    """Write a request that lasts: one whose body does not come, one that waits for an address, or a stream."""
    bearer = f"Authorization: Bearer {token}".encode()
    if kind == "streams":
        return written("GET", b"/api/v1/events", bearer)
    if kind == "waiting":
        body = json.dumps({"owner": owner, "wait_s": 60}).encode()
        return written("POST", b"/api/v1/networks/full:allocate", bearer, JSON, body=body)
    return written("POST", b"/api/v1/networks/full:allocate", bearer, JSON, b"Content-Length: 20")


@asynccontextmanager
async def stage(limits: Mapping[str, Any] = FEW, **settings: Any) -> AsyncIterator[tuple[Server, str, str]]:
    """Run a server with a full network and one that has room; give a token for both and a token for the latter."""
    async with running(limits=dict(limits), **settings) as server, server.client() as client:
        for name, subnet in (("full", "10.0.0.0/30"), ("open", "10.1.0.0/24")):
            pool = subnet.replace(".0/30", ".2").replace(".0/24", ".10-10.1.0.200")
            await client.post("/networks", {"name": name})
            await client.post(f"/networks/{name}/subnets", {"cidr": subnet})
            await client.post(f"/networks/{name}/pools", {"range": pool, "name": "p", "policy": "random"})
            await client.post(f"/networks/{name}:allocate", {"owner": "vm/first"})
        greedy = await server.token("greedy", "allocate:full", "allocate:open", "read")
        yield server, greedy, await server.token("modest", "allocate:open", "read")


async def hold(server: Server, stack: AsyncExitStack, data: bytes) -> Connection:
    """Send a request that lasts, over a connection that stays until the stack ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    stack.callback(_abort, writer)  # which keeps the writer: one that is forgotten closes
    writer.write(data)
    return reader, writer


def _abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def numbers(server: Server) -> dict[str, float]:
    """Return all numbers of /metrics."""
    async with server.client() as client:
        lines = (await client.ask("GET", "/metrics", below="")).body.decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


async def until(so: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(20):
        while not await so():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


async def until_held(server: Server, kind: str, many: int) -> None:
    """Wait until the server counts so many of a kind; requests whose body is missing are those in flight."""

    async def so() -> bool:
        found = await numbers(server)
        in_flight = found["tenure_http_requests_in_flight"] - 1  # /metrics itself
        rest = in_flight - sum(found[name] for name in GAUGES.values())
        return (found[GAUGES[kind]] if kind in GAUGES else rest) == many

    await until(so)


async def take_all(server: Server, stack: AsyncExitStack, kind: str, token: str, many: int = SHARE) -> list[Connection]:
    """Take as many of a kind as one token may have."""
    taken = [await hold(server, stack, asked(kind, token, f"vm/greedy-{number}")) for number in range(many)]
    await until_held(server, kind, many)
    return taken


async def one_more(server: Server, kind: str, token: str) -> RawAnswer:
    """Ask for one more, and return the answer."""
    [answer] = await send(server.port, asked(kind, token, "vm/one-more"))
    return answer


async def everything(server: Server, token: str, owner: str) -> list[int]:
    """Do what everybody else does: allocate on both ways, read, look at the health, follow the log."""
    async with server.client(token) as client:
        done = [
            await client.ask("POST", "/networks/open:allocate", {"owner": f"{owner}-short"}),
            await client.ask("POST", "/networks/open:allocate", {"owner": owner}, headers={"If-None-Match": "x"}),
            await client.ask("POST", "/networks/open:allocate", {"owner": f"{owner}-waits", "wait_s": 5}),
            await client.ask("GET", "/networks"),
            await client.ask("GET", "/healthz", below=""),
            await client.ask("GET", "/events", whole=False),
        ]
    return [answer.status for answer in done]


@pytest.mark.parametrize("kind", KINDS)
async def test_who_has_its_share_is_refused_one_more_and_nobody_else_is(kind: str) -> None:
    async with stage() as (server, greedy, modest), AsyncExitStack() as stack:
        await take_all(server, stack, kind, greedy)
        refused = await one_more(server, kind, greedy)
        others = await everything(server, modest, "vm/modest")
        counted = await numbers(server)

    assert (refused.status, refused.json["code"]) == (429, "share_used_up")
    assert refused.json["data"] == {"kind": kind, "most": SHARE, "after_s": int(refused.head["retry-after"])}
    assert "'greedy'" in refused.json["detail"]
    assert others == [200] * 6
    assert counted[f'tenure_refused_total{{kind="{kind}",limit="token"}}'] == 1
    assert counted['tenure_problems_total{code="share_used_up"}'] == 1


async def test_calls_that_wait_are_no_work_however_many_there_are() -> None:
    limits = {**FEW, "requests_at_once": 4, "requests_share": 1, "waiting_at_once": 80}
    async with stage(limits) as (server, greedy, modest), AsyncExitStack() as stack:
        await take_all(server, stack, "waiting", greedy, 20)
        own, others = await everything(server, greedy, "vm/greedy"), await everything(server, modest, "vm/modest")

    assert own == others == [200] * 6


async def test_the_short_way_counts_in_the_same_share() -> None:
    limits, owners = {**FEW, "requests_at_once": 4}, (f"vm/plain-{number}" for number in count())
    async with stage(limits) as (server, greedy, _), AsyncExitStack() as stack:

        async def goes_the_short_way() -> bool:
            before = (await numbers(server))["tenure_shortcuts_total"]
            [answer] = await send(server.port, _plain(greedy, next(owners)))
            assert answer.status == 200
            return (await numbers(server))["tenure_shortcuts_total"] > before

        await until(goes_the_short_way)  # as soon as the token is known
        await take_all(server, stack, "requests", greedy, 1)
        [refused] = await send(server.port, _plain(greedy, next(owners)))

    assert (refused.status, refused.json["code"]) == (429, "share_used_up")


def _plain(token: str, owner: str) -> bytes:
    """Write a plain allocation, which goes the short way."""
    bearer, body = f"Authorization: Bearer {token}".encode(), json.dumps({"owner": owner}).encode()
    return written("POST", b"/api/v1/networks/open:allocate", bearer, JSON, body=body)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_place_is_free_again_when_its_caller_hangs_up(kind: str) -> None:
    async with stage() as (server, greedy, _), AsyncExitStack() as stack:
        first, second, third = await take_all(server, stack, kind, greedy)
        first[1].transport.abort()
        second[1].close()
        third[1].write_eof() if kind == "requests" else third[1].close()
        await until_held(server, kind, 0)
        await take_all(server, stack, kind, greedy)
        refused = await one_more(server, kind, greedy)

    assert refused.status == 429


async def test_a_place_is_free_again_when_its_caller_is_answered() -> None:
    async with stage() as (server, greedy, _), server.client() as admin, AsyncExitStack() as stack:
        waiting = await take_all(server, stack, "waiting", greedy)
        slow = await take_all(server, stack, "requests", greedy)
        holder = "vm/first"
        for _ in waiting:
            await admin.post("/networks/full:release", {"address": "10.0.0.2", "owner": holder})
            holder = await _holder(admin)
        for _, writer in slow:
            writer.write(b'{"owner":"vm/greedy"')  # cut off: no JSON
        heads = [await asyncio.wait_for(reader.readline(), 20) for reader, _ in (*waiting, *slow)]
        for kind in KINDS:
            await until_held(server, kind, 0)

    assert heads == [b"HTTP/1.1 200 OK\r\n"] * SHARE + [b"HTTP/1.1 400 Bad Request\r\n"] * SHARE


async def _holder(admin: Any) -> str:
    """Return who was given the only address of the full network next."""
    async with asyncio.timeout(20):
        while not (items := (await admin.get("/networks/full/holdings"))["items"]):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return str(items[0]["owner"])


async def test_no_place_is_lost_after_many_random_ends() -> None:
    chance = random.Random(16)
    async with stage() as (server, greedy, modest):

        async def come_and_go(number: int) -> None:
            kind = chance.choice((*KINDS, "plain"))
            data = (
                _plain(greedy, f"vm/plain-{number}") if kind == "plain" else asked(kind, greedy, f"vm/random-{number}")
            )
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(data[: chance.choice((len(data), len(data), len(data) - 5))])
            await asyncio.sleep(chance.uniform(0, 0.1))
            if chance.random() < 0.5:
                writer.transport.abort()
            else:
                writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

        for _ in range(12):
            await asyncio.gather(*(come_and_go(number) for number in range(25)))
        for kind in KINDS:
            await until_held(server, kind, 0)
        async with AsyncExitStack() as stack:
            kinds = ("waiting", "streams", "requests")  # work comes last: what waits or streams begins as work
            for kind in kinds:
                await take_all(server, stack, kind, greedy)  # exactly a share of each can be had again
            refused = [(await one_more(server, kind, greedy)).status for kind in kinds]
        others = await everything(server, modest, "vm/after")

    assert refused == [429] * 3
    assert others == [200] * 6
    assert "Traceback" not in server.log


async def test_a_token_and_its_logins_have_one_share() -> None:
    async with stage() as (server, greedy, _), server.client("") as client, AsyncExitStack() as stack:
        await take_all(server, stack, "streams", greedy)
        login = await client.ask("POST", "/login", {"token": greedy})
        cookie = {"Cookie": f"tenure={login.cookies['tenure'].value}"}
        refused = await client.ask("GET", "/events", headers=cookie)

    assert (refused.status, refused.code) == (429, "share_used_up")


async def test_callers_without_a_token_have_one_share_together_and_leave_the_others_theirs() -> None:
    async with stage(anonymous=True) as (server, _, modest), AsyncExitStack() as stack:
        stream = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for _ in range(SHARE):
            await hold(server, stack, stream)
        await until_held(server, "streams", SHARE)
        [refused] = await send(server.port, stream)
        others = await everything(server, modest, "vm/modest")

    assert (refused.status, refused.json["code"]) == (429, "share_used_up")
    assert others == [200] * 6


async def test_the_limit_of_the_whole_server_is_the_last_resort() -> None:
    limits = {**FEW, "waiting_at_once": 4, "waiting_share": 0.5}
    async with stage(limits) as (server, greedy, _), AsyncExitStack() as stack:
        second, third = [await server.token(name, "allocate:full") for name in ("second", "third")]
        await take_all(server, stack, "waiting", greedy, 2)
        for number in range(2):
            await hold(server, stack, asked("waiting", second, f"vm/second-{number}"))
        await until_held(server, "waiting", 4)
        own, other = await one_more(server, "waiting", second), await one_more(server, "waiting", third)
        counted = await numbers(server)

    assert (own.status, own.json["code"]) == (429, "share_used_up")
    assert (other.status, other.json["code"], other.head["retry-after"]) == (503, "overloaded", "1")
    assert counted['tenure_refused_total{kind="waiting",limit="server"}'] == 1


def test_one_token_has_half_of_the_requests_unless_said_otherwise() -> None:
    shares, visitor = Shares(Limits(), ServerCounters()), Visitor("a", "a")
    for _ in range(500):
        shares.admit(visitor)

    with pytest.raises(ShareUsedUp) as refused:
        shares.admit(visitor)
    shares.admit(Visitor("b", "b"))
    assert (refused.value.kind, refused.value.most, shares.total[REQUESTS]) == ("requests", 500, 501)


@pytest.mark.parametrize(("kind", "most"), [(WAITING, 250), (STREAMS, 64)])
def test_one_token_has_a_quarter_of_what_lasts_unless_said_otherwise(kind: int, most: int) -> None:
    shares, visitor = Shares(Limits(), ServerCounters()), Visitor("a", "a")
    with contextlib.ExitStack() as stack:
        for _ in range(most):
            stack.enter_context(shares.counted_as(kind, visitor))

        with pytest.raises(ShareUsedUp) as refused:
            shares.check(kind, visitor)
        shares.check(kind, Visitor("b", "b"))
    assert (refused.value.kind, refused.value.most) == (KINDS[kind], most)


def test_the_smallest_share_is_one() -> None:
    shares, visitor = Shares(Limits(requests_at_once=2, streams=0), ServerCounters()), Visitor("a", "a")

    shares.end(shares.admit(visitor))
    with pytest.raises(Overloaded):
        shares.check(STREAMS, visitor)


def test_shares_of_callers_who_have_nothing_are_forgotten_and_no_others() -> None:
    shares, busy = Shares(Limits(), ServerCounters()), Visitor("busy", "busy")
    kept = shares.admit(busy)
    with shares.counted_as(WAITING, busy):
        for number in range(3 * MOST_REMEMBERED):
            shares.end(shares.admit(Visitor(str(number), "passing")))
    shares.end(kept)

    assert shares.total == kept == [0, 0, 0]
    assert shares.room_for("busy") is kept
    assert len(shares._shares) <= MOST_REMEMBERED
