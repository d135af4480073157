"""Recovery of a node: cases 40 to 61 of the published list, VD2, VD3, VS2, by number, on a real API server."""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
from tenure.integrations.vmpool.machines.vm_cleanup import CleanupFunction, function_cleanup
from tenure.integrations.vmpool.machines.vm_return import AwaitReturn, FixedWait
from tenure.integrations.vmpool.node_recovery import NodeRecovery, RecoveryInterrupted
from tenure.integrations.vmpool.pool_errors import NodeNameUnknown, PoolStateUnreadable, PoolUnavailable
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.integrations.vmpool.vm_pool import VMPool
from tests.integrations.vmpool.recovery.recovery_stage import IPS, RecoveryStage, entry
from tests.integrations.vmpool.vms import FakeVM, until

OWN = entry("own", "10.0.0.1")
OTHER = entry("other", "10.0.0.2", node="node-2")


class Cleanups:
    """A cleanup that notes which VMs it was called for, and fails for some."""

    def __init__(self, *failing: str, then: Callable[[VMAllocation], None] = lambda allocation: None) -> None:
        self.cleaned: list[str] = []
        self._failing = failing
        self._then = then

    async def __call__(self, allocation: VMAllocation) -> None:
        self.cleaned.append(allocation.ip)
        self._then(allocation)
        if allocation.ip in self._failing:
            raise RuntimeError("the VM is on fire")


def plan(cleanup: CleanupFunction, wait_s: float = 0.0, **given: Any) -> CleanupPlan:
    return CleanupPlan(function_cleanup(cleanup), FixedWait(wait_s), **given)


def ids(allocations: tuple[VMAllocation, ...]) -> list[str]:
    return [each.allocation_id for each in allocations]


async def test_case_40_without_a_config_map_all_is_free_in_version_1(stage: RecoveryStage) -> None:
    async with stage.pool() as pool:
        report = await pool.recover()

    assert (report.was_created, report.mode) == (True, "keep")
    state = stage.state()
    assert (state["allocatedIPs"], state["availableIPs"], state["version"]) == ({}, list(IPS), 1)


async def test_case_41_an_allocation_of_no_node_is_kept(stage: RecoveryStage) -> None:
    stage.put([entry("a", "10.0.0.1", node="")], IPS[1:])
    cleanups = Cleanups()
    async with stage.pool() as pool:
        await pool.recover(cleanup=plan(cleanups))
        status = await pool.status()

    assert (status.total, status.available, status.in_use) == (3, 2, 1)
    assert stage.state()["allocatedIPs"]["a"]["ip"] == "10.0.0.1"
    assert cleanups.cleaned == []


async def test_case_42_own_allocations_go_to_the_end_of_available_and_others_stay(stage: RecoveryStage) -> None:
    stage.put([OWN, OTHER], IPS[2:])
    async with stage.pool() as pool:
        report = await pool.recover(mode="release")

    assert (ids(report.released), report.kept, report.failed) == (["own"], (), ())
    state = stage.state()
    assert (list(state["allocatedIPs"]), state["availableIPs"]) == (["other"], ["10.0.0.3", "10.0.0.1"])
    assert state["version"] == 8


async def test_case_43_in_keep_mode_both_stay_and_no_cleanup_is_called(stage: RecoveryStage) -> None:
    stage.put([OWN, OTHER], IPS[2:])
    before, cleanups = stage.version(), Cleanups()
    async with stage.pool() as pool:
        report = await pool.recover(mode="keep", cleanup=plan(cleanups))

    assert (ids(report.kept), report.released, cleanups.cleaned) == (["own"], (), [])
    assert stage.version() == before


async def test_vd2_it_keeps_unless_there_is_a_cleanup(stage: RecoveryStage) -> None:
    stage.put([OWN, OTHER], IPS[2:])
    async with stage.pool() as pool:
        kept = await pool.recover()
        released = await pool.recover(cleanup=plan(Cleanups()))

    assert (kept.mode, ids(kept.kept), released.mode, ids(released.released)) == ("keep", ["own"], "release", ["own"])


