"""While a pool is moved, an id that has a VM keeps it, whoever asks again, and whatever answer was lost (VD4)."""

import asyncio
from pathlib import Path

import pytest

from tenure.integrations.kubernetes.runtime.api_errors import ApiUnreachable
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.modes.book_place import BookPlace
from tenure.integrations.vmpool.modes.move_pool import move_pool
from tenure.integrations.vmpool.modes.pool_fillers import filler_of
from tenure.integrations.vmpool.state.pool_notes import PoolPlacement
from tenure.integrations.vmpool.vm_pool_settings import PoolMode
from tests.integrations.vmpool.modes.mode_stage import ON_CELLS, mode_stage
from tests.integrations.vmpool.pool_stage import SIX, PoolStage, Send, Trouble


async def left_halfway(mover: AsyncVMPool, id: str) -> None:
    """Do what a mover does until it has given the VM of one id to a filler, and no more."""
    home, seen = mover.places.home, await mover.places.placement()
    await home.place(PoolPlacement(seen.mode, "configmap", seen.epoch), (await home.read_notes()).placement)
    place = mover.places.at(seen.mode, seen.epoch)
    assert isinstance(place, BookPlace)
    await place.book.seal()
    entry = await place.book.of_id(id)
    assert entry is not None
    assert await place.book.exchange(entry, filler_of(entry.ip, "configmap", entry))


@pytest.mark.parametrize("mode", ["per-ip", "shards", "ledger"])
async def test_an_id_that_asks_again_while_its_place_is_left_gets_the_vm_that_it_has(
    stage: PoolStage, tmp_path: Path, mode: PoolMode
) -> None:
    async with mode_stage(stage, mode, tmp_path) as moving:
        node, mover = await moving.pool(*SIX), await moving.pool(*SIX, node_name="mover")
        first = await node.allocate("a", "pod", "ns")
        await left_halfway(mover, "a")

        again = asyncio.create_task(node.allocate("a", "pod", "ns"))
        await asyncio.sleep(0.7)
        report = await move_pool(mover.places, "configmap")

        assert report.allocations == 1
        assert (await again).ip == first.ip
        assert {each.allocation_id: each.ip for each in await mover.list()} == {"a": first.ip}
        assert await mover.verify() == ()


def exchanged_unanswered(mover: AsyncVMPool, id: str) -> Trouble:
    """Lose the answer of the write that gives an id its VM, which a mover gives to a filler meanwhile."""
    done: list[str] = []

    async def trouble(word: str, send: Send) -> Object:
        found = await send()
        if word in ("create", "replace") and not done and await mover.get(id) is not None:
            done.append(word)
            await left_halfway(mover, id)
            raise ApiUnreachable("the answer is lost")
        return found

    return trouble


@pytest.mark.parametrize("mode", ON_CELLS)
async def test_an_id_whose_answer_was_lost_when_the_mover_came_gets_no_second_vm(
    stage: PoolStage, tmp_path: Path, mode: PoolMode
) -> None:
    async with mode_stage(stage, mode, tmp_path) as moving:
        client = await stage.client()
        node, mover = await moving.pool(*SIX, client=client), await moving.pool(*SIX, node_name="mover")
        await node.allocate("other")
        client.trouble = exchanged_unanswered(mover, "a")

        asking = asyncio.create_task(node.allocate("a"))
        await asyncio.sleep(0.7)
        report = await move_pool(mover.places, "configmap")

        assert report.allocations == 2
        found = await mover.get("a")
        assert found is not None
        assert (await asking).ip == found.ip
        assert await mover.verify() == ()
