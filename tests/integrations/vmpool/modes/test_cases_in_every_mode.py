"""The published cases that do not depend on the text of one ConfigMap, by number, in every mode (done when 1)."""

import asyncio
import time
from datetime import UTC, datetime

import pytest

from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
from tenure.integrations.vmpool.machines.vm_cleanup import function_cleanup
from tenure.integrations.vmpool.machines.vm_port import ReadinessProbe
from tenure.integrations.vmpool.machines.vm_return import FixedWait
from tenure.integrations.vmpool.node_recovery import RecoveryInterrupted
from tenure.integrations.vmpool.pool_errors import NodeNameUnknown, VMNotReady, VMPoolExhausted
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.integrations.vmpool.state.state_repair import RepairKind
from tenure.integrations.vmpool.vm_instances import InstanceFailed, VMInstances
from tests.infrastructure.free_port import free_port
from tests.integrations.vmpool.modes.mode_stage import ModeStage
from tests.integrations.vmpool.pool_stage import SIX, TWO

THREE = SIX[:3]


async def test_case_5_and_35_opening_a_pool_and_its_status_create_nothing(every: ModeStage) -> None:
    pool = await every.pool(*THREE)

    status = await pool.status()

    assert (status.total, status.available, status.in_use) == (3, 3, 0)
    assert every.objects() == []


async def test_case_7_and_15_the_first_allocation_says_all_that_was_said(every: ModeStage) -> None:
    pool = await every.pool(*TWO)
    before = datetime.now(UTC).replace(microsecond=0)

    given = await pool.allocate("test-allocation-1", "pod-1", "ns-1")

    assert given.ip in TWO
    assert (given.allocation_id, given.node_name, given.pod_name, given.pod_namespace) == (
        "test-allocation-1", "node-1", "pod-1", "ns-1",
    )  # fmt: skip
    assert given.allocated_at is not None
    assert given.allocated_at >= before
    assert given.allocated_at.microsecond == 0
    assert await pool.list() == [given]
    assert await pool.get("test-allocation-1") == given


async def test_unusual_ids_are_stored_and_found_as_they_are(every: ModeStage) -> None:
    ids = ["α-pod-β", "日本 😀", "a/b<&>", "x" * 512, "e\u0301", "\xe9", "pod", "POD"]
    pool = await every.pool(*SIX, "10.0.0.1", "10.0.0.2", "10.0.0.3")
    given = {id: await pool.allocate(id) for id in ids}

    assert len({each.ip for each in given.values()}) == len(ids)
    assert {each.allocation_id: each for each in await pool.list()} == given
    for id in ids:
        assert await (await every.pool(*SIX)).get(id) == given[id]
        assert await pool.deallocate(id) is True
    assert await pool.list() == []


async def test_case_9_an_id_gets_the_same_vm_again_whatever_pod_is_named(every: ModeStage) -> None:
    first, other = await every.pool(*SIX), await every.pool(*SIX, node_name="node-2")

    given = await first.allocate("a", "pod-1", "ns")

    assert await first.allocate("a", "pod-2", "ns") == given
    assert await other.allocate("a") == given
    assert await first.list() == [given]


async def test_case_10_and_12_the_last_vm_is_given_and_then_none(every: ModeStage) -> None:
    pool = await every.pool(*TWO)
    ips = {(await pool.allocate(id)).ip for id in ("a", "b")}

    with pytest.raises(VMPoolExhausted, match=r"^no available IPs in pool$"):
        await pool.allocate("c")

    assert ips == set(TWO)
    assert [each.allocation_id for each in await pool.list()] == ["a", "b"]
    assert (await pool.allocate("a")).ip in TWO


async def test_case_11_the_seeds_picks(every: ModeStage) -> None:
    if every.mode in ("shards", "ledger"):
        pytest.skip("shards pick near the id, and a ledger by itself")
    pool = await every.pool(*SIX)

    found = [(await pool.allocate(f"pod-{number}")).ip for number in range(1, 6)]

    assert found == [f"192.168.3.{last}" for last in (13, 12, 11, 15, 10)]


