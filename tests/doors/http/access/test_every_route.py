"""Every route, asked by everybody: it answers whom it must answer, and refuses all others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

import tenure
from tenure.doors.http.access.token_store import TokenRequest, add_token, find_token, read_text, revoke_token
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.routing.principal import Need
from tests.doors.http.access.cases import CASES, LOGIN, Case, prepare, prepare_site
from tests.doors.http.stage import LOOSE, Client, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

KNOWN = ["read", "other", "here", "everywhere", "admin"]
STRANGERS = ["nobody", "wrong", "malformed", "expired", "revoked"]

MAY = {
    Need.PUBLIC: {*STRANGERS, *KNOWN},
    Need.OPEN: {*KNOWN},
    Need.READ: {"read", "everywhere", "admin"},
    Need.READ_OWN: {"read", "here", "everywhere", "admin"},
    Need.ALLOCATE: {"everywhere", "admin"},
    Need.ADMIN: {"admin"},
}
"""Who may, on routes of any network; on one network its own token may read and allocate, too."""

BY_OPERATION = (":apply", ":rehearse")
"""Ask for more than their need says: every operation is looked at by itself."""

ENDPOINT_OF = {f"{each.method} {each.path}": each for each in ENDPOINTS}


@dataclass
class Stage:
    """A server, its ledger, and a token for everybody."""

    client: Client
    ledger: tenure.AsyncLedger
    tokens: dict[str, str]
    networks: int = 0

    async def network(self) -> str:
        """Make a network that nobody has touched; the token ``here`` is for this one, and its like to be revoked."""
        self.networks += 1
        name = f"net-{self.networks}"
        await prepare(self.ledger, name)
        made = await add_token(self.ledger, TokenRequest(name, [f"allocate:{name}"]), by="tests")
        await add_token(self.ledger, TokenRequest(f"spare-{name}", ["read"]), by="tests")
        self.tokens["here"] = made.text or ""
        return name


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage() -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running(limits=LOOSE))
        ledger = await stack.enter_async_context(await tenure.open_async(server.store))
        await prepare_site(ledger)
        client = await stack.enter_async_context(server.client(""))
        stage = Stage(client, ledger, await everybody(ledger, server.admin))
        await stage.network()
        yield stage


async def everybody(ledger: tenure.AsyncLedger, admin: str) -> dict[str, str]:
    """Make a token of every kind but those for one network."""
    soon = datetime.now(UTC) + timedelta(seconds=0.2)
    made = {
        "read": TokenRequest("read", ["read"]),
        "other": TokenRequest("other", ["allocate:net-0"], allow_missing=True),
        "everywhere": TokenRequest("everywhere", ["allocate:*"]),
        "expired": TokenRequest("expired", ["admin"], soon),
        "revoked": TokenRequest("revoked", ["admin"]),
    }
    texts = {name: (await add_token(ledger, wish, by="tests")).text or "" for name, wish in made.items()}
    await revoke_token(ledger, "revoked", by="tests")
    await asyncio.sleep((soon - datetime.now(UTC)).total_seconds())
    return {"nobody": "", "malformed": "tnr_nothing", "wrong": wrong(admin), "admin": admin, **texts}


def wrong(token: str) -> str:
    """Return a token whose last letter is another."""
    return token[:-1] + ("0" if token[-1] != "0" else "1")


def may(case: Case, who: str) -> bool:
    """Tell whether somebody must be let in."""
    if case.path in BY_OPERATION:
        return who in ("here", "everywhere", "admin")
    return who in MAY[case.need] or (who == "here" and case.of_network and case.need in (Need.READ, Need.ALLOCATE))


async def ask(stage: Stage, case: Case, who: str) -> tuple[int, str]:
    """Send the case's request for the newest network as somebody; return the status, and the code of a refusal."""
    network = f"net-{stage.networks}"
    answer = await stage.client.ask(
        case.method,
        case.where(network, f"spare-{network}"),
        case.said(network),
        token=stage.tokens[who],
        headers=case.headers,
        whole=not ENDPOINT_OF[case.name].streams,
    )
    return answer.status, answer.code if answer.status >= 400 else ""


