"""Tokens: made once, told once, kept as a hash, revoked everywhere."""

import asyncio
import json
import os
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import tenure
from tenure.doors.http.access.token_store import digest_of, read_text, revoke_token
from tests.doors.http.stage import Client, Server, running, token_in
from tests.infrastructure.forked_tenure import run_forked
from tests.infrastructure.postgres import fresh_schema

SOON_S = 2.0
"""Within this time every server knows that a token was revoked."""


async def made(client: Client, name: str, *scopes: str, **more: object) -> dict[str, object]:
    """Make a token through the API."""
    answer = await client.ask("POST", "/tokens", {"name": name, "scopes": list(scopes), **more})
    assert answer.status == 201, answer.body
    return dict(answer.json)


def secret_of(token: object) -> str:
    """Return the secret part of a token."""
    read = read_text(str(token))
    assert read is not None
    return read[1]


async def test_a_token_is_told_once_and_good_at_once() -> None:
    async with running() as server, server.client() as admin:
        await admin.post("/networks", {"name": "net1"})
        token = await made(admin, "ops", "read", "allocate:net1")
        mine = await admin.get("/self", token=str(token["token"]))
        shown = await admin.get(f"/tokens/{token['id']}")

    assert (mine["name"], mine["networks"], mine["admin"]) == ("ops", ["net1"], False)
    assert shown == {name: value for name, value in token.items() if name != "token"}
    assert shown["created_by"].startswith("token/stage-")


async def test_the_ledger_keeps_a_hash_and_the_secret_is_nowhere() -> None:
    async with running(log="json") as server, server.client() as admin:
        token = await made(admin, "ops", "read")
        secret = secret_of(token["token"])
        answer = await admin.ask("POST", "/login", {"token": token["token"]}, token="")
        cookie = answer.cookies["tenure"].value
        for where in ("/self", "/networks", "/nowhere", f"/tokens/{token['token']}", f"/no-{token['token']}"):
            await admin.ask("GET", where, token=str(token["token"]))
            await admin.ask("GET", where, token="", headers={"Cookie": f"tenure={cookie}"})
        await admin.ask("GET", "/self", token=f"{token['token']}0")
        await server.stop()  # lines are written in the background; now all of them are
        log, folder = server.log, server.folder
        kept = b"".join(path.read_bytes() for path in folder.iterdir() if path.name.startswith("ledger.db"))

    assert digest_of(secret).encode() in kept
    assert digest_of(cookie.rpartition(".")[2]).encode() in kept
    for each in (secret, cookie.rpartition(".")[2], secret_of(server.admin)):
        assert each.encode() not in kept
    assert secret_of(server.admin) not in log
    assert cookie.rpartition(".")[2] not in log
    assert secret not in log
    assert str(token["id"]) in log


async def test_a_request_repeated_under_its_key_makes_no_second_token_and_keeps_no_secret() -> None:
    async with running() as server, server.client() as admin:
        body = {"name": "ops", "scopes": ["read"]}
        key = {"Idempotency-Key": "once"}
        first = (await admin.ask("POST", "/tokens", body, headers=key)).json
        again = await admin.ask("POST", "/tokens", body, headers=key)
        other = await admin.ask("POST", "/tokens", {"name": "ops", "scopes": ["admin"]}, headers=key)
        kept = (server.folder / "ledger.db").read_bytes() + (server.folder / "ledger.db-wal").read_bytes()
        shown = await admin.get("/tokens")

    assert (again.status, again.json) == (201, {**first, "token": None})
    assert (other.status, other.code) == (422, "key_reused")
    assert [token["name"] for token in shown["items"]].count("ops") == 1
    assert secret_of(first["token"]).encode() not in kept


async def test_requests_of_one_key_at_once_make_one_token_and_tell_it_once() -> None:
    async with running() as server, server.client() as admin:
        body, key = {"name": "ops", "scopes": ["read"]}, {"Idempotency-Key": "once"}
        answers = await asyncio.gather(*(admin.ask("POST", "/tokens", body, headers=key) for _ in range(8)))

    assert {answer.status for answer in answers} == {201}
    assert len({answer.json["id"] for answer in answers}) == 1
    assert [answer.json["token"] for answer in answers].count(None) == 7


async def test_a_name_is_for_one_good_token() -> None:
    async with running() as server, server.client() as admin:
        await made(admin, "ops", "read")
        taken = await admin.ask("POST", "/tokens", {"name": "ops", "scopes": ["read"]})
        await admin.post("/tokens/ops:revoke")
        again = await made(admin, "ops", "admin")
        soon = datetime.now(UTC) + timedelta(seconds=0.3)
        await made(admin, "brief", "read", expires=soon.isoformat())
        await asyncio.sleep(0.35)
        anew = await made(admin, "brief", "read")

    assert (taken.status, taken.code, taken.json["field"]) == (409, "already_exists", "name")
    assert again["name"] == "ops"
    assert anew["expires"] is None


async def test_of_many_who_want_one_name_at_once_one_gets_it() -> None:
    async with running() as server, server.client() as admin:
        body = {"name": "ops", "scopes": ["read"]}
        answers = await asyncio.gather(*(admin.ask("POST", "/tokens", body) for _ in range(8)))

    assert sorted(answer.status for answer in answers) == [201] + [409] * 7


