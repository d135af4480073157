"""Instances on a pool: cases 79 to 81 by number, with a real sftp server in the place of the VM."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tenure.integrations.vmpool.machines.sftp_reboot import sftp_reboot
from tenure.integrations.vmpool.machines.vm_port import ReadinessProbe
from tenure.integrations.vmpool.pool_errors import VMNotReady, VMPoolExhausted
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.integrations.vmpool.vm_instances import InstanceFailed, VMInstances, send_by_sftp
from tenure.kernel.errors import Invalid
from tests.infrastructure.free_port import free_port
from tests.integrations.vmpool.machines.sftp_server import SftpVM, StalledFiles, sftp_vm
from tests.integrations.vmpool.recovery.recovery_stage import IPS, RecoveryStage, entry
from tests.integrations.vmpool.vms import FakeVM

HERE = ["127.0.0.1"]


@pytest.fixture
async def vm(tmp_path: Path) -> AsyncIterator[SftpVM]:
    async with sftp_vm(tmp_path) as server:
        yield server


async def refuse(allocation: VMAllocation, content: bytes = b"") -> None:
    raise RuntimeError("no route to host")


async def accept(allocation: VMAllocation, content: bytes = b"") -> None:
    pass


async def test_case_79_an_instance_is_named_by_its_ip_and_has_its_user_data(stage: RecoveryStage, vm: SftpVM) -> None:
    async with stage.pool(pool_ips=HERE) as pool:
        instances = VMInstances(pool, send_by_sftp(vm.access), sftp_reboot(vm.access))
        instance = await instances.create("pod1", "sandbox1", lambda: "#cloud-config\n", pod_namespace="ns")

    assert (instance.id, instance.name, instance.ips) == ("127.0.0.1", "byom-127.0.0.1", ("127.0.0.1",))
    assert (vm.media / "cidata" / "user-data").read_text("utf-8") == "#cloud-config\n"
    [(id, found)] = stage.state()["allocatedIPs"].items()
    assert (id, found["podName"], found["podNamespace"]) == ("pod1-sandbox1", "pod1", "ns")


async def test_case_79_a_failure_after_the_allocation_is_rolled_back(stage: RecoveryStage) -> None:
    async with stage.pool() as pool:
        with pytest.raises(InstanceFailed, match=r"^failed to send config to VM 10\.0\.0\.\d: no route to host$"):
            await VMInstances(pool, refuse).create("pod1", "s1", "")

        def broken() -> str:
            raise ValueError("no template")

        with pytest.raises(InstanceFailed, match="no template"):
            await VMInstances(pool, accept).create("pod1", "s1", broken)

    assert stage.fill() == (3, 0)


async def test_case_79_a_cancelled_creation_is_rolled_back(stage: RecoveryStage) -> None:
    sending = asyncio.Event()

    async def hang(allocation: VMAllocation, content: bytes) -> None:
        sending.set()
        await asyncio.sleep(60)

    async with stage.pool() as pool:
        creating = asyncio.create_task(VMInstances(pool, hang).create("pod1", "s1", ""))
        await sending.wait()
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating

    assert stage.fill() == (3, 0)


async def test_case_79_a_vm_that_stalls_after_the_login_is_given_back_in_time(
    stage: RecoveryStage, tmp_path: Path
) -> None:
    async with sftp_vm(tmp_path, StalledFiles) as stalled, stage.pool(pool_ips=HERE) as pool:
        send, reboot = send_by_sftp(stalled.access), sftp_reboot(stalled.access)
        instances = VMInstances(pool, send, reboot, send_timeout_s=0.5, cleanup_timeout_s=0.5)
        async with asyncio.timeout(10):
            with pytest.raises(InstanceFailed, match=r"127\.0\.0\.1: it took longer than 0\.5 s$") as caught:
                await instances.create("pod1", "s1", "#cloud-config\n")

    assert caught.value.is_rolled_back
    assert stage.fill() == (1, 0)


async def test_a_time_out_of_the_sending_has_its_own_words(stage: RecoveryStage) -> None:
    async def late(allocation: VMAllocation, content: bytes) -> None:
        raise TimeoutError("no answer from the gateway")

    async with stage.pool() as pool:
        with pytest.raises(InstanceFailed, match=r"no answer from the gateway$"):
            await VMInstances(pool, late).create("pod1", "s1", "")


async def test_a_time_out_that_is_none_is_refused(stage: RecoveryStage) -> None:
    async with stage.pool() as pool:
        with pytest.raises(Invalid, match="send_timeout_s"):
            VMInstances(pool, accept, send_timeout_s=0)


async def test_case_79_where_it_is_asked_for_a_vm_that_the_rollback_cannot_clean_stays_and_is_noted(
    stage: RecoveryStage,
) -> None:
    async with stage.pool() as pool:
        with pytest.raises(InstanceFailed, match="is still allocated to 'pod1-s1'") as caught:
            await VMInstances(pool, refuse, refuse, keeps_unclean=True).create("pod1", "s1", "")

    assert not caught.value.is_rolled_back
    assert stage.fill() == (2, 1)
    [(ip, noted)] = stage.notes()["cleanupFailed"].items()
    assert (ip, noted["id"], noted["tries"]) == (caught.value.allocation.ip, "pod1-s1", 1)
    assert "no route to host" in noted["cause"]


async def test_case_79_an_instance_that_was_there_before_is_not_rolled_back(stage: RecoveryStage) -> None:
    """The VM of a repeated request may be alive: to give it to another pod would be worse than to keep it."""
    async with stage.pool() as pool:
        await VMInstances(pool, accept).create("pod1", "s1", "")
        with pytest.raises(InstanceFailed, match="is still allocated to 'pod1-s1'") as caught:
            await VMInstances(pool, refuse).create("pod1", "s1", "")

    assert not caught.value.is_rolled_back
    assert stage.fill() == (2, 1)


async def test_case_80_deleting_nothing_is_no_error_and_rubbish_is_one(stage: RecoveryStage) -> None:
    stage.put([entry("a", "10.0.0.1")], IPS[1:])
    async with stage.pool() as pool:
        instances = VMInstances(pool, accept, refuse)
        assert not await instances.delete("")
        assert not await instances.delete("10.0.0.2")
        with pytest.raises(Invalid, match=r"^invalid instance ID x$"):
            await instances.delete("x")

    assert stage.fill() == (2, 1)


async def test_case_80_a_vm_is_rebooted_and_released(stage: RecoveryStage, vm: SftpVM) -> None:
    stage.put([entry("a", "127.0.0.1")])
    async with stage.pool(pool_ips=HERE) as pool:
        assert await VMInstances(pool, accept, sftp_reboot(vm.access)).delete("127.0.0.1")

    assert vm.reboot_file.read_bytes() == b"reboot"
    assert stage.fill() == (1, 0)


async def test_case_80_a_reboot_that_fails_does_not_stop_the_release(stage: RecoveryStage) -> None:
    stage.put([entry("a", "10.0.0.1")], IPS[1:])
    async with stage.pool() as pool:
        assert await VMInstances(pool, accept, refuse).delete("10.0.0.1")

    assert stage.fill() == (3, 0)


async def test_case_80_where_it_is_asked_for_an_unclean_vm_stays_and_is_noted(stage: RecoveryStage) -> None:
    stage.put([entry("a", "10.0.0.1")], IPS[1:])
    async with stage.pool() as pool:
        instances = VMInstances(pool, accept, refuse, keeps_unclean=True)
        assert not await instances.delete("10.0.0.1")
        assert not await instances.delete("10.0.0.1")

    assert stage.fill() == (2, 1)
    noted = stage.notes()["cleanupFailed"]["10.0.0.1"]
    assert (noted["id"], noted["tries"]) == ("a", 2)


async def test_vs6_the_cleanup_of_an_instance_has_a_line_with_its_pod_and_attempt(
    stage: RecoveryStage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.put([entry("a", "10.0.0.1")], IPS[1:])
    async with stage.pool() as pool:
        with caplog.at_level(logging.INFO, "tenure.vmpool"):
            instances = VMInstances(pool, accept, refuse, keeps_unclean=True)
            await instances.delete("10.0.0.1")
            await instances.delete("10.0.0.1")

    said = [each for each in caplog.messages if "VM cleanup" in each or "failed cleanup" in each]
    assert all(" id=a pod=ns/pod-of-a ip=10.0.0.1 attempt=" in each for each in said)
    assert [each.rpartition("attempt=")[2][0] for each in said] == ["1", "1", "1", "2"]


async def test_case_81_a_vm_that_does_not_answer_is_an_error_and_nothing_is_written(stage: RecoveryStage) -> None:
    stage.put([], ["127.0.0.1"])
    before, port = stage.version(), free_port()
    async with stage.pool(pool_ips=HERE) as pool:
        with pytest.raises(VMNotReady, match=r"^invalid allocated IP: 127\.0\.0\.1: port \d+: "):
            await pool.allocate("a", probe=ReadinessProbe(port, 0.5))
        with pytest.raises(VMNotReady, match="nor is any other VM"):
            await pool.allocate("a", probe=ReadinessProbe(port, 0.5, tries_next=True))

    assert stage.version() == before


async def test_case_81_where_it_is_asked_for_the_next_vm_is_tried(stage: RecoveryStage) -> None:
    """pod-2 picks index 1 of 2, which is an address where nothing listens."""
    async with FakeVM() as vm, stage.pool(pool_ips=["127.0.0.1", "127.0.0.2", "127.0.0.3"]) as pool:
        got = [(await pool.allocate(id, probe=ReadinessProbe(vm.port, 0.5, tries_next=True))).ip for id in ("pod-2",)]
        with pytest.raises(VMNotReady, match="2 tried"):
            await pool.allocate("pod-3", probe=ReadinessProbe(vm.port, 0.5, tries_next=True))
        again = await pool.allocate("pod-2", probe=ReadinessProbe(free_port(), 0.5))

    assert (got, again.ip) == (["127.0.0.1"], "127.0.0.1")
    state = stage.state()
    assert (list(state["allocatedIPs"]), state["availableIPs"]) == (["pod-2"], ["127.0.0.2", "127.0.0.3"])


async def test_case_81_an_empty_pool_is_exhausted_with_a_probe_too(stage: RecoveryStage) -> None:
    stage.put([entry("a", "127.0.0.1")])
    async with stage.pool(pool_ips=HERE) as pool:
        with pytest.raises(VMPoolExhausted):
            await pool.allocate("b", probe=ReadinessProbe())


async def test_case_81_a_vm_that_others_take_while_it_is_dialled_is_not_taken_twice(stage: RecoveryStage) -> None:
    async with FakeVM() as vm, stage.pool(pool_ips=HERE) as pool, stage.pool("node-2", pool_ips=HERE) as other:

        class Slow(ReadinessProbe):
            async def cause(self, ip: str) -> str:
                await other.allocate("theirs")
                return await super().cause(ip)

        with pytest.raises(VMPoolExhausted):
            await pool.allocate("mine", probe=Slow(vm.port))

    assert list(stage.state()["allocatedIPs"]) == ["theirs"]