async def test_case_21_and_25_many_callers_of_several_managers_never_share_a_vm(every: ModeStage) -> None:
    pools = [await every.pool(*THREE, node_name=f"node-{number}") for number in range(5)]
    ids = [f"{number}-{each}" for number in range(5) for each in range(4)]

    async def take(place: int, id: str) -> VMAllocation | None:
        try:
            return await pools[place % 5].allocate(id)
        except VMPoolExhausted:
            return None

    found = [each for each in await asyncio.gather(*(take(*each) for each in enumerate(ids))) if each is not None]

    assert len({each.ip for each in found}) == len(found) == 3
    assert await pools[0].list() == sorted(found, key=lambda each: each.allocation_id)


async def test_of_callers_with_one_id_all_get_the_same_vm(every: ModeStage) -> None:
    pools = [await every.pool(*SIX, node_name=f"node-{number}") for number in range(6)]

    found = await asyncio.gather(*(pool.allocate("same") for pool in pools))

    assert len({each.ip for each in found}) == 1
    assert len(await pools[0].list()) == 1


async def test_case_26_and_27_what_is_released_is_free_again(every: ModeStage) -> None:
    pool, other = await every.pool(*TWO), await every.pool(*TWO, node_name="node-2")
    for id in ("a", "b"):
        await pool.allocate(id)

    assert await other.deallocate("a") is True

    status = await pool.status()
    assert (status.total, status.available, status.in_use) == (2, 1, 1)
    assert (await pool.allocate("c")).ip in TWO


async def test_case_29_31_32_33_release_by_id_and_by_ip_in_any_spelling(every: ModeStage) -> None:
    pool = await every.pool("2001:db8::1", "10.0.0.7")
    ips = {(await pool.allocate(id)).ip: id for id in ("a", "b")}

    assert await pool.deallocate("nobody") is False
    assert await pool.deallocate_ip("10.0.0.9") is False
    found = await pool.find_ip("2001:DB8:0::1")
    assert found is not None
    assert found.allocation_id == ips["2001:db8::1"]
    assert await pool.deallocate_ip("2001:DB8::1") is True
    assert await pool.find_ip("2001:db8::1") is None
    assert [each.ip for each in await pool.list()] == ["10.0.0.7"]


async def test_case_36_38_39_reading(every: ModeStage) -> None:
    pool = await every.pool(*THREE)
    given = await pool.allocate("a")

    status = await pool.status()
    assert (status.total, status.available, status.in_use, status.is_there) == (3, 2, 1, True)
    assert await pool.get("a") == given
    assert await pool.get("b") is None
    listed = await pool.list()
    listed.clear()
    assert len(await pool.list()) == 1


async def test_case_41_and_43_a_restart_without_a_cleanup_keeps_all(every: ModeStage) -> None:
    pool = await every.pool(*THREE)
    given = await pool.allocate("a")

    report = await pool.recover()

    assert (report.mode, report.released) == ("keep", ())
    assert await pool.get("a") == given


async def test_case_42_release_takes_back_what_the_node_had_and_no_more(every: ModeStage) -> None:
    own, other = await every.pool(*THREE), await every.pool(*THREE, node_name="node-2")
    await own.allocate("mine")
    kept = await other.allocate("theirs")

    report = await own.recover(mode="release")

    assert [each.allocation_id for each in report.released] == ["mine"]
    assert await own.list() == [kept]
    assert (await own.status()).available == 2


async def test_case_45_all_cleanups_come_before_any_write_and_a_failed_one_keeps_its_vm(every: ModeStage) -> None:
    """And VS2, VD3: the failure is noted, and its id gets no VM that is about to be rebooted."""
    pool = await every.pool(*THREE)
    entries = {id: await pool.allocate(id) for id in ("a", "b")}
    held: list[int] = []

    async def clean(allocation: VMAllocation) -> None:
        held.append(len(await pool.list()))
        if allocation.allocation_id == "b":
            raise RuntimeError("no answer")

    began = time.monotonic()
    report = await pool.recover(cleanup=CleanupPlan(function_cleanup(clean), FixedWait(0.4)))

    assert time.monotonic() - began >= 0.4
    assert held == [2, 2]
    assert [each.allocation_id for each in report.released] == ["a"]
    assert [each.allocation.ip for each in report.failed] == [entries["b"].ip]
    status = await pool.status()
    assert set(status.cleanup_failed) == {entries["b"].ip}
    with pytest.raises(VMNotReady, match="its cleanup failed"):
        await pool.allocate("b")
    # Once it was given back, the id is like any other.
    assert await pool.deallocate("b")
    assert (await pool.allocate("b")).ip in THREE
    assert (await pool.status()).cleanup_failed == {}


