"""What answers about an address and the log tell of a change: who made it, and by which request."""

import pytest

from tests.doors.http.plan import good
from tests.doors.http.stage import Client, Server

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLACE = "192.0.2.10"
ENDED = {"address": PLACE, "owner": "vm/a", "request": "clean-up"}


async def test_a_release_its_log_entry_and_history_name_the_request_and_the_actor_of_the_release(
    admin: Client, shared_server: Server
) -> None:
    await good(admin, "POST", "/networks", {"name": "net1"})
    await good(admin, "POST", "/networks/net1/subnets", {"cidr": "192.0.2.0/24"})
    granted = {"owner": "vm/a", "address": PLACE, "request": "granted"}
    await good(admin, "POST", "/networks/net1:allocate", granted, headers={"X-Request-Id": "one"})
    async with shared_server.client(await shared_server.token("ops", "allocate:net1")) as ops:
        answer = await good(ops, "POST", "/networks/net1:release", ENDED, headers={"X-Request-Id": "two"})

    own = ("clean-up", "token/ops", "two")
    assert _told(answer.json["holding"]) == own
    [entry] = (await admin.get("/changes?verb=release"))["items"]
    assert _told(entry) == own
    assert (entry["details"]["began_request"], "request" in entry["details"]) == ("granted", False)
    [tenure] = (await admin.get(f"/addresses/{PLACE}/history"))["tenures"]
    assert (tenure["ended_by"], tenure["ended_actor"], tenure["ended_request_id"]) == own
    assert tenure["request"] == "granted"


def _told(shape: dict[str, object]) -> tuple[object, object, object]:
    return shape["request"], shape["actor"], shape["request_id"]
