"""Many wishes in one request: all or none, or each on its own; and whoever goes away leaves nothing behind."""

import asyncio
from collections import Counter

import pytest

from tests.doors.http.plan import good, lay, refused
from tests.doors.http.sockets import written
from tests.doors.http.stage import Client, Server

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANY, RELEASE = "/networks/net1:allocate_many", "/networks/net1:release_many"


async def owners(admin: Client) -> list[str]:
    return sorted(each["owner"] for each in (await admin.get("/networks/net1/holdings?state=held"))["items"])


async def commits(admin: Client) -> float:
    """Count how often the store was called to grant or to end holdings."""
    lines = (await admin.ask("GET", "/metrics", below="")).body.decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("tenure_batch_size_count{"))


async def test_all_or_none_is_all(admin: Client) -> None:
    await lay(admin)
    wishes = [{"owner": f"pod/{number}", "slot": "a", "carrier": "vm-1"} for number in range(20)]
    answer = await good(admin, "POST", MANY, {"wishes": wishes})
    given = [each["holding"] for each in answer.json["items"]]

    assert [each["owner"] for each in given] == [wish["owner"] for wish in wishes]
    assert len({each["address"] for each in given}) == 20


async def test_all_or_none_is_none_if_one_cannot_be_served(admin: Client) -> None:
    await lay(admin)
    wishes = [{"owner": "pod/a"}, {"owner": "pod/b", "address": "192.0.2.10"}]

    await refused(admin, 409, "address_in_use", "POST", MANY, {"wishes": wishes})
    await refused(admin, 409, "pool_exhausted", "POST", MANY, {"wishes": [{"owner": f"pod/{n}"} for n in range(91)]})


async def test_each_on_its_own_gets_an_answer_or_a_problem_of_its_own(admin: Client) -> None:
    await lay(admin)
    wishes = [
        {"owner": "pod/a"},
        {"owner": "pod/b", "address": "192.0.2.10"},
        {"owner": "no owner"},
        {"owner": "pod/c", "address": "192.0.2.20"},
        {"owner": "pod/d", "pending": True, "lasts_s": 60},
        {"owner": "pod/e", "lasts_s": 60},
        {"owner": "pod/f", "pool": "none"},
    ]
    answer = await good(admin, "POST", MANY, {"wishes": wishes, "all_or_none": False})
    told = [each["problem"]["code"] if "problem" in each else each["holding"]["state"] for each in answer.json["items"]]

    assert told == ["held", "address_in_use", "invalid", "address_reserved", "pending", "invalid", "not_found"]
    assert await owners(admin) == ["instance/web-0", "pod/a"]


async def test_each_on_its_own_shares_commits(admin: Client) -> None:
    await lay(admin)
    await admin.post("/networks/net1/subnets", {"cidr": "10.0.0.0/16"})
    await admin.post("/networks/net1/pools", {"range": "10.0.0.0/16", "name": "wide", "policy": "random"})
    wishes = [{"owner": f"pod/{number}", "pool": "wide"} for number in range(2000)]
    before = await commits(admin)
    answer = await good(admin, "POST", MANY, {"wishes": wishes, "all_or_none": False})
    took = await commits(admin) - before
    given = [each["holding"]["address"] for each in answer.json["items"]]
    releases = [{"owner": f"pod/{number}", "address": address} for number, address in enumerate(given)]
    ended = await good(admin, "POST", RELEASE, {"releases": releases, "all_or_none": False})

    assert len(set(given)) == 2000
    assert all(each["holding"] for each in ended.json["items"])
    assert 0 < took < 200


async def test_releases_each_on_their_own_or_all_or_none(admin: Client) -> None:
    await lay(admin)
    mine, other = {"owner": "instance/web-0", "address": "192.0.2.10"}, {"owner": "pod/x", "address": "192.0.2.11"}
    gone = {"owner": "pod/x", "address": "192.0.2.99"}
    await refused(admin, 409, "not_owner", "POST", RELEASE, {"releases": [mine, other]})
    answer = await good(admin, "POST", RELEASE, {"releases": [mine, other, gone], "all_or_none": False})
    first, second, third = answer.json["items"]

    assert first["holding"]["owner"] == "instance/web-0"
    assert second["problem"]["code"] == "not_owner"
    assert third == {}


