"""The OpenAPI document: valid, complete, the same in the repository and on the server, and true."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from referencing import Registry
from referencing.jsonschema import DRAFT202012

import tenure
from tenure.doors.http.openapi.openapi_document import document
from tenure.doors.http.openapi.openapi_examples import EXAMPLES, PATH_EXAMPLES, SHAPES
from tenure.doors.http.openapi.openapi_problems import HEAD_TOO_LARGE, REASONS, codes_of
from tenure.doors.http.routes.route_table import ENDPOINTS, SECTIONS
from tenure.doors.http.routing.endpoint import API, Endpoint, Rests
from tenure.doors.http.routing.principal import Need
from tenure.wire.problems import CODES, STATUS, TITLES
from tenure.wire.request_bodies import OPERATION_BODIES, word_of
from tests.doors.http.plan import ANY, at, lay_for
from tests.doors.http.stage import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHECKED_IN = Path(__file__).parents[4] / "docs" / "reference" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(document())
NEEDS_A_TRUE_TOKEN = {"login"}
STREAMS = {"follow_changes"}

VERBS = {
    "add_network": "add_network",
    "add_pool": "add_pool",
    "add_subnet": "add_subnet",
    "allocate": "allocate",
    "allocate_many": "allocate_many",
    "apply": "apply",
    "archive_changes": "archive_changes",
    "cancel": "cancel",
    "changes": "list_changes",
    "claim": "claim",
    "confirm": "confirm",
    "history": "history",
    "hold": "allocate",
    "holding": "get_holding",
    "holdings": "list_holdings",
    "holdings_of": "get_owner",
    "last_change": "last_change",
    "modify_holding": "modify_holding",
    "modify_network": "modify_network",
    "modify_pool": "modify_pool",
    "modify_subnet": "modify_subnet",
    "network": "get_network",
    "networks": "list_networks",
    "paper": "get_paper",
    "papers": "list_papers",
    "preallocate": "preallocate",
    "rehearse": "rehearse",
    "release": "release",
    "release_owner": "release_owner",
    "remove_network": "remove_network",
    "remove_pool": "remove_pool",
    "remove_preallocation": "remove_preallocation",
    "remove_subnet": "remove_subnet",
    "reserve": "reserve",
    "retire_network": "modify_network",
    "retire_pool": "modify_pool",
    "retire_subnet": "modify_subnet",
    "search": "search",
    "spaces": "list_spaces",
    "sweep": "sweep",
    "tail": "follow_changes",
    "transfer": "transfer",
    "trim_changes": "trim_changes",
    "unreserve": "unreserve",
    "verify": "verify",
    "waiting": "list_claims",
    "why": "why",
    "withdraw": "withdraw",
}
"""Which route does what a verb of the library does."""

NOT_OVER_A_WIRE = {"asked_by", "close", "inside"}
"""Verbs that are about the caller's own process: who asks, the end, his open transaction."""


def told(endpoint: Endpoint) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][API + endpoint.path][endpoint.method.lower()]
    return found


