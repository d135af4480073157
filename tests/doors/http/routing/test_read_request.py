"""Bad requests: each is refused in plain words that name the field, and the ledger stays as it was."""

import json
from typing import Any

import pytest

from tests.doors.http.plan import ANY, at, good, lay, refused
from tests.doors.http.sockets import RawAnswer, send, written
from tests.doors.http.stage import Client, Server

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALLOCATE = b"/api/v1/networks/net1:allocate"
RELEASE = b"/api/v1/networks/net1:release"
APPLY = b"/api/v1:apply"
JSON = b"Content-Type: application/json"
ODD = "a:b/c d"
"""A network's name that has everything in it that means something in a path."""


async def raw(server: Server, method: str, path: bytes, *lines: bytes, body: bytes | None = None) -> RawAnswer:
    bearer = f"Authorization: Bearer {server.admin}".encode()
    [answer] = await send(server.port, written(method, path, bearer, *lines, body=body))
    return answer


async def last(admin: Client) -> int:
    return int((await admin.get("/changes/last"))["last"])


def deep(levels: int) -> bytes:
    document = b'{"a":' + b"[" * levels + b"]" * levels + b"}"
    return b'{"operations":[{"op":"write_paper","kind":"k","name":"n","document":' + document + b"}]}"


BODIES: dict[str, tuple[bytes, bytes, int, str]] = {
    "nothing at all": (ALLOCATE, b"", 422, "owner"),
    "no JSON": (ALLOCATE, b"owner=vm/a", 400, "body"),
    "cut off": (ALLOCATE, b'{"owner": "vm/a"', 400, "body"),
    "more behind it": (ALLOCATE, b'{"owner": "vm/a"}{}', 400, "body"),
    "a list": (ALLOCATE, b"[]", 422, "body"),
    "a text": (ALLOCATE, b'"vm/a"', 422, "body"),
    "null": (ALLOCATE, b"null", 422, "body"),
    "an owner that is a number": (ALLOCATE, b'{"owner": 7}', 422, "owner"),
    "an owner without a kind": (ALLOCATE, b'{"owner": "web-0"}', 422, "owner"),
    "an owner with a zero byte": (ALLOCATE, b'{"owner": "vm/a\\u0000"}', 422, "owner"),
    "a field that nobody knows": (ALLOCATE, b'{"owner": "vm/a", "adress": "192.0.2.9"}', 422, "adress"),
    "not a number": (ALLOCATE, b'{"owner": "vm/a", "wait_s": NaN}', 400, "body"),
    "an infinite number": (ALLOCATE, b'{"owner": "vm/a", "wait_s": Infinity}', 400, "body"),
    "a number that is too large": (ALLOCATE, b'{"owner": "vm/a", "pending": true, "lasts_s": 1e999}', 422, "lasts_s"),
    "a wait that never ends": (ALLOCATE, b'{"owner": "vm/a", "wait_s": 1e9}', 422, "wait_s"),
    "a generation of 23 digits": (
        RELEASE, b'{"owner": "vm/a", "address": "192.0.2.9", "generation": 99999999999999999999999}', 422, "generation",
    ),
    "a generation of 5000 digits": (
        RELEASE, b'{"owner": "vm/a", "address": "192.0.2.9", "generation": ' + b"9" * 5000 + b"}", 422, "generation",
    ),
    "a negative generation": (
        RELEASE, b'{"owner": "vm/a", "address": "192.0.2.9", "generation": -1}', 422, "generation",
    ),
    "an address that is none": (RELEASE, b'{"owner": "vm/a", "address": "192.0.2.256"}', 422, "address"),
    "an address with a length of 5000 digits": (
        ALLOCATE, b'{"owner": "vm/a", "address": "192.0.2.9/' + b"1" * 5000 + b'"}', 422, "address",
    ),
    "an address with a zone": (RELEASE, b'{"owner": "vm/a", "address": "fe80::1%eth0"}', 422, "address"),
    "half a surrogate pair": (ALLOCATE, b'{"owner": "vm/a", "labels": {"a": "\\ud800 "}}', 400, "body"),
    "what is not UTF-8": (ALLOCATE, b'{"owner": "vm/\xff"}', 400, "body"),
    "UTF-16": (ALLOCATE, '{"owner": "vm/a"}'.encode("utf-16"), 400, "body"),
    "a byte order mark": (ALLOCATE, b'\xef\xbb\xbf{"owner": "vm/a"}', 400, "body"),
    "100,000 lists in each other": (ALLOCATE, b"[" * 100_000 + b"]" * 100_000, 422, "body"),
    "a document of 100 levels": (APPLY, deep(100), 422, "document"),
    "a document of 900 levels": (APPLY, deep(900), 422, "document"),
    "a document of 5,000 levels": (APPLY, deep(5_000), 400, "body"),
    "no operations": (APPLY, b'{"operations": []}', 422, "operations"),
    "an operation that nobody knows": (APPLY, b'{"operations": [{"op": "steal"}]}', 422, "operations[0].op"),
    "an operation without a name": (APPLY, b'{"operations": [{"network": "net1"}]}', 422, "operations[0]"),
    "a paper of the server's own": (
        APPLY, b'{"operations": [{"op": "write_paper", "kind": "rest.a", "name": "x", "document": {}}]}', 422, "kind",
    ),
    "labels that are a list": (ALLOCATE, b'{"owner": "vm/a", "labels": ["team"]}', 422, "labels"),
    "a label that is a number": (ALLOCATE, b'{"owner": "vm/a", "labels": {"team": 7}}', 422, "labels[...]"),
    "a policy that nobody knows": (ALLOCATE, b'{"owner": "vm/a", "policy": "best"}', 422, "policy"),
    "a deadline of what is held": (ALLOCATE, b'{"owner": "vm/a", "lasts_s": 60}', 422, "lasts_s"),
}  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("case", BODIES)
async def test_a_wrong_body_is_refused_by_name(shared_server: Server, admin: Client, case: str) -> None:
    path, body, status, field = BODIES[case]
    await lay(admin)
    before = await last(admin)
    answer = await raw(shared_server, "POST", path, JSON, body=body)

    assert (answer.status, answer.json["field"]) == (status, field), answer.body
    assert answer.head["content-type"] == "application/problem+json"
    assert answer.json["request_id"] == answer.head["x-request-id"]
    assert await last(admin) == before


