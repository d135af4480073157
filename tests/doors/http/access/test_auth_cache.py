"""What the desk remembers: as little as it may, and never for long."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

import tenure
from tenure.doors.http.access import sessions
from tenure.doors.http.access.auth_cache import KEPT_S, MOST_SEATS, MOST_WRONG, Found, Seats
from tenure.doors.http.access.authenticate import Access
from tenure.doors.http.access.token_store import SESSION, Made, TokenRequest, add_token, revoke_token
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.routing.dispatcher import Dispatcher
from tenure.doors.http.routing.principal import Visitor
from tenure.doors.http.settings import Limits, Settings
from tenure.wire.http_errors import RateLimited, Unauthorised

SCOPE = {"client": ("192.0.2.7", 1), "method": "GET", "scheme": "http"}
ROUTE = Dispatcher(ENDPOINTS).find("GET", b"/api/v1/networks")


@pytest.fixture
async def ledger() -> AsyncIterator[tenure.AsyncLedger]:
    async with await tenure.open_async("memory:") as opened:
        yield opened


@pytest.fixture
def access(ledger: tenure.AsyncLedger) -> Access:
    return Access(ledger, Settings())


async def made(ledger: tenure.AsyncLedger, *scopes: str) -> tuple[Made, dict[bytes, bytes]]:
    """Make a token; return it and the headers that carry it."""
    token = await add_token(ledger, TokenRequest("ops", scopes), by="tests")
    return token, {b"authorization": f"Bearer {token.text}".encode(), b"host": b"ipam.example.org"}


async def test_whoever_is_known_is_not_looked_up_until_the_log_tells_of_his_token(
    ledger: tenure.AsyncLedger, access: Access
) -> None:
    token, headers = await made(ledger, "read")
    before = await ledger.last_change()
    first = await access.admit(SCOPE, headers, ROUTE)
    await revoke_token(ledger, token.token.id, by="tests")
    remembered = await access.admit(SCOPE, headers, ROUTE)
    async for change in ledger.changes(before):
        access.hear(change)

    assert remembered is first
    with pytest.raises(Unauthorised):
        await access.admit(SCOPE, headers, ROUTE)


async def test_without_news_he_is_looked_up_again_before_two_seconds(
    ledger: tenure.AsyncLedger, access: Access
) -> None:
    token, headers = await made(ledger, "read")
    await access.admit(SCOPE, headers, ROUTE)
    await revoke_token(ledger, token.token.id, by="tests")
    await asyncio.sleep(KEPT_S)

    assert KEPT_S < 2.0
    with pytest.raises(Unauthorised):
        await access.admit(SCOPE, headers, ROUTE)


async def test_a_gap_in_the_log_makes_the_desk_look_again_at_everybody(
    ledger: tenure.AsyncLedger, access: Access
) -> None:
    token, headers = await made(ledger, "read")
    await access.admit(SCOPE, headers, ROUTE)
    await revoke_token(ledger, token.token.id, by="tests")
    access.forget()

    with pytest.raises(Unauthorised):
        await access.admit(SCOPE, headers, ROUTE)


async def test_whoever_goes_on_for_long_can_be_looked_at_again(ledger: tenure.AsyncLedger, access: Access) -> None:
    token, headers = await made(ledger, "read")
    by_token = await access.admit(SCOPE, headers, ROUTE)
    _, login = await sessions.begin(ledger, token.token)
    by_login = login.visitor(by_token)
    good = [await access.still_good(visitor) for visitor in (by_token, by_login)]
    await sessions.end(ledger, login.name)
    logged_out = [await access.still_good(visitor) for visitor in (by_token, by_login)]
    await revoke_token(ledger, token.token.id, by="tests")
    revoked = [await access.still_good(visitor) for visitor in (by_token, by_login)]

    assert (good, logged_out, revoked) == ([True, True], [True, False], [False, False])


async def refusals(access: Access, cookie: bytes) -> set[type[tenure.TenureError]]:
    """Ask some times by a cookie that is not good; return how that is refused."""
    headers = {b"cookie": b"__Host-tenure=" + cookie, b"host": b"ipam.example.org"}
    told: set[type[tenure.TenureError]] = set()
    for _ in range(4):
        with pytest.raises((Unauthorised, RateLimited)) as refused:
            await access.admit(SCOPE, headers, ROUTE)
        told.add(refused.type)
    return told


async def test_pages_that_are_open_when_their_login_ends_are_not_taken_for_one_who_guesses(
    ledger: tenure.AsyncLedger,
) -> None:
    strict = Settings(limits=Limits(failures=1))
    here, elsewhere, later = (Access(ledger, strict) for _ in range(3))
    token, _ = await made(ledger, "read")
    left, _ = await sessions.begin(ledger, token.token)
    await here.admit(SCOPE, {b"cookie": b"__Host-tenure=" + left.encode(), b"host": b"ipam.example.org"}, ROUTE)
    over, login = await sessions.begin(ledger, token.token)
    await sessions.end(ledger, left.rpartition(".")[0])
    here.forget(token.token.id)
    paper = await ledger.paper(SESSION, login.name)
    document = {**paper.document, "until": datetime.now(UTC).isoformat()}
    await ledger.apply([tenure.WritePaper(kind=SESSION, name=login.name, document=document, revision=paper.revision)])

    assert await refusals(here, left.encode()) == {Unauthorised}
    assert await refusals(elsewhere, over.encode()) == {Unauthorised}
    assert await refusals(later, over[:-64].encode() + b"0" * 64) == {Unauthorised, RateLimited}


VISITOR = Visitor("id", "ops", read=True)


async def test_those_who_ask_for_the_same_at_once_share_one_look() -> None:
    looks = 0

    async def look(_: bytes) -> Found:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0.01)
        return VISITOR, None

    seats = Seats(look)
    found = await asyncio.gather(*(seats.find(b"a") for _ in range(50)))

    assert (looks, set(found)) == (1, {VISITOR})


async def test_what_is_remembered_is_bounded() -> None:
    async def look(given: bytes) -> Found | None:
        return (VISITOR, None) if given.startswith(b"good") else None

    seats = Seats(look)
    for number in range(2 * MOST_SEATS):
        await seats.find(b"good %d" % number)
        await seats.find(b"wrong %d" % number)

    assert 0 < len(seats.known) <= MOST_SEATS
    assert 0 < len(seats._wrong) <= MOST_WRONG


async def test_nobody_is_remembered_beyond_his_own_end() -> None:
    async def look(_: bytes) -> Found:
        return VISITOR, datetime.now(UTC) + timedelta(seconds=0.5)

    seats = Seats(look)
    await seats.find(b"a")

    assert seats.known[b"a"].until <= time.monotonic() + 0.5


async def test_a_look_that_failed_is_told_to_whoever_asked_and_is_not_remembered() -> None:
    async def look(_: bytes) -> Found:
        raise ConnectionError

    seats = Seats(look)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await seats.find(b"a")

    assert seats.known == {}