def looked_up(thing: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference inside the document."""
    found: Any = thing
    if "$ref" in thing:
        found = DOCUMENT
        for step in thing["$ref"].removeprefix("#/").split("/"):
            found = found[step]
    assert isinstance(found, dict)
    return found


def checker(schema: dict[str, Any]) -> Draft202012Validator:
    """Make a validator of a schema of the document."""
    registry: Registry[Any] = Registry().with_resource("urn:api", DRAFT202012.create_resource(DOCUMENT))
    bound = json.loads(json.dumps(schema).replace('"#/', '"urn:api#/'))
    return Draft202012Validator(bound, registry=registry)


async def test_the_document_is_valid_openapi() -> None:
    validate(DOCUMENT)

    assert DOCUMENT["openapi"].startswith("3.1")


async def test_the_document_checked_in_is_the_one_the_routes_make() -> None:
    assert CHECKED_IN.read_bytes() == document(), "run tools/make_openapi.py"


async def test_the_document_served_is_the_one_checked_in(admin: Client) -> None:
    served = await admin.ask("GET", "/openapi.json", below="", token="")

    assert served.status == 200
    assert served.headers["content-type"] == "application/json"
    assert served.body == CHECKED_IN.read_bytes()


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
async def test_every_route_is_told_whole(endpoint: Endpoint) -> None:
    route = told(endpoint)
    parameters = [looked_up(each) for each in route["parameters"]]
    named = {(each["in"], each["name"]) for each in parameters}

    assert route["operationId"] == endpoint.name
    assert route["tags"] == [endpoint.section]
    assert route["summary"]
    assert {name for where, name in named if where == "path"} == set(re.findall(r"\{(\w+)\}", endpoint.path))
    assert {name for where, name in named if where == "query"} == set(
        () if endpoint.query is None else endpoint.query.__struct_fields__
    )
    assert not [each["name"] for each in parameters if each["in"] == "query" and each.get("required")]
    assert endpoint.query is None or endpoint.query()
    assert (("header", "Idempotency-Key") in named) == (endpoint.method == "POST" and endpoint.keyed)
    assert ("header", "X-Request-Id") in named
    assert ("requestBody" in route) == (endpoint.body is not None)
    assert (route.get("security") == []) == (endpoint.need is Need.PUBLIC)
    assert ("428" in route["responses"]) == (endpoint.rests is Rests.NEEDS)
    assert {"401", "403", "422", "500", "503"} <= set(route["responses"])


async def test_every_route_has_its_own_name_and_an_example() -> None:
    names = [endpoint.name for endpoint in ENDPOINTS]

    assert len(set(names)) == len(names)
    assert set(EXAMPLES) == set(names)
    assert {section.name for section in SECTIONS} == {tag["name"] for tag in DOCUMENT["tags"]}


async def test_every_code_and_every_status_is_told_once() -> None:
    codes = [code for status in REASONS for code in codes_of(status) if status != HEAD_TOO_LARGE]

    assert codes_of(HEAD_TOO_LARGE) == ["too_large"]  # which for a body is 413
    assert len(set(codes)) == len(codes)
    assert set(codes) == set(CODES) - {"error", "method_not_allowed"}
    assert set(STATUS.values()) - {405} <= set(REASONS)
    assert set(codes) <= set(TITLES)


async def test_lists_and_pages_have_plain_names() -> None:
    names = set(DOCUMENT["components"]["schemas"])

    assert {"HoldingPage", "NetworkPage", "SubnetList", "Holding", "Problem", "OwnerText"} <= names
    assert all(name.isalnum() for name in names)
    assert all(schema.get("title", name) == name for name, schema in DOCUMENT["components"]["schemas"].items())


@pytest.mark.parametrize("name", sorted(SHAPES))
async def test_every_example_of_an_answer_is_whole(name: str) -> None:
    schema = DOCUMENT["components"]["schemas"][name]

    checker(schema).validate(SHAPES[name])
    assert set(SHAPES[name]) == set(schema["properties"])


@pytest.mark.parametrize("name", sorted(EXAMPLES))
async def test_every_example_is_as_its_schema_says(name: str) -> None:
    [endpoint] = [each for each in ENDPOINTS if each.name == name]
    route = told(endpoint)
    said = EXAMPLES[name]

    if endpoint.body is not None:
        media = route["requestBody"]["content"]["application/json"]
        checker(media["schema"]).validate(media["example"])
        msgspec.convert(media["example"], endpoint.body)
    for parameter in (looked_up(each) for each in route["parameters"]):
        value = said.get("query", {}).get(parameter["name"], parameter.get("example"))
        if value is not None:
            checker(parameter["schema"]).validate(value)


@pytest.mark.sampled
@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - NEEDS_A_TRUE_TOKEN - STREAMS))
async def test_every_example_is_true(admin: Client, name: str) -> None:
    [endpoint] = [each for each in ENDPOINTS if each.name == name]
    await lay_for(admin, endpoint)
    said = EXAMPLES[name]
    if "{token}" in endpoint.path:
        await admin.ask("POST", "/tokens", {"name": "ops", "scopes": ["read"]})
    query = urlencode({key: json.dumps(value).strip('"') for key, value in said.get("query", {}).items()})
    path = at(endpoint.path, **{**PATH_EXAMPLES, **said.get("path", {})}) + (query and f"?{query}")
    headers = ANY if endpoint.rests is Rests.NEEDS else {}
    answer = await admin.ask(endpoint.method, path, said.get("body"), headers=headers)

    good = told(endpoint)["responses"][str(answer.status)]
    assert answer.status < 300, answer.body
    if answer.body:
        checker(good["content"]["application/json"]["schema"]).validate(answer.json)


async def test_everything_the_library_can_do_is_there() -> None:
    verbs = {name for name in dir(tenure.AsyncLedger) if not name.startswith("_")}

    assert verbs - NOT_OVER_A_WIRE == set(VERBS)
    assert set(VERBS.values()) <= {endpoint.name for endpoint in ENDPOINTS}


async def test_everything_that_apply_takes_is_told() -> None:
    operations = DOCUMENT["components"]["schemas"]["Operations"]["properties"]["operations"]["items"]
    words = {looked_up(each)["properties"]["op"]["enum"][0] for each in operations["anyOf"]}

    assert words == {word_of(kind) for kind in OPERATION_BODIES}
    assert set(operations["discriminator"]["mapping"]) == words
