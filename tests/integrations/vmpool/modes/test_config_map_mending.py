"""State and notes under ``binaryData``, and state and notes that cannot be read: what is said, and what is done."""

import base64
import json
from typing import Any

import pytest

from tenure.integrations.vmpool.config_map_swap import NOTES_KEY, STATE_KEY
from tenure.integrations.vmpool.pool_errors import PoolStateMisplaced, PoolStateUnreadable
from tenure.integrations.vmpool.state.state_repair import RepairKind
from tests.integrations.vmpool.pool_stage import TWO, PoolStage, entry, state_with

BROKEN = b"\xff\xfe no text"


def binary(**values: str | bytes) -> dict[str, str]:
    """Write values as ``binaryData`` has them."""
    texts = {name.replace("_", "-"): text for name, text in values.items()}
    return {
        name: base64.b64encode(each if isinstance(each, bytes) else each.encode()).decode()
        for name, each in texts.items()
    }


def held(*ids: str) -> dict[str, Any]:
    return state_with(list(TWO[len(ids) :]), *(entry(id, ip) for id, ip in zip(ids, TWO, strict=False)))


async def test_a_state_in_binary_data_is_an_error_that_says_what_to_do(stage: PoolStage) -> None:
    stage.put_object({"binaryData": binary(allocation_state=json.dumps(held("a")))})
    before = stage.object()
    pool = await stage.pool(*TWO)

    for call in (pool.allocate("b"), pool.deallocate("a"), pool.status(), pool.list()):
        with pytest.raises(
            PoolStateMisplaced, match=r"allocation-state is in binaryData.*`tenure vmpool repair`"
        ) as caught:
            await call
    assert caught.value.code == "pool_state_misplaced"
    assert stage.object() == before


async def test_a_repair_moves_it_to_data_as_it_is_and_verify_says_so_before(stage: PoolStage) -> None:
    notes = json.dumps({"history": [], "later": 1})
    state = {**held("a"), "availableIPs": []}
    stage.put_object(
        {
            "data": {"mine": "x"},
            "binaryData": binary(allocation_state=json.dumps(state), tenure_notes=notes, own=b"\x00"),
        }
    )
    pool = await stage.pool(*TWO)

    found = await pool.verify()
    report = await pool.repair()

    assert [each.kind for each in found] == [RepairKind.MISPLACED, RepairKind.MISSING]
    assert {each.kind for each in report.findings} == {RepairKind.MISPLACED, RepairKind.MISSING}
    assert (report.is_written, report.copy, report.in_use) == (True, "", 1)
    stored = stage.object()
    assert list(stored["binaryData"]) == ["own"]
    assert stored["data"]["mine"] == "x"
    assert (list(stage.state()["allocatedIPs"]), stage.notes()["later"]) == (["a"], 1)
    assert await pool.verify() == ()
    assert (await pool.allocate("b")).ip == TWO[1]


async def test_notes_in_binary_data_stop_no_allocation_and_a_repair_moves_them(stage: PoolStage) -> None:
    """Two values of one name are refused by the API server: whoever wrote notes beside them would fail for ever."""
    stage.put_object(
        {"data": {STATE_KEY: json.dumps(held("a"))}, "binaryData": binary(tenure_notes='{"later": 1}')}
    )  # fmt: skip
    pool = await stage.pool(*TWO)

    assert (await pool.allocate("b")).ip == TWO[1]
    assert [each.kind for each in await pool.verify()] == [RepairKind.MISPLACED]
    assert "binaryData" in (await pool.status()).warnings[0]
    assert (await pool.repair()).is_written
    assert stage.notes()["later"] == 1
    assert "binaryData" not in stage.object()
    assert await pool.verify() == ()


