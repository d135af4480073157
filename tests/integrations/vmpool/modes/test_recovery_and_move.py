"""A node is recovered, and a pool looked after, whatever mode it is in, and also while it is moved."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
from tenure.integrations.vmpool.machines.vm_cleanup import function_cleanup
from tenure.integrations.vmpool.machines.vm_return import FixedWait
from tenure.integrations.vmpool.modes.move_pool import move_pool
from tenure.integrations.vmpool.node_identity import NodeIdentity
from tenure.integrations.vmpool.pool_agent import AgentSettings, PoolAgent
from tenure.integrations.vmpool.pool_metrics import PoolMeter
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


@pytest.mark.parametrize(
    "mode",
    [
        "per-ip",
        pytest.param("configmap", marks=pytest.mark.proof),
        pytest.param("shards", marks=pytest.mark.proof),
        pytest.param("ledger", marks=pytest.mark.proof),
    ],
)
async def test_an_agent_recovers_once_a_boot_and_counts_in_every_mode(
    stage: PoolStage, tmp_path: Path, mode: PoolMode
) -> None:
    async with mode_stage(stage, mode, tmp_path) as moving:
        other, cleaned = await moving.pool(*SIX, node_name="node-2"), list[str]()
        first = await moving.pool(*SIX)
        for id in ("a", "b"):
            await first.allocate(id, "pod", "ns")
        kept = await other.allocate("c", "pod", "ns")

        async def cleanup(allocation: VMAllocation) -> None:
            cleaned.append(allocation.allocation_id)

        settings = AgentSettings(CleanupPlan(function_cleanup(cleanup), FixedWait(0.0)))
        boots = [NodeIdentity("node-1", "boot-1", datetime.now(UTC) + timedelta(hours=1), "")] * 2
        for boot in boots:
            meter = PoolMeter("byom-ip-pool-state", first.settings.line)
            pool = await moving.pool(*SIX, observer=meter)
            await PoolAgent(pool, settings, boot).round(asyncio.Event())
            if boot is boots[0] and len(cleaned) == 2:
                await first.allocate("new", "pod", "ns")

        assert sorted(cleaned) == ["a", "b"]
        assert {each.allocation_id for each in await other.list()} == {"new", "c"}
        assert (await other.get("c")) == kept
        counted = meter.text()
        for word, count in (("available", 4), ("allocated", 2)):
            assert f'byom_pool_ips{{pool="byom-ip-pool-state",state="{word}"}} {count}' in counted
