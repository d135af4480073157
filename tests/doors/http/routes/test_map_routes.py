"""Counts, maps and timelines through the API of real servers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.doors.http.stage import Client, Server, running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Server]:
    """Run one server for all tests here."""
    async with running() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def client(server: Server) -> AsyncIterator[Client]:
    """Speak with it as an admin."""
    async with server.client() as given:
        yield given


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def make(client: Client, name: str, cidr: str = "192.0.2.0/24", pool: str | None = None, **more: Any) -> None:
    """Make a network with one subnet, and one pool over it."""
    space = more.pop("space", None)
    await client.post("/networks", {"name": name, **({} if space is None else {"space": space})})
    await client.post(f"/networks/{name}/subnets", {"cidr": cidr, **more})
    await client.post(f"/networks/{name}/pools", {"range": pool or cidr})


def said(counts: dict[str, int]) -> dict[str, int]:
    """Leave out what there is none of."""
    return {name: count for name, count in counts.items() if count}


async def test_utilisation_tells_every_network_with_its_claims_that_wait(client: Client) -> None:
    await make(client, "full", "198.51.100.0/30", keep_back=[])
    owners = [{"owner": f"vm/{number}"} for number in range(4)]
    await client.post("/networks/full:allocate_many", {"wishes": owners})
    await client.post("/networks/full:claim", {"owner": "vm/late"})

    listed = await client.get("/utilisation")
    [full] = [item for item in listed["items"] if item["network"] == "full"]
    whole = await client.get("/networks/full/utilisation")

    assert said(full["counts"]["ipv4"]) == {"units": 4, "pooled": 4, "pooled_taken": 4, "held": 4}
    assert full["waiting"] == whole["waiting"] == 1
    assert whole["counts"] == full["counts"] == {"ipv4": whole["subnets"][0]["counts"], "ipv6": None}
    assert whole["subnets"][0]["pools"][0]["counts"] == full["counts"]["ipv4"]


async def test_families_are_counted_apart(client: Client) -> None:
    await make(client, "dual", "198.51.100.64/30", keep_back=[])
    await client.post("/networks/dual/subnets", {"cidr": "2001:db8:64::/64", "keep_back": []})
    await client.post("/networks/dual/pools", {"range": "2001:db8:64::/64"})
    for owner in range(4):
        await client.post("/networks/dual:allocate", {"owner": f"vm/{owner}", "subnet": "198.51.100.64/30"})
    await client.post("/networks/dual:allocate", {"owner": "vm/six", "subnet": "2001:db8:64::/64"})
    await client.post("/networks/dual/reserved", {"range": "2001:db8:64::ff"})

    [listed] = [item for item in (await client.get("/utilisation"))["items"] if item["network"] == "dual"]
    whole = await client.get("/networks/dual/utilisation")
    told = await client.get("/networks/dual/timeline?hours=1&points=2")

    assert listed["counts"] == whole["counts"]
    assert said(whole["counts"]["ipv4"]) == {"units": 4, "pooled": 4, "pooled_taken": 4, "held": 4}
    size = {"units": 1 << 64, "pooled": 1 << 64, "free": (1 << 64) - 2}
    used = {"held": 1, "reserved": 1, "pooled_taken": 1, "pooled_kept": 1}
    assert said(whole["counts"]["ipv6"]) == {**size, **used}
    assert [told[family]["capacity"] for family in ("ipv4", "ipv6")] == [4, 1 << 64]
    assert [told[family]["points"][-1]["held"] for family in ("ipv4", "ipv6")] == [4, 1]


async def test_what_is_held_in_no_pool_does_not_fill_the_pools(client: Client) -> None:
    await make(client, "beside", "198.51.100.128/28", "198.51.100.130-198.51.100.133")
    for last in (129, 130, 140):
        wish = {"owner": f"vm/{last}", "address": f"198.51.100.{last}"}
        await client.post("/networks/beside:allocate", wish)
    await client.post("/networks/beside/reserved", {"range": "198.51.100.133"})

    counts = (await client.get("/networks/beside/utilisation"))["counts"]["ipv4"]

    assert [counts[name] for name in ("held", "pooled", "pooled_taken", "pooled_kept", "free")] == [3, 4, 1, 1, 2]


async def test_a_claim_that_leaves_no_longer_waits(client: Client) -> None:
    await make(client, "queue", "198.51.100.0/31", keep_back=[])
    await client.post("/networks/queue:allocate_many", {"wishes": [{"owner": "vm/1"}, {"owner": "vm/2"}]})
    await client.post("/networks/queue:claim", {"owner": "vm/3"})
    before = (await client.get("/networks/queue/utilisation"))["waiting"]
    await client.post("/networks/queue:withdraw", {"owner": "vm/3"})

    assert (before, (await client.get("/networks/queue/utilisation"))["waiting"]) == (1, 0)


async def test_a_map_of_a_28_shows_single_addresses_with_their_holders(client: Client) -> None:
    await make(client, "small", "192.0.2.0/28", "192.0.2.4-192.0.2.9", gateway="192.0.2.1")
    await client.post("/networks/small:allocate", {"owner": "vm/1", "description": "first"})
    await client.post("/networks/small/reserved", {"range": "192.0.2.6", "reason": "printer"})

    drawn = await client.get("/networks/small/map")
    cells = {cell["first"]: cell for cell in drawn["cells"]}

    assert (drawn["cell_units"], drawn["cell_prefix"], len(drawn["cells"])) == (1, 32, 16)
    assert (cells["192.0.2.4"]["held"], cells["192.0.2.4"]["holding"]["owner"]) == (1, "vm/1")
    assert cells["192.0.2.4"]["holding"]["since"].endswith("Z")
    assert cells["192.0.2.5"] == {"first": "192.0.2.5", "free": 1, "pooled": 1}
    assert cells["192.0.2.6"]["barrier"] == "reserved in network 'small': printer"
    assert cells["192.0.2.1"]["barrier"] == "kept back as the gateway address of 192.0.2.0/28"
    assert cells["192.0.2.12"] == {"first": "192.0.2.12", "outside": 1}
    assert said(drawn["counts"]) == {
        "units": 16, "pooled": 6, "held": 1, "reserved": 1, "kept_back": 3, "outside": 7, "free": 4,
    }  # fmt: skip


async def test_a_map_of_an_8_is_256_cells_and_zooms_down_to_one_address(client: Client) -> None:
    await make(client, "large", "10.0.0.0/8", keep_back=[])
    await client.post("/networks/large:allocate", {"owner": "vm/1", "address": "10.3.2.1"})

    whole = await client.get("/networks/large/map")
    third = next(cell for cell in whole["cells"] if cell.get("held"))
    closer = await client.get("/networks/large/map?first=10.3.0.0&last=10.3.255.255")
    row = await client.get("/networks/large/map?first=10.3.2.0&last=10.3.2.255&cells=64")
    single = await client.get("/networks/large/map?first=10.3.2.0&last=10.3.2.63&cells=64")

    assert (whole["cell_prefix"], len(whole["cells"])) == (16, 256)
    assert third == {"first": "10.3.0.0", "held": 1, "free": 65535, "pooled": 65536}
    assert (closer["cell_prefix"], [cell["first"] for cell in closer["cells"] if "held" in cell]) == (24, ["10.3.2.0"])
    assert (row["cell_prefix"], len(row["cells"])) == (30, 64)
    assert [cell["holding"]["owner"] for cell in single["cells"] if "held" in cell] == ["vm/1"]


async def test_a_map_follows_what_happens(client: Client) -> None:
    await make(client, "live", "10.9.0.0/16")
    await client.get("/networks/live/map")
    holding = await client.post("/networks/live:allocate", {"owner": "vm/1"})

    one = await client.get("/networks/live/map")
    await client.post("/networks/live:release", {"address": holding["address"], "owner": "vm/1"})
    none = await client.get("/networks/live/map")
    await client.post("/networks/live/reserved", {"range": "10.9.1.0-10.9.1.255"})
    reserved = await client.get("/networks/live/map")

    assert (one["counts"]["held"], none["counts"]["held"]) == (1, 0)
    assert reserved["cells"][1] == {"first": "10.9.1.0", "reserved": 256, "pooled": 256}


async def test_a_map_of_a_64_stays_useful(client: Client) -> None:
    await make(client, "six", "2001:db8::/64", keep_back=[])
    await client.post("/networks/six:allocate", {"owner": "vm/1", "address": "2001:db8:0:0:ff00::1"})

    whole = await client.get("/networks/six/map")
    cell = next(cell for cell in whole["cells"] if "held" in cell)
    closest = await client.get("/networks/six/map?first=2001:db8:0:0:ff00::&last=2001:db8:0:0:ff00::f")

    assert (whole["cell_prefix"], whole["cell_units"], cell["first"]) == (72, 1 << 56, "2001:db8:0:0:ff00::")
    assert cell["free"] == (1 << 56) - 1
    assert [each["holding"]["owner"] for each in closest["cells"] if "held" in each] == ["vm/1"]


async def test_a_map_of_prefixes_counts_prefixes(client: Client) -> None:
    await make(client, "racks", "10.20.0.0/16", unit=28)
    await client.post("/networks/racks:allocate", {"owner": "rack/1"})

    drawn = await client.get("/networks/racks/map?cells=4096")

    assert (drawn["cell_units"], drawn["cell_prefix"], drawn["counts"]["units"]) == (1, 28, 4096)
    assert drawn["cells"][0]["holding"]["owner"] == "rack/1"


async def test_a_holding_of_another_network_is_shown_only_to_who_may_read_it(server: Server, client: Client) -> None:
    await make(client, "ours", "203.0.113.0/28", space="both")
    await make(client, "theirs", "203.0.113.0/28", space="both")
    await client.post("/networks/theirs:allocate", {"owner": "vm/secret", "address": "203.0.113.7"})
    limited = await server.token("ours-only", "allocate:ours")

    seen = (await client.get("/networks/ours/map"))["cells"][7]
    hidden = (await client.get("/networks/ours/map", token=limited))["cells"][7]

    assert (seen["elsewhere"], seen["holding"]["owner"], seen["holding"]["network"]) == (1, "vm/secret", "theirs")
    assert (hidden["elsewhere"], "holding" in hidden) == (1, False)


async def test_a_timeline_tells_what_was_held_when(client: Client) -> None:
    await make(client, "past", "10.30.0.0/24")
    holding = await client.post("/networks/past:allocate", {"owner": "vm/1"})
    await client.post("/networks/past:allocate", {"owner": "vm/2"})
    await client.post("/networks/past:release", {"address": holding["address"], "owner": "vm/1"})

    told = await client.get("/networks/past/timeline?hours=24&points=25")
    month = await client.get("/networks/past/timeline?hours=744&points=32")

    four = told["ipv4"]
    assert [point["held"] for point in four["points"]] == [0] * 24 + [1]
    assert (told["step_s"], four["capacity"], four["units"], told["complete_since"]) == (3600, 256, 256, None)
    assert (month["step_s"], month["ipv4"]["points"][-1]["held"], len(month["ipv4"]["points"])) == (86400, 1, 32)
    assert told["ipv6"] is None


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("/networks/nobody/utilisation", 404, "network"),
        ("/networks/nobody/map", 404, "network"),
        ("/networks/nobody/timeline", 404, "network"),
        ("/networks/wrong/map?subnet=nothing", 404, "subnet"),
        ("/networks/wrong/map?first=abc", 422, "first"),
        ("/networks/wrong/map?first=192.0.2.1&last=10.0.0.1", 422, "last"),
        ("/networks/wrong/map?first=10.0.0.1", 422, "address"),
        ("/networks/wrong/map?first=192.0.2.9&last=192.0.2.1", 422, "first"),
        ("/networks/wrong/map?subnet=192.0.2.0/24&first=2001:db8::1", 422, "first"),
        ("/networks/wrong/map?cells=0", 422, "cells"),
        ("/networks/wrong/map?cells=5000", 422, "cells"),
        ("/networks/wrong/map?cell=5", 422, "cell"),
        ("/networks/bare/map", 404, "subnet"),
        ("/networks/wrong/timeline?hours=0", 422, "hours"),
        ("/networks/wrong/timeline?hours=nan", 422, "hours"),
        ("/networks/wrong/timeline?hours=745", 422, "hours"),
        ("/networks/wrong/timeline?points=1", 422, "points"),
        ("/utilisation?network=wrong", 422, "network"),
    ],
)
async def test_bad_input_is_refused_by_name(client: Client, path: str, status: int, field: str) -> None:
    known = {item["name"] for item in (await client.get("/networks?limit=1000"))["items"]}
    if "wrong" not in known:
        await make(client, "wrong")
        await client.post("/networks", {"name": "bare"})

    answer = await client.ask("GET", path)

    assert (answer.status, answer.json["field"]) == (status, field), answer.body


async def test_changes_through_another_server_are_seen(server: Server, client: Client) -> None:
    await make(client, "shared", "10.40.0.0/16")
    await client.get("/networks/shared/map")
    async with running(server.store, admin=server.admin) as second, second.client() as other:
        mapped = await other.get("/networks/shared/map")
        wishes = [{"owner": f"vm/{number}"} for number in range(20)]
        await other.post("/networks/shared:allocate_many", {"wishes": wishes})

        here = await client.get("/networks/shared/map")
        there = await other.get("/networks/shared/map")
        counted = await client.get("/networks/shared/utilisation")
        told = await client.get("/networks/shared/timeline")

    assert mapped["counts"]["held"] == 0
    assert here["counts"]["held"] == there["counts"]["held"] == counted["counts"]["ipv4"]["held"] == 20
    assert told["ipv4"]["points"][-1]["held"] == 20


async def test_counts_are_right_while_many_allocate(client: Client) -> None:
    await make(client, "busy", "10.50.0.0/16")

    async def clerk(number: int) -> None:
        for turn in range(15):
            await client.post("/networks/busy:allocate", {"owner": f"vm/{number}-{turn}"})
            counts = (await client.get("/networks/busy/utilisation"))["counts"]["ipv4"]
            assert counts["held"] + counts["free"] + counts["kept_back"] == counts["units"]
            assert counts["held"] > turn

    await asyncio.gather(*(clerk(number) for number in range(4)))

    assert (await client.get("/networks/busy/utilisation"))["counts"]["ipv4"]["held"] == 60