async def test_case_46_without_own_allocations_nothing_is_cleaned_waited_for_or_written(every: ModeStage) -> None:
    own, other = await every.pool(*THREE), await every.pool(*THREE, node_name="node-2")
    await other.allocate("theirs")
    before, cleaned = every.versions(), []

    async def clean(allocation: VMAllocation) -> None:
        cleaned.append(allocation.ip)

    report = await own.recover(cleanup=CleanupPlan(function_cleanup(clean), FixedWait(60.0)))

    assert report.seconds < 30
    assert (cleaned, report.is_written, every.versions()) == ([], False, before)


async def test_case_48_stopped_in_the_wait_nothing_is_released(every: ModeStage) -> None:
    pool, stop = await every.pool(*THREE), asyncio.Event()
    given = await pool.allocate("a")

    async def clean(allocation: VMAllocation) -> None:
        asyncio.get_running_loop().call_later(0.1, stop.set)

    with pytest.raises(RecoveryInterrupted, match=r"^context cancelled during VM cleanup wait$") as caught:
        await pool.recover(cleanup=CleanupPlan(function_cleanup(clean), FixedWait(60.0)), stop=stop)

    assert caught.value.report.released == ()
    assert await pool.list() == [given]
    assert (await pool.status()).cleanup_failed == {}


async def test_an_id_that_asks_again_within_a_second_is_known_by_its_request(every: ModeStage) -> None:
    """Else its VM would be taken for a new one, and what was noted of it would be forgotten."""
    pool = await every.pool(*THREE)

    async def clean(allocation: VMAllocation) -> None:
        raise RuntimeError("no answer")

    for number in range(4):
        began = int(time.time())
        await pool.allocate(id := f"b-{number}")
        await pool.recover(cleanup=CleanupPlan(function_cleanup(clean), FixedWait(0.0)))
        with pytest.raises(VMNotReady, match="its cleanup failed"):
            await pool.allocate(id)
        await pool.deallocate(id)
        if int(time.time()) == began:
            return


@pytest.mark.usefixtures("nameless")
async def test_case_51_without_the_name_of_a_node_nothing_is_written(every: ModeStage) -> None:
    pool = await every.pool(*TWO, node_name="")

    with pytest.raises(NodeNameUnknown):
        await pool.allocate("a")

    assert (await pool.status()).in_use == 0


async def test_case_37_and_54_an_allocation_outside_the_pool_stays_and_is_then_gone(every: ModeStage) -> None:
    wide = await every.pool(*THREE)
    entries = [await wide.allocate(id) for id in ("a", "b", "c")]
    narrow = await every.pool(*(ip for ip in THREE if ip != entries[0].ip))

    await narrow.repair()

    status = await narrow.status()
    assert (status.total, status.in_use, status.draining) == (3, 3, (entries[0].ip,))
    assert await narrow.deallocate("a")
    if every.mode != "ledger":  # there the plan of the network is the pool, and it has not changed
        with pytest.raises(VMPoolExhausted):
            await narrow.allocate("d")


async def test_case_52_by_the_rules_of_the_seed_what_is_outside_the_pool_goes(every: ModeStage) -> None:
    wide = await every.pool(*THREE)
    entries = [await wide.allocate(id) for id in ("a", "b", "c")]
    narrow = await every.pool(*(ip for ip in THREE if ip != entries[0].ip))

    report = await narrow.repair(outside_pool="drop")

    assert [(each.kind, each.allocation_id) for each in report.findings] == [(RepairKind.OUTSIDE_POOL, "a")]
    assert await narrow.list() == entries[1:]
    assert await narrow.verify() == ()


