"""VS10: a caller may wait for a VM of a full pool."""

import asyncio
import time

import pytest

from tenure.integrations.vmpool.pool_errors import VMPoolExhausted
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


@pytest.mark.parametrize("wait_s", [-1, float("nan"), float("inf"), True, "3"])
async def test_a_wait_is_a_number_of_seconds(stage: PoolStage, wait_s: float) -> None:
    pool = await stage.pool(*TWO)

    with pytest.raises(Invalid, match="wait_s"):
        await pool.allocate("a", wait_s=wait_s)
