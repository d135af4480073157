"""A node is recovered, and a pool looked after, whatever mode it is in, and also while it is moved."""

from pathlib import Path

import pytest

from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
from tenure.integrations.vmpool.machines.vm_cleanup import function_cleanup
from tenure.integrations.vmpool.machines.vm_return import FixedWait
from tenure.integrations.vmpool.modes.move_pool import move_pool
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.integrations.vmpool.vm_pool_settings import PoolMode
from tests.integrations.vmpool.modes.mode_stage import mode_stage
from tests.integrations.vmpool.pool_stage import SIX, PoolStage


@pytest.mark.parametrize(
    ("mode", "to"),
    [("configmap", "per-ip"), ("per-ip", "shards"), pytest.param("shards", "ledger", marks=pytest.mark.proof)],
)
async def test_vms_of_a_dead_node_are_released_although_their_pool_is_moved_meanwhile(
    stage: PoolStage, tmp_path: Path, mode: PoolMode, to: str
) -> None:
    async with mode_stage(stage, mode, tmp_path) as moving:
        pool, mover = await moving.pool(*SIX), await moving.pool(*SIX, node_name="mover")
        dead = [await pool.allocate(id, "pod", "ns") for id in ("a", "b")]
        kept = await mover.allocate("c")

        async def moves(allocation: VMAllocation) -> None:
            if allocation.allocation_id == "a":
                await move_pool(mover.places, to)

        report = await pool.recover(cleanup=CleanupPlan(function_cleanup(moves), FixedWait(0.0)), node_name="node-1")

        assert {each.ip for each in report.released} == {each.ip for each in dead}
        assert await pool.list() == [kept]
