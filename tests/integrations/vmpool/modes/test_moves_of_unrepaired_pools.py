"""A pool that another manager was the last to write to is moved put right, as by any other write (VD4, VD5)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.modes.move_pool import move_pool
from tenure.integrations.vmpool.pool_errors import VMPoolExhausted
from tenure.integrations.vmpool.state.go_json import write_json
from tenure.integrations.vmpool.state.pool_notes import PoolPlacement
from tenure.integrations.vmpool.state.pool_state import read_state
from tenure.integrations.vmpool.state.state_repair import PoolLine, RepairKind, repair_state
from tenure.integrations.vmpool.vm_pool_settings import PoolMode
from tests.integrations.vmpool.modes.mode_stage import mode_stage
from tests.integrations.vmpool.pool_stage import PoolStage, entry, state_with
from tests.integrations.vmpool.test_async_vm_pool import REPAIRS, THREE

SIXTH = ("2001:db8::1", "2001:db8::2")

UNREPAIRED: dict[str, tuple[Sequence[str], dict[str, Any]]] = {
    **{name: (THREE, state) for name, (state, _, _) in REPAIRS.items()},
    "another spelling": (SIXTH, state_with(["2001:DB8::2"], entry("a", "2001:DB8::1"))),
    "no address": (THREE, state_with(list(THREE), entry("a", ""))),
    "no id": (THREE, state_with(list(THREE[1:]), entry("", THREE[0]))),
}
ONCE = {
    ("another spelling", "per-ip"), ("two ids on one", "shards"), ("case 53", "ledger"), ("junk", "ledger"),
}  # fmt: skip
"""Of each kind of rubbish one; that all of it is put right wherever the pool goes is for ``make proof``."""
MOVES = [
    pytest.param(name, to, id=f"{name}-{to}", marks=() if (name, to) in ONCE else pytest.mark.proof)
    for name in UNREPAIRED
    for to in ("per-ip", "shards", "ledger")
]


@pytest.mark.parametrize(("name", "to"), MOVES)
async def test_a_state_is_put_right_before_it_goes(stage: PoolStage, tmp_path: Path, name: str, to: str) -> None:
    ips, state = UNREPAIRED[name]
    stage.put(state)
    right = repair_state(read_state(json.dumps(state)), PoolLine(tuple(ips))).state.allocated
    async with mode_stage(stage, "configmap", tmp_path) as moving:
        pool = await moving.pool(*ips)

        assert (await move_pool(pool.places, to)).allocations == len(right)

        assert {each.allocation_id: each.ip for each in await pool.list()} == {
            id: each.ip for id, each in right.items()
        }
        gone = set(state["allocatedIPs"]) - right.keys()
        assert {each["id"] for each in stage.notes()["history"] if each["did"] == "repair"} == gone
        assert {each.kind for each in await pool.verify()} <= {RepairKind.OUTSIDE_POOL}
        await check_each_once(pool, ips)


async def check_each_once(pool: AsyncVMPool, ips: Sequence[str]) -> None:
    """Check that every address that nobody has can be had, and none of the others."""
    for number in range((await pool.status()).available):
        await pool.allocate(f"new-{number}")
    with pytest.raises(VMPoolExhausted):
        await pool.allocate("one-too-many")
    held = [each.ip for each in await pool.list()]
    assert len(set(held)) == len(held)
    assert set(ips) <= set(held)


@pytest.mark.parametrize("to", ["per-ip", "configmap"])
async def test_what_is_written_back_while_the_pool_is_on_its_way_neither_doubles_a_vm_nor_stops_the_move(
    stage: PoolStage, tmp_path: Path, to: PoolMode
) -> None:
    async with mode_stage(stage, "configmap", tmp_path) as moving:
        pool = await moving.pool(*THREE)
        given, away = await pool.allocate("a"), PoolPlacement("configmap", "per-ip")
        await pool.places.home.place(away, None)
        await pool.places.home.leave(away)
        stage.overwrite_state(json.dumps(state_with([], entry("b", given.ip, at="2100-01-01T00:00:00Z"))))

        assert (await move_pool((await moving.pool(*THREE)).places, to)).allocations == 1

        assert await pool.get("a") == given
        await check_each_once(pool, THREE)


async def test_what_nobody_here_knows_of_an_allocation_goes_through_all_modes(stage: PoolStage, tmp_path: Path) -> None:
    """Case 65."""
    strange = {**entry("日本 😀", THREE[0]), "rank": 1.5, "deep": [None, {"x": "é"}]}
    stage.put(state_with(list(THREE[1:]), strange))
    async with mode_stage(stage, "configmap", tmp_path) as moving:
        pool = await moving.pool(*THREE)
        for to in ("per-ip", "shards", "ledger", "configmap"):
            await move_pool(pool.places, to)
            [found] = await pool.list()
            assert json.loads(write_json(found.unknown)) == {"rank": 1.5, "deep": [None, {"x": "é"}]}, to

    assert stage.state()["allocatedIPs"] == {"日本 😀": strange}