HEADS: dict[str, tuple[list[bytes], int, str]] = {
    "no content type": ([], 415, "Content-Type"),
    "text": ([b"Content-Type: text/plain"], 415, "Content-Type"),
    "a form": ([b"Content-Type: application/x-www-form-urlencoded"], 415, "Content-Type"),
    "packed": ([JSON, b"Content-Encoding: gzip"], 415, "Content-Encoding"),
    "an empty key": ([JSON, b"Idempotency-Key:"], 422, "Idempotency-Key"),
    "a long key": ([JSON, b"Idempotency-Key: " + b"k" * 192], 422, "Idempotency-Key"),
    "a key that is not UTF-8": ([JSON, b"Idempotency-Key: \xff"], 400, "Idempotency-Key"),
    "a key with a tab": ([JSON, b"Idempotency-Key: a\tb"], 422, "Idempotency-Key"),
    "two keys": ([JSON, b"Idempotency-Key: a", b"Idempotency-Key: b"], 400, "Idempotency-Key"),
    "two content types": ([JSON, b"Content-Type: text/plain"], 400, "Content-Type"),
    "two tokens": ([JSON, b"Authorization: Bearer x"], 400, "Authorization"),
}


@pytest.mark.parametrize("case", HEADS)
async def test_a_wrong_head_is_refused_by_name(shared_server: Server, admin: Client, case: str) -> None:
    lines, status, field = HEADS[case]
    before = await last(admin)
    answer = await raw(shared_server, "POST", ALLOCATE, *lines, body=b'{"owner": "vm/a"}')

    assert (answer.status, answer.json["field"]) == (status, field), answer.body
    assert await last(admin) == before