async def test_vd3_a_vm_that_another_pod_got_meanwhile_is_not_cleaned_up(stage: RecoveryStage) -> None:
    """Turns come one after the other: pods are removed and made again while a node recovers."""
    stage.put([OWN, entry("own-2", "10.0.0.2")], [])
    async with stage.pool() as pool, stage.pool(node_name="node-9") as other:

        async def clean(allocation: VMAllocation) -> None:
            if not cleaned:
                await other.deallocate("own-2" if allocation.allocation_id == "own" else "own")
                living.append((await other.allocate("living")).ip)
            cleaned.append(allocation.ip)

        cleaned: list[str] = []
        living: list[str] = []
        report = await pool.recover(cleanup=plan(clean, at_once=1))

    assert set(cleaned).isdisjoint(living)
    assert len(cleaned) == len(report.released) == len(report.changed) == 1
    assert set(stage.state()["allocatedIPs"]) == {"living"}


async def test_case_45_all_cleanups_come_before_any_write_and_then_one_wait(stage: RecoveryStage) -> None:
    stage.put([OWN, entry("own-2", "10.0.0.2")], IPS[2:])
    before = stage.version()
    seen: list[str] = []
    cleanups = Cleanups(then=lambda allocation: seen.append(stage.version()))
    async with stage.pool() as pool:
        began = time.monotonic()
        running = asyncio.create_task(pool.recover(cleanup=plan(cleanups, 1.0)))
        await until(lambda: len(seen) == 2)
        await asyncio.sleep(0.5)
        in_the_wait = await asyncio.to_thread(stage.version)
        report = await running

    assert sorted(cleanups.cleaned) == ["10.0.0.1", "10.0.0.2"]
    assert [*seen, in_the_wait] == [before] * 3
    assert 1.0 <= report.seconds <= time.monotonic() - began
    assert stage.fill() == (3, 0)


async def test_case_45_the_wait_is_5_seconds_unless_it_is_said_otherwise(stage: RecoveryStage) -> None:
    stage.put([OWN], IPS[1:])
    async with stage.pool() as pool:
        report = await pool.recover(cleanup=CleanupPlan(function_cleanup(Cleanups("10.0.0.1"))))

    assert 5.0 <= report.seconds < 15
    assert len(report.failed) == 1, "also if all have failed"


async def test_case_46_without_own_allocations_nothing_is_cleaned_waited_for_or_written(stage: RecoveryStage) -> None:
    stage.put([OTHER], ["10.0.0.1", "10.0.0.3"])
    before, cleanups = stage.version(), Cleanups()
    async with stage.pool() as pool:
        report = await pool.recover(cleanup=plan(cleanups, 60))

    assert report.seconds < 30
    assert (cleanups.cleaned, report.is_written, stage.version()) == ([], False, before)


async def test_case_48_stopped_in_the_wait_nothing_is_released_and_the_repair_goes_on(stage: RecoveryStage) -> None:
    stage.put([OWN], ["10.0.0.2", "10.0.0.2"])
    stop = asyncio.Event()

    def stop_soon(allocation: VMAllocation) -> None:
        asyncio.get_running_loop().call_later(0.2, stop.set)

    cleanups = Cleanups(then=stop_soon)
    async with stage.pool() as pool:
        with pytest.raises(RecoveryInterrupted, match=r"^context cancelled during VM cleanup wait$") as caught:
            await pool.recover(cleanup=plan(cleanups, 60), stop=stop)

    assert caught.value.report.released == ()
    state = stage.state()
    assert (list(state["allocatedIPs"]), state["availableIPs"]) == (["own"], ["10.0.0.2", "10.0.0.3"])
    assert "cleanupFailed" not in stage.notes()


