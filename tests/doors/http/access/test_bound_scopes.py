"""A scope on a network means that network: through every rename, and no other that comes to have its name."""

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

import tenure
from tenure.doors.http.access.bound_scopes import bind_all, with_names_now
from tenure.doors.http.access.token_store import TOKEN, TokenRequest, add_token, find_token
from tenure.kernel.errors import Invalid
from tenure.service.apply.operations import WritePaper
from tests.doors.http.plan import ANY, good
from tests.doors.http.stage import Client, Server

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = count(1)


@pytest_asyncio.fixture(loop_scope="module")
async def net(admin: Client) -> str:
    """Make a network with a pool; return its name."""
    return await make(admin, f"net-{next(_numbers)}")


async def make(admin: Client, name: str) -> str:
    await good(admin, "POST", "/networks", {"name": name})
    await good(admin, "POST", f"/networks/{name}/subnets", {"cidr": "192.0.2.0/24"})
    await good(admin, "POST", f"/networks/{name}/pools", {"range": "192.0.2.0/24"})
    return name


async def renamed(admin: Client, name: str) -> str:
    """Rename a network by its route; return the new name."""
    await good(admin, "PATCH", f"/networks/{name}", {"name": f"{name}-new"}, headers=ANY)
    return f"{name}-new"


async def applied(admin: Client, name: str) -> str:
    """Rename a network by ``:apply``; return the new name."""
    edit = {"op": "network.modify", "network": name, "name": f"{name}-new"}
    await good(admin, "POST", ":apply", {"operations": [edit]})
    return f"{name}-new"


async def allocates(client: Client, network: str) -> int:
    """Ask for an address of a network; return the status of the answer."""
    return (await client.ask("POST", f"/networks/{network}:allocate", {"owner": f"vm/{next(_numbers)}"})).status


async def rename_in_store(server: Server, name: str) -> str:
    """Rename a network without the server's knowledge; return the new name."""
    async with await tenure.open_async(server.store) as ledger:
        await ledger.modify_network(name, name=f"{name}-new")
    return f"{name}-new"


@pytest_asyncio.fixture(loop_scope="module")
async def narrow(shared_server: Server, net: str) -> AsyncIterator[Client]:
    """Give a client that may allocate on the network."""
    async with shared_server.client(await shared_server.token(f"for-{net}", f"allocate:{net}")) as client:
        assert await allocates(client, net) == 200  # from here on the server knows the token by heart
        yield client


@pytest.mark.parametrize("rename", [renamed, applied], ids=["by its route", "by apply"])
async def test_a_token_goes_with_its_network_through_a_rename(
    admin: Client, narrow: Client, net: str, rename: Callable[[Client, str], Any]
) -> None:
    new = await rename(admin, net)

    assert (await allocates(narrow, new), await allocates(narrow, net)) == (200, 403)
    assert (await narrow.get("/self"))["networks"] == [new]


async def test_a_token_does_not_open_a_new_network_under_the_old_name(admin: Client, narrow: Client, net: str) -> None:
    new = await renamed(admin, net)
    await make(admin, net)

    assert (await allocates(narrow, net), await allocates(narrow, new)) == (403, 200)
    assert (await narrow.ask("GET", f"/networks/{net}")).status == 403


async def test_a_token_does_not_open_the_successor_of_a_network_that_was_removed(
    admin: Client, narrow: Client, net: str
) -> None:
    await good(admin, "DELETE", f"/networks/{net}?cascade=true", headers=ANY)
    await make(admin, net)

    assert await allocates(narrow, net) == 403
    assert (await admin.get(f"/tokens/for-{net}"))["scopes"] == [f"allocate:{net} (removed)"]


async def test_a_server_that_did_not_rename_the_network_knows_within_two_seconds(
    shared_server: Server, admin: Client, narrow: Client, net: str
) -> None:
    new = await rename_in_store(shared_server, net)
    await asyncio.sleep(2)

    assert (await allocates(narrow, new), await allocates(narrow, net)) == (200, 403)