@pytest.mark.parametrize("line", [b"Content-Type: application/json; charset=utf-8", b"content-type:APPLICATION/JSON"])
async def test_json_may_be_called_json_in_several_ways(shared_server: Server, admin: Client, line: bytes) -> None:
    await lay(admin)

    assert (await raw(shared_server, "POST", ALLOCATE, line, body=b'{"owner": "vm/a"}')).status == 200


@pytest.mark.parametrize(
    "given",
    [b"a\tb", b"a b", b"x" * 65, b"", b"\xff", b"a;Set-Cookie=b", b'"><script>'],
    ids=lambda given: repr(given[:20]),
)
async def test_a_request_id_that_is_none_gets_nowhere(shared_server: Server, given: bytes) -> None:
    answer = await raw(shared_server, "GET", b"/api/v1/networks", b"X-Request-Id: " + given)

    assert answer.status == 200
    assert answer.head["x-request-id"].isalnum()
    assert answer.head["x-request-id"] != given.decode("latin-1")


async def test_a_request_id_comes_back_and_is_in_the_log(shared_server: Server, admin: Client) -> None:
    await lay(admin)
    answer = await raw(shared_server, "POST", ALLOCATE, JSON, b"X-Request-Id: deploy-42", body=b'{"owner": "vm/a"}')
    [change] = (await admin.get("/changes?limit=1000&owner=vm/a&verb=grant"))["items"][-1:]

    assert answer.head["x-request-id"] == "deploy-42"
    assert change["request_id"] == "deploy-42"


@pytest.mark.parametrize(
    "lines",
    [
        [b"Content-Length: 2", b"Transfer-Encoding: chunked"],
        [b"Content-Length: 2", b"Content-Length: 17"],
        [b"Content-Length: -1"],
        [b"Content-Length: two"],
        [b"X-Request-Id: a\rSet-Cookie: b"],
        [b" folded: header"],
    ],
    ids=str,
)
async def test_a_head_that_contradicts_itself_is_refused(
    shared_server: Server, admin: Client, lines: list[bytes]
) -> None:
    before = await last(admin)
    answer = await raw(shared_server, "POST", ALLOCATE, JSON, *lines)

    assert answer.status == 400
    assert await last(admin) == before


async def test_a_body_may_come_in_chunks(shared_server: Server, admin: Client) -> None:
    await lay(admin)
    head = written(
        "POST", ALLOCATE, f"Authorization: Bearer {shared_server.admin}".encode(), JSON, b"Transfer-Encoding: chunked"
    )
    [answer] = await send(shared_server.port, head + b'10\r\n{"owner": "vm/a"\r\n1\r\n}\r\n0\r\n\r\n')

    assert (answer.status, answer.json["owner"]) == (200, "vm/a")


async def test_requests_may_come_before_the_first_is_answered(shared_server: Server, admin: Client) -> None:
    await lay(admin)
    bearer = f"Authorization: Bearer {shared_server.admin}".encode()
    one, wrong, two = (
        written("POST", ALLOCATE, bearer, JSON, body=json.dumps({"owner": owner}).encode())
        for owner in ("vm/1", "x", "vm/2")
    )
    answers = await send(shared_server.port, one + wrong + two, answers=3)

    assert [answer.status for answer in answers] == [200, 422, 200]
    assert [answers[0].json["owner"], answers[2].json["owner"]] == ["vm/1", "vm/2"]


async def test_a_body_that_is_too_large_is_refused(shared_server: Server, admin: Client) -> None:
    before = await last(admin)
    announced = await raw(shared_server, "POST", ALLOCATE, JSON, b"Content-Length: 4194305")
    bearer = f"Authorization: Bearer {shared_server.admin}".encode()
    head = written("POST", ALLOCATE, bearer, JSON, b"Transfer-Encoding: chunked")
    [came] = await send(
        shared_server.port,
        head + b"100000\r\n" + b" " * 0x100000 + b"\r\n" + (b"100000\r\n" + b" " * 0x100000 + b"\r\n") * 4,
    )

    assert [announced.status, came.status] == [413, 413]
    assert announced.json["code"] == "too_large"
    assert await last(admin) == before


