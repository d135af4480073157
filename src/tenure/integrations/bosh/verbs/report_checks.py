"""How a report about an instance is taken: what is known of it, what is refused, and what is decided is done."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tenure.integrations.bosh.cloud_config.configs import load_networks
from tenure.integrations.bosh.model.address_text import written_in
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import CloudConfig
from tenure.integrations.bosh.model.retry import Turn, until_done
from tenure.integrations.bosh.planning.explain_instance import A_VM, HAND_OVER, waits_for
from tenure.integrations.bosh.planning.instance_changes import Books
from tenure.integrations.bosh.planning.step_operations import HANDED_TO
from tenure.integrations.bosh.state.instance_state import (
    DEPLOYMENT,
    INSTANCE,
    ORPHAN,
    Deployment,
    DeploymentInstance,
    load_bare,
    load_deployment,
    load_instance,
)
from tenure.integrations.bosh.state.pending_vms import Making
from tenure.integrations.bosh.state.vm_holder import VmHolder, find_vm
from tenure.integrations.bosh.state.vm_index import Vm, load_vms
from tenure.kernel.errors import Case, Conflict, NotFound
from tenure.kernel.names import check_name
from tenure.service.apply.operations import ExpectPaper, Operation
from tenure.service.ledger.async_ledger import AsyncLedger


@dataclass(frozen=True, slots=True)
class ReportContext:
    """What is known of an instance when a report about it is taken."""

    ledger: AsyncLedger
    deployment: Deployment
    config: CloudConfig
    instance: DeploymentInstance
    instances: Sequence[DeploymentInstance]
    """It and, as far as they matter, the others of its deployment: those without what they hold."""
    orphans: frozenset[str] = frozenset()
    """Which of the VMs that it is about are orphans."""
    vms: Mapping[str, Vm] = field(default_factory=dict)
    """What is written down of the VMs that it is about."""
    holder: VmHolder | None = None
    """Who has the VM that comes."""

    @property
    def books(self) -> Books:
        """Open the books of its deployment."""
        return Books(self.instances, self.vms)


Answer = Callable[[ReportContext], Sequence[Operation]]
"""Says what is done about a report, or refuses it."""


async def reported(
    ledger: AsyncLedger, deployment: str, ident: str, answer: Answer, *, vm: str | None = None
) -> DeploymentInstance:
    """Decide on what is known of an instance (and of ``vm``, if given), and do it; again if it changed meanwhile."""

    async def attempt(turn: Turn) -> DeploymentInstance:
        known = await load_deployment(ledger, check_name(deployment, field="deployment"))
        if known is None:
            raise NotFound("deployment", deployment)
        instance = await load_instance(ledger, deployment, ident)
        config = await load_networks(ledger, known.as_of(instance))
        comes = await find_vm(ledger, vm, in_place_of=instance.vm) if vm not in (None, instance.vm) else None
        vms = await load_vms(ledger, [instance.vm]) | ({} if comes is None else {comes.vm.name: comes.vm})
        orphans = await orphans_among(ledger, {vm, instance.vm}) if vm is not None else frozenset()
        others = await _others(ledger, instance, alone=known.snapshot is None and comes is not None)
        holder = None if comes is None else comes.holder
        operations = answer(ReportContext(ledger, known, config, instance, [instance, *others], orphans, vms, holder))
        with turn:
            await ledger.apply([*(() if comes is None else comes.first), *operations])
            # The report may have removed the instance. Out of `with turn` NotFound would mean another attempt.
            # By its uuid, because another instance may have its index by now.
            try:
                return await load_instance(ledger, deployment, f"{instance.group}/{instance.uuid}")
            except NotFound:
                return instance

    return await until_done(attempt)


async def _others(ledger: AsyncLedger, instance: DeploymentInstance, *, alone: bool) -> list[DeploymentInstance]:
    """Read the other instances of its deployment, if a report is about them too: without what they hold.

    That is so where one of them waits for what this one has, or (``alone``: a VM comes where there is no cloud config)
    may have its address.
    """
    if not alone and not any(HANDED_TO in each.labels for each in instance.holdings):
        return []
    return [each for each in await load_bare(ledger, instance.deployment) if each.uuid != instance.uuid]


async def orphans_among(ledger: AsyncLedger, vms: Iterable[str | None]) -> frozenset[str]:
    """Return those of some VMs that are orphans."""
    found = []
    for vm in vms:
        if vm is not None:
            with suppress(NotFound):
                found.append((await ledger.paper(ORPHAN, vm)).name)
    return frozenset(found)


def check_own(report: ReportContext, vm: str) -> None:
    """Refuse a VM that is somebody else's, and to orphan one whose name an orphan has."""
    instance, holder = report.instance, report.holder
    if holder is not None and holder.owner != instance.owner:
        told = f"instance {instance.name} cannot have VM {vm!r}: {holder.told(instance.deployment)} has it"
        raise Conflict(told, field="vm")
    swapped = instance.vm if instance.swaps and instance.vm != vm else None
    for name in (vm if vm != instance.vm else None, swapped):
        if name in report.orphans:
            told = f"instance {instance.name}: VM {name!r} is an orphan already"
            raise Conflict(f"{told}; report first that the orphan is deleted", field="vm")