async def test_case_48_a_cleanup_that_hangs_is_stopped_too(stage: RecoveryStage) -> None:
    stage.put([OWN], IPS[1:])
    stop = asyncio.Event()

    async def hang(allocation: VMAllocation) -> None:
        asyncio.get_running_loop().call_later(0.1, stop.set)
        await asyncio.sleep(60)

    async with stage.pool() as pool:
        with pytest.raises(RecoveryInterrupted):
            await pool.recover(cleanup=plan(hang), stop=stop)

    assert stage.fill() == (2, 1)


def test_case_48_callers_who_block_stop_it_from_another_thread(stage: RecoveryStage) -> None:
    stage.put([OWN], IPS[1:])
    stop = threading.Event()
    with VMPool(stage.settings(), kubeconfig=str(stage.kube.kubeconfig())) as pool:
        threading.Timer(0.3, stop.set).start()
        with pytest.raises(RecoveryInterrupted):
            pool.recover(cleanup=plan(Cleanups(), 60), stop=stop)
        report = pool.recover(cleanup=plan(Cleanups()))

    assert ids(report.released) == ["own"]


async def test_case_48_a_cancelled_recovery_leaves_the_state_as_it_was(stage: RecoveryStage) -> None:
    stage.put([OWN], IPS[1:])
    before, cleanups = stage.version(), Cleanups()
    async with stage.pool() as pool:
        running = asyncio.create_task(pool.recover(cleanup=plan(cleanups, 60)))
        await until(lambda: bool(cleanups.cleaned))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert stage.version() == before


@pytest.mark.parametrize("ip", ["junk", "", "10.0.0.1/32"])
async def test_case_50_an_unparsable_ip_is_not_cleaned_up_goes_and_is_never_available(
    stage: RecoveryStage, ip: str
) -> None:
    stage.put([entry("bad", ip), OWN], IPS[1:])
    cleanups = Cleanups()
    async with stage.pool() as pool:
        report = await pool.recover(cleanup=plan(cleanups))

    assert (cleanups.cleaned, ids(report.dropped)) == (["10.0.0.1"], ["bad"])
    state = stage.state()
    assert (state["allocatedIPs"], sorted(state["availableIPs"])) == ({}, sorted(IPS))


@pytest.mark.usefixtures("nameless")
async def test_case_51_without_a_node_name_nothing_is_written(stage: RecoveryStage) -> None:
    async with stage.pool(node="") as pool:
        with pytest.raises(NodeNameUnknown, match=r"^unable to determine node name"):
            await pool.recover(mode="release")

    assert stage.object() is None


async def test_case_52_outside_the_pool_is_dropped_by_the_rules_of_the_seed(stage: RecoveryStage) -> None:
    stage.put([entry("a", "10.0.0.1"), entry("out", "192.168.9.9")], ["10.0.0.2", "10.0.0.2", "10.0.0.3"])
    async with stage.pool(outside_pool="drop") as pool:
        await pool.recover()
        status = await pool.status()

    assert (status.total, status.available, status.in_use) == (3, 2, 1)
    assert list(stage.state()["allocatedIPs"]) == ["a"]


async def test_case_53_outside_the_pool_is_kept_by_default_and_never_available_when_released(
    stage: RecoveryStage,
) -> None:
    stage.put(
        [entry("a", "10.0.0.1", node="node-2"), entry("out", "192.168.9.9")], ["10.0.0.2", "10.0.0.2", "10.0.0.3"]
    )
    async with stage.pool() as pool:
        await pool.recover()
        status = await pool.status()
        assert (status.total, status.available, status.in_use) == (4, 2, 2)
        report = await pool.recover(mode="release")

    assert ids(report.released) == ["out"]
    assert stage.state()["availableIPs"] == ["10.0.0.2", "10.0.0.3"]


