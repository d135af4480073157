"""6.8: a released address is not given to another claim for a while, and the claim does not wait for that.

The passes run over objects in memory, so that writes and clocks are the test's; ``test_what_none_has`` has the real
server.
"""

import asyncio
import time
from typing import Any

import orjson
import pytest

from tenure.integrations.kubernetes.metal3 import pool_writes
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.cooling_addresses import MOST_COOLING, CoolingAddress
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    COOLING_LIST,
    IP_CLAIM,
    IP_POOL,
    POOL_FINALIZER,
)
from tenure.integrations.kubernetes.metal3.objects.listed_entries import MOST_ANNOTATIONS
from tenure.integrations.kubernetes.runtime.api_errors import ApiUnreachable, WriteConflict
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tenure.kernel.addressing.addresses import parse_address
from tests.integrations.kubernetes.metal3.pass_stage import NAMESPACE, POOL, Stage

pytestmark = pytest.mark.usefixtures("skipped_time")

COOL: dict[str, Any] = {"tenure": {"coolingSeconds": 100}}


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give a clock that stands still."""
    clock = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    return clock


def delete(stage: Stage, name: str) -> None:
    stage.change(IP_CLAIM, name, lambda claim: claim["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))


def cooling(stage: Stage) -> dict[str, str]:
    listed = stage.objects["ippools", "p"].get("status", {}).get("tenure", {}).get("cooling") or []
    return {each["address"]: each["until"] for each in listed}


def addresses(stage: Stage) -> dict[str, str]:
    """Return the addresses of claims."""
    made = [each for (plural, _), each in stage.objects.items() if plural == "ipaddresses"]
    return {each["spec"]["claim"]["name"]: each["spec"]["address"] for each in made}


async def later(stage: Stage) -> None:
    """Let what was asked for later happen now."""
    stage.caches.records.status_due(POOL)
    await stage.settle()


async def served(stage: Stage, *names: str) -> None:
    for name in names:
        stage.claim(name)
    await stage.settle()


async def test_6_8_the_pool_says_so_before_the_object_goes_and_the_claim_goes_at_once(now: list[float]) -> None:
    stage = Stage()
    stage.pool(**COOL)
    await served(stage, "a", "b")
    stage.writes.clear()
    delete(stage, "a")
    delete(stage, "b")
    await stage.settle()

    assert stage.writes[0] == ("PATCH", "ippools", "p")
    assert [write[:2] for write in stage.writes[1:7]].count(("PATCH", "ippools")) == 0, "one write for both"
    assert ("ipclaims", "a") not in stage.objects
    assert cooling(stage) == {"10.0.0.1": "2027-01-15T08:01:40Z", "10.0.0.2": "2027-01-15T08:01:40Z"}


async def test_6_8_it_is_free_when_a_write_says_so_and_not_when_its_time_is_over(now: list[float]) -> None:
    """I10: another claim waits, and is served by the write that ends the cooling."""
    stage = Stage()
    stage.pool("10.0.0.1", "10.0.0.1", **COOL)
    await served(stage, "a")
    delete(stage, "a")
    await served(stage, "b")
    assert (addresses(stage), stage.status("b")["errorMessage"]) == ({}, "Exhausted IP Pools")

    now[0] += 100.5
    assert stage.caches.records.of(POOL).book.free == 0
    await later(stage)
    assert (addresses(stage), cooling(stage)) == ({"b": "10.0.0.1"}, {})


@pytest.mark.parametrize("asks", ["annotation", "preAllocation"])
async def test_6_8_its_former_claim_may_have_it_back_and_others_wait_for_it(now: list[float], asks: str) -> None:
    stage = Stage()
    fixed = {"a": "10.0.0.1"} if asks == "preAllocation" else {}
    stage.pool(preAllocations=fixed, **COOL)
    await served(stage, "a")
    delete(stage, "a")
    await stage.settle()
    stage.claim("other", asks="10.0.0.1")
    await served(stage, "b")
    assert addresses(stage) == {"b": "10.0.0.2"}
    assert stage.status("other")["errorMessage"] == "Requested IP not available"

    stage.claim("a", asks="10.0.0.1" if asks == "annotation" else "")
    await stage.settle()
    assert addresses(stage) == {"b": "10.0.0.2", "a": "10.0.0.1"}
    await later(stage)
    assert cooling(stage) == {}, "it is in use again"


async def test_6_8_a_claim_that_waits_for_a_fixed_address_says_for_how_long(now: list[float]) -> None:
    stage = Stage()
    stage.pool(**COOL)
    await served(stage, "a")
    delete(stage, "a")
    await stage.settle()
    stage.change(IP_POOL, "p", lambda pool: pool["spec"].update(preAllocations={"b": "10.0.0.1"}))
    await served(stage, "b")

    said = "Pre-allocated IP 10.0.0.1 is held by nobody until 2027-01-15T08:01:40Z: IPClaim m3/a released it"
    assert stage.status("b")["errorMessage"] == said


@pytest.mark.parametrize("error", [ApiUnreachable("gone"), WriteConflict(409, "Conflict", "")])
async def test_6_8_nothing_is_released_before_the_pool_says_so(now: list[float], error: Exception) -> None:
    stage = Stage()
    stage.pool(**COOL)
    await served(stage, "a")
    failures = iter([error, error])

    def fail(method: str, kind: ResourceType, object: Object) -> None:
        if kind is IP_POOL and (failure := next(failures, None)):
            raise failure
        if method == "DELETE":
            assert cooling(stage), "the object goes after the pool has been written"

    stage.before = fail
    delete(stage, "a")
    await stage.settle()

    assert (addresses(stage), list(cooling(stage))) == ({}, ["10.0.0.1"])


async def test_6_8_what_is_released_again_cools_off_from_then_on(now: list[float]) -> None:
    stage = Stage()
    stage.pool(**COOL)
    await served(stage, "a")
    delete(stage, "a")
    await stage.settle()
    now[0] += 60
    stage.claim("a", asks="10.0.0.1")
    await stage.settle()
    delete(stage, "a")
    await stage.settle()

    assert cooling(stage) == {"10.0.0.1": "2027-01-15T08:02:40Z"}


@pytest.mark.parametrize(("change", "left"), [({"coolingSeconds": 10}, {"10.0.0.1": "2027-01-15T08:00:10Z"}), ({}, {})])
async def test_6_8_a_shorter_time_counts_for_what_cools_off_already(
    now: list[float], change: dict[str, Any], left: dict[str, str]
) -> None:
    """So does a clock that was set back: no entry lasts longer than a new one would."""
    stage = Stage()
    stage.pool(**COOL)
    await served(stage, "a")
    delete(stage, "a")
    await stage.settle()
    stage.change(IP_POOL, "p", lambda pool: pool["spec"].update(tenure=change))
    await later(stage)

    assert cooling(stage) == left


async def test_6_8_a_pool_with_a_ledger_or_one_that_goes_notes_nothing(now: list[float]) -> None:
    stage = Stage()
    stage.pool(**COOL)
    await served(stage, "a")
    stage.change(IP_POOL, "p", lambda pool: pool["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    delete(stage, "a")
    await stage.settle()

    assert stage.objects == {}


async def test_6_8_a_pool_that_goes_by_force_while_others_are_noted_fails_nothing(now: list[float]) -> None:
    stage = Stage()
    stage.pool(**COOL)
    await served(stage, "a")
    address = stage.objects["ipaddresses", "p-10-0-0-1"]
    async with stage.caches.records.of(POOL).noting:
        noting = asyncio.create_task(stage.passes.giving.pools.note_released([address]))
        await asyncio.sleep(0)
        stage.remove(IP_POOL, "p")
        stage.writes.clear()
    await noting

    assert stage.writes == []


async def test_6_8_of_too_many_the_oldest_make_room(now: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_writes, "MOST_COOLING", 2)
    stage = Stage()
    stage.pool(**COOL)
    await served(stage, "a", "b", "c")
    for name in "abc":
        now[0] += 1
        delete(stage, name)
        await stage.settle()

    assert list(cooling(stage)) == ["10.0.0.2", "10.0.0.3"]
    assert "CoolingCutShort" in stage.events


async def test_6_8_more_at_once_than_there_is_room_for_are_no_sign_of_another_definition(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """KD4: what stands in the status goes on being written there, and ends when its time is over."""
    monkeypatch.setattr(pool_writes, "MOST_COOLING", 2)
    stage = Stage()
    stage.pool(last="10.0.0.4", **COOL)
    await served(stage, "a", "b", "c", "d")
    for name in "abcd":
        delete(stage, name)
    await stage.settle()
    assert list(cooling(stage)) == ["10.0.0.3", "10.0.0.4"]
    assert COOLING_LIST not in stage.objects["ippools", "p"]["metadata"].get("annotations", {})

    await served(stage, "e", "f", "g")
    assert addresses(stage) == {"e": "10.0.0.1", "f": "10.0.0.2"}
    now[0] += 101
    await later(stage)
    assert (addresses(stage)["g"], cooling(stage)) == ("10.0.0.3", {})


async def test_6_8_forged_entries_only_keep_addresses_back(now: list[float]) -> None:
    stage = Stage()
    stage.pool(**COOL)
    forged = [{"address": "10.0.0.1", "until": "2099-01-01T00:00:00Z", "claim": "x", "kind": "Pod"}, {"address": 5}]
    stage.change(IP_POOL, "p", lambda pool: pool.update(status={"tenure": {"cooling": forged}}))
    await served(stage, "a")

    assert addresses(stage) == {"a": "10.0.0.2"}
    assert cooling(stage) == {"10.0.0.1": "2027-01-15T08:01:40Z"}


async def test_6_8_what_has_no_claim_cools_off_as_well(now: list[float]) -> None:
    """A claim went by force, and its address is released by a pass."""
    stage = Stage()
    stage.pool(**COOL)
    await served(stage, "a")
    stage.remove(IP_CLAIM, "a")
    await stage.settle()

    assert (addresses(stage), list(cooling(stage))) == ({}, ["10.0.0.1"])


async def test_6_8_a_definition_without_room_keeps_it_in_an_annotation(now: list[float]) -> None:
    """KD4: as reservations are."""
    stage = Stage()
    pools = stage.passes.giving.pools
    stage.put(IP_POOL, "p", {"namePrefix": "p", "pools": [{"start": "10.0.0.1", "end": "10.0.0.9"}], **COOL},
              finalizers=[POOL_FINALIZER], annotations={"mine": "x"})  # fmt: skip
    pools.cramped.add(IP_POOL.kind)
    await served(stage, "a")
    delete(stage, "a")
    await served(stage, "b")
    annotations = stage.objects["ippools", "p"]["metadata"]["annotations"]
    assert '"10.0.0.1"' in annotations[COOLING_LIST]
    assert addresses(stage) == {"b": "10.0.0.2"}

    now[0] += 101
    await later(stage)
    assert annotations == {"mine": "x"}
    assert stage.caches.records.of(POOL).book.free == 8


@pytest.mark.parametrize("others", [0, 100_000])
async def test_6_8_an_annotation_keeps_as_many_as_the_server_stores(now: list[float], others: int) -> None:
    """The server refuses more than 256 KiB of annotations, and with them every release of the pool."""
    stage = Stage()
    stage.passes.giving.pools.cramped.add(IP_POOL.kind)
    stage.put(IP_POOL, "p", {"namePrefix": "p", "pools": [{"subnet": "10.0.0.0/16"}], **COOL},
              finalizers=[POOL_FINALIZER], annotations={"mine": "x" * others})  # fmt: skip
    long = "a-claim-with-a-name-that-is-as-long-as-those-of-machines-are"
    listed = [
        CoolingAddress(
            int(now[0]) + 50,
            parse_address("10.0.8.0") + number,
            ClaimId("IPClaim", NAMESPACE, f"{long}-{number}"),
        )
        for number in range(MOST_COOLING)
    ]
    stage.caches.records.of(POOL).cooling = {each.position: each for each in listed}
    await served(stage, "a")
    delete(stage, "a")
    await stage.settle()

    annotations = stage.objects["ippools", "p"]["metadata"]["annotations"]
    kept = orjson.loads(annotations[COOLING_LIST])
    assert sum(len(name) + len(text) for name, text in annotations.items()) < MOST_ANNOTATIONS
    assert "10.0.0.1" in [each["address"] for each in kept]
    assert len(kept) > (300 if others else 800)
    assert (addresses(stage), stage.events.count("CoolingCutShort") > 0) == ({}, True)
