"""A live pool is moved through all modes and back: nothing is lost, nothing is given twice (VD4, done when 3)."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tenure.integrations.vmpool import vm_pool_settings
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.modes.move_pool import MoveReport, move_alone, move_pool
from tenure.integrations.vmpool.pool_errors import VMPoolExhausted
from tenure.kernel.errors import Conflict
from tests.integrations.vmpool.modes.mode_stage import ModeStage, mode_stage
from tests.integrations.vmpool.modes.test_unfinished_writes import stops_at
from tests.integrations.vmpool.pool_crowd import Chronicle, differences
from tests.integrations.vmpool.pool_stage import SIX, PoolStage
from tests.integrations.vmpool.seed_managers import Done, SeedManagers

POOL = tuple(f"10.8.0.{number}" for number in range(1, 41))
ROUND_TRIP = ("per-ip", "shards", "ledger", "configmap")
WORKERS = 3


@pytest.fixture
async def moving(stage: PoolStage, tmp_path: Path) -> AsyncIterator[ModeStage]:
    """Give a pool that begins in the seed's mode."""
    async with mode_stage(stage, "configmap", tmp_path) as opened:
        yield opened


async def work(pool: AsyncVMPool, lines: list[str], stop: asyncio.Event) -> None:
    """Allocate, ask again and release until told to stop, and write down each step before and after it."""
    for number in itertools.count():
        if stop.is_set():
            return
        id = f"{pool.node_name}-{number}"
        lines.append(f"asks {id}")
        given = await pool.allocate(id, "pod", "ns", wait_s=60)
        assert await pool.allocate(id, "pod", "ns", wait_s=60) == given
        lines.append(f"has {id} {given.ip}")
        if number % 3:
            lines.append(f"gives {id}")
            assert await pool.deallocate(id), id
            lines.append(f"gave {id} True")
        if number >= 3 and number % 3 == 0:
            old = f"{pool.node_name}-{number - 3}"
            lines.append(f"gives {old}")
            assert await pool.deallocate(old), old
            lines.append(f"gave {old} True")