@pytest.mark.parametrize("value", [BROKEN, "{broken"], ids=["no text", "no state"])
async def test_what_cannot_be_read_in_binary_data_either_is_copied_as_it_is(
    stage: PoolStage, value: str | bytes
) -> None:
    stage.put_object({"binaryData": binary(allocation_state=value)})
    pool = await stage.pool(*TWO)
    for call in (pool.allocate("a"), pool.verify(), pool.repair()):
        with pytest.raises(PoolStateUnreadable, match="is in binaryData, and "):
            await call

    report = await pool.repair(replace_unreadable=True)

    assert (report.replaced, report.in_use) == (("state",), 0)
    assert stage.object(report.copy)["binaryData"] == binary(allocation_state=value)
    assert "binaryData" not in stage.object()
    assert (await pool.allocate("a")).ip in TWO


async def test_vd5_notes_that_are_replaced_leave_every_allocation_where_it_is(stage: PoolStage) -> None:
    stage.put(held("a"), **{NOTES_KEY: "{"})
    pool = await stage.pool(*TWO)
    [found] = await pool.verify()
    assert (found.kind, found.is_change) == (RepairKind.UNREADABLE_NOTES, False)

    left = await pool.repair()
    report = await pool.repair(replace_unreadable=True)

    assert (left.is_written, [each.kind for each in left.findings]) == (False, [RepairKind.UNREADABLE_NOTES])
    assert (report.replaced, report.in_use) == (("notes",), 1)
    assert stage.object(report.copy)["data"][NOTES_KEY] == "{"
    assert list(stage.state()["allocatedIPs"]) == ["a"]
    assert await pool.verify() == ()


async def test_vd5_a_state_that_is_replaced_leaves_what_is_noted_of_machines(stage: PoolStage) -> None:
    noted = {
        "nodes": {"n": {"bootID": "boot-1", "seenAt": "2026-01-02T03:04:05Z"}},
        "draining": {"10.9.9.9": "2026-01-02T03:04:05Z"},
    }
    stage.put("{broken", **{NOTES_KEY: json.dumps(noted)})
    pool = await stage.pool(*TWO)

    report = await pool.repair(replace_unreadable=True)

    assert report.replaced == ("state",)
    assert stage.notes()["nodes"]["n"]["bootID"] == "boot-1"
    assert "draining" not in stage.notes()


async def test_vd4_a_pool_that_was_moved_never_begins_afresh_in_the_configmap_it_has_left(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    await pool.allocate("a")
    await pool.move("per-ip")
    stage.put("{broken", **{NOTES_KEY: stage.object()["data"][NOTES_KEY]})
    late = await stage.pool(*TWO)

    report = await late.repair(replace_unreadable=True)

    assert (report.replaced, report.in_use) == (("state",), 1)
    assert stage.state()["availableIPs"] == []
    assert [each.allocation_id for each in await late.list()] == ["a"]


async def test_vd4_notes_that_say_where_a_pool_is_are_not_replaced(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    await pool.allocate("a")
    await pool.move("per-ip")
    stage.put(stage.object()["data"][STATE_KEY], **{NOTES_KEY: "{"})
    before = stage.object()
    late = await stage.pool(*TWO)

    with pytest.raises(PoolStateUnreadable, match=r"the pool was moved.*mend the text of tenure-notes by hand"):
        await late.repair(replace_unreadable=True)
    assert stage.object() == before


async def test_notes_of_another_mode_are_replaced_as_well(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO, pool_mode="per-ip")
    await pool.allocate("a")
    stage.put_object(
        {"data": {"cell": "{"}, "metadata": {"labels": {"tenure.dev/pool": "byom-ip-pool-state"}}},
        "byom-ip-pool-state.notes",
    )

    [found] = await pool.verify()
    report = await pool.repair(replace_unreadable=True)

    assert found.kind is RepairKind.UNREADABLE_NOTES
    assert (report.replaced, report.in_use) == (("notes",), 1)
    assert stage.object(f"byom-ip-pool-state.{report.copy.removeprefix('the cell ')}") is not None
    assert await pool.verify() == ()