def check_apart(report: ReportContext) -> list[Operation]:
    """Refuse a VM as the lost one was, where no plan means it so and another has the address by now.

    So it may be only in the in-memory mode, where nobody but VMs holds addresses. The next deploy gives it others.
    Returns what makes sure that nobody gets the address in this moment: who had it before, too, stays as he is.
    """
    instance, known = report.instance, report.deployment
    if known.snapshot is not None or instance.meant is not None:
        return []
    wanted = set(_as_before(instance).values())
    rests: list[Operation] = [ExpectPaper(kind=DEPLOYMENT, name=known.name, revision=known.revision)]
    for each in report.instances:
        if each.uuid == instance.uuid:
            continue
        for network, address in each.remembered.items():
            if address in wanted:
                told = written_in(report.config.networks.get(network), address.partition("/")[0])
                raise Refused(
                    BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE,
                    f"Failed to reserve IP '{told}' for instance '{instance.long_name}': "
                    f"already reserved by instance '{each.name}' from deployment '{each.deployment}'",
                )
        if wanted.intersection(_as_before(each).values()):
            rests.append(ExpectPaper(kind=INSTANCE, name=each.paper_name, revision=each.revision))
    return rests


def _as_before(instance: DeploymentInstance) -> dict[str, str]:
    """Return the addresses that an instance's last VM had, by network."""
    return replace(instance, meant=instance.made_with).remembered


def check_awaited(instance: DeploymentInstance, vm: str, plan: str | None) -> None:
    """Refuse a VM that nobody waits for, or of which it is not sure that it has what is wanted now."""
    if plan is not None:
        if plan != _waits_for_plan(instance):
            raise _not_of(instance, plan, _waits_for_plan(instance))
        return
    if instance.plan is None and instance.vm is not None:
        told = f"has VM {instance.vm!r} and waits for no other"
        raise Conflict(f"instance {instance.name} {told}; report first that it is gone", field="vm")
    if instance.earlier:
        raise _unsure(instance, f"say which one {vm!r} was made for")


def _waits_for_plan(instance: DeploymentInstance) -> str | None:
    """Return whose VM an instance waits for: without a plan, of the one that its addresses were reserved for."""
    return instance.making.plan if instance.is_told else instance.plan


def _not_of(instance: DeploymentInstance, plan: str, *known: str | None) -> Conflict:
    plans = " and ".join(dict.fromkeys(each for each in known if each is not None))
    waits = f", but of {plans}" if plans else ""
    return Conflict(f"instance {instance.name} does not wait for a VM of plan {plan}{waits}", field="plan")


def _unsure(instance: DeploymentInstance, advice: str) -> Conflict:
    """Return the refusal of a report that may be about one VM or about another."""
    plans = list(dict.fromkeys(each.plan for each in instance.earlier if each.plan is not None))
    waited = _waits_for_plan(instance)
    if waited is None:
        first = f"say first that the VM of {' and of '.join(plans)} failed, or " if plans else ""
        advice = f"{first}deploy again, and name the plan"
    told = f"waits for a VM{'' if waited is None else f' of plan {waited}'}, and an earlier plan wanted other settings"
    case: Case | None = "awaited_vm_without_plan" if waited is None else None
    return Conflict(f"instance {instance.name} {told}; {advice}", field="plan", case=case)


def still_waiting(instance: DeploymentInstance, config: CloudConfig) -> Refused:
    """Refuse a VM whose addresses are still others'."""
    [wait, *_] = instance.waits
    told = written_in(config.networks.get(wait["network"]), wait["address"])
    return Refused(
        BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE,
        f"Failed to reserve IP '{told}' for instance '{instance.long_name}': it "
        f"waits for '{wait['of']}' to hand it over. Report that its VM is replaced or gone.",
    )


def check_failed(instance: DeploymentInstance, plan: str | None) -> Sequence[Making] | None:
    """Return which earlier VMs could not be made, an empty list if it is the one that the instance waits for.

    None if it was told before. Refuse what is told of a VM that nobody waits for, or of which it is not sure which one
    it is.
    """
    if plan is not None:
        return _failed_for(instance, plan)
    if waits_for(instance) in (A_VM, HAND_OVER):
        if instance.earlier:
            raise _unsure(instance, "say whose VM could not be made")
        return ()
    if not instance.earlier:
        raise Conflict(f"instance {instance.name} waits for no VM, so none can have failed")
    if len(instance.earlier) > 1:
        plans = " and ".join(each.plan or "no plan" for each in instance.earlier)
        told = f"several VMs are perhaps being made for instance {instance.name}, of {plans}"
        raise Conflict(f"{told}; say whose could not be made", field="plan")
    return instance.earlier


def _failed_for(instance: DeploymentInstance, plan: str) -> Sequence[Making] | None:
    if not instance.leaving and plan == _waits_for_plan(instance):
        return ()
    leaves_by = instance.leaving and plan == instance.plan  # told of that plan, none is being made any more
    found = [each for each in instance.earlier if leaves_by or each.plan == plan]
    if not found and plan in instance.failures:
        return None
    if not found:
        raise _not_of(instance, plan, _waits_for_plan(instance), *(each.plan for each in instance.earlier))
    return found


def check_lost(instance: DeploymentInstance, vm: str | None) -> None:
    """Refuse what is told of another VM than the instance has: it has a new one by now, or leaves without one."""
    if vm is not None and instance.vm not in (None, check_name(vm, field="vm")):
        raise Conflict(f"instance {instance.name} has VM {instance.vm!r} now, not {vm!r}", field="vm")
    if instance.leaving and is_no_news(instance, vm):
        told = f"lost VM {vm!r} before, and leaves; say what became of the one that was to be made in its place"
        raise Conflict(f"instance {instance.name} {told}", field="vm")


def is_no_news(instance: DeploymentInstance, vm: str | None) -> bool:
    """Tell whether what is told of a VM was told before: it is gone, and another is perhaps being made by now."""
    return vm is not None and vm == instance.lost_vm and instance.is_awaited
