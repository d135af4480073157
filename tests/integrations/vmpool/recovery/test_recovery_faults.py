"""Recovery while all goes wrong at once: cleanups fail for some, other nodes write, the API server is restarted."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
from tenure.integrations.vmpool.machines.vm_cleanup import function_cleanup
from tenure.integrations.vmpool.machines.vm_return import FixedWait
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tests.infrastructure.kube import fresh_namespace, private_kube
from tests.integrations.vmpool.recovery.recovery_stage import IPS, RecoveryStage, entry
from tests.integrations.vmpool.vms import until

MANY = tuple(f"10.1.0.{number}" for number in range(1, 41))


async def test_another_nodes_writes_during_the_wait_are_kept(stage: RecoveryStage) -> None:
    """The seed writes with the version from before the wait, so any write in between made it fail."""
    stage.put([entry("own", "10.0.0.1")], IPS[1:])
    async with stage.pool() as pool, stage.pool("node-2") as other:
        cleaned = asyncio.Event()

        async def clean(allocation: VMAllocation) -> None:
            cleaned.set()

        recovering = asyncio.create_task(
            pool.recover(cleanup=CleanupPlan(function_cleanup(clean), FixedWait(0.5)))
        )  # fmt: skip
        await cleaned.wait()
        theirs = await other.allocate("theirs")
        report = await recovering

    assert [each.allocation_id for each in report.released] == ["own"]
    state = stage.state()
    assert state["allocatedIPs"]["theirs"]["ip"] == theirs.ip
    assert sorted([*state["availableIPs"], theirs.ip]) == sorted(IPS)


async def test_what_others_released_or_took_meanwhile_is_left_to_them(stage: RecoveryStage) -> None:
    """Its own adaptor gives two VMs back during the wait, and another node gets one of them under the same id."""
    stage.put([entry("gone", "10.0.0.1"), entry("again", "10.0.0.2"), entry("stays", "10.0.0.3")])
    async with stage.pool() as pool, stage.pool("node-2") as other:

        async def clean(allocation: VMAllocation) -> None:
            if allocation.allocation_id != "stays":
                await other.deallocate(allocation.allocation_id)

        cleanup = CleanupPlan(function_cleanup(clean), FixedWait(0.3))
        recovering = asyncio.create_task(pool.recover(cleanup=cleanup))
        await until(lambda: stage.fill() == (2, 1))
        theirs = await other.allocate("again")
        report = await recovering

    assert sorted(each.allocation_id for each in report.changed) == ["again", "gone"]
    assert [each.allocation_id for each in report.released] == ["stays"]
    state = stage.state()
    assert [(id, each["nodeName"]) for id, each in state["allocatedIPs"].items()] == [("again", "node-2")]
    assert sorted([*state["availableIPs"], theirs.ip]) == sorted(IPS)


async def test_done_3_some_cleanups_fail_others_write_and_the_api_server_is_restarted_in_the_middle() -> None:
    """20 VMs of a dead node, of which 5 cannot be cleaned, while another node allocates, releases and is refused."""
    with private_kube() as kube, fresh_namespace(kube) as namespace:
        stage = RecoveryStage(kube, namespace)
        own, failing = MANY[:20], set(MANY[:5])
        stage.put([entry(f"own-{ip}", ip) for ip in own], MANY[20:])
        all_cleaned = asyncio.Event()
        seen: list[str] = []

        async def clean(allocation: VMAllocation) -> None:
            seen.append(allocation.ip)
            if len(seen) == len(own):
                all_cleaned.set()
            if allocation.ip in failing:
                raise RuntimeError("no answer")

        async with AsyncExitStack() as stack:
            given: dict[str, Any] = {"pool_ips": MANY, "operation_timeout_s": 60.0}
            pool = await stack.enter_async_context(stage.pool(**given))
            other = await stack.enter_async_context(stage.pool("node-2", **given))
            cleanup = CleanupPlan(function_cleanup(clean), FixedWait(3.0))
            recovering = asyncio.create_task(pool.recover(cleanup=cleanup))
            await all_cleaned.wait()
            kept = await asyncio.gather(*(other.allocate(f"kept-{number}") for number in range(5)))
            await other.allocate("short")
            await asyncio.to_thread(kube.kill, "kube-apiserver")
            busy = [asyncio.create_task(other.allocate(f"late-{number}")) for number in range(3)]
            releasing = asyncio.create_task(other.deallocate("short"))
            await asyncio.sleep(3.5)  # the wait is over, and the swap meets a server that is away
            await asyncio.to_thread(kube.start_api_server)
            report, late = await recovering, await asyncio.gather(*busy)
            await releasing

        state, noted = stage.state(), stage.notes()["cleanupFailed"]

    assert sorted(seen) == sorted(own), "every VM was cleaned up once"
    assert {each.ip for each in report.released} == set(own) - failing
    assert {each.allocation.ip for each in report.failed} == failing == set(noted)
    held = {each["ip"] for each in state["allocatedIPs"].values()}
    assert held == failing | {each.ip for each in [*kept, *late]}
    assert len(held) == len(state["allocatedIPs"]) == 13
    assert sorted([*held, *state["availableIPs"]]) == sorted(MANY)
