"""Instances on the VMs of a pool: create one for a pod, with rollback; delete it, with a reboot (cases 79 to 81).

An instance is a VM while a pod has it. Its id is the IP, as with Cloud API Adaptor.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.machines.sftp_reboot import SftpAccess, put_file
from tenure.integrations.vmpool.machines.vm_cleanup import TIMEOUT_S, Cleanup, run_cleanup
from tenure.integrations.vmpool.machines.vm_port import ReadinessProbe
from tenure.integrations.vmpool.pool_document import PoolChange, PoolDocument
from tenure.integrations.vmpool.pool_errors import VMWorkUnfinished
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.state.argument_checks import check_seconds
from tenure.integrations.vmpool.state.ip_list import canonical_ip
from tenure.integrations.vmpool.state.pool_notes import CleanupFailure
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.kernel.errors import Invalid, TenureError

Send = Callable[[VMAllocation, bytes], Awaitable[None]]
"""Bring user data to a VM; raise if the VM may not have all of it."""
UserData = str | bytes | Callable[[], str | bytes | Awaitable[str | bytes]]
"""What a VM is told to be, or what makes it when the VM is known to be had."""


@dataclass(frozen=True, slots=True)
class VMInstance:
    """A VM that a pod has."""

    id: str
    """Its IP."""
    name: str
    ips: tuple[str, ...]
    allocation: VMAllocation


class InstanceFailed(VMWorkUnfinished):
    """An instance could not be created; its VM was given back, unless ``is_rolled_back`` says otherwise."""

    code = "instance_failed"

    def __init__(self, allocation: VMAllocation, cause: str, *, is_rolled_back: bool) -> None:
        then = "" if is_rolled_back else f"; {allocation.ip} is still allocated to {allocation.allocation_id!r}"
        super().__init__(f"failed to send config to VM {allocation.ip}: {cause}{then}")
        self.allocation = allocation
        self.cause = cause
        self.is_rolled_back = is_rolled_back


def send_by_sftp(access: SftpAccess) -> Send:
    """Return what puts user data where the VMs of Cloud API Adaptor look for it."""

    async def send(allocation: VMAllocation, content: bytes) -> None:
        await put_file(access, allocation.ip, access.user_data_file, content)

    return send


@dataclass(frozen=True, slots=True)
class VMInstances:
    """Creates and deletes instances on one pool."""

    pool: AsyncVMPool
    send: Send
    cleanup: Cleanup | None = None
    """What makes a VM as new when its instance goes."""
    probe: ReadinessProbe | None = None
    """Whether VMs are dialled before they are allocated (case 81)."""
    keeps_unclean: bool = False
    """Whether a VM whose cleanup fails stays allocated, for the agent to try again; else it is released (case 80)."""
    cleanup_timeout_s: float = TIMEOUT_S
    send_timeout_s: float = TIMEOUT_S
    """How long making the user data and sending it may take together."""

    def __post_init__(self) -> None:
        check_seconds(self.cleanup_timeout_s, "cleanup_timeout_s")
        check_seconds(self.send_timeout_s, "send_timeout_s")

    async def create(
        self, pod_name: str, sandbox_id: str, user_data: UserData, *, pod_namespace: str = ""
    ) -> VMInstance:
        """Allocate a VM for a pod and send it its user data; give the VM back if that fails or takes too long.

        A VM that the same pod and sandbox had before this call stays theirs: it may be alive.
        """
        id = f"{pod_name}-{sandbox_id}"
        # Asked before, since allocating gives an id the VM again that it has.
        is_first = await self.pool.get(id) is None
        allocation = await self.pool.allocate(id, pod_name, pod_namespace, probe=self.probe)
        try:
            async with asyncio.timeout(self.send_timeout_s):
                await self.send(allocation, await _made(user_data))
        except BaseException as error:
            # Shielded: another cancellation must not break the rollback off.
            is_rolled_back = is_first and await asyncio.shield(self._rolled_back(allocation))
            if not isinstance(error, Exception):
                raise
            raise InstanceFailed(allocation, self._cause(error), is_rolled_back=is_rolled_back) from error
        return VMInstance(allocation.ip, f"byom-{allocation.ip}", (allocation.ip,), allocation)

    async def delete(self, instance_id: str) -> bool:
        """Reboot a VM and give it back; return whether an id had it. An empty id, and an unknown one, are no errors.

        A VM that cannot be rebooted is given back all the same, unless ``keeps_unclean``.
        """
        if not instance_id:
            return False
        ip = canonical_ip(instance_id)
        if ip is None:
            raise Invalid(f"invalid instance ID {instance_id}", field="instance_id")
        allocation = await self.pool.find_ip(ip)
        if allocation is None:
            return False
        # Before it is given back: from then on it may be another pod's.
        cause = await self._cleaned(allocation)
        if cause and self.keeps_unclean:
            await self._note_failure(allocation, cause)
            return False
        return await self.pool.deallocate(allocation.allocation_id)

    def _cause(self, error: Exception) -> str:
        """Say why a VM has not got its user data."""
        # Its own time-outs have words of their own; ours says how long was waited.
        is_late = isinstance(error, TimeoutError)
        return str(error) or (f"it took longer than {self.send_timeout_s:g} s" if is_late else repr(error))

    async def _cleaned(self, allocation: VMAllocation) -> str:
        """Clean a VM up; return why it could not be."""
        if self.cleanup is None:
            return ""
        outcome = await run_cleanup(self.cleanup, allocation, self.cleanup_timeout_s)
        if self.pool.meter is not None:
            self.pool.meter.cleaned(not outcome.cause, outcome.seconds)
        result = "failed" if outcome.cause else "ok"
        audit(PoolEvent.CLEANUP, **_about(allocation), attempt=1, result=result, cause=outcome.cause)
        return outcome.cause

    async def _rolled_back(self, allocation: VMAllocation) -> bool:
        """Give a VM back whose instance failed; return whether that was done. The VM may have half of its files."""
        cause = await self._cleaned(allocation)
        try:
            if cause and self.keeps_unclean:
                await self._note_failure(allocation, cause)
                return False
            await self.pool.deallocate(allocation.allocation_id)
        except TenureError as error:
            audit(PoolEvent.FAILED, operation="rollback", **_about(allocation), cause=error)
            return False
        return True

    async def _note_failure(self, allocation: VMAllocation, cause: str) -> None:
        id, ip = allocation.allocation_id, allocation.ip

        def decide(document: PoolDocument) -> PoolChange[int]:
            noted = document.notes.cleanup_failed
            tries = noted[ip].tries + 1 if ip in noted else 1
            if id not in document.state.allocated:
                return PoolChange(tries)
            failed = {**noted, ip: CleanupFailure(id, cause, datetime.now(UTC), tries)}
            return PoolChange(tries, notes=replace(document.notes, cleanup_failed=failed))

        tries = await self.pool.change("note", decide, about=_about(allocation))
        audit(PoolEvent.CLEANUP_FAILED, **_about(allocation), attempt=tries, cause=cause)


def _about(allocation: VMAllocation) -> dict[str, str]:
    """Return what the audit says of an allocation."""
    pod = f"{allocation.pod_namespace}/{allocation.pod_name}" if allocation.pod_namespace else allocation.pod_name
    return {"node": allocation.node_name, "id": allocation.allocation_id, "pod": pod, "ip": allocation.ip}


async def _made(user_data: UserData) -> bytes:
    """Return the bytes of user data, made now if they have to be."""
    made = user_data() if callable(user_data) else user_data
    text = await made if inspect.isawaitable(made) else made
    return text.encode() if isinstance(text, str) else text
