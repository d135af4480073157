"""All processes of a pool look at one place, whatever their settings say, and however long they were idle (VD4)."""

import asyncio
from pathlib import Path

import pytest

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.modes.move_pool import move_pool
from tenure.integrations.vmpool.pool_errors import VMPoolExhausted
from tenure.integrations.vmpool.vm_pool_settings import PoolMode
from tests.integrations.vmpool.modes.mode_stage import mode_stage
from tests.integrations.vmpool.pool_stage import SIX, PoolStage

NEW = "192.168.3.77"


@pytest.mark.parametrize("other", ["configmap", "shards", pytest.param("ledger", marks=pytest.mark.proof)])
async def test_the_first_use_decides_in_which_mode_a_pool_is_and_others_follow(
    stage: PoolStage, tmp_path: Path, other: PoolMode
) -> None:
    async with mode_stage(stage, "per-ip", tmp_path) as moving:
        node, stranger = await moving.pool(*SIX), await moving.pool(*SIX, pool_mode=other, node_name="node-2")
        given = await node.allocate("a")

        assert await stranger.get("a") == given
        assert (await stranger.allocate("b")).ip != given.ip
        assert {each.allocation_id for each in await node.list()} == {"a", "b"}
        assert (await stranger.status()).mode == "per-ip"


async def test_a_pool_is_moved_from_where_it_is_by_an_operator_who_does_not_say_where(
    stage: PoolStage, tmp_path: Path
) -> None:
    async with mode_stage(stage, "per-ip", tmp_path) as moving:
        node = await moving.pool(*SIX)
        given = await node.allocate("a")
        operator = await moving.pool(*SIX, pool_mode="configmap")

        report = await move_pool(operator.places, "shards")

        assert (report.moved_from, report.moved_to, report.allocations) == ("per-ip", "shards", 1)
        assert await node.allocate("a") == given


@pytest.mark.parametrize("mode", ["per-ip", pytest.param("ledger", marks=pytest.mark.proof)])
async def test_a_process_that_was_idle_while_the_pool_was_moved_and_grew_gives_nothing_twice(
    stage: PoolStage, tmp_path: Path, mode: PoolMode
) -> None:
    async with mode_stage(stage, mode, tmp_path) as moving:
        idle, busy = await moving.pool(*SIX), await moving.pool(*SIX, node_name="node-2")
        await busy.resize(add=[SIX[0]])
        for id in ("a", "b"):
            await idle.allocate(id)
        await move_pool(busy.places, "shards")
        sized = await busy.resize(add=[NEW])
        given = await fill(busy)
        assert NEW in given.values()

        idle.settings.line.follow(sized.ips, sized.generation)  # as its watch does

        with pytest.raises(VMPoolExhausted):
            await idle.allocate("late")
        asked = await asyncio.gather(*(idle.allocate(id) for id in given))
        assert {each.allocation_id: each.ip for each in asked} == given


async def fill(pool: AsyncVMPool) -> dict[str, str]:
    """Allocate until no VM is left; return what was given."""
    given: dict[str, str] = {}
    while True:
        try:
            id = f"new-{len(given)}"
            given[id] = (await pool.allocate(id)).ip
        except VMPoolExhausted:
            return given
