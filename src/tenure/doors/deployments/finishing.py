"""What callers report of an instance: its VM is up, was not made, is gone, is stopped. Each is one ``apply``.

Every report may be repeated: it says how things are, and what is so already is left as it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tenure.doors.deployments.configuring import load_snapshot
from tenure.doors.deployments.faults import Kind, Refused
from tenure.doors.deployments.model import DETACHED, STARTED, STOPPED, CloudConfig
from tenure.doors.deployments.records import (
    ORPHAN,
    REALM,
    Deployment,
    Instance,
    load_deployment,
    load_instance,
    load_instances,
)
from tenure.doors.deployments.reserving import DRAINED_BY
from tenure.doors.deployments.settings import settings_of
from tenure.kernel.errors import Conflict, NotFound
from tenure.kernel.names import Owner, check_name
from tenure.kernel.values import Holding, State
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import (
    ModifyHolding,
    Operation,
    Release,
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


Decide = Callable[[Report], Sequence[Operation]]


async def commit(
    ledger: AsyncLedger, deployment: str, ident: str, *, vm: str, hints: Mapping[str, str] | None = None
) -> Instance:
    """Take the report that a VM is up with the instance's settings: what it does not carry is freed.

    ``hints`` are addresses that the IaaS picked, by dynamic network. A VM that was swapped is an orphan from now on,
    and keeps its addresses until it is deleted.
    """
    check_name(vm, field="vm")

    def decide(report: Report) -> Sequence[Operation]:
        instance = report.instance
        if instance.leaving:
            raise Conflict(f"instance {instance.name} is not wanted any more; report that its VM is deleted")
        after = replace(instance, vm=vm, plan=None, failed=False, swaps=False, state=_running(instance))
        after = replace(after, hints={**instance.hints, **(hints or {})})
        after = replace(after, made_with=settings_of(after, report.config))
        bare = [each for each in instance.wanted if (each.carrier, each.plan) != (vm, None)]
        carried = [_modify(each, carrier=vm, plan=None) for each in bare]
        papers = [] if after == instance else [after.written()]
        return [*_parted(instance, vm), *carried, *papers]

    return await _reported(ledger, deployment, ident, decide)


def _running(instance: Instance) -> str:
    return STARTED if instance.state == DETACHED else instance.state


def _parted(instance: Instance, vm: str) -> list[Operation]:
    """Free what the new VM does not carry; a swapped VM takes its addresses along, as an orphan."""
    if not instance.swaps or instance.vm in (None, vm):
        return [_release(each) for each in instance.parting]
    heir = orphan_of(instance.vm or "")
    document = {"deployment": instance.deployment, "instance": instance.name, "vm": instance.vm}
    handed = [
        Transfer(network=each.network, address=each.address, owner=each.owner, generation=each.generation, to=heir,
                 to_slot=each.address)
        for each in instance.parting
    ]  # fmt: skip
    return [*handed, WritePaper(kind=ORPHAN, name=instance.vm or "", document=document)]


def orphan_of(vm: str) -> Owner:
    """Return the owner of an orphaned VM's addresses."""
    return Owner(f"{REALM}:orphan/{vm}")


async def fail(ledger: AsyncLedger, deployment: str, ident: str) -> Instance:
    """Take the report that no VM could be made: the instance keeps old and new, and the next good deploy frees."""

    def decide(report: Report) -> Sequence[Operation]:
        instance = report.instance
        return [] if instance.failed else [replace(instance, failed=True).written()]

    return await _reported(ledger, deployment, ident, decide)


async def stop(ledger: AsyncLedger, deployment: str, ident: str, *, hard: bool = False) -> Instance:
    """Take the report that an instance is stopped; with ``hard`` its VM is gone, and its addresses wait for it."""

    def decide(report: Report) -> Sequence[Operation]:
        instance = report.instance
        if not hard:
            after = replace(instance, state=STOPPED)
            return [] if after == instance else [after.written()]
        return _without_vm(instance, replace(instance, state=DETACHED, vm=None))

    return await _reported(ledger, deployment, ident, decide)


async def start(ledger: AsyncLedger, deployment: str, ident: str) -> Instance:
    """Let an instance be started again: if it was stopped hard, its VM is to be made on the addresses it has."""

    def decide(report: Report) -> Sequence[Operation]:
        after = replace(report.instance, state=STARTED)
        return [] if after == report.instance else [after.written()]

    return await _reported(ledger, deployment, ident, decide)


