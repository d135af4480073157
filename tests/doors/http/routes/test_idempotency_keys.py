"""Idempotency keys over HTTP: the answer is kept with the effect, and the same request gets it again."""

import asyncio
import json
from typing import Any

import pytest

from tenure.doors.http.openapi.openapi_document import document
from tenure.doors.http.openapi.openapi_examples import EXAMPLES, PATH_EXAMPLES
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.routing.endpoint import API
from tests.doors.http.plan import at, good, lay, lay_for, refused
from tests.doors.http.stage import Client, Server

pytestmark = pytest.mark.asyncio(loop_scope="module")

POSTS = {endpoint.name: endpoint for endpoint in ENDPOINTS if endpoint.method == "POST"}
DEPLOYMENTS = {name for name, endpoint in POSTS.items() if endpoint.section == "deployments"}
TELL_WHAT_IS_SO_NOW = {
    *DEPLOYMENTS, "archive_changes", "login", "logout", "rehearse", "revoke_token", "sweep", "trim_changes", "verify",
    "withdraw",
}  # fmt: skip
"""Routes that may be repeated as they are: the effect is the same, the answer tells what is so now."""

TELLS_A_SECRET_ONCE = {"add_token"}
KEPT = sorted(set(POSTS) - TELL_WHAT_IS_SO_NOW - TELLS_A_SECRET_ONCE)


def key(name: str) -> dict[str, str]:
    return {"Idempotency-Key": name}


def asked(name: str) -> tuple[str, Any]:
    said = EXAMPLES[name]
    return at(POSTS[name].path, **{**PATH_EXAMPLES, **said.get("path", {})}), said["body"]


@pytest.mark.sampled
@pytest.mark.parametrize("name", KEPT)
async def test_the_same_request_under_a_key_is_answered_the_same_and_done_once(admin: Client, name: str) -> None:
    await lay(admin)
    path, body = asked(name)
    first = await good(admin, "POST", path, body, headers=key(f"once-{name}"))
    done = await admin.get("/changes/last")
    again = await good(admin, "POST", path, body, headers=key(f"once-{name}"))

    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers.get("ETag") == first.headers.get("ETag")
    assert again.headers["X-Request-Id"] != first.headers["X-Request-Id"]
    assert await admin.get("/changes/last") == done


async def test_the_document_tells_which_routes_take_a_key() -> None:
    paths = json.loads(document())["paths"]
    ref = {"$ref": "#/components/parameters/idempotency_key"}
    taking = {name for name, each in POSTS.items() if ref in paths[API + each.path]["post"]["parameters"]}

    assert taking == set(POSTS) - TELL_WHAT_IS_SO_NOW


@pytest.mark.sampled
@pytest.mark.parametrize("name", sorted(TELL_WHAT_IS_SO_NOW - {"login", "revoke_token"}))
async def test_what_tells_what_is_so_now_may_be_repeated(admin: Client, name: str) -> None:
    await lay_for(admin, POSTS[name])
    path = at(POSTS[name].path, **{**PATH_EXAMPLES, **EXAMPLES[name].get("path", {})})
    for _ in range(2):
        await good(admin, "POST", path, EXAMPLES[name].get("body"), headers=key(f"now-{name}"))


@pytest.mark.sampled
@pytest.mark.parametrize("name", [name for name in KEPT if name not in ("allocate_many", "release_many")])
async def test_another_request_under_a_key_is_refused(admin: Client, name: str) -> None:
    await lay(admin)
    path, body = asked(name)
    await good(admin, "POST", path, body, headers=key(f"other-{name}"))
    other = {"owner": "pod/z"} if name != "allocate" else {"owner": "pod/y"}
    problem = await refused(
        admin, 422, "key_reused", "POST", "/networks/net1:allocate", other, headers=key(f"other-{name}")
    )

    assert problem["data"]["key"] == f"other-{name}"
    assert problem["detail"].startswith(f"key 'other-{name}'")


async def test_a_key_outlives_the_release_of_what_it_was_given(admin: Client) -> None:
    await lay(admin)
    given = await good(admin, "POST", "/networks/net1:allocate", {"owner": "pod/a"}, headers=key("outlives"))
    await good(admin, "POST", "/networks/net1:release", {"owner": "pod/a", "address": given.json["address"]})
    again = await good(admin, "POST", "/networks/net1:allocate", {"owner": "pod/a"}, headers=key("outlives"))

    assert again.body == given.body
    assert (await admin.get("/owners/pod%2Fa"))["items"] == []


