"""A VM counts as back when its port was closed and is open again; otherwise the reason is returned."""

import asyncio
import time

from tenure.integrations.vmpool.machines.vm_port import dial
from tenure.integrations.vmpool.machines.vm_return import AwaitReturn, wait_unless
from tests.infrastructure.free_port import free_port
from tests.integrations.vmpool.vms import FakeVM


async def test_a_port_that_answers_is_open_and_others_say_why_not() -> None:
    async with FakeVM() as vm:
        assert await dial("127.0.0.1", vm.port) == ""
    assert await dial("127.0.0.1", vm.port) == f"port {vm.port}: Connection refused"


async def test_a_vm_that_goes_away_and_comes_back_is_back() -> None:
    async with FakeVM() as vm:
        rebooting = asyncio.create_task(vm.reboot(after_s=0.2, away_s=0.3))
        began = time.monotonic()

        assert await AwaitReturn(vm.port, within_s=10, every_s=0.02).cause_of_absence("127.0.0.1") == ""
        assert time.monotonic() - began >= 0.45
        await rebooting


async def test_a_vm_that_never_goes_away_was_not_rebooted() -> None:
    async with FakeVM() as vm:
        plan = AwaitReturn(vm.port, within_s=0.3, every_s=0.02)

        assert await plan.cause_of_absence("127.0.0.1") == "it was not seen to go away within 0.3 s"


async def test_a_vm_that_stays_away_is_not_back() -> None:
    port = free_port()

    found = await AwaitReturn(port, within_s=0.3, every_s=0.02).cause_of_absence("127.0.0.1")

    assert found == f"it was not back on port {port} within 0.3 s"


async def test_where_the_cleanup_waits_itself_the_vm_need_not_go_away() -> None:
    async with FakeVM() as vm:
        plan = AwaitReturn(vm.port, within_s=5, every_s=0.02, must_go_away=False)

        assert await plan.cause_of_absence("127.0.0.1") == ""


async def test_a_wait_ends_early_when_it_is_told_to() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, stop.set)
    began = time.monotonic()

    assert not await wait_unless(stop, 30)
    assert time.monotonic() - began < 10
    assert await wait_unless(asyncio.Event(), 0.01)
    assert await wait_unless(asyncio.Event(), 0)
