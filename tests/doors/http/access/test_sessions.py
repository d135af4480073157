"""Logins: cookies that nobody else can read or send, and that end with their token."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

import tenure
from tenure.doors.http.access.sessions import LASTS_S, MOST_OF_A_TOKEN
from tenure.doors.http.access.token_store import SESSION
from tests.doors.http.stage import LOOSE, Answer, Client, Server, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEW = {"name": "net1"}


@dataclass
class Page:
    """A browser's page: it has the cookie, and what /self told it."""

    client: Client
    cookie: str
    csrf: str

    async def send(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send a request as a browser would: with the cookie, without a token."""
        return await self.client.ask(method, path, body, token="", headers={"Cookie": self.cookie, **headers})


async def logged_in(client: Client, token: str) -> Page:
    """Log in."""
    answer = await client.ask("POST", "/login", {"token": token}, token="")
    assert answer.status == 200, answer.body
    [(name, morsel)] = answer.cookies.items()
    return Page(client, f"{name}={morsel.value}", answer.json["csrf"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Server]:
    async with running(limits=LOOSE) as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(server: Server) -> AsyncIterator[Client]:
    async with server.client("") as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def page(server: Server, client: Client) -> Page:
    return await logged_in(client, server.admin)


async def test_the_cookie_is_for_this_site_alone_and_out_of_reach_of_scripts(server: Server, client: Client) -> None:
    answer = await client.ask("POST", "/login", {"token": server.admin})

    [name, *flags] = answer.headers["set-cookie"].split("; ")
    assert name.startswith("tenure=")
    assert sorted(flags) == ["HttpOnly", f"Max-Age={LASTS_S}", "Path=/", "SameSite=Strict"]
    assert LASTS_S == 12 * 3600
    assert server.admin.encode() not in answer.body


@pytest.mark.parametrize("host", ["ipam.example.org", "192.0.2.7:8123", "localhost.example.org"])
async def test_beyond_this_machine_the_cookie_travels_encrypted_only(server: Server, client: Client, host: str) -> None:
    answer = await client.ask("POST", "/login", {"token": server.admin}, headers={"Host": host})

    said = answer.headers["set-cookie"]
    assert said.startswith("__Host-tenure=")
    assert "; Secure" in said
    assert "; Path=/;" in said
    assert "Domain" not in said


async def test_a_wrong_token_does_not_log_in(client: Client) -> None:
    wrong = f"tnr_{'0' * 16}_{'0' * 64}"

    for token in ("", "secret", wrong):
        answer = await client.ask("POST", "/login", {"token": token})

        assert (answer.status, answer.code) == (401, "unauthorised")
        assert "set-cookie" not in answer.headers


async def test_who_is_logged_in_may_do_what_his_token_may(server: Server, client: Client, page: Page) -> None:
    reader = await logged_in(client, await server.token("reader", "read"))

    mine = (await page.send("GET", "/self")).json
    made = await page.send("POST", "/networks", {"name": "made"}, **{"X-CSRF-Token": mine["csrf"]})
    refused = await reader.send("POST", "/networks", NEW, **{"X-CSRF-Token": reader.csrf})

    assert mine["csrf"] == page.csrf
    assert made.status == 201
    assert (refused.status, refused.code) == (403, "forbidden")


async def test_an_unsafe_request_without_what_the_page_was_told_is_refused(
    server: Server, client: Client, page: Page
) -> None:
    other = await logged_in(client, server.admin)

    for headers in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": "0" * 64}, {"X-CSRF-Token": other.csrf}):
        answer = await page.send("POST", "/networks", NEW, **headers)

        assert (answer.status, answer.code) == (403, "forbidden")
        assert "X-CSRF-Token" in answer.json["detail"]
    assert (await page.send("GET", "/networks/net1")).status == 404


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
async def test_every_unsafe_method_needs_it(page: Page, method: str) -> None:
    path = "/networks" if method == "POST" else "/networks/net1"

    answer = await page.send(method, path, NEW)

    assert "X-CSRF-Token" in answer.json["detail"]


@pytest.mark.parametrize("origin", ["https://evil.example.org", "null", "http://127.0.0.1:1", "http://127.0.0.1"])
async def test_a_page_of_another_host_can_do_nothing_even_if_it_knew(page: Page, origin: str) -> None:
    answer = await page.send("POST", "/networks", NEW, **{"X-CSRF-Token": page.csrf, "Origin": origin})

    assert (answer.status, answer.code) == (403, "forbidden")
    assert "Origin" in answer.json["detail"]


async def test_a_page_of_another_host_can_neither_log_in_nor_out(server: Server, client: Client, page: Page) -> None:
    foreign = {"Origin": "https://evil.example.org"}

    logging_in = await client.ask("POST", "/login", {"token": server.admin}, headers=foreign)
    logging_out = await page.send("POST", "/logout", **{**foreign, "X-CSRF-Token": page.csrf})

    assert (logging_in.status, logging_out.status) == (403, 403)
    assert "set-cookie" not in logging_in.headers
    assert (await page.send("GET", "/self")).status == 200


async def test_our_own_page_and_a_token_need_no_more(server: Server, client: Client, page: Page) -> None:
    own = {"X-CSRF-Token": page.csrf, "Origin": server.url}
    foreign = {"Origin": "https://scripts.example.org"}

    by_page = await page.send("POST", "/networks", {"name": "by-page"}, **own)
    by_token = await client.ask("POST", "/networks", {"name": "by-token"}, token=server.admin, headers=foreign)

    assert (by_page.status, by_token.status) == (201, 201)


async def test_a_bad_token_beside_a_good_cookie_is_refused(page: Page) -> None:
    answer = await page.send("GET", "/self", Authorization="Bearer tnr_nothing")

    assert answer.code == "unauthorised"


async def test_logging_out_ends_the_login_and_takes_the_cookie_away(page: Page) -> None:
    without = await page.send("POST", "/logout")
    out = await page.send("POST", "/logout", **{"X-CSRF-Token": page.csrf})
    after = await page.send("GET", "/self")
    again = await page.send("POST", "/logout")

    assert without.code == "forbidden"
    assert out.status == 204
    assert out.headers["set-cookie"].startswith("tenure=; ")
    assert "Max-Age=0" in out.headers["set-cookie"]
    assert after.code == "unauthorised"
    assert again.status == 204


async def test_a_login_ends_with_its_token(server: Server, client: Client) -> None:
    token = await server.token("ended", "read")
    page = await logged_in(client, token)
    assert (await page.send("GET", "/self")).status == 200

    await client.post("/tokens/ended:revoke", token=server.admin)

    assert (await page.send("GET", "/self")).code == "unauthorised"
    async with await tenure.open_async(server.store) as ledger:
        assert await ledger.papers(SESSION, prefix=token.split("_")[1]) == []


async def test_a_cookie_with_a_wrong_secret_or_of_nobody_is_refused(server: Server, client: Client, page: Page) -> None:
    last = "0" if page.cookie[-1] != "0" else "1"

    for cookie in (page.cookie[:-1] + last, "tenure=", "tenure=x", f"tenure={'0' * 16}.{'0' * 16}.{'0' * 64}"):
        answer = await client.ask("GET", "/self", headers={"Cookie": cookie})

        assert (answer.status, answer.code) == (401, "unauthorised")


async def test_our_cookie_is_found_among_others(client: Client, page: Page) -> None:
    answer = await client.ask("GET", "/self", headers={"Cookie": f"a=b; {page.cookie}; tenures=1"})

    assert answer.status == 200


async def test_a_token_has_a_bounded_number_of_logins_and_the_oldest_goes_first(server: Server, client: Client) -> None:
    token = await server.token("often", "read")
    first = await logged_in(client, token)
    pages = [await logged_in(client, token) for _ in range(MOST_OF_A_TOKEN)]

    await asyncio.sleep(0.2)

    assert (await first.send("GET", "/self")).status == 401
    assert [(await page.send("GET", "/self")).status for page in pages] == [200] * MOST_OF_A_TOKEN


async def test_many_may_log_in_at_once(server: Server, client: Client) -> None:
    pages = await asyncio.gather(*(logged_in(client, server.admin) for _ in range(10)))

    assert {(await page.send("GET", "/self")).status for page in pages} == {200}
    assert len({page.csrf for page in pages}) == len(pages)


async def test_what_is_done_by_a_login_is_told_by_its_token(server: Server, client: Client, page: Page) -> None:
    told = {"X-CSRF-Token": page.csrf, "X-Request-Id": "page-1"}
    await page.send("POST", "/networks", {"name": "told"}, **told)

    changes = (await page.send("GET", "/changes?network=told")).json["items"]

    assert [(each["actor"].partition("-")[0], each["request_id"]) for each in changes] == [("token/stage", "page-1")]
