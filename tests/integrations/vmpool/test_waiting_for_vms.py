"""VS10: a caller may wait for a VM of a full pool."""

import asyncio
import logging
import time

import pytest

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.machines.vm_port import ReadinessProbe
from tenure.integrations.vmpool.pool_errors import VMNotReady, VMPoolExhausted
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.kernel.errors import Invalid
from tests.integrations.vmpool.pool_stage import TWO, PoolStage


async def test_vs10_a_caller_that_waits_gets_the_vm_that_is_released_meanwhile(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    for id in ("a", "b"):
        await pool.allocate(id)

    waiting = asyncio.create_task(pool.allocate("c", wait_s=30))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    await pool.deallocate("a")

    assert (await waiting).ip in TWO
    assert set(stage.state()["allocatedIPs"]) == {"b", "c"}


async def test_vs10_without_a_wait_and_after_it_a_full_pool_is_the_seeds_error(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    for id in ("a", "b"):
        await pool.allocate(id)
    version = stage.version()

    for wait_s in (0, 0.5):
        began = time.monotonic()
        with pytest.raises(VMPoolExhausted, match=r"^no available IPs in pool$"):
            await pool.allocate("c", wait_s=wait_s)
        assert time.monotonic() - began >= wait_s
    assert stage.version() == version


async def test_vs10_a_caller_that_stops_waiting_leaves_nothing_behind(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    for id in ("a", "b"):
        await pool.allocate(id)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await pool.allocate("c", wait_s=30)
    await pool.deallocate("a")

    assert set(stage.state()["allocatedIPs"]) == {"b"}


@pytest.mark.parametrize("mode", ["configmap", "per-ip"])
async def test_an_operation_that_waits_has_one_result(
    stage: PoolStage, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """However often the pool was read: the counters, the durations, the audit and the notes have it once."""
    settings = stage.settings(*TWO, pool_mode=mode)
    meter = PoolMeter("p", settings.line)
    pool = AsyncVMPool(await stage.client(), settings, observer=meter)
    for id in ("a", "b"):
        await pool.allocate(id)
    with caplog.at_level(logging.INFO):
        with pytest.raises(VMPoolExhausted):
            await pool.allocate("c", wait_s=1.5)
        waiting = asyncio.create_task(pool.allocate("d", wait_s=30))
        await asyncio.sleep(1.0)
        await pool.deallocate("a")
        await waiting
    await pool.close()

    assert dict(meter.results) == {
        ("allocate", "new"): 3, ("allocate", "exhausted"): 1, ("deallocate", "released"): 1,
    }  # fmt: skip
    text = meter.text()
    assert 'byom_operation_duration_seconds_count{pool="p",operation="allocate"} 4\n' in text
    said = [record.pool_event for record in caplog.records if hasattr(record, "pool_event")]
    assert (said.count("EXHAUSTED"), said.count("WAITING")) == (1, 2)
    if mode == "configmap":
        assert {name: stage.notes()["counts"][name] for name in ("new", "exhausted")} == {"new": 3, "exhausted": 1}


async def test_a_vm_that_is_not_ready_is_one_result_as_well(stage: PoolStage) -> None:
    settings = stage.settings("127.0.0.8", "127.0.0.9")
    meter = PoolMeter("p", settings.line)
    pool = AsyncVMPool(await stage.client(), settings, observer=meter)
    with pytest.raises(VMNotReady):
        await pool.allocate("a", probe=ReadinessProbe(1, timeout_s=0.2, tries_next=True))

    assert dict(meter.results) == {("allocate", "error"): 1}


@pytest.mark.parametrize("wait_s", [-1, float("nan"), float("inf"), True, "3"])
async def test_a_wait_is_a_number_of_seconds(stage: PoolStage, wait_s: float) -> None:
    pool = await stage.pool(*TWO)

    with pytest.raises(Invalid, match="wait_s"):
        await pool.allocate("a", wait_s=wait_s)
