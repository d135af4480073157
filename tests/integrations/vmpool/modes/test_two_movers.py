"""A mover that sleeps past its Lease, and wakes when another one has ended the move, brings nothing back (VD4)."""

import asyncio
from pathlib import Path

import pytest

from tenure.integrations.kubernetes.runtime.api_errors import error_of
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.vmpool.cells.cell_store import CellChange
from tenure.integrations.vmpool.modes.book_place import BookPlace
from tenure.integrations.vmpool.modes.cell_allocations import CellAllocations
from tenure.integrations.vmpool.modes.move_pool import move_pool
from tenure.integrations.vmpool.pool_errors import PoolForbidden
from tenure.integrations.vmpool.vm_pool_settings import PoolMode
from tests.integrations.vmpool.modes.mode_stage import ON_CELLS, mode_stage
from tests.integrations.vmpool.pool_stage import SIX, PoolStage, Send, Trouble, no_trouble


class LeaseIsLost(Exception):
    """What a mover without its Lease is told."""


def lost() -> None:
    """Refuse to go on."""
    raise LeaseIsLost


def sleeps_at_creation(asleep: asyncio.Event, woken: asyncio.Event) -> Trouble:
    """Sleep before the first object is made: that is where the pool goes."""

    async def trouble(word: str, send: Send) -> Object:
        if word == "create" and not asleep.is_set():
            asleep.set()
            await woken.wait()
        return await send()

    return trouble


@pytest.mark.parametrize("to", [ON_CELLS[0], pytest.param(ON_CELLS[1], marks=pytest.mark.proof)])
async def test_a_mover_that_wakes_too_late_makes_no_allocation_that_was_released_since(
    stage: PoolStage, tmp_path: Path, to: PoolMode
) -> None:
    async with mode_stage(stage, "configmap", tmp_path) as moving:
        client, asleep, woken = await stage.client(), asyncio.Event(), asyncio.Event()
        slow, quick = await moving.pool(*SIX, client=client), await moving.pool(*SIX, node_name="node-2")
        await quick.allocate("a")
        client.trouble = sleeps_at_creation(asleep, woken)
        sleeper = asyncio.create_task(move_pool(slow.places, to))
        await asleep.wait()

        await move_pool(quick.places, to)
        assert await quick.deallocate("a")
        slow.places.check = lost
        woken.set()

        with pytest.raises(LeaseIsLost):
            await sleeper
        assert await quick.list() == []
        await quick.repair()
        assert len({(await quick.allocate(f"new-{number}")).ip for number in range(len(SIX))}) == len(SIX)


@pytest.mark.parametrize("to", [ON_CELLS[0], pytest.param(ON_CELLS[1], marks=pytest.mark.proof)])
async def test_a_move_that_has_failed_writes_nothing_any_more(stage: PoolStage, tmp_path: Path, to: PoolMode) -> None:
    """The Lease is given up then, and another mover may be at work."""
    async with mode_stage(stage, "configmap", tmp_path) as moving:
        client = await stage.client()
        pool, count = await moving.pool(*SIX, client=client), 0
        for number in range(len(SIX)):
            await pool.allocate(f"id-{number}")

        async def one_is_refused_before_the_others(word: str, send: Send) -> Object:
            nonlocal count
            count += word == "create"
            if word == "create" and count == 3:
                raise error_of(403, {"kind": "Status", "reason": "Forbidden", "message": "no"})
            if word == "create":
                await asyncio.sleep(0.3)
            return await send()

        client.trouble = one_is_refused_before_the_others
        with pytest.raises(PoolForbidden):
            await move_pool(pool.places, to)
        before = moving.objects()
        await asyncio.sleep(0.6)
        assert moving.objects() == before

        client.trouble = no_trouble
        assert (await move_pool(pool.places, to)).allocations == len(SIX)


async def test_a_mover_that_was_too_late_writes_nothing_in_the_turn_of_a_caller_that_needs_no_lease(
    stage: PoolStage, tmp_path: Path
) -> None:
    """Swaps that wait for a shard are written together by one of their callers."""
    async with mode_stage(stage, "shards", tmp_path) as opened:
        places = (await opened.pool(*SIX, pool_shards=1)).places
        place = places.at("shards")
        assert isinstance(place, BookPlace)
        assert isinstance(place.book, CellAllocations)
        cells = place.book.cells
        await cells.swap([CellChange("before", None, "text")])
        places.check = lost

        callers = [asyncio.create_task(cells.swap([CellChange(name, None, "text")])) for name in ("first", "second")]
        with places.as_mover():
            mover = asyncio.create_task(cells.swap([CellChange("mover", None, "text")]))
        await asyncio.gather(*callers)

        with pytest.raises(LeaseIsLost):
            await mover
        assert (await cells.all()).cells.keys() == {"before", "first", "second"}