async def test_case_54_ips_that_left_the_pool_are_no_longer_available(stage: RecoveryStage) -> None:
    stage.put([entry("a", "10.0.0.1"), entry("b", "10.0.0.4")], ["10.0.0.2", "10.0.0.5", "10.0.0.6"])
    async with stage.pool(pool_ips=["10.0.0.1", "10.0.0.2"]) as pool:
        await pool.recover()

    state = stage.state()
    assert (state["availableIPs"], sorted(state["allocatedIPs"])) == (["10.0.0.2"], ["a", "b"])


async def test_case_55_ips_that_came_to_the_pool_are_available(stage: RecoveryStage) -> None:
    stage.put([entry("a", "10.0.0.1")], ["10.0.0.2"])
    async with stage.pool(pool_ips=["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]) as pool:
        await pool.recover()

    assert stage.state()["availableIPs"] == ["10.0.0.2", "10.0.0.3", "10.0.0.4"]


async def test_case_57_an_ip_that_is_allocated_and_available_is_not_available(stage: RecoveryStage) -> None:
    stage.put([entry("a", "10.0.0.1")], IPS)
    async with stage.pool() as pool:
        await pool.recover()

    assert stage.state()["availableIPs"] == ["10.0.0.2", "10.0.0.3"]


async def test_case_59_a_consistent_state_is_not_written(stage: RecoveryStage) -> None:
    stage.put([OWN], IPS[1:])
    before = stage.version()
    async with stage.pool() as pool:
        reports = [await pool.recover(), await pool.recover()]

    assert [each.is_written for each in reports] == [False, False]
    assert stage.version() == before


@pytest.mark.parametrize("text", ["{", '{"version": "3"}', "[]"])
async def test_case_61_a_state_that_cannot_be_read_is_refused_and_stays(stage: RecoveryStage, text: str) -> None:
    stage.put_text(text)
    before, cleanups = stage.version(), Cleanups()
    async with stage.pool() as pool:
        with pytest.raises(PoolStateUnreadable):
            await pool.recover(cleanup=plan(cleanups))

    assert (stage.version(), cleanups.cleaned) == (before, [])


class Unreadable(ApiClient):
    """A client whose reads fail as those of a server in trouble do."""

    error: Exception = ApiUnreachable("no answer")

    async def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = "application/json") -> Object:
        raise self.error


class InTrouble(Unreadable):
    """The server answers, with an error of its own."""

    error = ApiError(500, "InternalError", "etcd is away")


class BehindProxy(Unreadable):
    """Something before the server answers 404, which is not the server's word."""

    error = ApiError(404, "", "no backend")


@pytest.mark.parametrize("client", [Unreadable, InTrouble, BehindProxy])
async def test_a_read_error_never_initialises_or_wipes(stage: RecoveryStage, client: type[ApiClient]) -> None:
    stage.put([OWN], IPS[1:])
    before, cleanups = stage.version(), Cleanups()
    async with stage.pool(client=client, operation_timeout_s=0.5) as pool:
        with pytest.raises(Exception, match="failed to retrieve pool state"):
            await pool.recover(cleanup=plan(cleanups))

    assert (stage.version(), cleanups.cleaned) == (before, [])


async def test_vs2_a_failed_cleanup_keeps_its_ip_is_noted_and_logged(
    stage: RecoveryStage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.put([OWN, entry("own-2", "10.0.0.2")], IPS[2:])
    with caplog.at_level(logging.INFO):
        async with stage.pool() as pool:
            report = await pool.recover(cleanup=plan(Cleanups("10.0.0.2")))

    assert (ids(report.released), [each.allocation.allocation_id for each in report.failed]) == (["own"], ["own-2"])
    assert list(stage.state()["allocatedIPs"]) == ["own-2"]
    noted = stage.notes()["cleanupFailed"]["10.0.0.2"]
    assert (noted["id"], noted["cause"], noted["tries"]) == ("own-2", "RuntimeError: the VM is on fire", 1)
    [line] = [each for each in caplog.messages if "NOT releasing IP due to failed cleanup" in each]
    assert "IP allocation" in line
    for part in ("ip=10.0.0.2", "id=own-2", 'cause="RuntimeError: the VM is on fire"', "node=node-1"):
        assert part in line


async def test_vs6_a_recovery_and_each_cleanup_have_a_line(
    stage: RecoveryStage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.put([OWN], IPS[1:])
    with caplog.at_level(logging.INFO):
        async with stage.pool() as pool:
            await pool.recover(cleanup=plan(Cleanups()))

    for event in ("CLEANUP", "RELEASED", "RECOVERY"):
        [record] = [each for each in caplog.records if getattr(each, "pool_event", "") == event]
        assert record.getMessage().startswith("IP allocation ")
        fields = record.__dict__["pool_fields"]
        assert fields["node"] == "node-1"
        if event != "RECOVERY":
            assert (fields["id"], fields["ip"], fields["attempt"]) == ("own", "10.0.0.1", 1)
            assert "pod-of-own" in fields["pod"]


async def test_what_failed_is_listed_and_tried_again(stage: RecoveryStage) -> None:
    stage.put([OWN], IPS[1:])
    async with stage.pool() as pool:
        for tries in (1, 2):
            await pool.recover(cleanup=plan(Cleanups("10.0.0.1")))
            assert stage.notes()["cleanupFailed"]["10.0.0.1"]["tries"] == tries
        recovery = NodeRecovery(pool, "node-1", plan(Cleanups()))
        assert (await recovery.retry_failed(lambda failure: False)).released == ()
        report = await recovery.retry_failed(lambda failure: True)

    assert ids(report.released) == ["own"]
    assert "cleanupFailed" not in stage.notes()
    assert stage.fill() == (3, 0)


async def test_a_retry_touches_nothing_but_what_failed(stage: RecoveryStage) -> None:
    stage.put([OWN, OTHER], IPS[2:])
    cleanups = Cleanups()
    async with stage.pool() as pool:
        await pool.recover(cleanup=plan(Cleanups("10.0.0.1")))
        mine = await pool.allocate("young")
        report = await NodeRecovery(pool, "node-1", plan(cleanups)).retry_failed(lambda failure: True)

    assert (cleanups.cleaned, ids(report.released)) == (["10.0.0.1"], ["own"])
    assert sorted(stage.state()["allocatedIPs"]) == ["other", "young"]
    assert mine.ip == "10.0.0.3"


async def test_cleanups_run_in_parallel_up_to_the_limit_and_each_has_its_time(stage: RecoveryStage) -> None:
    ips = [f"10.0.1.{number}" for number in range(1, 13)]
    stage.put([entry(f"a{ip}", ip) for ip in ips])
    at_work, most = 0, 0

    async def slow(allocation: VMAllocation) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        try:
            await asyncio.sleep(60 if allocation.ip == ips[0] else 0.2)
        finally:
            at_work -= 1

    async with stage.pool(pool_ips=ips) as pool:
        report = await pool.recover(cleanup=plan(slow, at_once=4, timeout_s=0.5))

    assert most == 4
    assert report.seconds < 10
    assert [(each.allocation.ip, each.cause) for each in report.failed] == [(ips[0], "it took longer than 0.5 s")]
    assert len(report.released) == 11


async def test_a_vm_that_another_node_has_as_well_is_not_touched(stage: RecoveryStage) -> None:
    """Two ids on one IP: the other node's VM may be alive, and rebooting it would be worse than any bookkeeping."""
    stage.put([OWN, entry("other", "10.0.0.1", node="node-2")], IPS[1:])
    cleanups = Cleanups()
    async with stage.pool() as pool:
        report = await pool.recover(cleanup=plan(cleanups))

    assert (cleanups.cleaned, ids(report.dropped), report.released) == ([], ["own"], ())
    state = stage.state()
    assert (list(state["allocatedIPs"]), sorted(state["availableIPs"])) == (["other"], ["10.0.0.2", "10.0.0.3"])


async def test_two_own_ids_on_one_vm_are_cleaned_up_once(stage: RecoveryStage) -> None:
    stage.put([OWN, entry("twin", "10.0.0.1")], IPS[1:])
    cleanups = Cleanups()
    async with stage.pool() as pool:
        await pool.recover(cleanup=plan(cleanups))

    assert cleanups.cleaned == ["10.0.0.1"]
    assert sorted(stage.state()["availableIPs"]) == sorted(IPS)


async def test_only_allocations_before_a_moment_count_as_dead(stage: RecoveryStage) -> None:
    boot = datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)
    young = entry("young", "10.0.0.2", at="2026-01-01T00:00:00Z")
    stage.put([OWN, young, entry("timeless", "10.0.0.3", at=None)])
    cleanups = Cleanups()
    async with stage.pool() as pool:
        report = await NodeRecovery(pool, "node-1", plan(cleanups), before=boot).run()

    assert (cleanups.cleaned, ids(report.released)) == (["10.0.0.1"], ["own"])
    assert sorted(ids(report.kept)) == ["timeless", "young"]


async def test_vms_are_released_when_they_were_away_and_are_back(stage: RecoveryStage) -> None:
    stage.put([entry("own", "127.0.0.1")])
    async with FakeVM() as vm, stage.pool(pool_ips=["127.0.0.1"]) as pool:
        rebooting: list[Awaitable[None]] = []

        async def reboot(allocation: VMAllocation) -> None:
            rebooting.append(asyncio.create_task(vm.reboot(after_s=0.3, away_s=0.5)))

        back = AwaitReturn(vm.port, within_s=20, every_s=0.05)
        report = await pool.recover(cleanup=CleanupPlan(function_cleanup(reboot), back))
        await rebooting[0]

    assert ids(report.released) == ["own"]
    assert report.seconds >= 0.7


async def test_a_vm_that_does_not_come_back_has_failed(stage: RecoveryStage) -> None:
    stage.put([entry("own", "127.0.0.1")])
    async with FakeVM() as vm, stage.pool(pool_ips=["127.0.0.1"]) as pool:
        back = AwaitReturn(vm.port, within_s=0.5, every_s=0.05)
        report = await pool.recover(cleanup=CleanupPlan(function_cleanup(Cleanups()), back))

    assert [each.cause for each in report.failed] == ["it was not seen to go away within 0.5 s"]


async def test_a_named_node_is_recovered_on_the_operators_word(stage: RecoveryStage) -> None:
    stage.put([OWN, OTHER], IPS[2:])
    async with stage.pool() as pool:
        report = await pool.recover(node_name="node-2", mode="release")

    assert (report.node_name, ids(report.released)) == ("node-2", ["other"])


async def test_recoveries_stand_in_the_history(stage: RecoveryStage) -> None:
    stage.put([OWN], IPS[1:])
    async with stage.pool() as pool:
        await pool.recover(mode="release")

    [line] = stage.notes()["history"]
    assert (line["did"], line["id"], line["ip"], line["node"]) == ("recover", "own", "10.0.0.1", "node-1")


async def test_a_server_that_is_away_when_the_vms_are_back_leaves_all_allocated(stage: RecoveryStage) -> None:
    """The error says so, and the next recovery does it all again."""

    class Dying(ApiClient):
        is_dead = False

        async def _ask(self, method: str, path: str, *words: Any, **named: Any) -> Object:
            if Dying.is_dead:
                raise ApiUnreachable("no answer")
            return await super()._ask(method, path, *words, **named)

    stage.put([OWN], IPS[1:])
    before = stage.version()

    def die(allocation: VMAllocation) -> None:
        Dying.is_dead = True

    async with stage.pool(client=Dying, operation_timeout_s=0.5) as pool:
        with pytest.raises(PoolUnavailable):
            await pool.recover(cleanup=plan(die))
        assert stage.version() == before
        Dying.is_dead = False
        report = await pool.recover(cleanup=plan(Cleanups()))

    assert ids(report.released) == ["own"]
