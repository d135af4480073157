"""Writes of ours that another manager overwrote are told, and asserted again where that is safe (VD8)."""

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta

import pytest

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.config_map_swap import STATE_KEY
from tenure.integrations.vmpool.pool_document import PoolDocument
from tenure.integrations.vmpool.state.pool_notes import HistoryLine, PoolNotes
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation
from tenure.integrations.vmpool.state.state_repair import PoolLine
from tenure.integrations.vmpool.vanished_writes import VanishedVerdict, returned_lines
from tests.integrations.vmpool.pool_stage import SIX, TWO, PoolStage, entry, state_with

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HUNDRED = tuple(f"10.0.0.{last}" for last in range(1, 101))


def stored_ips(stage: PoolStage) -> dict[str, str]:
    return {key: each["ip"] for key, each in stage.state()["allocatedIPs"].items()}


async def overwritten(stage: PoolStage, *ids: str) -> AsyncVMPool:
    """Allocate, and let another manager write the state of before back, with a step of its own."""
    pool = await stage.pool(*SIX)
    await pool.allocate("kept")
    before = stage.object()["data"][STATE_KEY]
    for id in ids:
        await pool.allocate(id)
    stage.overwrite_state(before)
    return pool


async def test_vd8_what_was_overwritten_is_told_and_asserted_again(
    stage: PoolStage, caplog: pytest.LogCaptureFixture
) -> None:
    pool = await overwritten(stage, "a", "b")
    with caplog.at_level(logging.INFO, "tenure.vmpool"):
        reports = await pool.reassert()

    assert [(each.entry.allocation_id, each.verdict) for each in reports] == [
        ("a", VanishedVerdict.REASSERTED), ("b", VanishedVerdict.REASSERTED),
    ]  # fmt: skip
    assert sorted(stored_ips(stage)) == ["a", "b", "kept"]
    assert {each.entry.allocation_id: each.entry.ip for each in reports}.items() <= stored_ips(stage).items()
    assert "IP allocation vanished: another manager overwrote it: node=node-1 id=a" in caplog.text
    assert await pool.reassert() == ()


async def test_vd8_the_next_operation_asserts_it_again_in_its_own_write(stage: PoolStage) -> None:
    pool = await overwritten(stage, "a")
    ips = {each.entry.ip for each in pool.vanished}
    assert ips == set()
    found = await pool.allocate("next")

    assert sorted(stored_ips(stage)) == ["a", "kept", "next"]
    assert len(set(stored_ips(stage).values())) == 3
    assert found.ip not in [each.entry.ip for each in pool.vanished]


async def test_vd8_an_address_that_another_id_has_by_now_is_lost_and_told(
    stage: PoolStage, caplog: pytest.LogCaptureFixture
) -> None:
    pool = await stage.pool(*SIX)
    found = await pool.allocate("a")
    state = state_with([ip for ip in SIX if ip != found.ip], entry("theirs", found.ip), version=1)
    stage.overwrite_state(json.dumps(state))
    [report] = await pool.reassert()

    assert (report.verdict, report.holder) == (VanishedVerdict.LOST, "theirs")
    assert "IP allocation lost: another id has the IP by now" in caplog.text
    assert stored_ips(stage) == {"theirs": found.ip}


async def test_vd8_a_state_that_was_written_back_is_known_also_after_more_writes(stage: PoolStage) -> None:
    """Its version is newer by then; but the address stands before others that were free all the time."""
    pool = await stage.pool(*SIX)
    await pool.allocate("kept")
    before = stage.state()
    found = await pool.allocate("pod-1")
    assert before["availableIPs"].index(found.ip) < len(before["availableIPs"]) - 1
    stage.overwrite_state(json.dumps({**before, "version": before["version"] + 7}))
    [report] = await pool.reassert()

    assert report.verdict is VanishedVerdict.REASSERTED
    assert stored_ips(stage)["pod-1"] == found.ip


async def test_vd8_what_another_manager_released_is_reported_and_not_taken_again(stage: PoolStage) -> None:
    pool = await stage.pool(*SIX)
    found = await pool.allocate("a")
    state = stage.state()
    released = {**state, "allocatedIPs": {}, "availableIPs": [*state["availableIPs"], found.ip], "version": 3}
    stage.overwrite_state(json.dumps(released))
    [report] = await pool.reassert()

    assert report.verdict is VanishedVerdict.GONE
    assert stored_ips(stage) == {}
    assert await pool.reassert() == ()


async def test_vd8_what_another_process_of_ours_released_is_no_news(stage: PoolStage) -> None:
    pool, other = await stage.pool(*SIX), await stage.pool(*SIX, node_name="node-2")
    await pool.allocate("a")
    await other.deallocate("a")

    assert await pool.reassert() == ()
    assert stored_ips(stage) == {}


