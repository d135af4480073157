"""What the desk remembers: as little as it may, and never for long."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

import tenure
from tenure.doors.rest.access import sessions
from tenure.doors.rest.access.desk import Access
from tenure.doors.rest.access.seats import KEPT_S, MOST_SEATS, MOST_WRONG, Found, Seats
from tenure.doors.rest.access.tokens import Made, Wish, add_token, revoke_token
from tenure.doors.rest.catalogue import ENDPOINTS
from tenure.doors.rest.dispatching import Dispatcher
from tenure.doors.rest.settings import Settings
from tenure.doors.rest.visitors import Visitor
from tenure.remote.refusals import Unauthorised

SCOPE = {"client": ("192.0.2.7", 1), "method": "GET", "scheme": "http"}
ROUTE = Dispatcher(ENDPOINTS).find("GET", b"/api/v1/networks")
ALLOCATE = Dispatcher(ENDPOINTS).find("POST", b"/api/v1/networks/net1:allocate")


@pytest.fixture
async def ledger() -> AsyncIterator[tenure.AsyncLedger]:
    async with await tenure.open_async("memory:") as opened:
        yield opened


@pytest.fixture
def access(ledger: tenure.AsyncLedger) -> Access:
    return Access(ledger, Settings())


async def made(ledger: tenure.AsyncLedger, *scopes: str) -> tuple[Made, dict[bytes, bytes]]:
    """Make a token; return it and the headers that carry it."""
    token = await add_token(ledger, Wish("ops", scopes), by="tests")
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
    by_login = login.visitor()
    good = [await access.still_good(visitor) for visitor in (by_token, by_login)]
    await sessions.end(ledger, login.name)
    logged_out = [await access.still_good(visitor) for visitor in (by_token, by_login)]
    await revoke_token(ledger, token.token.id, by="tests")
    revoked = [await access.still_good(visitor) for visitor in (by_token, by_login)]

    assert (good, logged_out, revoked) == ([True, True], [True, False], [False, False])


async def test_letting_in_somebody_known_costs_a_few_microseconds(ledger: tenure.AsyncLedger, access: Access) -> None:
    _, headers = await made(ledger, "allocate:net1")
    best = float("inf")
    for _ in range(20):
        began = time.perf_counter()
        for _ in range(500):
            await access.admit(SCOPE, headers, ALLOCATE)
        best = min(best, (time.perf_counter() - began) / 500)

    assert best < 10e-6  # three on a quiet machine


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
