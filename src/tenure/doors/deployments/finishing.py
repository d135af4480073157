"""What callers report of an instance: its VM is up, was not made, is gone, is stopped. Each is one ``apply``.

Every report may be repeated: it says how things are, and what is so already is left as it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tenure.doors.deployments.aborting import take_back
from tenure.doors.deployments.configuring import load_networks
from tenure.doors.deployments.faults import Kind, Refused
from tenure.doors.deployments.hinting import check_hints, read_hints
from tenure.doors.deployments.model import DETACHED, STARTED, STOPPED, CloudConfig, Properties
from tenure.doors.deployments.parting import Books
from tenure.doors.deployments.records import (
    ORPHAN,
    Deployment,
    Instance,
    find_instance,
    load_deployment,
    load_instance,
    load_instances,
    orphan_of,
)
from tenure.doors.deployments.refusing import written
from tenure.doors.deployments.reserving import HANDED_FROM, modified
from tenure.doors.deployments.settings import settings_of
from tenure.doors.deployments.undoing import begun, gone, undone
from tenure.doors.deployments.workers import ended
from tenure.kernel.errors import Conflict, NotFound
from tenure.kernel.names import check_name
from tenure.kernel.values import Holding
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import (
    Operation,
    ReleaseOwner,
    RemovePaper,
    Transfer,
    WritePaper,
)

TRIES = 12


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of an instance when a report about it is taken."""

    ledger: AsyncLedger
    deployment: Deployment
    config: CloudConfig
    instance: Instance
    instances: Sequence[Instance]

    @property
    def books(self) -> Books:
        """Open the books of its deployment."""
        return Books(self.instances)


Decide = Callable[[Report], Sequence[Operation]]


async def commit(
    ledger: AsyncLedger,
    deployment: str,
    ident: str,
    *,
    vm: str,
    hints: Mapping[str, str] | None = None,
    plan: str | None = None,
) -> Instance:
    """Take the report that a VM is up with the instance's settings: what it does not carry is freed.

    ``hints`` are addresses that the IaaS picked, by dynamic network. ``plan`` is the one that the VM was made for: if
    another came after, it has other settings than are wanted now, and is refused. Where an earlier plan wanted other
    addresses and nobody said what became of its VM, ``plan`` is needed. The VM that the instance has is no news while
    it waits for another: nothing is freed. A VM that was swapped is an orphan from now on, and keeps its addresses
    until it is deleted.
    """
    check_name(vm, field="vm")
    if plan is not None:
        check_name(plan, field="plan")

    picked = read_hints(hints)

    def decide(report: Report) -> Sequence[Operation]:
        instance = report.instance
        if instance.leaving:
            raise Conflict(f"instance {instance.name} is not wanted any more; report that its VM is deleted")
        check_hints(picked, instance, report.config)
        if instance.vm == vm and instance.plan not in (None, plan):
            told = replace(instance, hints={**instance.hints, **picked})
            return [] if told == instance else [told.written()]
        _check_awaited(instance, vm, plan)
        if instance.waits:
            raise still_waiting(instance)
        after = replace(instance, vm=vm, plan=None, failed=False, swaps=False, state=_running(instance))
        after = replace(after, hints={**instance.hints, **picked}, overtakes=False)
        after = replace(after, made_with=_settings(after, report), meant=None)
        books = report.books
        _part(books, instance, vm)
        books.do(_carried(each, vm) for each in instance.wanted if not _is_carried(each, vm))
        books.write(after)
        return [*books.operations, *begun(report.deployment, instance)]

    return await reported(ledger, deployment, ident, decide)


def _check_awaited(instance: Instance, vm: str, plan: str | None) -> None:
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


def _settings(instance: Instance, report: Report) -> Properties | None:
    """Return the settings of an instance's VM: in the in-memory mode those that the plan meant it to have."""
    if report.deployment.snapshot is None:
        return instance.made_with if instance.meant is None else instance.meant
    return settings_of(instance, report.config)


def _running(instance: Instance) -> str:
    return STARTED if instance.state == DETACHED else instance.state


def _is_carried(held: Holding, vm: str) -> bool:
    return (held.carrier, held.plan) == (vm, None) and HANDED_FROM not in held.labels


def _carried(held: Holding, vm: str) -> Operation:
    labels = {name: text for name, text in held.labels.items() if name != HANDED_FROM}
    return modified(held, carrier=vm, plan=None, labels=labels)


def _part(books: Books, instance: Instance, vm: str) -> None:
    """Let go what the new VM does not carry; a swapped VM takes its addresses along, as an orphan."""
    if not instance.swaps or instance.vm in (None, vm):
        books.let_go(instance.parting)
        return
    heir = orphan_of(instance.vm or "")
    document = {"deployment": instance.deployment, "instance": instance.name, "vm": instance.vm}
    books.do(
        Transfer(network=each.network, address=each.address, owner=each.owner, generation=each.generation, to=heir,
                 to_slot=each.address)
        for each in instance.parting
    )  # fmt: skip
    books.do([WritePaper(kind=ORPHAN, name=instance.vm or "", document=document)])


def still_waiting(instance: Instance) -> Refused:
    """Refuse a VM whose addresses are still others'."""
    [wait, *_] = instance.waits
    return Refused(
        Kind.NETWORK_RESERVATION_ALREADY_IN_USE,
        f"Failed to reserve IP '{written(wait['address'])}' for instance '{instance.long_name}': it waits for "
        f"'{wait['of']}' to hand it over. Report that its VM is replaced or gone.",
    )


