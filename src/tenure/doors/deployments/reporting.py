"""How a report about an instance is taken: what is known of it, what is refused, and what is decided is done."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tenure.doors.deployments.configuring import load_networks
from tenure.doors.deployments.explaining import A_VM, HAND_OVER, waits_for
from tenure.doors.deployments.faults import Kind, Refused
from tenure.doors.deployments.model import CloudConfig
from tenure.doors.deployments.parting import Books
from tenure.doors.deployments.records import (
    ORPHAN,
    Deployment,
    Instance,
    load_bare,
    load_deployment,
    load_instance,
)
from tenure.doors.deployments.reserving import HANDED_TO
from tenure.doors.deployments.trying import turns
from tenure.doors.deployments.writing import written
from tenure.kernel.addresses import parse_address
from tenure.kernel.errors import Conflict, NotFound
from tenure.kernel.names import check_name
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import Operation


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of an instance when a report about it is taken."""

    ledger: AsyncLedger
    deployment: Deployment
    config: CloudConfig
    instance: Instance
    instances: Sequence[Instance]
    """It and, as far as they matter, the others of its deployment: those without what they hold."""
    orphans: frozenset[str] = frozenset()
    """Which of the VMs that it is about are orphans."""

    @property
    def books(self) -> Books:
        """Open the books of its deployment."""
        return Books(self.instances)


Decide = Callable[[Report], Sequence[Operation]]


async def reported(
    ledger: AsyncLedger, deployment: str, ident: str, decide: Decide, *, vm: str | None = None
) -> Instance:
    """Decide on what is known of an instance (and of ``vm``, if given), and do it; again if it changed meanwhile."""
    async for turn in turns():
        known = await load_deployment(ledger, check_name(deployment, field="deployment"))
        if known is None:
            raise NotFound("deployment", deployment)
        instance = await load_instance(ledger, deployment, ident)
        config = await load_networks(ledger, known.as_of(instance))
        orphans = await orphans_among(ledger, {vm, instance.vm}) if vm is not None else frozenset()
        others = await _others(ledger, instance, vm, alone=known.snapshot is None)
        operations = decide(Report(ledger, known, config, instance, [instance, *others], orphans))
        with turn:
            await ledger.apply(operations)
            try:
                return await load_instance(ledger, deployment, f"{instance.group}/{instance.uuid}")
            except NotFound:
                return instance
    raise AssertionError("unreachable")


async def _others(ledger: AsyncLedger, instance: Instance, vm: str | None, *, alone: bool) -> list[Instance]:
    """Read the other instances of its deployment, if a report is about them too: without what they hold.

    That is so where one of them waits for what this one has, or may have the VM that comes, or (``alone``, where there
    is no cloud config) its address.
    """
    promised = any(HANDED_TO in each.labels for each in instance.holdings)
    if not promised and vm in (None, instance.vm):
        return []
    found = await load_bare(ledger, instance.deployment, vm=None if promised or alone else vm)
    return [each for each in found if each.uuid != instance.uuid]


async def orphans_among(ledger: AsyncLedger, vms: Iterable[str | None]) -> frozenset[str]:
    """Return those of some VMs that are orphans."""
    found = []
    for vm in vms:
        if vm is not None:
            with suppress(NotFound):
                found.append((await ledger.paper(ORPHAN, vm)).name)
    return frozenset(found)


def check_own(report: Report, vm: str) -> None:
    """Refuse a VM that is somebody else's, and to orphan one whose name an orphan has."""
    instance = report.instance
    other = next((each for each in report.instances if each.vm == vm and each.uuid != instance.uuid), None)
    if other is not None:
        raise Conflict(f"instance {instance.name} cannot have VM {vm!r}: instance {other.name} has it", field="vm")
    swapped = instance.vm if instance.swaps and instance.vm != vm else None
    for name in (vm if vm != instance.vm else None, swapped):
        if name in report.orphans:
            told = f"instance {instance.name}: VM {name!r} is an orphan already"
            raise Conflict(f"{told}; report first that the orphan is deleted", field="vm")


def check_apart(report: Report) -> None:
    """Refuse a VM as the lost one was, where no plan means it so and another has the address by now.

    So it may be only in the in-memory mode, where nobody but VMs holds addresses. The next deploy gives it others.
    """
    instance = report.instance
    if report.deployment.snapshot is not None or instance.meant is not None:
        return
    wanted = set(replace(instance, meant=instance.made_with).remembered.values())
    for each in report.instances:
        for address in each.remembered.values() if each.uuid != instance.uuid else ():
            if address in wanted:
                raise Refused(
                    Kind.NETWORK_RESERVATION_ALREADY_IN_USE,
                    f"Failed to reserve IP '{written(parse_address(address))}' for instance '{instance.long_name}': "
                    f"already reserved by instance '{each.name}' from deployment '{each.deployment}'",
                )


def check_awaited(instance: Instance, vm: str, plan: str | None) -> None:
    """Refuse a VM that nobody waits for, or of which it is not sure that it has what is wanted now."""
    if plan is not None and plan != instance.plan and (instance.plan, instance.vm) != (None, vm):
        waits = "" if instance.plan is None else f", but of {instance.plan}"
        raise Conflict(f"instance {instance.name} does not wait for a VM of plan {plan}{waits}", field="plan")
    if plan is not None or vm == instance.vm:
        return
    if instance.plan is None and instance.vm is not None:
        told = f"has VM {instance.vm!r} and waits for no other"
        raise Conflict(f"instance {instance.name} {told}; report first that it is gone", field="vm")
    if instance.overtakes:
        told = f"waits for a VM of plan {instance.plan}, and an earlier plan wanted other addresses"
        raise Conflict(f"instance {instance.name} {told}; say which one {vm!r} was made for", field="plan")


def still_waiting(instance: Instance) -> Refused:
    """Refuse a VM whose addresses are still others'."""
    [wait, *_] = instance.waits
    return Refused(
        Kind.NETWORK_RESERVATION_ALREADY_IN_USE,
        f"Failed to reserve IP '{written(parse_address(wait['address']))}' for instance '{instance.long_name}': it "
        f"waits for '{wait['of']}' to hand it over. Report that its VM is replaced or gone.",
    )


def check_failed(instance: Instance, plan: str | None) -> None:
    """Refuse what is told of a VM that nobody waits for, or of which it is not sure that it is the one waited for."""
    if plan is not None and plan != instance.plan and not _was_begun(instance, plan):
        waits = "" if instance.plan is None else f", but of {instance.plan}"
        raise Conflict(f"instance {instance.name} does not wait for a VM of plan {plan}{waits}", field="plan")
    if waits_for(instance) not in (A_VM, HAND_OVER) and not (instance.leaving and instance.is_awaited):
        raise Conflict(f"instance {instance.name} waits for no VM, so none can have failed")
    if plan is None and instance.overtakes:
        told = f"waits for a VM of plan {instance.plan}, and an earlier plan wanted other addresses"
        raise Conflict(f"instance {instance.name} {told}; say whose VM could not be made", field="plan")


def _was_begun(instance: Instance, plan: str) -> bool:
    """Tell whether it was for a plan that the VM of one that leaves by a later plan was perhaps being made."""
    return instance.leaving and instance.is_awaited and any(each.request == plan for each in instance.wanted)


def check_lost(instance: Instance, vm: str | None) -> None:
    """Refuse what is told of another VM than the instance has: it has a new one by now."""
    if vm is not None and instance.vm not in (None, check_name(vm, field="vm")):
        raise Conflict(f"instance {instance.name} has VM {instance.vm!r} now, not {vm!r}", field="vm")
