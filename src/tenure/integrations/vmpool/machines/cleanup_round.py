"""Clean up many VMs: at most so many at once, each VM once, and then wait until they are back."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tenure.integrations.vmpool.machines.vm_cleanup import AT_ONCE, TIMEOUT_S, Cleanup, CleanupOutcome, run_cleanup
from tenure.integrations.vmpool.machines.vm_return import AwaitReturn, FixedWait, ReturnPlan, wait_unless
from tenure.integrations.vmpool.pool_errors import BadArgument
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.integrations.vmpool.state.argument_checks import check_count, check_seconds
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.kernel.names import shown


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """How VMs are made as new, and when they count as back."""

    cleanup: Cleanup
    returns: ReturnPlan = field(default_factory=FixedWait)
    at_once: int = AT_ONCE
    """How many VMs are cleaned up at once."""
    timeout_s: float = TIMEOUT_S
    """For the cleanup of each VM, without its return."""

    def __post_init__(self) -> None:
        if not callable(self.cleanup):
            raise BadArgument(f"cleanup: a function is needed, not {shown(self.cleanup)}", field="cleanup")
        if not isinstance(self.returns, ReturnPlan):
            needed = "a FixedWait or an AwaitReturn is needed"
            raise BadArgument(f"returns: {needed}, not {shown(self.returns)}", field="returns")
        check_count(self.at_once, "at_once", least=1)
        check_seconds(self.timeout_s, "timeout_s")


class RoundStopped(Exception):
    """A round was stopped before all VMs were back."""


WhyLeft = Callable[[VMAllocation], Awaitable[str]]
"""Returns why a VM must not be touched now, or an empty text."""


async def clean_vms(
    plan: CleanupPlan,
    allocations: Sequence[VMAllocation],
    stop: asyncio.Event,
    *,
    why_left: WhyLeft,
    earlier_tries: Mapping[str, int] | None = None,
    meter: PoolMeter | None = None,
) -> dict[str, str]:
    """Clean up the VMs of some allocations; return by IP why they are not usable, an empty text if they are.

    ``why_left`` is asked right before each cleanup: a VM whose turn comes late may be another pod's by then.
    ``earlier_tries`` says by IP how often that was tried in vain before, for the log.

    With a fixed wait there is one for all, after the last cleanup, also if all have failed: a VM whose cleanup was
    not confirmed may still be about to reboot. Raise ``RoundStopped`` if ``stop`` is set before the end.
    """
    if not allocations:
        return {}
    by_ip = {allocation.ip: allocation for allocation in allocations}
    turns = asyncio.Semaphore(plan.at_once)
    tries = earlier_tries or {}
    work = [
        asyncio.create_task(_clean(plan, each, turns, why_left, tries.get(each.ip, 0) + 1, meter))
        for each in by_ip.values()
    ]
    stopping = asyncio.create_task(stop.wait())
    try:
        whole = asyncio.gather(*work)
        ends: set[asyncio.Future[Any]] = {whole, stopping}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        # If the cleanups ended at the moment of the stop, their results count, unless a fixed wait is to follow.
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
    plan: CleanupPlan,
    allocation: VMAllocation,
    turns: asyncio.Semaphore,
    why_left: WhyLeft,
    attempt: int,
    meter: PoolMeter | None,
) -> str:
    """Clean up one VM, and see it come back; return why it is not usable."""
    async with turns:
        # Within the turn: before it, a VM might wait so long that the answer is not true any more.
        if cause := await why_left(allocation):
            return cause
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
