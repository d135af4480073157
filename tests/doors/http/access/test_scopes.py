"""Who sees what: a token for one network learns nothing of another, beyond what one space must tell."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from tenure.doors.http.openapi.openapi_examples import EXAMPLES, PATH_EXAMPLES
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.routing.endpoint import Endpoint
from tests.doors.http.plan import ANY, at, good, lay
from tests.doors.http.stage import Client, Server

pytestmark = pytest.mark.asyncio(loop_scope="module")

OF_A_NETWORK = [endpoint for endpoint in ENDPOINTS if "{network}" in endpoint.path]
OPERATIONS = [
    {"op": "allocate", "owner": "pod/a"},
    {"op": "release", "owner": "instance/web-0", "address": "192.0.2.10"},
    {"op": "allocate_run", "owners": ["pod/a"], "slots": [""]},
    {"op": "expect", "serial": 1},
    {"op": "expect_no_holdings", "range": "192.0.2.0/24"},
    {"op": "expect_holding", "owner": "instance/web-0", "address": "192.0.2.10"},
    {"op": "reserve", "range": "192.0.2.200"},
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def narrow(shared_server: Server, admin: Client) -> AsyncIterator[Client]:
    """Give a client that may allocate on the network lab, and nothing else."""
    await lay(admin)
    async with shared_server.client(await shared_server.token("narrow", "allocate:lab")) as client:
        yield client


@pytest.mark.sampled
@pytest.mark.parametrize("endpoint", OF_A_NETWORK, ids=lambda endpoint: endpoint.name)
async def test_a_network_that_is_there_is_refused_like_one_that_is_not(narrow: Client, endpoint: Endpoint) -> None:
    said = EXAMPLES[endpoint.name]
    told = []
    for network in ("net1", "net9"):
        path = at(endpoint.path, **{**PATH_EXAMPLES, **said.get("path", {}), "network": network})
        answer = await narrow.ask(endpoint.method, path, said.get("body"), headers={**ANY, "X-Request-Id": "same"})
        assert (answer.status, answer.code) == (403, "forbidden")
        told.append(answer.body.replace(network.encode(), b"it"))

    assert told[0] == told[1]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation["op"])
async def test_apply_refuses_what_is_not_his_before_it_looks(narrow: Client, operation: dict[str, object]) -> None:
    mine = {"op": "allocate", "network": "lab", "owner": "pod/mine", "address": "198.51.100.9"}
    told = []
    for network in ("net1", "net9"):
        body = {"operations": [mine, {**operation, "network": network}]}
        answer = await narrow.ask("POST", ":apply", body, headers={"X-Request-Id": "same"})
        assert (answer.status, answer.code) == (403, "forbidden")
        told.append(answer.body.replace(network.encode(), b"it"))

    assert told[0] == told[1]
    assert (await narrow.ask("GET", "/networks/lab/holdings/198.51.100.9")).status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/spaces", "/spaces/net1", "/instances", "/instances/web-0", "/papers/instance", "/papers/instance/web-0",
        "/utilisation", "/tokens",
    ],
)  # fmt: skip
async def test_what_is_about_all_networks_needs_read(narrow: Client, path: str) -> None:
    assert (await narrow.ask("GET", path)).code == "forbidden"


@pytest.mark.parametrize(
    "path",
    [
        "/changes", "/search?kind=holding", "/addresses/192.0.2.10/why", "/addresses/192.0.2.10/history",
        "/owners/instance%2Fweb-0",
    ],
)  # fmt: skip
async def test_a_network_of_others_is_refused_by_name_like_one_that_is_not_there(narrow: Client, path: str) -> None:
    told = []
    for network in ("net1", "net9"):
        where = f"{path}{'&' if '?' in path else '?'}network={network}"
        answer = await narrow.ask("GET", where, headers={"X-Request-Id": "same"})
        assert (answer.status, answer.code) == (403, "forbidden")
        told.append(answer.body.replace(network.encode(), b"it"))

    assert told[0] == told[1]


async def test_what_lies_in_all_networks_is_shown_as_far_as_it_lies_in_his_own(admin: Client, narrow: Client) -> None:
    given = {"owner": "pod/seen", "address": "198.51.100.40", "labels": {"seen": "yes"}}
    await good(narrow, "POST", "/networks/lab:allocate", given)
    await good(admin, "POST", "/networks/net1:allocate", {"owner": "pod/seen", "labels": {"seen": "yes"}})

    assert {each["name"] for each in (await narrow.get("/networks"))["items"]} == {"lab"}
    for path in ("/holdings", "/owners/pod%2Fseen", "/search?label=seen", "/claims"):
        wide, his = (await admin.get(path))["items"], (await narrow.get(path))["items"]
        assert his == [each for each in wide if each["network"] == "lab"], path
        assert his or path == "/claims"


async def test_the_log_is_shown_as_far_as_it_is_about_his_own_network(admin: Client, narrow: Client) -> None:
    number = (await narrow.get("/networks/lab/utilisation"))["number"]
    wide, his = await admin.get("/changes?limit=1000"), await narrow.get("/changes?limit=1000")

    assert his["items"] == [each for each in wide["items"] if each["network_number"] == number]
    assert his["items"]
    assert (his["last"], (await narrow.get("/changes/last"))["last"]) == (wide["last"], wide["last"])


async def test_events_are_about_his_own_network(admin: Client, narrow: Client) -> None:
    after = (await admin.get("/changes/last"))["last"]
    await good(admin, "POST", "/networks/net1:allocate", {"owner": "pod/theirs"})
    await good(admin, "POST", "/networks/lab:allocate", {"owner": "pod/his", "address": "198.51.100.50"})
    where, head = f"{narrow.url}/api/v1/events?after={after}", {"Authorization": f"Bearer {narrow.token}"}
    async with (
        asyncio.timeout(20),
        aiohttp.ClientSession() as session,
        session.get(where, headers=head) as stream,
    ):
        first = await anext(line async for line in stream.content if line.startswith(b"data: "))

    assert json.loads(first[6:])["owner"] == "pod/his"


async def test_an_address_is_explained_as_far_as_it_lies_in_his_own_network(admin: Client, narrow: Client) -> None:
    await good(narrow, "POST", "/networks/lab:allocate", {"owner": "pod/mine", "address": "198.51.100.60"})
    mine, theirs = "/addresses/198.51.100.60", "/addresses/192.0.2.10"

    assert await narrow.get(f"{mine}/why") == await admin.get(f"{mine}/why?network=lab")
    assert [each["owner"] for each in (await narrow.get(f"{mine}/history"))["tenures"]] == ["pod/mine"]
    assert (await admin.get(f"{theirs}/why"))["findings"] != []
    assert (await narrow.get(f"{theirs}/why"))["findings"] == []
    assert (await narrow.get(f"{theirs}/history"))["tenures"] == []


async def test_his_own_network_is_open_to_him(narrow: Client) -> None:
    given = await good(narrow, "POST", "/networks/lab:allocate", {"owner": "pod/own", "address": "198.51.100.20"})
    network = await good(narrow, "GET", "/networks/lab")
    await good(narrow, "POST", "/networks/lab:release", {"owner": "pod/own", "address": given.json["address"]})

    assert network.json["name"] == "lab"


async def test_networks_of_one_space_tell_who_holds_an_address(admin: Client, narrow: Client) -> None:
    await good(admin, "POST", "/networks", {"name": "lab2", "space": "site"})
    await good(admin, "POST", "/networks/lab2/subnets", {"cidr": "198.51.100.0/24"})
    await good(admin, "POST", "/networks/lab2:allocate", {"owner": "pod/theirs", "address": "198.51.100.30"})
    answer = await narrow.ask("POST", "/networks/lab:allocate", {"owner": "pod/a", "address": "198.51.100.30"})

    assert (answer.code, answer.json["data"]["holder"]) == ("address_in_use", "pod/theirs")
    assert (await narrow.ask("GET", "/networks/lab/holdings/198.51.100.30")).code == "not_found"
    assert (await narrow.ask("GET", "/networks/lab2")).code == "forbidden"
    [told] = (await narrow.get("/addresses/198.51.100.30/why"))["findings"]
    assert (told["network"], told["status"], told["owner"], told["holding"]) == ("lab", "held elsewhere", None, None)
    assert (await narrow.get("/addresses/198.51.100.30/history"))["tenures"] == []
