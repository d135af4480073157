"""Requests that two readers could read in two ways: keys that come twice, no Host, another version of HTTP."""

import pytest

from tenure.doors.http.openapi.openapi_document import written as written_document
from tests.doors.http.plan import lay
from tests.doors.http.sockets import RawAnswer, send, written
from tests.doors.http.stage import Client, Server

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALLOCATE = b"/api/v1/networks/net1:allocate"
APPLY = b"/api/v1:apply"
JSON = b"Content-Type: application/json"


async def post(server: Server, path: bytes, body: bytes) -> RawAnswer:
    """Send a body as it is."""
    bearer = f"Authorization: Bearer {server.admin}".encode()
    [answer] = await send(server.port, written("POST", path, bearer, JSON, body=body))
    return answer


async def last(admin: Client) -> int:
    """Return the number of the newest change."""
    return int((await admin.get("/changes/last"))["last"])


TWICE: dict[str, tuple[bytes, bytes, str]] = {
    "at the top": (ALLOCATE, b'{"owner": "vm/1", "owner": "vm/2"}', "owner"),
    "the same value": (ALLOCATE, b'{"owner":"vm/1","owner":"vm/1"}', "owner"),
    "written otherwise": (ALLOCATE, b'{"owner": "vm/1", "\\u006fwner": "vm/2"}', "owner"),
    "inside": (ALLOCATE, b'{"owner": "vm/1", "labels": {"team": "a", "rack": "b", "team": "c"}}', "team"),
    "in a list": (APPLY, b'{"operations":[{"op":"allocate","owner":"vm/1","network":"a","network":"b"}]}', "network"),
    "where anything may stand": (
        APPLY, b'{"operations":[{"op":"write_paper","kind":"k","name":"n","document":{"a":[{"b":1,"b":2}]}}]}', "b",
    ),
    "on another route": (b"/api/v1/networks", b'{"name": "twice", "name": "thrice"}', "name"),
}  # fmt: skip


@pytest.mark.parametrize("case", TWICE)
async def test_a_key_that_comes_twice_in_an_object_is_refused_by_name(
    shared_server: Server, admin: Client, case: str
) -> None:
    path, body, key = TWICE[case]
    await lay(admin)
    before = await last(admin)
    answer = await post(shared_server, path, body)

    assert (answer.status, answer.json["code"], answer.json["field"]) == (422, "invalid", key), answer.body
    assert answer.json["detail"] == f"{key}: said twice"
    assert await last(admin) == before


async def test_a_key_may_come_once_in_each_of_many_objects(shared_server: Server, admin: Client) -> None:
    await lay(admin)
    body = b'{"owner": "vm/1", "labels": {"owner": "a:b", "labels": "{\\"owner\\":1,\\"owner\\":2}"}}'
    answer = await post(shared_server, ALLOCATE, body)

    assert (answer.status, answer.json["labels"]["owner"]) == (200, "a:b")


@pytest.mark.parametrize("path", [b"/healthz", b"/api/v1/networks", b"/", b"/nowhere"])
async def test_http_1_1_without_host_is_refused_and_1_0_is_not(shared_server: Server, path: bytes) -> None:
    bearer = b"Authorization: Bearer " + shared_server.admin.encode() + b"\r\n\r\n"
    [without], [old], [newer] = [
        await send(shared_server.port, b"GET %b HTTP/%b\r\n%b" % (path, version, bearer))
        for version in (b"1.1", b"1.0", b"1.2")
    ]

    assert (without.status, without.json["code"], without.json["field"]) == (400, "malformed", "Host")
    assert newer.json == {**without.json, "request_id": newer.head["x-request-id"]}  # a minor version is understood
    assert old.status == (404 if path == b"/nowhere" else 200)


async def test_an_allocation_without_host_gets_nothing_on_the_short_way_either(
    shared_server: Server, admin: Client
) -> None:
    await lay(admin)
    whole = written(
        "POST", ALLOCATE, b"Authorization: Bearer " + shared_server.admin.encode(), JSON, body=b'{"owner":"vm/a"}'
    )
    good, bad = whole, whole.replace(b"Host: here\r\n", b"")
    first, second = await send(shared_server.port, good + bad, answers=2)

    assert (first.status, second.status, second.json["field"]) == (200, 400, "Host")


@pytest.mark.parametrize(
    "line",
    [b"GET /healthz HTTP/2.0", b"GET /healthz HTTP/3.0", b"GET /healthz HTTP/0.9", b"GET /healthz", b"PRI * HTTP/2.0"],
)
async def test_another_major_version_is_refused(shared_server: Server, line: bytes) -> None:
    [answer] = await send(shared_server.port, line + b"\r\nHost: here\r\n\r\nSM\r\n\r\n")

    assert (answer.status, answer.json["code"], answer.head["connection"]) == (505, "version_not_supported", "close")


async def test_the_document_says_that_a_key_that_comes_twice_is_refused() -> None:
    told = " ".join(str(written_document()["info"]["description"]).split())

    assert "A name that is there twice in one object is refused (422)." in told
