"""Nodes that name different ledgers for one pool: each ledger would give out the same VMs."""

import asyncio
from pathlib import Path

import pytest

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.lists.vm_pool_list import VMPoolList
from tenure.integrations.vmpool.modes.move_pool import move_pool
from tenure.integrations.vmpool.vm_pool import VMPool
from tenure.integrations.vmpool.vm_pool_settings import PoolMode, VMPoolSettings
from tenure.kernel.errors import Conflict
from tests.integrations.vmpool.modes.mode_stage import mode_stage
from tests.integrations.vmpool.pool_stage import SIX, PoolStage

REFUSED = "VM_POOL_LEDGER.*the same ledger on all nodes"


@pytest.mark.parametrize("begins_in", ["ledger", "configmap"])
async def test_a_node_that_names_another_ledger_is_refused_and_gives_nothing_out(
    stage: PoolStage, tmp_path: Path, begins_in: PoolMode
) -> None:
    async with mode_stage(stage, begins_in, tmp_path) as house:
        node = await house.pool(*SIX)
        given = await node.allocate("a")
        if begins_in != "ledger":
            await move_pool(node.places, "ledger")
        elsewhere = f"sqlite:///{tmp_path / 'other.db'}"
        stranger = await house.pool(*SIX, pool_ledger=elsewhere, node_name="node-2")

        for call in (stranger.allocate("b"), stranger.deallocate("a"), stranger.list(), stranger.repair()):
            with pytest.raises(Conflict, match=REFUSED):
                await call

        assert [each.ip for each in await node.list()] == [given.ip]


@pytest.mark.parametrize("kind", ["VMPool", "VMPoolList", "AsyncVMPool"])
async def test_a_program_uses_the_cluster_that_its_surroundings_name_as_commands_do(
    stage: PoolStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Without it the program would not know of the ledger in which the pool is."""
    monkeypatch.setenv("KUBECONFIG", str(stage.kube.kubeconfig()))
    async with mode_stage(stage, "ledger", tmp_path) as house:
        node = await house.pool(*SIX)
        await node.allocate("a")
        other = stage.settings(*SIX, pool_mode="ledger", pool_ledger=f"sqlite:///{tmp_path / 'other.db'}")

        with pytest.raises(Conflict, match=REFUSED):
            await _allocate(kind, other)

        assert len(await node.list()) == 1


async def _allocate(kind: str, settings: VMPoolSettings) -> None:
    """Allocate in a pool that is opened as a program opens it."""
    if kind == "AsyncVMPool":
        async with AsyncVMPool.connect(settings) as pool:
            await pool.allocate("b")
        return
    opened = VMPool(settings) if kind == "VMPool" else VMPoolList([settings])
    with opened as blocking:
        await asyncio.to_thread(blocking.allocate, "b")


async def test_a_pool_is_not_moved_out_of_another_ledger_than_its_own(stage: PoolStage, tmp_path: Path) -> None:
    """That one is empty: the pool would arrive without its allocations."""
    async with mode_stage(stage, "ledger", tmp_path) as house:
        node = await house.pool(*SIX)
        given = await node.allocate("a")
        operator = await house.pool(*SIX, pool_ledger=f"sqlite:///{tmp_path / 'other.db'}")

        for to in ("per-ip", "ledger"):
            with pytest.raises(Conflict, match=REFUSED):
                await move_pool(operator.places, to)
        await move_pool(node.places, "per-ip")

        assert await node.get("a") == given


async def test_a_pool_that_was_moved_does_not_begin_anew_where_nothing_says_where_it_is(
    stage: PoolStage, tmp_path: Path
) -> None:
    async with mode_stage(stage, "configmap", tmp_path) as house:
        node = await house.pool(*SIX)
        await node.allocate("a")
        await move_pool(node.places, "ledger")
        stage.kube.ask("DELETE", f"/api/v1/namespaces/{stage.namespace}/configmaps/byom-ip-pool-state")
        later = await house.pool(*SIX, pool_mode="ledger")

        with pytest.raises(Conflict, match="knows the pool 'byom-ip-pool-state' as one that was moved"):
            await later.allocate("b")


async def test_of_two_nodes_that_begin_a_pool_at_once_in_different_ledgers_one_is_refused(
    stage: PoolStage, tmp_path: Path
) -> None:
    async with mode_stage(stage, "ledger", tmp_path) as house:
        first = await house.pool(*SIX)
        second = await house.pool(*SIX, pool_ledger=f"sqlite:///{tmp_path / 'other.db'}", node_name="node-2")
        assert (await first.status()).in_use == (await second.status()).in_use == 0  # nothing is noted yet

        given = await first.allocate("a")

        with pytest.raises(Conflict, match=REFUSED):
            await second.allocate("b")
        assert await first.get("a") == given
