"""A move that cannot be made is refused before anything is changed; one that was broken off can be taken back (VD4)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.modes.move_pool import move_pool
from tenure.integrations.vmpool.pool_errors import PoolTooLarge
from tenure.integrations.vmpool.state.pool_notes import PoolPlacement
from tenure.integrations.vmpool.vm_pool_settings import PoolMode
from tenure.kernel.errors import Conflict, Invalid
from tests.infrastructure.free_port import free_port
from tests.integrations.vmpool.modes.mode_stage import ModeStage, mode_stage
from tests.integrations.vmpool.modes.test_move_pool import check_free
from tests.integrations.vmpool.pool_stage import SIX, PoolStage, entry, state_with
from tests.scale import in_proof

ZONED = "fe80::1%eth0"


def addresses(count: int) -> list[str]:
    """Return so many addresses."""
    return [f"10.7.{number // 250}.{number % 250 + 1}" for number in range(count)]


async def full_pool(moving: ModeStage, count: int, **words: Any) -> AsyncVMPool:
    """Store a pool of which every address is allocated."""
    ips = addresses(count)
    moving.stage.put(state_with([], *(entry(f"sandbox-{number:060}", ip) for number, ip in enumerate(ips))))
    return await moving.pool(*ips, **words)


async def test_more_allocations_than_fillers_leave_room_for_are_kept_beside_and_come_back(
    stage: PoolStage, tmp_path: Path
) -> None:
    async with mode_stage(stage, "configmap", tmp_path) as moving:
        pool = await full_pool(moving, 2200)
        home, away = pool.places.home, PoolPlacement("configmap", "per-ip")
        held = {each.allocation_id: each for each in await pool.list()}

        await home.check_leave(away)
        await home.place(away, None)
        left = await home.leave(away)

        assert {each.allocation_id: each for each in left} == held
        assert moving.stage.notes()["leftIn"] in moving.objects()
        assert await home.leave(away) == left
        assert len(moving.stage.state()["allocatedIPs"]) == len(held)
        assert (await move_pool(pool.places, "configmap")).allocations == len(held)
        assert {each.allocation_id: each for each in await pool.list()} == held


@pytest.mark.proof
@pytest.mark.parametrize("to", ["per-ip", "ledger"])
async def test_a_nearly_full_config_map_is_moved_whole(stage: PoolStage, tmp_path: Path, to: str) -> None:
    async with mode_stage(stage, "configmap", tmp_path) as moving:
        pool = await full_pool(moving, 2000, operation_timeout_s=300)
        held = {each.allocation_id: each for each in await pool.list()}

        assert (await move_pool(pool.places, to)).allocations == len(held)

        assert {each.allocation_id: each for each in await pool.list()} == held


async def test_a_pool_whose_fillers_have_no_room_stays_as_it_is(stage: PoolStage, tmp_path: Path) -> None:
    async with mode_stage(stage, "configmap", tmp_path) as moving:
        pool = await moving.pool(*addresses(4600))
        await pool.allocate("a")
        before = stage.object()

        with pytest.raises(PoolTooLarge, match="resize --remove"):
            await move_pool(pool.places, "per-ip")

        assert stage.object() == before


async def test_a_pool_with_more_addresses_than_fillers_have_room_for_moves_between_other_modes(
    stage: PoolStage, tmp_path: Path
) -> None:
    async with mode_stage(stage, "per-ip", tmp_path) as moving:
        pool = await moving.pool(*addresses(4600))
        await pool.allocate("a")

        await pool.places.home.place(PoolPlacement("per-ip", "ledger"), PoolPlacement("per-ip"))

        assert stage.state()["availableIPs"] == []
        assert stage.notes()["placement"]["movesTo"] == "ledger"


@pytest.mark.parametrize(
    ("ips", "words", "to", "error"),
    [
        ((*SIX, ZONED), {}, "ledger", Invalid),
        (addresses(2200), {"pool_shards": 1}, "shards", PoolTooLarge),
    ],
)
async def test_what_the_other_mode_cannot_have_is_refused_before_the_move(
    stage: PoolStage, tmp_path: Path, ips: Sequence[str], words: dict[str, Any], to: str, error: type[Exception]
) -> None:
    async with mode_stage(stage, "configmap", tmp_path) as moving:
        stage.put(state_with([], *(entry(f"sandbox-{number:060}", ip) for number, ip in enumerate(ips))))
        pool = await moving.pool(*ips, **words)
        before = stage.object()

        with pytest.raises(error):
            await move_pool(pool.places, to)

        assert stage.object() == before
        assert (await pool.status()).available == 0


@pytest.mark.parametrize("mode", ["configmap", "per-ip", "ledger"])
async def test_a_move_that_has_not_arrived_is_taken_back(stage: PoolStage, tmp_path: Path, mode: PoolMode) -> None:
    async with mode_stage(stage, mode, tmp_path) as moving:
        pool = await moving.pool(*SIX)
        held = {(each := await pool.allocate(id)).allocation_id: each.ip for id in ("a", "b")}
        seen = (await pool.places.home.read_notes()).placement
        away = PoolPlacement(mode, "shards", 0)
        await pool.places.home.place(away, seen)
        await pool.places.at(mode).leave(away)
        with pytest.raises(Conflict, match=f"--to {mode}"):
            await move_pool(pool.places, "ledger" if mode != "ledger" else "per-ip")

        report = await move_pool(pool.places, mode)

        assert (report.moved_to, report.allocations) == (mode, 2)
        assert {each.allocation_id: each.ip for each in await pool.list()} == held
        await check_free(pool)


@pytest.mark.parametrize("mode", ["per-ip", in_proof("configmap")])
async def test_a_move_to_a_ledger_that_has_died_is_taken_back_and_the_log_says_what_it_could_not_be_told(
    stage: PoolStage, tmp_path: Path, mode: PoolMode, caplog: pytest.LogCaptureFixture
) -> None:
    async with mode_stage(stage, mode, tmp_path) as moving:
        pool = await moving.pool(*SIX, pool_ledger=f"http://127.0.0.1:{free_port()}", operation_timeout_s=2)
        given = await pool.allocate("a")
        seen = (await pool.places.home.read_notes()).placement
        await pool.places.home.place(PoolPlacement(mode, "ledger"), seen)

        first, again = await move_pool(pool.places, mode), await move_pool(pool.places, mode)

        assert (first.is_moved, first.allocations, again.is_moved) == (True, 1, False)
        assert (await pool.allocate("a")).ip == given.ip
        assert caplog.text.count("the ledger does not know yet that the pool is elsewhere") == 2
