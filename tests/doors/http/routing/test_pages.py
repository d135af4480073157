"""Lists over HTTP: pages, cursors that hold while things come and go, filters."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.doors.http.plan import clear, good, lay
from tests.doors.http.stage import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANY = 3000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crowd(admin: Client) -> AsyncIterator[Client]:
    """Give a plan of three networks: a crowded one, one that hands out prefixes, and an empty one."""
    await clear(admin)
    await admin.post("/networks", {"name": "wide", "tags": ["big"]})
    await admin.post("/networks/wide/subnets", {"cidr": "10.0.0.0/16"})
    await admin.post("/networks/wide/pools", {"range": "10.0.0.0/16", "policy": "random"})
    await admin.post("/networks", {"name": "prefixes", "description": "Of the Big ones"})
    await admin.post("/networks/prefixes/subnets", {"cidr": "2001:db8::/32", "unit": 64})
    await admin.post("/networks/prefixes/pools", {"range": "2001:db8::/40"})
    await admin.post("/networks", {"name": "empty"})
    wishes = [
        {"owner": f"{('vm', 'pod')[number % 2]}/{number}", "labels": {"team": f"t{number % 10}"}}
        for number in range(MANY)
    ]
    await admin.post("/networks/wide:allocate_many", {"wishes": wishes})
    await admin.post("/networks/prefixes:allocate_many", {"wishes": [{"owner": f"vm/{number}"} for number in range(7)]})
    yield admin
    await clear(admin)


@pytest.mark.parametrize("limit", [1000, 2])
async def test_an_owners_holdings_in_a_network_come_in_pages_and_with_filters(crowd: Client, limit: int) -> None:
    wishes = [{"owner": "host/1", "slot": f"nic{9 - number}", "labels": {"n": str(number % 2)}} for number in range(5)]
    await crowd.post("/networks/wide:allocate_many", {"wishes": wishes})
    await crowd.post("/networks/prefixes:allocate", {"owner": "host/1"})
    path = f"/networks/wide/holdings?limit={limit}&owner=host%2F1"
    found, some = await read(crowd, path), await read(crowd, f"{path}&label=n%3D1")
    await crowd.post("/owners/host%2F1:release", {})
    places = [tuple(map(int, each["address"].split("."))) for each in found]

    assert {(each["owner"], each["network"]) for each in found} == {("host/1", "wide")}
    assert (len(places), places) == (5, sorted(places))
    assert len(some) == 2
    assert await read(crowd, path) == []


async def walk(client: Client, path: str) -> AsyncIterator[list[dict[str, Any]]]:
    """Read a list page by page."""
    after = ""
    while True:
        page = await client.get(f"{path}{'&' if '?' in path else '?'}{after}")
        yield page["items"]
        if page["next"] is None:
            return
        after = f"after={page['next']}"


async def read(client: Client, path: str) -> list[dict[str, Any]]:
    return [item async for page in walk(client, path) for item in page]


@pytest.mark.parametrize("limit", [1000, 999, 37])
async def test_pages_hold_every_holding_once_in_order(crowd: Client, limit: int) -> None:
    found = await read(crowd, f"/networks/wide/holdings?limit={limit}")
    places = [tuple(map(int, each["address"].split("."))) for each in found]

    assert len(found) == MANY
    assert places == sorted(set(places))


@pytest.mark.parametrize("limit", [1, 2, 7, 100])
async def test_pages_of_prefixes_go_on_behind_the_whole_prefix(crowd: Client, limit: int) -> None:
    found = await read(crowd, f"/networks/prefixes/holdings?limit={limit}")

    assert [each["owner"] for each in found] == [f"vm/{number}" for number in range(7)]


async def test_the_holdings_of_all_networks_come_network_by_network(crowd: Client) -> None:
    pages = [page async for page in walk(crowd, "/holdings?limit=1000")]
    found = [each for page in pages for each in page]
    numbers = [each["network_number"] for each in found]

    assert len({(each["network"], each["address"]) for each in found}) == len(found) == MANY + 7
    assert numbers == sorted(numbers)
    assert [len(page) for page in pages] == [1000, 1000, 1000, 7]


async def test_what_stays_is_read_once_while_others_come_and_go(crowd: Client) -> None:
    stop = asyncio.Event()

    async def churn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            given = await crowd.post("/networks/wide:allocate", {"owner": f"guest/{number}"})
            await crowd.post("/networks/wide:release", {"owner": f"guest/{number}", "address": given["address"]})

    churning = [asyncio.create_task(churn()) for _ in range(3)]
    found = await read(crowd, "/networks/wide/holdings?limit=50")
    stop.set()
    await asyncio.gather(*churning)
    staying = [each["owner"] for each in found if not each["owner"].startswith("guest/")]

    assert len(staying) == len(set(staying)) == MANY


async def test_a_cursor_holds_when_what_it_names_is_gone(crowd: Client) -> None:
    await crowd.post("/networks/prefixes:allocate_many", {"wishes": [{"owner": "vm/x"}, {"owner": "vm/y"}]})
    first = await crowd.get("/networks/prefixes/holdings?limit=8")
    await good(crowd, "POST", "/owners/vm%2Fx:release", {})
    second = await crowd.get(f"/networks/prefixes/holdings?after={first['next']}")
    await good(crowd, "POST", "/owners/vm%2Fy:release", {})

    assert [each["owner"] for each in second["items"]] == ["vm/y"]


async def test_a_cursor_of_all_holdings_outlives_the_name_of_its_network(crowd: Client) -> None:
    first = await crowd.get("/holdings?limit=1000")
    await good(crowd, "PATCH", "/networks/wide", {"name": "renamed"}, headers={"If-Match": "*"})
    second = await crowd.get(f"/holdings?limit=1000&after={first['next']}")
    await good(crowd, "PATCH", "/networks/renamed", {"name": "wide"}, headers={"If-Match": "*"})
    addresses = {each["address"] for each in first["items"]}

    assert {each["network"] for each in second["items"]} == {"renamed"}
    assert not addresses & {each["address"] for each in second["items"]}


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ("kind=vm", MANY // 2),
        ("label=team", MANY),
        ("label=team=t3", MANY // 10),
        ("label=team=t3&kind=vm", 0),
        ("label=team=t3&label=none", 0),
        ("text=POD/12", len([n for n in range(MANY) if n % 2 and str(n).startswith("12")])),
        ("state=held", MANY),
        ("state=pending", 0),
    ],
)
async def test_filters_find_what_fits_and_nothing_else(crowd: Client, wanted: str, count: int) -> None:
    assert len(await read(crowd, f"/networks/wide/holdings?limit=400&{wanted}")) == count


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("", ["empty", "prefixes", "wide"]),
        ("tag=big", ["wide"]),
        ("tag=small", []),
        ("text=BIG", ["prefixes"]),
        ("text=e", ["empty", "prefixes", "wide"]),
        ("space=empty", ["empty"]),
    ],
)
async def test_networks_are_found_by_space_tag_and_text(crowd: Client, wanted: str, names: list[str]) -> None:
    for limit in (1, 2, 100):
        assert [each["name"] for each in await read(crowd, f"/networks?limit={limit}&{wanted}")] == names


async def test_the_log_is_read_page_by_page_and_filtered(admin: Client) -> None:
    await lay(admin)
    start = (await admin.get("/changes/last"))["last"]
    for number in range(5):
        given = await admin.post("/networks/net1:allocate", {"owner": f"vm/{number}"})
        await admin.post("/networks/net1:release", {"owner": f"vm/{number}", "address": given["address"]})
    seen: list[int] = []
    after = start
    while True:
        page = await admin.get(f"/changes?after={after}&limit=3")
        seen += [each["seq"] for each in page["items"]]
        if page["next"] == page["last"]:
            break
        after = page["next"]
    owned = await admin.get(f"/changes?after={start}&owner=local:vm/3")
    grants = await admin.get(f"/changes?after={start}&verb=grant&range=192.0.2.0/28&network=net1")

    assert seen == list(range(start + 1, start + 11))
    assert [(each["verb"], each["owner"]) for each in owned["items"]] == [("grant", "vm/3"), ("release", "vm/3")]
    assert len(grants["items"]) == 5
    assert (await admin.get(f"/changes?after={start}&verb=network."))["items"] == []


async def test_a_log_that_was_trimmed_tells_its_readers(admin: Client) -> None:
    await lay(admin)
    last = (await admin.get("/changes/last"))["last"]
    await admin.post("/changes:trim", {"before": last})
    answer = await admin.ask("GET", "/changes?after=0")

    assert (answer.status, answer.code) == (410, "cursor_expired")
    assert answer.json["data"]["oldest"] == last - 1


async def test_papers_and_instances_come_in_order_of_name(admin: Client) -> None:
    await clear(admin)
    names = [f"web-{number:02}" for number in range(12)]
    papers = [{"op": "write_paper", "kind": "instance", "name": name, "document": {"n": name}} for name in names]
    await admin.post(":apply", {"operations": papers})

    assert [each["name"] for each in await read(admin, "/papers/instance?limit=5")] == names
    assert [each["name"] for each in await read(admin, "/instances?limit=5")] == names
    assert [each["name"] for each in await read(admin, "/instances?limit=5&prefix=web-1")] == names[10:]
    assert (await admin.get("/instances/web-03"))["document"] == {"n": "web-03"}