async def test_the_same_owner_twice_in_one_request_gets_one_address(admin: Client) -> None:
    await lay(admin)
    answer = await good(admin, "POST", MANY, {"wishes": [{"owner": "pod/a"}] * 10, "all_or_none": False})
    told = Counter(each["holding"]["address"] for each in answer.json["items"])

    assert list(told.values()) == [10]


@pytest.mark.parametrize("verb", ["allocate", "claim"])
async def test_whoever_goes_away_while_he_waits_leaves_nothing_behind(
    shared_server: Server, admin: Client, verb: str
) -> None:
    await lay(admin)
    await admin.post("/networks/lab/pools", {"range": "198.51.100.7", "name": "full"})
    body = b'{"owner": "pod/gone", "wait_s": 50}'
    head = [f"Authorization: Bearer {shared_server.admin}".encode(), b"Content-Type: application/json"]
    _, writer = await asyncio.open_connection("127.0.0.1", shared_server.port)
    writer.write(written("POST", f"/api/v1/networks/lab:{verb}".encode(), *head, body=body))
    await until(admin, ["pod/gone"])
    writer.close()
    await writer.wait_closed()
    await until(admin, [])
    await admin.post("/networks/lab:release", {"owner": "instance/try-0", "address": "198.51.100.7"})
    given = await admin.post("/networks/lab:allocate", {"owner": "pod/next"})

    assert given["address"] == "198.51.100.7"
    assert (await admin.get("/owners/pod%2Fgone"))["items"] == []


async def until(admin: Client, waiting: list[str]) -> None:
    """Wait until these wait."""
    for _ in range(400):
        if [each["owner"] for each in (await admin.get("/claims"))["items"]] == waiting:
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"{waiting} do not wait")


async def test_a_long_poll_is_answered_when_an_address_comes_free(admin: Client) -> None:
    await lay(admin)
    await admin.post("/networks/lab/pools", {"range": "198.51.100.7", "name": "full"})
    waiting = asyncio.create_task(admin.post("/networks/lab:claim", {"owner": "pod/first", "wait_s": 50}))
    await until(admin, ["pod/first"])
    now = await admin.post("/networks/lab:claim", {"owner": "pod/second"})
    await admin.post("/networks/lab:release", {"owner": "instance/try-0", "address": "198.51.100.7"})
    first = await waiting
    gone = await admin.post("/networks/lab:withdraw", {"owner": "pod/second"})

    assert (now["state"], now["place"]) == ("waiting", 2)
    assert (first["state"], first["holding"]["owner"]) == ("granted", "pod/first")
    assert gone == {"withdrawn": True}


async def test_the_answer_to_many_edits_of_a_network_has_it_once_and_grows_with_them(admin: Client) -> None:
    def adding(count: int, name: str) -> dict[str, object]:
        subnets = [{"op": "subnet.add", "network": name, "cidr": f"10.77.{n}.0/24"} for n in range(count)]
        return {"operations": [{"op": "network.add", "network": name}, *subnets]}

    few = await good(admin, "POST", ":rehearse", adding(100, "grown"))
    many = await good(admin, "POST", ":rehearse", adding(200, "grown"))
    done = await good(admin, "POST", ":apply", adding(200, "grown"))

    assert len(many.body) < 2.5 * len(few.body)
    assert [each for each in done.json["items"][:-1] if each != {"network_at": 200}] == []
    assert done.json["items"][-1]["network"] == await admin.get("/networks/grown")


async def test_a_run_counts_with_each_of_its_owners_against_the_limit_of_operations(admin: Client) -> None:
    run = {"op": "allocate_run", "network": "net1", "owners": ["pod/a"] * 5001, "slots": [""] * 5001}
    before = (await admin.get("/changes/last"))["last"]
    answer = await admin.ask("POST", ":apply", {"operations": [run, run]})

    assert (answer.status, answer.json["field"]) == (422, "operations")
    assert "at most 10000, each owner of a run counted, not 10002" in answer.json["detail"]
    assert (await admin.get("/changes/last"))["last"] == before
