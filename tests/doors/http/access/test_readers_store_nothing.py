"""Whoever may only read leaves the ledger as it is, byte by byte, also where something in it is overdue."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

import tenure
from tenure.doors.http.access.token_store import TokenRequest, add_token
from tenure.doors.http.routing.principal import Need
from tenure.interchange.content_digest import digest_of
from tenure.service.ledger.engine_ledger import server_of
from tests.contract.ledger.timing import let_deadlines_pass, let_waiters_die
from tests.doors.http.access.cases import CASES, prepare, prepare_site
from tests.doors.http.stage import LOOSE, Client, running
from tests.infrastructure.postgres import fresh_schema

READING = [
    case
    for case in CASES
    if (case.need is Need.READ and case.method != "GET")
    or (case.method == "GET" and case.need in (Need.READ, Need.OPEN, Need.PUBLIC))
]
ENDLESS = ("/events", "/changes/stream")
EXPECTATIONS: list[dict[str, object]] = [
    {"op": "expect_no_holdings", "network": "net", "range": "192.0.2.30-192.0.2.40"},
    {"op": "expect_holding", "network": "net", "address": "192.0.2.10", "owner": "instance/held"},
]


@dataclass
class Stage:
    """A server, a reader's client, and the ledger itself."""

    reader: Client
    ledger: tenure.AsyncLedger

    async def digest(self) -> str:
        """Return a mark of all that the store holds, the log and kept answers included."""
        return (await digest_of(server_of(self.ledger).store.contents(), lambda section: None)).whole


@pytest.fixture(params=["sqlite", "postgres"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    """Give a server on a ledger with a little of everything, in which three rows and a claim in line are overdue."""
    async with AsyncExitStack() as stack:
        sqlite = request.param == "sqlite"
        store = f"sqlite:///{tmp_path}/ledger.db" if sqlite else await stack.enter_async_context(fresh_schema())
        ledger = await stack.enter_async_context(await tenure.open_async(store))
        await prepare_site(ledger)
        await prepare(ledger, "net")
        await ledger.add_pool("net", "192.0.2.70-192.0.2.71", name="small", cooling_s=60)
        await ledger.hold("net", owner="vm/late", address="192.0.2.35", lasts_s=60)
        given = await ledger.allocate("net", owner="vm/cooled", pool="small")
        await ledger.allocate("net", owner="vm/kept", pool="small")
        assert (await ledger.claim("net", owner="vm/waits", pool="small")).state == "waiting"
        await ledger.release("net", given.address, owner="vm/cooled")
        text = (await add_token(ledger, TokenRequest("reader", ["read"]), by="tests")).text or ""
        server = await stack.enter_async_context(running(store, limits=LOOSE))
        await let_deadlines_pass(ledger)
        await let_waiters_die(ledger)
        yield Stage(await stack.enter_async_context(server.client(text)), ledger)


async def test_no_route_that_a_reader_may_ask_changes_anything(stage: Stage) -> None:
    before, newest = await stage.digest(), await stage.ledger.last_change()

    for case in READING:
        if not case.path.endswith(ENDLESS):
            body = case.said("net")
            answer = await stage.reader.ask(case.method, case.where("net", "reader"), body, whole=False)
            allowed = (200,) if case.method == "POST" else (200, 204, 304, 403, 404)
            assert answer.status in allowed, (case.name, answer.body)
    for path in ("/healthz", "/readyz", "/metrics"):
        await stage.reader.ask("GET", path, below="")

    assert await stage.ledger.last_change() == newest
    assert await stage.digest() == before


@pytest.mark.parametrize("verb", [":apply", ":rehearse"])
async def test_what_only_expects_stores_no_answer_and_removes_nothing(stage: Stage, verb: str) -> None:
    network, before = await stage.ledger.network("net"), await stage.digest()
    expected: dict[str, object] = {"op": "expect", "network": "net", "serial": network.serial, "uuid": network.uuid}

    for _ in range(2):
        for operation in (*EXPECTATIONS, expected):
            headers = {"Idempotency-Key": f"k-{operation['op']}"}
            answer = await stage.reader.ask("POST", verb, {"operations": [operation]}, headers=headers)
            assert answer.status == 200, answer.body

    assert await stage.digest() == before


def test_what_a_reader_may_post_is_among_the_routes() -> None:
    posted = {case.path for case in READING if case.method == "POST"}

    assert posted == {"/deployments:diff", "/deployments/{deployment}:check"}


async def test_the_reading_verbs_change_nothing(stage: Stage) -> None:
    before, ledger = await stage.digest(), stage.ledger

    await ledger.holdings("net")
    await ledger.holdings(owner="vm/late")
    await ledger.why("192.0.2.35")
    await ledger.history("192.0.2.35")
    await ledger.search("vm")
    await ledger.waiting()
    await ledger.waiting("net")
    await ledger.networks()
    await ledger.papers("instance")
    assert await ledger.verify() == []
    assert [change async for change in ledger.changes()]

    assert await stage.digest() == before


async def test_what_time_ended_is_nobodys_doing(stage: Stage) -> None:
    newest = await stage.ledger.last_change()
    ann = stage.ledger.asked_by("token/ann", request_id="r-1")
    await ann.apply([tenure.Allocate(network="net", owner="vm/new", pool="small")])

    told = [change async for change in stage.ledger.changes(newest)]
    ended = [each for each in told if each.verb in ("release", "leave")]
    assert {each.verb for each in ended} == {"release", "leave"}
    assert {(each.actor, each.request_id, each.request) for each in ended} == {(None, None, None)}
    assert [(each.verb, each.actor) for each in told if each.verb == "grant"] == [("grant", "token/ann")]
