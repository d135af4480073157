"""6.9: a claim that is made again under its name gets its former address; without a server, by passes over objects."""

from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3 import pool_writes
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_CLAIM, IP_POOL
from tests.integrations.kubernetes.metal3.pass_stage import POOL, Stage

pytestmark = pytest.mark.usefixtures("skipped_time")

STICKY: dict[str, Any] = {"tenure": {"sticky": True}}


def addresses(stage: Stage) -> dict[str, str]:
    """Return the addresses of claims."""
    made = [each for (plural, _), each in stage.objects.items() if plural == "ipaddresses"]
    return {each["spec"]["claim"]["name"]: each["spec"]["address"] for each in made}


def remembered(stage: Stage) -> dict[str, str]:
    listed = stage.objects["ippools", "p"].get("status", {}).get("tenure", {}).get("remembered") or []
    return {each["claim"]: each["address"] for each in listed}


async def served(stage: Stage, *names: str) -> dict[str, str]:
    for name in names:
        stage.claim(name)
    await stage.settle()
    return addresses(stage)


async def released(stage: Stage, *names: str) -> None:
    for name in names:
        stage.change(IP_CLAIM, name, lambda claim: claim["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
        await stage.settle()


async def look(stage: Stage) -> None:
    stage.caches.records.status_due(POOL)
    await stage.settle()


async def test_6_9_it_gets_its_former_address_and_others_get_that_last() -> None:
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.4", **STICKY)
    await served(stage, "a", "b")
    stage.writes.clear()
    await released(stage, "a", "b")
    assert stage.writes[0] == ("PATCH", "ippools", "p"), "it is written down before the object goes"
    assert remembered(stage) == {"m3/a": "10.0.0.1", "m3/b": "10.0.0.2"}

    assert await served(stage, "c", "d", "e") == {"c": "10.0.0.3", "d": "10.0.0.4", "e": "10.0.0.1"}
    assert await served(stage, "b") == {"c": "10.0.0.3", "d": "10.0.0.4", "e": "10.0.0.1", "b": "10.0.0.2"}
    await look(stage)
    assert remembered(stage) == {"m3/a": "10.0.0.1"}, "what a claim has again need not be remembered"


async def test_6_9_a_wish_comes_first_and_a_former_address_that_another_has_is_not_waited_for() -> None:
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.4", **STICKY)
    await served(stage, "a", "b")
    await released(stage, "a", "b")
    stage.claim("thief", asks="10.0.0.1")
    stage.claim("b", asks="10.0.0.4")
    await stage.settle()

    assert await served(stage, "a") == {"thief": "10.0.0.1", "b": "10.0.0.4", "a": "10.0.0.2"}


async def test_6_9_a_new_leader_knows_it_and_a_pool_that_is_not_sticky_forgets() -> None:
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.4", **STICKY)
    await served(stage, "a", "b")
    await released(stage, "a")
    second = Stage()
    second.put(IP_POOL, "p", stage.objects["ippools", "p"]["spec"], finalizers=["x"])
    second.change(IP_POOL, "p", lambda pool: pool.update(status=stage.objects["ippools", "p"]["status"]))
    assert (await served(second, "c", "a"))["a"] == "10.0.0.1"

    stage.change(IP_POOL, "p", lambda pool: pool["spec"].update(tenure={}))
    await look(stage)
    assert remembered(stage) == {}
    assert (await served(stage, "d"))["d"] == "10.0.0.1"


async def test_6_9_the_last_release_of_a_name_and_of_an_address_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_writes, "MOST_REMEMBERED", 2)
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.9", **STICKY)
    await served(stage, "a")
    await released(stage, "a")
    stage.claim("b", asks="10.0.0.1")
    await stage.settle()
    await released(stage, "b")
    assert remembered(stage) == {"m3/b": "10.0.0.1"}

    await served(stage, "c", "d")
    await released(stage, "c", "d")
    assert remembered(stage) == {"m3/c": "10.0.0.2", "m3/d": "10.0.0.3"}, "the one that went first is forgotten"


async def test_6_9_a_forged_memory_gives_nobody_an_address_of_another() -> None:
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.4", gateway="10.0.0.4", **STICKY)
    await served(stage, "a")
    forged = [
        {"address": "10.0.0.1", "claim": "m3/b", "kind": "IPClaim"},
        {"address": "10.0.0.4", "claim": "m3/c", "kind": "IPClaim"},
        {"address": "10.9.9.9", "claim": "m3/d", "kind": "IPClaim"},
        {"address": "banana", "claim": "m3/d", "kind": "IPClaim"}, None, {"address": 7},
    ]  # fmt: skip
    stage.change(IP_POOL, "p", lambda pool: pool["status"]["tenure"].update(remembered=forged))

    assert await served(stage, "b", "c") == {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}