async def test_vd8_what_a_repair_of_ours_took_away_is_told_and_not_taken_again(stage: PoolStage) -> None:
    """Two ids on one address: the older one keeps it, and the manager of the other hears of it."""
    pool, other = await stage.pool(*SIX), await stage.pool(*SIX, node_name="node-2")
    found = await pool.allocate("a")
    state = stage.state()
    state["allocatedIPs"]["older"] = entry("older", found.ip, at="2025-01-01T00:00:00Z")
    stage.overwrite_state(json.dumps(state))
    await other.repair()
    [report] = await pool.reassert()

    assert (report.verdict, report.holder) == (VanishedVerdict.LOST, "older")
    assert list(stored_ips(stage)) == ["older"]


async def test_vd8_an_id_that_has_another_vm_by_now_is_not_given_a_second(stage: PoolStage) -> None:
    pool = await overwritten(stage, "a")
    other = await stage.pool(*SIX, node_name="node-2")
    await other.allocate("before")
    again = await other.allocate("a")
    await pool.reassert()

    assert stored_ips(stage)["a"] == again.ip
    assert list(stored_ips(stage).values()).count(again.ip) == 1


async def test_vd8_a_config_map_that_was_deleted_gets_our_allocations_again(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    found = await pool.allocate("a")
    stage.kube.ask("DELETE", f"/api/v1/namespaces/{stage.namespace}/configmaps/byom-ip-pool-state")
    other = await pool.allocate("b")

    assert stored_ips(stage) == {"a": found.ip, "b": other.ip}


async def test_vd8_a_read_tells_and_writes_nothing(stage: PoolStage) -> None:
    pool = await overwritten(stage, "a")
    version = stage.version()
    await pool.status()
    assert (stage.version(), pool.vanished) == (version, ())
    await pool.reassert()

    assert sorted(stored_ips(stage)) == ["a", "kept"]


async def test_vd8_beside_a_manager_that_overwrites_nothing_vanishes_silently(stage: PoolStage) -> None:
    """It works as those of today do: it reads, thinks, reads the newest version, and writes what it thought of."""
    pool = await stage.pool(*HUNDRED, operation_timeout_s=60.0)
    await pool.allocate("first")
    theirs: dict[str, str] = {}

    async def overwriter() -> None:
        for number in range(60):
            state = await asyncio.to_thread(stage.state)
            await asyncio.sleep(0.005)
            ip = state["availableIPs"].pop(0)
            state["allocatedIPs"][f"theirs-{number}"] = entry(f"theirs-{number}", ip, node="theirs")
            state["version"] += 1
            await asyncio.to_thread(stage.overwrite_state, json.dumps(state, indent=2))
            theirs[f"theirs-{number}"] = ip

    reported: dict[str, str] = {}

    async def ours() -> None:
        for number in range(30):
            found = await pool.allocate(f"ours-{number}")
            reported[found.allocation_id] = found.ip

    await asyncio.gather(overwriter(), ours())
    await pool.reassert()
    stored = stored_ips(stage)
    told = {each.entry.allocation_id for each in pool.vanished if each.verdict is not VanishedVerdict.REASSERTED}

    missing = {id for id, ip in reported.items() if stored.get(id) != ip}
    assert missing <= told
    assert pool.vanished
    assert len(set(stored.values())) == len(stored)


@pytest.mark.parametrize(
    ("ip", "allocated_s", "is_returned"),
    [("10.0.0.1", 0, True), ("10.0.0.1", 9, True), ("10.0.0.1", 11, False), ("10.0.0.2", 0, False)],
)
def test_vd8_an_entry_that_is_older_than_our_release_is_the_one_that_was_released(
    ip: str, allocated_s: int, is_returned: bool
) -> None:
    released = HistoryLine(BEGAN + timedelta(seconds=10), "deallocate", "a", "10.0.0.1", "node-1")
    found = VMAllocation("a", ip, "node-9", allocated_at=BEGAN + timedelta(seconds=allocated_s))
    document = PoolDocument(PoolState({"a": found}, ()), PoolNotes(history=(released,)), is_there=True)

    assert returned_lines(document, PoolLine(("10.0.0.1", "10.0.0.2"))) == ([released] if is_returned else [])


def test_vd8_what_tenure_has_allocated_again_has_not_returned() -> None:
    lines = [HistoryLine(BEGAN, did, "a", "10.0.0.1", "node-1") for did in ("allocate", "deallocate", "allocate")]
    found = VMAllocation("a", "10.0.0.1", "node-1", allocated_at=BEGAN)
    document = PoolDocument(PoolState({"a": found}, ()), PoolNotes(history=tuple(lines)), is_there=True)

    assert returned_lines(document, PoolLine(("10.0.0.1",))) == []
