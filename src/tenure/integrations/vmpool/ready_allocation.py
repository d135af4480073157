"""Allocate a VM that answers: it is dialled before anything is written (case 81).

The VM that is dialled may be another one's by the time of the write; then the next pick is dialled, and so on.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from tenure.integrations.vmpool.machines.vm_port import ReadinessProbe
from tenure.integrations.vmpool.node_recovery import RecoverablePool
from tenure.integrations.vmpool.pool_document import PoolChange, PoolDocument
from tenure.integrations.vmpool.pool_errors import VMNotReady
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.integrations.vmpool.state.state_rules import AllocationRequest
from tenure.kernel.errors import PoolExhausted

DecideAllocation = Callable[[PoolDocument, AllocationRequest], PoolChange[VMAllocation]]


async def allocate_ready(
    pool: RecoverablePool, request: AllocationRequest, probe: ReadinessProbe, decide: DecideAllocation
) -> VMAllocation:
    """Give an id a VM that is ready; one that it has already is returned as it is. Raise ``VMNotReady``."""
    refused: dict[str, str] = {}
    try:
        async with asyncio.timeout(pool.settings.operation_timeout_s):
            while True:
                trial = replace(request, passed_over=frozenset(refused))
                entry = await _tried(pool, trial, probe, decide, refused)
                if entry is not None:
                    return entry
    except TimeoutError:
        cause = f"no VM was ready within {pool.settings.operation_timeout_s:g} s"
        raise VMNotReady(", ".join(refused) or "none", cause) from None
    except PoolExhausted:
        if not refused:
            raise
        ip, cause = list(refused.items())[-1]
        raise VMNotReady(ip, f"{cause}; nor is any other VM that is free ({len(refused)} tried)") from None


async def _tried(
    pool: RecoverablePool,
    request: AllocationRequest,
    probe: ReadinessProbe,
    decide: DecideAllocation,
    refused: dict[str, str],
) -> VMAllocation | None:
    """Dial the next pick and allocate it; return nothing if it is not ready, or was gone by then."""
    first = decide(await pool.read(), request)
    if first.word == "existing":
        return first.result
    wanted = first.result.ip
    if cause := await probe.cause(wanted):
        audit(PoolEvent.WARNING, node=request.node_name, id=request.allocation_id, ip=wanted, warning=cause)
        refused[wanted] = cause
        if not probe.tries_next:
            raise VMNotReady(wanted, cause)
        return None

    def decide_same(document: PoolDocument) -> PoolChange[VMAllocation | None]:
        found = decide(document, request)
        # Only the VM that was dialled: another pick has to be dialled first.
        is_usable = found.word == "existing" or found.result.ip == wanted
        return found if is_usable else PoolChange(None, word="existing")

    about = {"node": request.node_name, "id": request.allocation_id, "pod": request.pod_name, "ip": wanted}
    return await pool.change("allocate", decide_same, about=about)
