"""The audit: a line for everything, found by the seed's own grep (VS6)."""

import asyncio
import logging

import pytest

from tenure.integrations.vmpool.modes.cell_allocations import CellAllocations
from tenure.integrations.vmpool.pool_errors import VMPoolExhausted
from tenure.integrations.vmpool.pool_log import LOG, PoolEvent, audit
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tests.integrations.vmpool.pool_stage import TWO, PoolStage, loses_answers, refuses, state_with


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, LOG.name)
    return caplog


def fields(caplog: pytest.LogCaptureFixture, event: PoolEvent) -> list[dict[str, object]]:
    return [record.pool_fields for record in caplog.records if getattr(record, "pool_event", "") == event.name]  # type: ignore[attr-defined]


def test_a_value_cannot_break_a_line(lines: pytest.LogCaptureFixture) -> None:
    audit(PoolEvent.ALLOCATED, id='a b="c"\nIP allocation released', ip="10.0.0.1", pod="", attempt=None)

    [line] = lines.messages
    assert line == 'IP allocation allocated: id="a b=\\"c\\"\\nIP allocation released" ip=10.0.0.1'


def test_vs6_every_event_has_the_words_of_the_seeds_grep(lines: pytest.LogCaptureFixture) -> None:
    for event in PoolEvent:
        audit(event, id="a")

    assert all("IP allocation" in line for line in lines.messages)
    assert len(lines.messages) == len(PoolEvent)
    assert any("NOT releasing IP due to failed cleanup" in line for line in lines.messages)


async def test_vs6_attempt_and_result_of_an_allocation(stage: PoolStage, lines: pytest.LogCaptureFixture) -> None:
    pool = await stage.pool(*TWO)
    found = await pool.allocate("a", "web-0", "shop")
    await pool.allocate("a", "web-0", "shop")

    about = {"node": "node-1", "id": "a", "pod": "shop/web-0"}
    assert fields(lines, PoolEvent.ATTEMPT)[0] == {"operation": "allocate", **about, "attempt": 1}
    assert fields(lines, PoolEvent.ALLOCATED) == [{**about, "ip": found.ip, "attempt": 1}]
    assert fields(lines, PoolEvent.EXISTING) == [{**about, "ip": found.ip, "attempt": 1}]


async def test_vs6_a_conflict_and_its_resolution(stage: PoolStage, lines: pytest.LogCaptureFixture) -> None:
    stage.put(state_with(list(TWO)))
    client = await stage.client()
    client.trouble = refuses(409, "Conflict", "the object has been modified", times=1)
    pool = await stage.pool(*TWO, client=client)
    await pool.allocate("a")

    [conflict] = fields(lines, PoolEvent.CONFLICT)
    assert (conflict["node"], conflict["id"], conflict["attempt"]) == ("node-1", "a", 1)
    [resolved] = fields(lines, PoolEvent.RESOLVED)
    assert (resolved["id"], resolved["attempt"]) == ("a", 2)
    assert fields(lines, PoolEvent.ALLOCATED)[0]["attempt"] == 2


async def test_vs6_releases_refusals_and_repairs(stage: PoolStage, lines: pytest.LogCaptureFixture) -> None:
    stage.put(state_with(["10.9.9.9", *TWO]))
    pool = await stage.pool(*TWO)
    first = await pool.allocate("a", "web-0")
    await pool.allocate("b")
    with pytest.raises(VMPoolExhausted):
        await pool.allocate("c")
    await pool.deallocate("a")
    await pool.deallocate("a")

    [repaired] = fields(lines, PoolEvent.REPAIRED)
    assert (repaired["kind"], repaired["ip"], repaired["node"]) == ("unknown", "10.9.9.9", "node-1")
    assert fields(lines, PoolEvent.EXHAUSTED)[0]["id"] == "c"
    [released] = fields(lines, PoolEvent.RELEASED)
    assert released == {"node": "node-1", "id": "a", "pod": "web-0", "ip": first.ip, "attempt": 1}
    assert fields(lines, PoolEvent.NOT_FOUND)[0]["id"] == "a"