async def fail(ledger: AsyncLedger, deployment: str, ident: str) -> Instance:
    """Take the report that no VM could be made: the instance keeps old and new, and the next good deploy frees."""

    def decide(report: Report) -> Sequence[Operation]:
        instance = report.instance
        return [] if instance.failed else [replace(instance, failed=True).written()]

    return await reported(ledger, deployment, ident, decide)


async def stop(ledger: AsyncLedger, deployment: str, ident: str, *, hard: bool = False) -> Instance:
    """Take the report that an instance is stopped; with ``hard`` its VM is gone, and its addresses wait for it."""

    def decide(report: Report) -> Sequence[Operation]:
        instance = report.instance
        if not hard:
            after = replace(instance, state=STOPPED)
            return [] if after == instance else [after.written()]
        books = report.books
        books.without_vm(instance, state=DETACHED)
        return books.operations

    return await reported(ledger, deployment, ident, decide)


async def start(ledger: AsyncLedger, deployment: str, ident: str) -> Instance:
    """Let an instance be started again: if it was stopped hard, its VM is to be made on the addresses it has."""

    def decide(report: Report) -> Sequence[Operation]:
        after = replace(report.instance, state=STARTED)
        return [] if after == report.instance else [after.written()]

    return await reported(ledger, deployment, ident, decide)


async def lose(ledger: AsyncLedger, deployment: str, ident: str) -> Instance | None:
    """Take the report that an instance's VM is gone. One that leaves is gone with it; others keep their addresses."""

    def decide(report: Report) -> Sequence[Operation]:
        books = report.books
        books.lose(report.instance)
        return [*books.operations, *(begun(report.deployment, report.instance) if report.instance.leaving else [])]

    return await reported(ledger, deployment, ident, decide)


async def ignore(ledger: AsyncLedger, deployment: str, ident: str, *, ignored: bool = True) -> Instance:
    """Leave an instance out of deploys, or take it in again."""

    def decide(report: Report) -> Sequence[Operation]:
        after = replace(report.instance, ignored=ignored)
        return [] if after == report.instance else [after.written()]

    return await reported(ledger, deployment, ident, decide)


async def abort(ledger: AsyncLedger, deployment: str, plan: str) -> list[Holding]:
    """Take a plan back: exactly what it reserved and no VM carries is freed, what it set to draining is held again.

    If nothing of it was done, the deployment is what it was before; after its first plan there is none.
    """
    check_name(plan, field="plan")
    for tries_left in reversed(range(TRIES)):
        taken_back = take_back(await load_instances(ledger, deployment), plan)
        back = await undone(ledger, deployment, plan, taken_back.left)
        try:
            await ledger.apply([*taken_back.operations, *back])
        except (Conflict, NotFound):
            if not tries_left:
                raise
            continue
        return list(taken_back.freed)
    raise AssertionError("unreachable")


async def clean_up_orphan(ledger: AsyncLedger, vm: str) -> list[Holding]:
    """Take the report that an orphaned VM is deleted: its addresses are free, or the ones' who wait for them."""
    for tries_left in reversed(range(TRIES)):
        try:
            paper = await ledger.paper(ORPHAN, vm)
        except NotFound:
            return []
        held = await ledger.holdings(owner=orphan_of(vm))
        books = Books(await load_instances(ledger, paper.document["deployment"]))
        books.let_go(held)
        remove = RemovePaper(kind=ORPHAN, name=vm, revision=paper.revision)
        try:
            await ledger.apply([*books.operations, remove])
        except (Conflict, NotFound):
            if not tries_left:
                raise
            continue
        return held
    raise AssertionError("unreachable")


async def delete(ledger: AsyncLedger, deployment: str) -> list[Instance]:
    """Let a deployment go: what has no VM is gone at once; the rest, which is returned, when its VMs are deleted."""
    for tries_left in reversed(range(TRIES)):
        known = await load_deployment(ledger, deployment)
        instances = await load_instances(ledger, deployment)
        if known is None and not instances:
            raise NotFound("deployment", deployment)
        for each in instances:
            if each.ignored:
                raise Refused(
                    Kind.DEPLOYMENT_IGNORED_INSTANCES_DELETION,
                    f"You are trying to delete deployment '{deployment}', which contains ignored instance(s). "
                    "Deleting ignored instances is not allowed.",
                )
        left = [each for each in instances if each.vm is not None]
        bare = [each for each in instances if each.vm is None]
        operations: list[Operation] = [operation for each in bare for operation in _removal(each)]
        operations += [replace(each, leaving=True).written() for each in left if not each.leaving]
        if known is not None and not left:
            operations += await gone(ledger, known)
        operations += await ended(ledger, deployment)
        try:
            await ledger.apply(operations)
        except (Conflict, NotFound):
            if not tries_left:
                raise
            continue
        return left
    raise AssertionError("unreachable")


def _removal(instance: Instance) -> list[Operation]:
    return [ReleaseOwner(owner=instance.owner), instance.removed()]


async def reported(ledger: AsyncLedger, deployment: str, ident: str, decide: Decide) -> Instance:
    """Decide on what is known of an instance, and do it; again if it changed in that moment."""
    for tries_left in reversed(range(TRIES)):
        known = await load_deployment(ledger, check_name(deployment, field="deployment"))
        if known is None:
            raise NotFound("deployment", deployment)
        instances = await load_instances(ledger, deployment)
        instance = find_instance(instances, deployment, ident)
        config = await load_networks(ledger, known)
        operations = decide(Report(ledger, known, config, instance, instances))
        try:
            await ledger.apply(operations)
        except (Conflict, NotFound):
            if not tries_left:
                raise
            continue
        try:
            return await load_instance(ledger, deployment, f"{instance.group}/{instance.uuid}")
        except NotFound:
            return instance
    raise AssertionError("unreachable")