PATHS: dict[bytes, tuple[int, str]] = {
    b"/api/v1/networks/": (404, "path"),
    b"/api/v1//networks": (404, "path"),
    b"/api/v1/networks//holdings": (404, "path"),
    b"/api/v1networks": (404, "path"),
    b"/api/v1": (404, "path"),
    b"/api/v1/": (404, "path"),
    b"/api/v1/networks/../networks/net1": (404, "path"),
    b"/api/v1/networks/.": (404, "path"),
    b"/api/v1/networks/%2e%2e": (404, "network"),
    b"/api/v1/networks/%2e%2e%2fnet1": (404, "network"),
    b"/api/v1/networks/net1%2fholdings": (404, "network"),
    b"/api/v1/networks/%00": (422, "network"),
    b"/api/v1/networks/net1%0d%0aSet-Cookie:a=b": (422, "network"),
    b"/api/v1/networks/%ff": (400, "network"),
    b"/api/v1/networks/%zz": (400, "network"),
    b"/api/v1/networks/100%": (400, "network"),
    b"/api/v1/networks/" + b"a" * 300: (422, "network"),
    b"/api/v1/networks/NET1": (404, "network"),
    b"/api/v1/networks/net1:steal": (404, "network"),
    b"/api/v1/networks/net1/holdings/1.2.3": (422, "address"),
    b"/api/v1/networks/net1/holdings/::1%25eth0": (422, "address"),
    b"/api/v1/addresses/all/why": (422, "address"),
    b"/api/v1/owners/web-0": (422, "owner"),
    b"/api/v1/papers/rest.token": (422, "kind"),
    b"/api/v1/papers/rest.token/x": (422, "kind"),
    b"/nowhere": (404, "path"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:60].decode())
async def test_a_path_that_leads_nowhere_is_told(shared_server: Server, path: bytes) -> None:
    status, field = PATHS[path]
    answer = await raw(shared_server, "GET", path)

    assert (answer.status, answer.json.get("field", "path")) == (status, field), answer.body
    assert "set-cookie" not in answer.head


QUERIES = {
    "/networks?limt=3": "limt",
    "/networks?limit=3&limit=4": "limit",
    "/networks?limit=0": "limit",
    "/networks?limit=1001": "limit",
    "/networks?limit=many": "limit",
    "/networks?limit=": "limit",
    "/networks?limit": "query",
    "/networks?text=%ff": "query",
    "/networks/net1?cascade=true": "cascade",
    "/networks/net1/holdings?after=here": "after",
    "/networks/net1/holdings?state=lost": "state",
    "/networks/net1/holdings?label==x": "label",
    "/networks/net1/holdings?limit=99999999999999999999999999": "limit",
    "/holdings?after=here": "after",
    "/holdings?after=-1/": "after",
    "/holdings?after=9999999999999999999/": "after",
    "/holdings?after=1/there": "after",
    "/changes?after=-1": "after",
    "/changes?after=1e400": "after",
    "/changes?after=9999999999999999999": "after",
    "/changes?range=everything": "range",
    "/addresses/192.0.2.10/history?at=yesterday": "at",
    "/addresses/192.0.2.10/history?at=2026-01-01T00:00:00": "at",
    "/search?kind=house": "kind",
    "/search?text=%00": "text",
}


@pytest.mark.sampled
@pytest.mark.parametrize("path", QUERIES)
async def test_a_wrong_query_is_refused_by_name(admin: Client, path: str) -> None:
    await lay(admin)
    answer = await admin.ask("GET", path)

    assert answer.status in (400, 422)
    assert answer.json["field"] == QUERIES[path], answer.body


async def test_a_query_that_is_too_long_is_refused(admin: Client) -> None:
    answer = await admin.ask("GET", f"/networks?text={'a' * 8192}")

    assert (answer.status, answer.code) == (413, "too_large")


async def test_a_filter_that_says_null_looks_for_null(admin: Client) -> None:
    await lay(admin)
    await admin.post("/networks", {"name": "null"})

    assert [each["name"] for each in (await admin.get("/networks?text=null"))["items"]] == ["null"]
    assert (await admin.ask("GET", "/search?text=192.0.2.10&network=null")).json == {"items": []}


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH", "OPTIONS"])
async def test_a_method_that_a_path_does_not_take_is_told(admin: Client, method: str) -> None:
    answer = await admin.ask(method, "/networks/net1/claims", {})

    assert (answer.status, answer.code) == (405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]