@pytest.mark.parametrize("mode", ["configmap", "per-ip"])
async def test_vs6_a_release_and_its_repetition_say_which_attempt_they_were(
    stage: PoolStage, lines: pytest.LogCaptureFixture, mode: str
) -> None:
    pool = await stage.pool(*TWO, pool_mode=mode)
    found = await pool.allocate("a", "web-0")
    await pool.deallocate("a")
    await pool.deallocate("a")

    attempts = [each for each in fields(lines, PoolEvent.ATTEMPT) if each["operation"] == "deallocate"]
    assert [(each["node"], each["id"], each["attempt"]) for each in attempts] == [("node-1", "a", 1)] * 2
    [released] = fields(lines, PoolEvent.RELEASED)
    assert released == {"node": "node-1", "id": "a", "pod": "web-0", "ip": found.ip, "attempt": 1}
    [not_found] = fields(lines, PoolEvent.NOT_FOUND)
    assert (not_found["node"], not_found["id"], not_found["attempt"]) == ("node-1", "a", 1)


async def test_vs6_a_race_that_a_release_has_lost_is_a_conflict_with_its_resolution(
    stage: PoolStage, lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, other = [await stage.pool(*TWO, pool_mode="per-ip") for _ in range(2)]
    await pool.allocate("a")
    drop = CellAllocations.drop

    async def overtaken(book: CellAllocations, entry: VMAllocation) -> bool:
        monkeypatch.undo()
        await other.deallocate("a")
        await other.allocate("a", "another-pod")
        return await drop(book, entry)

    monkeypatch.setattr(CellAllocations, "drop", overtaken)
    await pool.deallocate("a")

    [conflict] = fields(lines, PoolEvent.CONFLICT)
    assert (conflict["operation"], conflict["id"], conflict["attempt"]) == ("deallocate", "a", 1)
    [resolved] = fields(lines, PoolEvent.RESOLVED)
    assert (resolved["operation"], resolved["id"], resolved["attempt"]) == ("deallocate", "a", 2)
    assert [each["attempt"] for each in fields(lines, PoolEvent.RELEASED)] == [1, 2]


async def test_vs6_a_lost_answer_that_is_settled_has_a_line(stage: PoolStage, lines: pytest.LogCaptureFixture) -> None:
    client = await stage.client()
    client.trouble = loses_answers(on="create")
    pool = await stage.pool(*TWO, client=client)
    await pool.allocate("a")

    assert fields(lines, PoolEvent.SETTLED)[0]["id"] == "a"
    assert len(fields(lines, PoolEvent.ALLOCATED)) == 1


async def test_vs6_an_allocation_whose_caller_left_has_a_line_too(
    stage: PoolStage, lines: pytest.LogCaptureFixture
) -> None:
    client = await stage.client()
    pool = await stage.pool(*TWO, client=client)
    calling = asyncio.create_task(pool.allocate("a"))
    await client.begun("create")
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    await pool.close()

    assert [each["id"] for each in fields(lines, PoolEvent.ALLOCATED)] == ["a"]
    assert list(stage.state()["allocatedIPs"]) == ["a"]


async def test_vs5_a_large_pool_is_a_warning_at_start(stage: PoolStage, lines: pytest.LogCaptureFixture) -> None:
    await stage.pool(*[f"10.0.{number >> 8}.{number & 255}" for number in range(1001)])

    assert "1001 addresses" in str(fields(lines, PoolEvent.WARNING)[0]["warning"])


async def test_every_operation_has_a_line_with_its_node_also_one_that_only_reads(
    stage: PoolStage, lines: pytest.LogCaptureFixture
) -> None:
    pool = await stage.pool(*TWO)
    await pool.get("a")
    await pool.find_ip(TWO[0])
    await pool.list()
    await pool.status()
    await pool.verify()

    found = fields(lines, PoolEvent.READ)
    assert [each["operation"] for each in found] == ["get", "find", "list", "status", "verify"]
    assert {each["node"] for each in found} == {"node-1"}
