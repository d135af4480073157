"""Shards: few objects, of which all processes have the same number."""

import pytest

from tenure.integrations.vmpool.cells.shard_cells import shard_of
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


def test_a_name_stays_in_its_shard_when_shards_are_added_unless_it_goes_to_a_new_one() -> None:
    names = [f"name-{number}" for number in range(300)]

    moved = [name for name in names if shard_of(name, 4) != shard_of(name, 5)]

    assert all(shard_of(name, 5) == 4 for name in moved)
    assert {shard_of(name, 4) for name in names} == set(range(4))
