"""A node without a cluster finds its pool by the ledger alone, wherever that was moved (VD4)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.modes.move_pool import move_pool
from tenure.integrations.vmpool.pool_errors import PoolUnavailable, VMPoolExhausted
from tenure.integrations.vmpool.state.pool_notes import PoolPlacement
from tenure.integrations.vmpool.vm_pool_settings import PoolMode
from tenure.kernel.errors import Conflict, Invalid
from tests.integrations.vmpool.modes.mode_stage import ModeStage, mode_stage
from tests.integrations.vmpool.pool_stage import SIX, PoolStage, entry, state_with


@pytest.fixture
async def moving(stage: PoolStage, tmp_path: Path) -> AsyncIterator[ModeStage]:
    """Give a pool that begins in the seed's mode, and a ledger beside it."""
    async with mode_stage(stage, "configmap", tmp_path) as opened:
        yield opened


@asynccontextmanager
async def outside(moving: ModeStage, **words: object) -> AsyncIterator[AsyncVMPool]:
    """Open a pool as a node does that knows the ledger and no cluster."""
    settings = moving.stage.settings(*SIX, pool_mode="ledger", pool_ledger=moving.ledger, **words)
    pool = AsyncVMPool(None, settings)
    try:
        yield pool
    finally:
        await pool.close()


async def test_a_pool_that_was_moved_to_a_ledger_is_found_there_and_no_vm_is_given_twice(moving: ModeStage) -> None:
    mover = await moving.pool(*SIX)
    held = {(await mover.allocate(id)).ip for id in ("a", "b", "c", "d")}
    await move_pool(mover.places, "ledger")

    async with outside(moving, node_name="far") as far:
        found = {(await far.allocate(id)).ip for id in ("e", "f")}
        with pytest.raises(VMPoolExhausted):
            await far.allocate("g")
        assert [each.allocation_id for each in await far.list()] == ["a", "b", "c", "d", "e", "f"]

    assert held | found == set(SIX)


async def test_a_node_outside_waits_for_a_pool_that_comes_and_is_refused_by_one_that_has_left(
    moving: ModeStage,
) -> None:
    mover = await moving.pool(*SIX)
    given = await mover.allocate("a")
    await mover.places.at("ledger", 1).prepare(PoolPlacement("configmap", "ledger"), ())
    async with outside(moving, operation_timeout_s=0.5) as far:
        with pytest.raises(PoolUnavailable, match="being moved"):
            await far.allocate("b")

    async with outside(moving) as far:
        asking = asyncio.create_task(far.allocate("a"))
        await move_pool(mover.places, "ledger")
        assert (await asking).ip == given.ip

        await move_pool(mover.places, "shards")
        with pytest.raises(Conflict, match="name a kubeconfig"):
            await far.allocate("b")
    assert [each.allocation_id for each in await mover.list()] == ["a"]


async def test_a_node_that_looked_at_the_ledger_before_the_pool_came_gives_out_nothing_of_its_own(
    moving: ModeStage,
) -> None:
    mover = await moving.pool(*SIX)
    async with outside(moving) as early, outside(moving) as later:
        assert (await early.status()).available == len(SIX)
        assert await later.places.current()
        given = await mover.allocate("a")
        await move_pool(mover.places, "ledger")

        assert (await early.allocate("a")).ip == (await later.allocate("a")).ip == given.ip
        assert (await later.allocate("b")).ip != given.ip
    assert [each.allocation_id for each in await mover.list()] == ["a", "b"]


async def test_a_pool_is_not_moved_into_a_ledger_that_has_another_one_of_its_name(moving: ModeStage) -> None:
    async with outside(moving) as far:
        await far.allocate("theirs")
    mover = await moving.pool(*SIX)
    await mover.allocate("ours")
    before = moving.stage.object()

    with pytest.raises(Conflict, match="VM_POOL_LEDGER"):
        await move_pool(mover.places, "ledger")

    assert moving.stage.object() == before


@pytest.mark.parametrize("mode", ["configmap", "per-ip"])
async def test_a_node_outside_does_not_wait_for_a_pool_whose_move_was_taken_back(
    stage: PoolStage, tmp_path: Path, mode: PoolMode
) -> None:
    async with mode_stage(stage, mode, tmp_path) as moving:
        mover, away = await moving.pool(*SIX), PoolPlacement(mode, "ledger")
        given = await mover.allocate("a")
        seen = (await mover.places.home.read_notes()).placement
        await mover.places.at("ledger", 1).prepare(away, [given])
        await mover.places.home.place(away, seen)

        await move_pool(mover.places, mode)

        async with outside(moving) as far:
            with pytest.raises(Conflict, match="name a kubeconfig"):
                await far.allocate("b")
        assert (await move_pool(mover.places, "ledger")).allocations == 1
        async with outside(moving) as far:
            assert (await far.allocate("a")).ip == given.ip


async def test_a_node_outside_does_not_wait_for_a_pool_that_the_ledger_has_refused(moving: ModeStage) -> None:
    moving.stage.put(state_with(list(SIX[1:]), {**entry("a", SIX[0]), "podName": "not\x7fprintable"}))
    mover = await moving.pool(*SIX)
    before = moving.stage.object()

    with pytest.raises(Invalid, match="control character"):
        await move_pool(mover.places, "ledger")

    assert moving.stage.object() == before
    async with outside(moving) as far:
        with pytest.raises(Conflict, match="name a kubeconfig"):
            await far.allocate("b")
