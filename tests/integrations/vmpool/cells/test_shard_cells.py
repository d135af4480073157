"""Shards: few objects, of which all processes have the same number."""

import asyncio

import pytest

from tenure.integrations.vmpool.cells.cell_store import CellChange
from tenure.integrations.vmpool.cells.shard_cells import ShardCells, shard_of
from tenure.integrations.vmpool.pool_errors import PoolTooLarge
from tenure.integrations.vmpool.vm_pool_settings import LARGEST_CONFIG_MAP
from tenure.kernel.errors import Conflict
from tests.integrations.vmpool.modes.mode_stage import ModeStage
from tests.integrations.vmpool.pool_stage import SIX, PoolStage

MANY = tuple(f"10.7.0.{number}" for number in range(1, 61))


@pytest.fixture
def sharded(stage: PoolStage) -> ModeStage:
    """Give a stage of the mode."""
    return ModeStage(stage, "shards", "")


async def test_a_process_with_another_number_of_shards_is_refused(sharded: ModeStage) -> None:
    pool = await sharded.pool(*SIX)
    await pool.allocate("a")
    for count in (1, 2, 8):
        wrong = await sharded.pool(*SIX, pool_shards=count)

        with pytest.raises(Conflict, match=r"pool_shards: .* has 3 shards, not"):
            await wrong.allocate("b")

    assert [each.allocation_id for each in await pool.list()] == ["a"]


async def test_allocations_lie_in_few_objects_and_all_addresses_can_be_had(sharded: ModeStage) -> None:
    pool = await sharded.pool(*MANY)

    found = {(await pool.allocate(f"id-{number}")).ip for number in range(len(MANY))}

    assert found == set(MANY)
    shards = [f"byom-ip-pool-state-shard-{number}" for number in range(3)]
    assert sharded.objects() == ["byom-ip-pool-state", *shards]  # the first says where the pool is


async def test_a_swap_that_was_done_does_not_answer_with_the_error_of_one_that_waited_beside_it(
    stage: PoolStage,
) -> None:
    cells = ShardCells(await stage.client(), stage.namespace, "pool", 1)
    await cells.swap([CellChange("before", None, "text")])

    # The first is under way while the other two come, which are too large together.
    first, small, large = await asyncio.gather(
        cells.swap([CellChange("first", None, "text")]),
        cells.swap([CellChange("small", None, "text")]),
        cells.swap([CellChange("large", None, "x" * LARGEST_CONFIG_MAP)]),
        return_exceptions=True,
    )

    assert not isinstance(first, BaseException), first
    assert not isinstance(small, BaseException), small
    assert isinstance(large, PoolTooLarge)
    assert (await cells.all()).cells.keys() == {"before", "first", "small"}


def test_a_name_stays_in_its_shard_when_shards_are_added_unless_it_goes_to_a_new_one() -> None:
    names = [f"name-{number}" for number in range(300)]

    moved = [name for name in names if shard_of(name, 4) != shard_of(name, 5)]

    assert all(shard_of(name, 5) == 4 for name in moved)
    assert {shard_of(name, 4) for name in names} == set(range(4))
