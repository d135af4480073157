"""Clean up many VMs: at most so many at once, each VM once, and then wait until they are back."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tenure.integrations.vmpool.machines.vm_cleanup import AT_ONCE, TIMEOUT_S, Cleanup, CleanupOutcome, run_cleanup
from tenure.integrations.vmpool.machines.vm_return import AwaitReturn, FixedWait, ReturnPlan, wait_unless
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.integrations.vmpool.state.pool_state import VMAllocation


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """How VMs are made as new, and when they count as back."""

    cleanup: Cleanup
    returns: ReturnPlan = field(default_factory=FixedWait)
    at_once: int = AT_ONCE
    """How many VMs are cleaned up at once."""
    timeout_s: float = TIMEOUT_S
    """For the cleanup of each VM, without its return."""


class RoundStopped(Exception):
    """A round was stopped before all VMs were back."""


async def clean_vms(
    plan: CleanupPlan,
    allocations: Sequence[VMAllocation],
    stop: asyncio.Event,
    *,
    earlier_tries: Mapping[str, int] | None = None,
    meter: PoolMeter | None = None,
) -> dict[str, str]:
    """Clean up the VMs of some allocations; return by IP why they are not usable, an empty text if they are.

    ``earlier_tries`` says by IP how often that was tried in vain before, for the log.

    With a fixed wait there is one for all, after the last cleanup, also if all have failed: a VM whose cleanup was
    not confirmed may still be about to reboot. Raise ``RoundStopped`` if ``stop`` is set before the end.
    """
    if not allocations:
        return {}
    by_ip = {allocation.ip: allocation for allocation in allocations}
    turns = asyncio.Semaphore(plan.at_once)
    tries = earlier_tries or {}
    work = [asyncio.create_task(_clean(plan, each, turns, tries.get(each.ip, 0) + 1, meter)) for each in by_ip.values()]
    stopping = asyncio.create_task(stop.wait())
    try:
        whole = asyncio.gather(*work)
        ends: set[asyncio.Future[Any]] = {whole, stopping}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not whole.done():
            raise RoundStopped
        causes = dict(zip(by_ip, whole.result(), strict=True))
    finally:
        for task in (stopping, *work):
            task.cancel()
        await asyncio.gather(stopping, *work, return_exceptions=True)
    if isinstance(plan.returns, FixedWait) and not await wait_unless(stop, plan.returns.seconds):
        raise RoundStopped
    return causes


async def _clean(
    plan: CleanupPlan, allocation: VMAllocation, turns: asyncio.Semaphore, attempt: int, meter: PoolMeter | None
) -> str:
    """Clean up one VM, and see it come back; return why it is not usable."""
    async with turns:
        outcome = await run_cleanup(plan.cleanup, allocation, plan.timeout_s)
    if meter is not None:
        meter.cleaned(not outcome.cause, outcome.seconds)
    _log(allocation, outcome, attempt)
    # From its own cleanup on: a VM may be back before the last of the others was told to reboot.
    if outcome.cause or not isinstance(plan.returns, AwaitReturn):
        return outcome.cause
    return await plan.returns.cause_of_absence(allocation.ip)


def _log(allocation: VMAllocation, outcome: CleanupOutcome, attempt: int) -> None:
    audit(
        PoolEvent.CLEANUP, result="failed" if outcome.cause else "ok", ip=allocation.ip, id=allocation.allocation_id,
        node=allocation.node_name, pod=allocation.pod_name, seconds=f"{outcome.seconds:.3f}", cause=outcome.cause,
        attempt=attempt,
    )  # fmt: skip