async def test_case_55_new_addresses_of_the_pool_can_be_had(every: ModeStage) -> None:
    narrow = await every.pool(*THREE[:1])
    await narrow.allocate("a")

    wide = await every.pool(*THREE)
    await wide.repair()

    assert (await wide.status()).available == 2
    assert (await wide.allocate("b")).ip in THREE[1:]


async def test_case_59_a_repair_of_what_is_right_writes_nothing(every: ModeStage) -> None:
    pool = await every.pool(*THREE)
    await pool.allocate("a")
    await pool.repair()

    report = await pool.repair()

    assert (report.is_written, report.findings, report.unfinished) == (False, (), 0)
    assert await pool.verify() == ()


async def test_case_79_an_instance_that_cannot_be_made_is_rolled_back(every: ModeStage) -> None:
    pool = await every.pool(*THREE)

    async def send(allocation: VMAllocation, content: bytes) -> None:
        if content == b"lost":
            raise RuntimeError("no route to host")

    instances = VMInstances(pool, send)
    made = await instances.create("pod1", "s1", "", pod_namespace="ns")
    with pytest.raises(InstanceFailed, match="no route to host") as caught:
        await instances.create("pod2", "s2", "lost")

    assert caught.value.is_rolled_back
    assert await pool.list() == [made.allocation]
    assert (made.id, made.name) == (made.allocation.ip, f"byom-{made.allocation.ip}")
    assert await instances.delete(made.id)
    assert (await pool.status()).available == 3


async def test_case_81_a_vm_that_does_not_answer_is_not_given(every: ModeStage) -> None:
    pool = await every.pool("127.0.0.1", "127.0.0.2")
    port = free_port()

    with pytest.raises(VMNotReady):
        await pool.allocate("a", probe=ReadinessProbe(port, tries_next=True))
    assert await pool.list() == []

    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.2", port)
    async with server:
        given = await pool.allocate("a", probe=ReadinessProbe(port, tries_next=True))
    assert given.ip == "127.0.0.2"


async def test_vs10_a_caller_that_waits_gets_the_vm_that_is_released_meanwhile(every: ModeStage) -> None:
    pool, other = await every.pool(*TWO), await every.pool(*TWO, node_name="node-2")
    for id in ("a", "b"):
        await pool.allocate(id)

    waiting = asyncio.create_task(other.allocate("c", wait_s=30))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    await pool.deallocate("a")

    assert (await waiting).ip in TWO
    with pytest.raises(VMPoolExhausted, match=r"^no available IPs in pool$"):
        await pool.allocate("d", wait_s=0.3)


async def test_rendezvous_gives_an_id_its_old_vm_again(every: ModeStage) -> None:
    pool = await every.pool(*SIX, pool_pick="rendezvous")
    given = await pool.allocate("a")
    await pool.deallocate("a")
    for id in ("b", "c"):
        if (await pool.allocate(id)).ip == given.ip:
            await pool.deallocate(id)

    assert (await pool.allocate("a")).ip == given.ip


async def test_vs7_an_agent_knows_conflicts_failures_and_times_of_others(
    every: ModeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.integrations.vmpool.modes.noted_results.NOTED_EVERY_S", 0.0)
    pool, settings = await every.pool(*TWO), every.stage.settings(*TWO, **every.words)
    meter = PoolMeter("pool", settings.line)
    agent = await every.pool(*TWO, observer=meter)
    await agent.status()
    for id in ("a", "b"):
        await pool.allocate(id)
    with pytest.raises(VMPoolExhausted):
        await pool.allocate("c")
    assert await pool.deallocate("a")
    await pool.close()
    await agent.status()

    text = meter.text()
    assert 'byom_pool_allocations_total{pool="pool",result="exhausted"} 1' in text
    assert 'byom_pool_allocation_duration_seconds_count{pool="pool"} 2' in text
    assert 'byom_pool_allocations_total{pool="pool",result="new"} 2' in text or every.mode != "configmap"
