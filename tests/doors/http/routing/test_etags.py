"""ETags: a change rests on a reading, made sure of inside the transaction; an old reading is told."""

import asyncio

import pytest

from tenure.doors.http.openapi.openapi_examples import EXAMPLES, PATH_EXAMPLES
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.routing.endpoint import Endpoint, Rests
from tests.doors.http.plan import at, good, lay, refused
from tests.doors.http.stage import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

NET1, WEB0 = "/networks/net1", "/networks/net1/holdings/192.0.2.10"
TOLD = [endpoint for endpoint in ENDPOINTS if endpoint.rests is Rests.TELLS and endpoint.method == "GET"]
NEEDED = [endpoint for endpoint in ENDPOINTS if endpoint.rests is Rests.NEEDS]


async def etag(admin: Client, path: str) -> str:
    return (await good(admin, "GET", path)).headers["ETag"]


def where(endpoint: Endpoint) -> str:
    return at(endpoint.path, **{**PATH_EXAMPLES, **EXAMPLES[endpoint.name].get("path", {})})


@pytest.mark.parametrize("endpoint", TOLD, ids=lambda endpoint: endpoint.name)
async def test_what_can_be_edited_is_read_with_an_etag(admin: Client, endpoint: Endpoint) -> None:
    await lay(admin)
    path = where(endpoint)
    first = await good(admin, "GET", path)
    known = await admin.ask("GET", path, headers={"If-None-Match": f'"other", W/{first.headers["ETag"]}'})
    other = await admin.ask("GET", path, headers={"If-None-Match": '"other"'})

    assert (known.status, known.body, known.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert (other.status, other.body) == (200, first.body)


@pytest.mark.parametrize("endpoint", NEEDED, ids=lambda endpoint: endpoint.name)
async def test_a_change_says_which_reading_it_rests_on(admin: Client, endpoint: Endpoint) -> None:
    await lay(admin)
    body = EXAMPLES[endpoint.name].get("body")
    path = where(endpoint)
    whole = path if "/holdings/" in path else "/".join(path.split("/")[:3])
    old = await etag(admin, whole)
    await good(admin, "PATCH", whole, {"description": "changed"}, headers={"If-Match": old})
    for wrong in (old, '"garbage"', '"1.2.3"', "W/", '"99999999999999999999.1"', '"é.1"', '"."'):
        await refused(admin, 412, "precondition_failed", endpoint.method, path, body, headers={"If-Match": wrong})
    await refused(admin, 428, "precondition_required", endpoint.method, path, body)
    await refused(admin, 400, "malformed", endpoint.method, path, body, headers={"If-Match": " "})
    cascade = "?cascade=true" if endpoint.name in ("remove_network", "remove_subnet") else ""
    new = await etag(admin, whole)

    await good(admin, endpoint.method, path + cascade, body, headers={"If-Match": new})


async def test_an_edit_answers_with_the_etag_of_what_it_made(admin: Client) -> None:
    await lay(admin)
    edited = await good(admin, "PATCH", NET1, {"tags": ["a"]}, headers={"If-Match": await etag(admin, NET1)})
    again = await good(admin, "PATCH", NET1, {"tags": ["b"]}, headers={"If-Match": edited.headers["ETag"]})
    added = await good(
        admin, "POST", f"{NET1}/pools", {"range": "192.0.2.150"}, headers={"If-Match": again.headers["ETag"]}
    )

    assert added.headers["ETag"] == await etag(admin, NET1)
    assert added.headers["ETag"] == await etag(admin, f"{NET1}/pools/pool1")


async def test_an_addition_may_rest_on_a_reading(admin: Client) -> None:
    await lay(admin)
    old = await etag(admin, NET1)
    await good(admin, "POST", f"{NET1}/reserved", {"range": "192.0.2.200"}, headers={"If-Match": old})

    await refused(
        admin,
        412,
        "precondition_failed",
        "POST",
        f"{NET1}/reserved",
        {"range": "192.0.2.201"},
        headers={"If-Match": old},
    )


@pytest.mark.parametrize("path", [NET1, WEB0], ids=["network", "holding"])
async def test_of_many_editors_who_read_the_same_one_succeeds(admin: Client, path: str) -> None:
    await lay(admin)
    for _ in range(5):
        read = {"If-Match": await etag(admin, path)}
        asks = [admin.ask("PATCH", path, {"description": f"{read} {number}"}, headers=read) for number in range(4)]
        statuses = sorted(answer.status for answer in await asyncio.gather(*asks))

        assert statuses == [200, 412, 412, 412]


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        (":modify", {"owner": "instance/web-0", "carrier": "vm-1"}),
        (":modify", {"owner": "instance/web-0", "state": "draining"}),
        (":transfer", {"owner": "instance/web-0", "to": "instance/web-9"}),
    ],
    ids=["words", "state", "owner"],
)
async def test_whatever_changes_on_a_holding_changes_its_etag(admin: Client, verb: str, body: object) -> None:
    await lay(admin)
    old = await etag(admin, WEB0)
    await good(admin, "POST", WEB0 + verb, body)

    assert await etag(admin, WEB0) != old
    await refused(admin, 412, "precondition_failed", "PATCH", WEB0, {"plan": "p"}, headers={"If-Match": old})


async def test_a_holding_that_was_granted_anew_has_another_etag(admin: Client) -> None:
    await lay(admin)
    old = await etag(admin, WEB0)
    await good(admin, "POST", f"{NET1}:release", {"owner": "instance/web-0", "address": "192.0.2.10"})
    missing = await refused(admin, 404, "not_found", "PATCH", WEB0, {"plan": "p"}, headers={"If-Match": old})
    await good(admin, "POST", f"{NET1}:allocate", {"owner": "instance/web-0", "address": "192.0.2.10"})

    assert missing["field"] == "address"
    await refused(admin, 412, "precondition_failed", "PATCH", WEB0, {"plan": "p"}, headers={"If-Match": old})


async def test_a_network_of_the_same_name_is_another_network(admin: Client) -> None:
    await lay(admin)
    old = await etag(admin, "/networks/lab")
    await lay(admin)

    await refused(admin, 412, "precondition_failed", "PATCH", "/networks/lab", {"tags": []}, headers={"If-Match": old})