async def test_every_route_has_a_case_and_asks_what_the_case_says() -> None:
    assert {case.name: case.need for case in CASES} == {
        name: endpoint.need for name, endpoint in ENDPOINT_OF.items() if name != LOGIN
    }


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_nobody_without_a_good_token_is_let_in(stage: Stage, case: Case) -> None:
    before = await stage.ledger.last_change()

    answers = {who: await ask(stage, case, who) for who in STRANGERS}

    expected = (204, "") if case.need is Need.PUBLIC else (401, "unauthorised")
    assert answers == dict.fromkeys(STRANGERS, expected)
    assert await stage.ledger.last_change() == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_good_token_does_what_it_is_for_and_nothing_else(stage: Stage, case: Case) -> None:
    for who in KNOWN:
        before = await stage.ledger.last_change()

        status, code = await ask(stage, case, who)

        if may(case, who):
            assert status == ENDPOINT_OF[case.name].status or status == 204, (who, status, code)
        else:
            assert (who, status, code) == (who, 403, "forbidden")
            assert await stage.ledger.last_change() == before
        if await stage.ledger.last_change() > before:
            await stage.network()


async def test_what_is_refused_is_told_alike_whatever_is_wrong_with_the_token(stage: Stage) -> None:
    told = set()
    for who in STRANGERS:
        answer = await stage.client.ask("GET", "/self", token=stage.tokens[who], headers={"X-Request-Id": "same"})
        told.add((answer.status, answer.headers["www-authenticate"], answer.body))

    assert len(told) == 1


async def test_a_token_for_another_network_learns_nothing_of_this_one(stage: Stage) -> None:
    network = await stage.network()

    there = await stage.client.ask("GET", f"/networks/{network}", token=stage.tokens["other"])
    nowhere = await stage.client.ask("GET", "/networks/no-such-thing", token=stage.tokens["other"])

    assert (there.code, nowhere.code) == ("forbidden", "forbidden")


async def test_operations_are_looked_at_one_by_one(stage: Stage) -> None:
    network = await stage.network()
    fine = {"op": "allocate", "network": network, "owner": "instance/new"}
    before = await stage.ledger.last_change()

    for bad in (
        {"op": "allocate", "network": "net-0", "owner": "instance/new"},
        {"op": "release_owner", "owner": "instance/held"},
        {"op": "pool.add", "network": network, "range": "192.0.2.200"},
        {"op": "write_paper", "kind": "instance", "name": "x", "document": {}},
    ):
        answer = await stage.client.ask("POST", ":apply", {"operations": [fine, bad]}, token=stage.tokens["here"])
        assert (answer.status, answer.code) == (403, "forbidden"), bad
    assert await stage.ledger.last_change() == before


async def test_tokens_cannot_be_reached_as_papers_not_even_by_an_admin(stage: Stage) -> None:
    token = await find_token(stage.ledger, "read")
    write = {"op": "write_paper", "kind": "rest.token", "name": token.id, "document": {}, "revision": 1}

    for answer in (
        await stage.client.ask("GET", "/papers/rest.token", token=stage.tokens["admin"]),
        await stage.client.ask("GET", f"/papers/rest.token/{token.id}", token=stage.tokens["admin"]),
        await stage.client.ask("POST", ":apply", {"operations": [write]}, token=stage.tokens["admin"]),
    ):
        assert (answer.status, answer.json["field"]) == (422, "kind")


async def test_a_change_tells_by_whose_token_and_which_request_it_was_made(stage: Stage) -> None:
    network = await stage.network()
    body = {"owner": "instance/told"}
    headers = {"X-Request-Id": "req-17"}
    await stage.client.post(f"/networks/{network}:allocate", body, token=stage.tokens["here"], headers=headers)

    page = await stage.client.get(f"/changes?network={network}&owner=instance/told", token=stage.tokens["read"])

    assert [(each["verb"], each["actor"], each["request_id"]) for each in page["items"]] == [
        ("grant", f"token/{network}", "req-17")
    ]


async def test_an_id_is_part_of_the_token_and_no_secret(stage: Stage) -> None:
    read = read_text(stage.tokens["read"])
    assert read is not None
    id, secret = read

    shown = await stage.client.get("/tokens", token=stage.tokens["admin"])

    assert id in {token["id"] for token in shown["items"]}
    assert secret not in str(shown)
    assert len(bytes.fromhex(secret)) == 32