@asynccontextmanager
async def at_work(pools: Sequence[AsyncVMPool], lines: list[str]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Let nodes work as long as the block; one that fails must not leave them at it, since pools wait to be closed."""
    stop = asyncio.Event()
    workers = [asyncio.create_task(work(pool, lines, stop)) for pool in pools]
    try:
        yield workers
        stop.set()
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()


async def test_done_when_3_a_live_pool_goes_through_all_modes_and_back(moving: ModeStage) -> None:
    managers = SeedManagers(moving.stage.kube.kubeconfig(), moving.stage.namespace, POOL)
    mover = await moving.pool(*POOL, node_name="mover")
    kept = await mover.allocate("kept", "pod", "ns")
    lines: list[str] = []
    pools = [await moving.pool(*POOL, node_name=f"node-{number}", operation_timeout_s=60) for number in range(WORKERS)]
    go: list[str] = []
    async with at_work(pools, lines) as workers:
        for to in ROUND_TRIP:
            await asyncio.sleep(0.3)
            before = len(lines)
            report = await move_pool(mover.places, to)
            assert (report.moved_to, report.is_moved) == (to, True)
            assert await mover.get("kept") == kept
            await asyncio.to_thread(managers.start)
            done = await _tried_by_go(managers, f"go-{to}")
            if to == "configmap":
                assert not done.error
                go = [done.ip]
            else:
                assert "no available IPs" in done.error
            await _more(lines, before + 20, workers)

    told = Chronicle().read("\n".join(lines))
    fresh = await moving.pool(*POOL)
    stored = {each.allocation_id: each.ip for each in await fresh.list()}
    assert stored.pop("kept") == kept.ip
    assert stored.pop("go-configmap") == go[0]
    ours = [ip for ip in POOL if ip not in (kept.ip, go[0])]
    assert differences(told, stored, ours, (await fresh.read()).state.available) == []
    assert await fresh.verify() == ()


async def _tried_by_go(managers: SeedManagers, id: str) -> Done:
    """Let a Go manager allocate; it gives up after four writes that others were quicker with, and is asked again."""
    async with asyncio.timeout(60):
        while True:
            [done] = await asyncio.to_thread(managers.allocate, id)
            if "the state has changed" not in done.error:
                return done


async def _more(lines: list[str], count: int, workers: list[asyncio.Task[None]]) -> None:
    """Wait until the workers have gone on."""
    async with asyncio.timeout(60):
        while len(lines) < count:
            for worker in workers:
                if worker.done():
                    worker.result()
            await asyncio.sleep(0.05)


async def test_vd4_every_address_that_was_left_is_a_fillers_and_go_managers_find_none_after_a_restart(
    moving: ModeStage,
) -> None:
    managers = SeedManagers(moving.stage.kube.kubeconfig(), moving.stage.namespace, SIX)
    [before] = await asyncio.to_thread(managers.allocate, "go-1")
    pool = await moving.pool(*SIX)

    await move_alone(pool.places, "per-ip")

    await asyncio.to_thread(managers.start)
    state = moving.stage.state()
    assert set(state["allocatedIPs"]) == {f"moved-to-per-ip-{ip}" for ip in SIX}
    assert {each["nodeName"] for each in state["allocatedIPs"].values()} == {"tenure"}
    assert state["availableIPs"] == []
    [after] = await asyncio.to_thread(managers.allocate, "go-2")
    assert "no available IPs" in after.error
    found = await pool.get("go-1")
    assert found is not None
    assert (found.ip, found.node_name) == (before.ip, "go-node")


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.proof)])
@pytest.mark.parametrize("to", ["per-ip", "shards", "ledger"])
async def test_a_move_that_was_broken_off_goes_on_where_it_was(moving: ModeStage, to: str, step: int) -> None:
    """The mover is stopped at every so many of its requests in turn; callers wait, and another mover ends it."""
    first = await moving.pool(*SIX)
    entries = {id: await first.allocate(id, "pod", "ns") for id in ("a", "b")}
    for number in itertools.count(1, step):
        place = (await first.places.placement()).mode
        target = to if place == "configmap" else "configmap"
        if not await _broken_off(moving, number, target):
            break
        second = await moving.pool(*SIX)
        report = await move_pool(second.places, target)
        assert isinstance(report, MoveReport)
        assert {each.allocation_id: each.ip for each in await second.list()} == {
            id: entry.ip for id, entry in entries.items()
        }
    await check_free(await moving.pool(*SIX))


async def _broken_off(moving: ModeStage, number: int, target: str) -> bool:
    client = await moving.stage.client()
    pool = await moving.pool(*SIX, client=client)
    stopped = asyncio.Event()
    client.trouble = stops_at(number, stopped, is_done=number % 2 == 0)
    mover = asyncio.create_task(move_pool(pool.places, target))
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait({mover, waiting}, return_when=asyncio.FIRST_COMPLETED)
    for task in (mover, waiting):
        task.cancel()
    await asyncio.gather(mover, waiting, return_exceptions=True)
    return stopped.is_set()


async def check_free(pool: AsyncVMPool) -> None:
    """Check that what is not held can be had, and no more."""
    free = (await pool.status()).available
    for number in range(free):
        await pool.allocate(f"more-{number}")
    with pytest.raises(VMPoolExhausted):
        await pool.allocate("one-too-many")


async def test_a_pool_that_is_in_the_seeds_mode_is_not_used_in_another_by_mistake(moving: ModeStage) -> None:
    pool = await moving.pool(*SIX)
    await pool.allocate("a")
    wrong = await moving.pool(*SIX, pool_mode="per-ip")

    with pytest.raises(Conflict, match="tenure vmpool move --to per-ip"):
        await wrong.allocate("b")

    assert [each.allocation_id for each in await pool.list()] == ["a"]


async def test_vs5_the_status_warns_by_the_mode_in_which_the_pool_is(
    moving: ModeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vm_pool_settings, "COMFORTABLE_IPS", 5)
    unset, named = await moving.pool(*SIX), await moving.pool(*SIX, pool_mode="per-ip")
    await unset.move("per-ip")
    away = [await pool.status() for pool in (unset, named)]
    await unset.move("configmap")
    home = [await pool.status() for pool in (unset, named)]

    assert [(each.mode, each.warnings) for each in away] == [("per-ip", ())] * 2
    assert [(each.mode, len(each.warnings)) for each in home] == [("configmap", 1)] * 2
    assert all("6 addresses in one ConfigMap" in each.warnings[0] for each in home)


async def test_a_pool_is_not_moved_to_two_modes_at_once(moving: ModeStage) -> None:
    pool = await moving.pool(*SIX)
    await pool.allocate("a")
    assert await _broken_off(moving, 6, "per-ip")

    with pytest.raises(Conflict, match="being moved to 'per-ip'"):
        await move_pool(pool.places, "shards")

    assert (await move_pool(pool.places, "per-ip")).allocations == 1
    assert (await move_pool(pool.places, "per-ip")).is_moved is False