async def lose(ledger: AsyncLedger, deployment: str, ident: str) -> Instance | None:
    """Take the report that an instance's VM is gone. One that leaves is gone with it; others keep their addresses."""

    def decide(report: Report) -> Sequence[Operation]:
        instance = report.instance
        if instance.leaving:
            return [ReleaseOwner(owner=instance.owner), instance.removed()]
        return _without_vm(instance, replace(instance, vm=None))

    return await _reported(ledger, deployment, ident, decide)


def _without_vm(before: Instance, after: Instance) -> list[Operation]:
    bare = [_modify(each, carrier=None) for each in before.holdings if each.carrier is not None]
    return bare if after == before else [*bare, after.written()]


async def ignore(ledger: AsyncLedger, deployment: str, ident: str, *, ignored: bool = True) -> Instance:
    """Leave an instance out of deploys, or take it in again."""

    def decide(report: Report) -> Sequence[Operation]:
        after = replace(report.instance, ignored=ignored)
        return [] if after == report.instance else [after.written()]

    return await _reported(ledger, deployment, ident, decide)


async def abort(ledger: AsyncLedger, deployment: str, plan: str) -> list[Holding]:
    """Take a plan back: exactly what it reserved and no VM carries is freed, what it set to draining is held again."""
    for tries_left in reversed(range(TRIES)):
        instances = await load_instances(ledger, deployment)
        operations: list[Operation] = []
        freed: list[Holding] = []
        for instance in instances:
            reserved = [each for each in instance.holdings if each.plan == plan and each.carrier is None]
            drained = [each for each in instance.parting if each.labels.get(DRAINED_BY) == plan]
            freed += reserved
            operations += [_release(each) for each in reserved]
            operations += [_modify(each, state=str(State.HELD), labels=_undrained(each)) for each in drained]
            if instance.plan == plan:
                stays = instance.vm is not None or len(reserved) < len(instance.holdings)
                after = replace(instance, plan=None, swaps=False, leaving=False)
                operations.append(after.written() if stays else instance.removed())
        try:
            await ledger.apply(operations)
        except (Conflict, NotFound):
            if not tries_left:
                raise
            continue
        return freed
    raise AssertionError("unreachable")


def _undrained(held: Holding) -> dict[str, str]:
    return {name: text for name, text in held.labels.items() if name != DRAINED_BY}


async def clean_up_orphan(ledger: AsyncLedger, vm: str) -> list[Holding]:
    """Take the report that an orphaned VM is deleted: its addresses are free."""
    try:
        paper = await ledger.paper(ORPHAN, vm)
    except NotFound:
        return []
    held = await ledger.holdings(owner=orphan_of(vm))
    remove = RemovePaper(kind=ORPHAN, name=vm, revision=paper.revision)
    await ledger.apply([ReleaseOwner(owner=orphan_of(vm)), remove])
    return held


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
        gone = [each for each in instances if each.vm is None]
        operations: list[Operation] = [operation for each in gone for operation in _removal(each)]
        operations += [replace(each, leaving=True).written() for each in left if not each.leaving]
        operations += [known.removed()] if known is not None and not left else []
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


async def _reported(ledger: AsyncLedger, deployment: str, ident: str, decide: Decide) -> Instance:
    """Decide on what is known of an instance, and do it; again if it changed in that moment."""
    for tries_left in reversed(range(TRIES)):
        known = await load_deployment(ledger, check_name(deployment, field="deployment"))
        if known is None or known.snapshot is None:
            raise NotFound("deployment", deployment)
        instance = await load_instance(ledger, deployment, ident)
        config = await load_snapshot(ledger, known.snapshot)
        operations = decide(Report(ledger, known, config, instance))
        try:
            await ledger.apply(operations)
        except Conflict:
            if not tries_left:
                raise
            continue
        try:
            return await load_instance(ledger, deployment, f"{instance.group}/{instance.uuid}")
        except NotFound:
            return instance
    raise AssertionError("unreachable")


def _release(held: Holding) -> Operation:
    return Release(network=held.network, address=held.address, owner=held.owner, generation=held.generation)


def _modify(held: Holding, **changes: object) -> Operation:
    return ModifyHolding(
        network=held.network, address=held.address, owner=held.owner, generation=held.generation,
        **changes,  # type: ignore[arg-type]
    )  # fmt: skip