@pytest.mark.parametrize(
    "data",
    [b"BREW /api/v1/networks HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET / HTTP/x.1\r\n\r\n"],
)
async def test_what_is_not_http_is_sent_away(shared_server: Server, data: bytes) -> None:
    [answer] = await send(shared_server.port, data)

    assert answer.status == 400


async def everything(admin: Client, network: str) -> list[Any]:
    """Do all that can be done in a network, by routes that have its name in their path."""
    here = at("/networks/{network}", network=network)
    await good(admin, "POST", "/networks", {"name": network})
    await good(admin, "POST", f"{here}/subnets", {"cidr": "192.0.2.0/24", "name": network})
    await good(admin, "POST", f"{here}/pools", {"range": "192.0.2.10-192.0.2.20", "name": network})
    await good(admin, "POST", f"{here}/reserved", {"range": "192.0.2.12"})
    await good(admin, "POST", f"{here}:connect", {"group": network})
    await good(admin, "POST", f"{here}/preallocations", {"owner": f"vm/{network}", "address": "192.0.2.15"})
    subnet, pool = (at(here + "/{kind}/{name}", kind=kind, name=network) for kind in ("subnets", "pools"))
    owner = at("{owner}", owner=f"vm/{network}")
    done = [
        await good(admin, "PATCH", subnet, {"dhcp": True}, headers=ANY),
        await good(admin, "PATCH", pool, {"policy": "random"}, headers=ANY),
        await good(admin, "POST", f"{here}:allocate", {"owner": f"vm/{network}"}),
        await good(admin, "GET", f"{here}/holdings/192.0.2.15"),
        await good(admin, "GET", f"/owners/{owner}"),
        await good(admin, "GET", at("/spaces/{space}", space=network)),
        await good(admin, "GET", f"/search?text=192.0.2.15&network={at('{n}', n=network)}"),
        await good(admin, "POST", f"{here}/holdings/192.0.2.15:transfer", {"owner": f"vm/{network}", "to": "vm/b"}),
        await good(admin, "POST", f"{here}:release", {"address": "192.0.2.15", "owner": "vm/b"}),
        await good(admin, "DELETE", f"{here}/preallocations/{owner}", headers=ANY),
        await good(admin, "DELETE", f"{here}/reserved/192.0.2.12", headers=ANY),
        await good(admin, "POST", f"{here}:disconnect", {"group": network}),
        await good(admin, "DELETE", pool, headers=ANY),
        await good(admin, "DELETE", subnet, headers=ANY),
        await good(admin, "DELETE", here, headers=ANY),
    ]
    return [answer.json for answer in done if answer.body]


@pytest.mark.parametrize(
    "network", [ODD, "net1:allocate", "100%", "..", "a?b#c", "größe/東京", "a+b&c=d", "null", "%2F"]
)
async def test_any_name_works_everywhere(admin: Client, network: str) -> None:
    await lay(admin)
    answers = await everything(admin, network)

    assert answers[2]["network"] == network
    assert answers[4]["items"][0]["network"] == network


async def test_a_verb_on_an_odd_name_is_not_taken_for_the_name(admin: Client) -> None:
    await lay(admin)
    await good(admin, "POST", "/networks", {"name": "net1:allocate"})
    problem = await refused(admin, 404, "not_found", "POST", "/networks/net1%3Aallocate:allocate", {"owner": "vm/a"})

    assert "of network 'net1:allocate'" in problem["detail"]
    assert (await admin.get("/networks/net1%3Aallocate"))["name"] == "net1:allocate"
    assert (await admin.ask("GET", "/networks/net1:allocate")).code == "method_not_allowed"


async def test_nothing_of_all_this_was_a_fault_of_the_server(shared_server: Server) -> None:
    assert "Traceback" not in shared_server.log
    assert " 500 " not in shared_server.log
