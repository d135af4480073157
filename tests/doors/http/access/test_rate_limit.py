"""How often somebody may ask, and how often be wrong."""

import asyncio
import time

from tenure.doors.http.access.rate_limit import MOST_BUCKETS, Limiter
from tests.doors.http.stage import running

WRONG = [f"tnr_{number:016x}_{'0' * 64}" for number in range(60)]


async def test_a_token_that_asks_too_often_is_told_when_to_ask_again() -> None:
    async with running(limits={"requests_per_s": 2}) as server, server.client() as client:
        calm = await server.token("calm", "read")
        began = time.monotonic()
        answers = await asyncio.gather(*(client.ask("GET", "/self") for _ in range(60)))
        took_s = time.monotonic() - began
        other = await client.ask("GET", "/self", token=calm)
        await asyncio.sleep(max(int(answer.headers.get("retry-after", "0")) for answer in answers))
        after = await client.ask("GET", "/self")

    refused = [answer for answer in answers if answer.status != 200]
    # One at least: of the two that are saved up, making the other token took one.
    assert 1 <= len(answers) - len(refused) <= 3 + 2 * took_s
    assert {(answer.status, answer.code, answer.headers["retry-after"]) for answer in refused} == {
        (429, "rate_limited", "1")
    }
    assert (other.status, after.status) == (200, 200)


async def test_a_token_and_its_logins_are_counted_together() -> None:
    async with running(limits={"requests_per_s": 0.02}) as server, server.client() as client:
        login = await client.ask("POST", "/login", {"token": server.admin}, token="")
        cookie = {"Cookie": f"tenure={login.cookies['tenure'].value}"}
        first = await client.ask("GET", "/self")
        second = await client.ask("GET", "/self", token="", headers=cookie)

    assert (first.status, second.code) == (200, "rate_limited")


async def test_an_address_that_is_wrong_too_often_is_looked_at_no_more_but_known_tokens_stay_good() -> None:
    async with running(limits={"failures": 10}) as server, server.client() as client:
        assert (await client.ask("GET", "/self")).status == 200
        began = time.monotonic()
        answers = await asyncio.gather(*(client.ask("GET", "/self", token=wrong) for wrong in WRONG))
        took_s = time.monotonic() - began
        known = await client.ask("GET", "/self")

    statuses = [answer.status for answer in answers]
    assert 10 <= statuses.count(401) <= 11 + took_s
    assert set(statuses) == {401, 429}
    assert known.status == 200


async def test_whatever_is_wrong_counts() -> None:
    async with running(limits={"failures": 4}) as server, server.client("") as client:
        asked = [
            client.ask("GET", "/self", token=WRONG[0]),
            client.ask("GET", "/self", token=WRONG[0]),
            client.ask("POST", "/login", {"token": "no"}),
            client.ask("GET", "/self", headers={"Authorization": "Basic eDp5"}),
            client.ask("GET", "/self", headers={"Cookie": "tenure=x"}),
        ]
        answers = await asyncio.gather(*asked, *(client.ask("GET", "/self", token=wrong) for wrong in WRONG))

    assert {answer.status for answer in answers} == {401, 429}


async def test_tokens_that_are_good_do_not_count() -> None:
    async with running(limits={"failures": 1}) as server, server.client() as client:
        tokens = [await server.token(f"good-{number}", "read") for number in range(5)]
        answers = [await client.ask("GET", "/self", token=token) for token in tokens]

    assert {answer.status for answer in answers} == {200}


async def test_who_says_nothing_is_not_counted_as_wrong() -> None:
    async with running(limits={"failures": 1}) as server, server.client("") as client:
        answers = await asyncio.gather(*(client.ask("GET", "/self") for _ in range(20)))

    assert {answer.status for answer in answers} == {401}


def test_a_bucket_lets_a_burst_through_and_then_as_many_as_it_is_filled_with() -> None:
    limiter = Limiter(2.0, 3.0)

    at_once = [limiter.take("a", 0.0) for _ in range(4)]
    later = [limiter.take("a", 10.0) for _ in range(4)]

    assert at_once == [0.0, 0.0, 0.0, 0.5]
    assert later == at_once
    assert limiter.take("b", 0.0) == 0.0


def test_a_flood_of_addresses_takes_bounded_memory() -> None:
    limiter = Limiter(1.0, 1.0)

    for number in range(3 * MOST_BUCKETS):
        limiter.take(str(number), 0.0)

    assert len(limiter._buckets) <= MOST_BUCKETS