async def test_a_login_goes_with_the_network_of_its_token(
    shared_server: Server, admin: Client, narrow: Client, net: str
) -> None:
    given = await narrow.ask("POST", "/login", {"token": narrow.token})
    cookie = {"Cookie": f"tenure={given.cookies['tenure'].value}"}
    new = await renamed(admin, net)

    async with shared_server.client("") as page:
        assert (await page.ask("GET", f"/networks/{new}", headers=cookie)).status == 200
        assert (await page.ask("GET", f"/networks/{net}", headers=cookie)).status == 403


async def test_a_scope_for_a_network_that_does_not_exist_is_refused_and_makes_nothing(admin: Client) -> None:
    before = (await admin.get("/changes/last"))["last"]

    answer = await admin.ask("POST", "/tokens", {"name": "lost", "scopes": ["read", "allocate:nowhere"]})

    assert (answer.status, answer.json["field"]) == (422, "scopes")
    assert "there is no network 'nowhere'" in answer.json["detail"]
    assert (await admin.get("/changes/last"))["last"] == before


async def test_a_scope_may_wait_for_its_network_if_that_is_asked_for(shared_server: Server, admin: Client) -> None:
    asked = {"name": "early", "scopes": ["allocate:later"], "allow_missing": True}
    made = (await good(admin, "POST", "/tokens", asked)).json
    assert made["scopes"] == ["allocate:later (no such network yet)"]

    async with shared_server.client(made["token"]) as early:
        assert await allocates(early, "later") == 403
        await make(admin, "later")
        assert await allocates(early, "later") == 200
        new = await renamed(admin, "later")
        await make(admin, "later")
        assert (await allocates(early, new), await allocates(early, "later")) == (200, 403)
    assert (await admin.get("/tokens/early"))["scopes"] == ["allocate:later-new"]


async def test_the_list_of_tokens_names_networks_as_they_are_called_now(
    admin: Client, narrow: Client, net: str
) -> None:
    new = await renamed(admin, net)

    listed = {each["name"]: each["scopes"] for each in (await admin.get("/tokens"))["items"]}

    assert listed[f"for-{net}"] == [f"allocate:{new}"]


async def forget_binding(ledger: tenure.AsyncLedger, name: str) -> None:
    """Write a token as it was kept before scopes were bound."""
    token = await find_token(ledger, name)
    paper = await ledger.paper(TOKEN, token.id)
    old = {field: value for field, value in paper.document.items() if field != "networks"}
    await ledger.apply([WritePaper(kind=TOKEN, name=token.id, document=old, revision=paper.revision)])


async def test_a_token_from_before_scopes_were_bound_is_bound_when_it_is_used(
    shared_server: Server, admin: Client, net: str
) -> None:
    text = await shared_server.token("old", f"allocate:{net}")
    async with await tenure.open_async(shared_server.store) as ledger:
        await forget_binding(ledger, "old")

    async with shared_server.client(text) as old:
        assert await allocates(old, net) == 200
        new = await renamed(admin, net)
        await make(admin, net)
        assert (await allocates(old, new), await allocates(old, net)) == (200, 403)


async def test_tokens_from_before_are_bound_when_a_server_starts() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await ledger.add_network("net1")
        await add_token(ledger, TokenRequest("old", ["allocate:net1", "read"]), by="tests")
        await forget_binding(ledger, "old")

        await bind_all(ledger)
        await bind_all(ledger)
        await ledger.modify_network("net1", name="renamed")
        await ledger.add_network("net1")

        [shown] = await with_names_now(ledger, [await find_token(ledger, "old")])
        assert (shown.scopes, shown.revision) == (("allocate:renamed", "read"), 3)


async def test_the_library_refuses_a_network_that_is_not_there_too() -> None:
    async with await tenure.open_async("memory:") as ledger:
        with pytest.raises(Invalid) as refused:
            await add_token(ledger, TokenRequest("lost", ["allocate:nowhere"]), by="tests")

    assert refused.value.field == "scopes"