async def test_wrong_wishes_are_refused_by_name_and_make_nothing() -> None:
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    wrong: list[tuple[dict[str, object], str]] = [
        ({"name": "", "scopes": ["read"]}, "name"),
        ({"name": " x", "scopes": ["read"]}, "name"),
        ({"name": "x" * 101, "scopes": ["read"]}, "name"),
        ({"name": "x", "scopes": []}, "scopes"),
        ({"name": "x", "scopes": ["write"]}, "scopes"),
        ({"name": "x", "scopes": ["allocate"]}, "scopes"),
        ({"name": "x", "scopes": ["allocate:"]}, "scopes"),
        ({"name": "x", "scopes": ["read"], "expires": yesterday}, "expires"),
        ({"name": "x", "scopes": ["read"], "expires": "2030-01-01T00:00:00"}, "expires"),
        ({"name": "x", "scopes": ["read"], "more": 1}, "more"),
    ]
    async with running() as server, server.client() as admin:
        before = await admin.get("/tokens")
        answers = [await admin.ask("POST", "/tokens", body) for body, _ in wrong]
        after = await admin.get("/tokens")

    assert [answer.status for answer in answers] == [422] * len(wrong)
    assert [answer.json["field"].partition("[")[0] for answer in answers] == [field for _, field in wrong]
    assert after == before


async def test_a_revoked_token_is_refused_at_once_and_again_is_as_good_as_once() -> None:
    async with running() as server, server.client() as admin:
        token = await made(admin, "ops", "read")
        assert (await admin.ask("GET", "/self", token=str(token["token"]))).status == 200
        first = await admin.post(f"/tokens/{token['id']}:revoke")
        after = await admin.ask("GET", "/self", token=str(token["token"]))
        again = await admin.post(f"/tokens/{token['id']}:revoke")
        hidden, shown = await admin.get("/tokens"), await admin.get("/tokens?revoked=true")
        missing = await admin.ask("POST", "/tokens/nobody:revoke", {})

    assert after.code == "unauthorised"
    assert first == again
    assert first["revoked_by"].startswith("token/stage-")
    assert token["id"] not in {each["id"] for each in hidden["items"]}
    assert token["id"] in {each["id"] for each in shown["items"]}
    assert missing.code == "not_found"


async def test_a_token_ends_at_its_time_though_it_was_seen_just_before() -> None:
    async with running() as server, server.client() as admin:
        ends = datetime.now(UTC) + timedelta(seconds=0.6)
        token = await made(admin, "brief", "read", expires=ends.isoformat())
        assert (await admin.ask("GET", "/self", token=str(token["token"]))).status == 200
        await asyncio.sleep((ends - datetime.now(UTC)).total_seconds())
        after = await admin.ask("GET", "/self", token=str(token["token"]))

    assert after.code == "unauthorised"


async def refused_after(client: Client, token: str) -> float:
    """Use a token until it is refused; return how long it was not."""
    began = time.monotonic()
    while (await client.ask("GET", "/self", token=token)).status == 200:
        assert time.monotonic() < began + 10
        await asyncio.sleep(0.01)
    return time.monotonic() - began


async def revoked_elsewhere(here: Server, there: Server) -> tuple[float, int]:
    """Use a token at one server that another made, and have the other revoke it."""
    async with here.client() as near, there.client() as far:
        token = await made(far, "ops", "read")
        at_once = await near.ask("GET", "/self", token=str(token["token"]))
        await far.post(f"/tokens/{token['id']}:revoke")
        return await refused_after(near, str(token["token"])), at_once.status


async def test_a_token_made_at_one_server_is_good_at_another_and_revoked_there_is_refused_here_soon() -> None:
    async with fresh_schema() as store:
        admin = await token_in(store, "root", "admin")
        async with running(store, admin=admin) as here, running(store, admin=admin) as there:
            waited_s, at_once = await revoked_elsewhere(here, there)

    assert at_once == 200
    assert waited_s < SOON_S


async def test_a_token_revoked_in_the_ledger_itself_is_refused_soon() -> None:
    async with running() as server, server.client() as admin:
        token = await server.token("ops", "read")
        assert (await admin.ask("GET", "/self", token=token)).status == 200
        async with await tenure.open_async(server.store) as ledger:
            await revoke_token(ledger, "ops", by="by hand")
        waited_s = await refused_after(admin, token)

    assert waited_s < SOON_S


async def test_the_command_line_asks_a_server_for_the_same() -> None:
    async with running() as server, server.client() as admin:
        run = partial(asked_of, server)
        made = await run("add", "ops", "--scope", "read", "--expires", "1h")
        mine = await admin.get("/self", token=made["token"])
        again = await run("add", "ops", "--scope", "read")
        listed = await run("list")
        ended = await run("revoke", made["token"])
        hidden, shown = await run("list"), await run("list", "--revoked")
        await server.stop()
        log = server.log

    assert "/api/v1/tokens" in log
    assert mine["name"] == "ops"
    assert made["created_by"].startswith("token/stage-")
    assert again["error"]["code"] == "already_exists"
    assert {each["name"] for each in listed} >= {"ops"}
    assert ended["revoked"] is not None
    assert len(shown) == len(hidden) + 1
    assert secret_of(made["token"]) not in log


async def asked_of(server: Server, *words: str) -> Any:
    """Run ``tenure token`` with a server, and read what it answers."""
    around = {**os.environ, "TENURE_SERVER": server.url, "TENURE_TOKEN": server.admin}
    done = await asyncio.to_thread(run_forked, ["token", *words, "--json"], timeout=30, env=around)
    return json.loads(done.stdout or done.stderr)