async def test_what_failed_under_a_key_may_be_tried_again_under_it(admin: Client) -> None:
    await lay(admin)
    wish = {"owner": "pod/a", "address": "192.0.2.10"}
    await refused(admin, 409, "address_in_use", "POST", "/networks/net1:allocate", wish, headers=key("later"))
    await good(admin, "POST", "/networks/net1:release", {"owner": "instance/web-0", "address": "192.0.2.10"})
    given = await good(admin, "POST", "/networks/net1:allocate", wish, headers=key("later"))

    assert given.json["address"] == "192.0.2.10"


async def test_keys_of_one_token_are_unknown_to_another(shared_server: Server, admin: Client) -> None:
    await lay(admin)
    token = await shared_server.token("keys-of-another", "allocate:net1")
    async with shared_server.client(token) as other:
        first = await good(admin, "POST", "/networks/net1:allocate", {"owner": "pod/a"}, headers=key("shared"))
        second = await good(other, "POST", "/networks/net1:allocate", {"owner": "pod/b"}, headers=key("shared"))
        inner = {"op": "allocate", "network": "net1", "owner": "pod/c", "key": "shared"}
        third = await good(other, "POST", ":apply", {"operations": [{**inner, "key": "shared-2"}]})
        fourth = await good(admin, "POST", ":apply", {"operations": [{**inner, "owner": "pod/d", "key": "shared-2"}]})

    addresses = [first.json["address"], second.json["address"]]
    addresses += [answer.json["items"][0]["holding"]["address"] for answer in (third, fourth)]
    assert len(set(addresses)) == 4


async def test_ten_of_the_same_request_at_once_are_done_once(admin: Client) -> None:
    await lay(admin)
    asks = [
        good(admin, "POST", "/networks/net1:allocate", {"owner": "pod/a", "slot": "x"}, headers=key("ten"))
        for _ in range(10)
    ]
    bodies = {answer.body for answer in await asyncio.gather(*asks)}
    adds = [good(admin, "POST", "/networks", {"name": "ten"}, headers=key("ten-networks")) for _ in range(10)]
    networks = {answer.body for answer in await asyncio.gather(*adds)}

    assert len(bodies) == 1
    assert len(networks) == 1


async def test_each_of_many_wishes_has_a_key_of_its_own(admin: Client) -> None:
    await lay(admin)
    wishes = [{"owner": "pod/a"}, {"owner": "pod/b", "address": "192.0.2.10"}, {"owner": "pod/c"}]
    body = {"wishes": wishes, "all_or_none": False}
    first = await good(admin, "POST", "/networks/net1:allocate_many", body, headers=key("each"))
    await good(admin, "POST", "/owners/pod%2Fa:release", {})
    again = await good(admin, "POST", "/networks/net1:allocate_many", body, headers=key("each"))
    body["wishes"] = [{"owner": "pod/z"}, *wishes[1:]]
    other = await good(admin, "POST", "/networks/net1:allocate_many", body, headers=key("each"))

    assert again.json == first.json
    assert [each.get("problem", {}).get("code") for each in first.json["items"]] == [None, "address_in_use", None]
    assert other.json["items"][0]["problem"]["code"] == "key_reused"
    assert other.json["items"][0]["problem"]["data"]["key"] == "each/0"
    assert other.json["items"][2] == first.json["items"][2]


async def test_a_token_that_was_made_under_a_key_is_not_told_again(admin: Client) -> None:
    body = {"name": "made-once", "scopes": ["read"]}
    first = await good(admin, "POST", "/tokens", body, headers=key("token"))
    again = await good(admin, "POST", "/tokens", body, headers=key("token"))

    assert first.json["token"].startswith("tnr_")
    assert again.json == {**first.json, "token": None}


async def test_an_owner_that_holds_its_address_is_answered_with_warnings_the_same_each_time(admin: Client) -> None:
    await lay(admin)
    path, first = "/networks/net1:allocate", {"owner": "pod/words", "labels": {"team": "shop"}}
    given = await good(admin, "POST", path, first)
    other = {"owner": "pod/words", "labels": {"team": "lab"}}
    warned = await good(admin, "POST", path, other, headers=key("words"))
    edit = {"owner": "pod/words", "add_labels": {"team": "lab"}}
    await good(admin, "POST", f"/networks/net1/holdings/{given.json['address']}:modify", edit)
    again = await good(admin, "POST", path, other, headers=key("words"))

    assert "warnings" not in given.json
    [warning] = warned.json["warnings"]
    assert "unchanged: labels" in warning
    assert warned.json["labels"] == {"team": "shop"}
    assert again.body == warned.body
    assert "warnings" not in (await good(admin, "POST", path, other)).json
