"""What callers report of an instance: its VM is up, was not made, is gone, is stopped. Each is one ``apply``.

A report says how things are, and what is so already is left as it is. So it may be repeated as long as it is true:
with the VM or the plan that it is about, one that comes late is refused. Of what is gone there is nothing to report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tenure.integrations.bosh.cloud_config.ledger_networks import SPACE
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import DETACHED, STARTED, STOPPED, Properties
from tenure.integrations.bosh.model.retry import Turn, until_done
from tenure.integrations.bosh.planning.instance_changes import Books
from tenure.integrations.bosh.planning.step_operations import OF_A_PLAN, modified
from tenure.integrations.bosh.planning.steps import leaving
from tenure.integrations.bosh.rollback.abort import take_back
from tenure.integrations.bosh.rollback.original_network import LedgerNetworks
from tenure.integrations.bosh.rollback.previous_state import begun, gone, undone
from tenure.integrations.bosh.running_vms.first_cloud_config import load_ours
from tenure.integrations.bosh.state.compile_workers import ended
from tenure.integrations.bosh.state.dynamic_hints import check_hints, read_hints
from tenure.integrations.bosh.state.instance_state import (
    ORPHAN,
    DeploymentInstance,
    is_overtaken,
    load_deployment,
    load_instances,
    orphan_of,
)
from tenure.integrations.bosh.state.vm_settings import settings_of
from tenure.integrations.bosh.verbs.report_checks import (
    ReportContext,
    check_apart,
    check_awaited,
    check_failed,
    check_lost,
    check_own,
    is_no_news,
    reported,
    still_waiting,
)
from tenure.kernel.errors import Conflict, NotFound
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.names import check_name
from tenure.service.apply.operations import (
    Operation,
    ReleaseOwner,
    RemovePaper,
    Transfer,
    WritePaper,
)
from tenure.service.ledger.async_ledger import AsyncLedger

MOST_FAILURES = 8
"""Of so many plans it is remembered that their VMs could not be made."""


async def commit(
    ledger: AsyncLedger,
    deployment: str,
    ident: str,
    *,
    vm: str,
    hints: Mapping[str, str] | None = None,
    plan: str | None = None,
) -> DeploymentInstance:
    """Take the report that a VM is up with the instance's settings: what it does not carry is freed.

    ``hints`` are addresses that the IaaS picked, by dynamic network. ``plan`` is the one that the VM was made for: if
    another came after, it has other settings than are wanted now, and is refused. Where an earlier plan wanted other
    settings and nobody said what became of its VM, ``plan`` is needed. The VM that the instance has is no news while
    it waits for another: nothing is freed. A VM that was swapped is an orphan from now on, and keeps its addresses
    until it is deleted. A VM that another one has, of whichever deployment, or that is an orphan, is refused.
    """
    check_name(vm, field="vm")
    if plan is not None:
        check_name(plan, field="plan")
    picked = read_hints(hints)

    def decide(report: ReportContext) -> Sequence[Operation]:
        instance = report.instance
        if instance.leaving:
            raise Conflict(f"instance {instance.name} is not wanted any more; report that its VM is deleted")
        check_hints(picked, instance, report.config)
        if instance.vm == vm and (instance.plan is None or instance.plan != plan):  # it is no news, whatever is made
            told = replace(instance, hints={**instance.hints, **picked})
            return [] if told == instance else [told.written()]
        # A late report is refused: it would free addresses that are still in use.
        check_awaited(instance, vm, plan)
        check_own(report, vm)
        rests = check_apart(report)
        if instance.waits:
            raise still_waiting(instance, report.config)
        return [*rests, *_committed(report, vm, picked)]

    return await reported(ledger, deployment, ident, decide, vm=vm)


def _committed(report: ReportContext, vm: str, picked: Mapping[str, str]) -> list[Operation]:
    """Return the operations after which an instance has a VM, and only what that carries."""
    instance, books = report.instance, report.books
    after = replace(instance, vm=vm, plan=None, failed=False, swaps=False, state=_running(instance))
    after = replace(after, hints={**instance.hints, **picked}, earlier=(), failures=(), former=None, lost_vm=None)
    # Only now: an address that the new VM does not carry is freed when that VM is reported, never before.
    _part(books, instance, vm)
    books.do(_carried(each, vm) for each in instance.wanted if not _is_carried(each, vm))
    books.write(replace(after, made_with=_settings(after, report), meant=None))
    return [*books.operations, *begun(report.deployment, instance)]


def _settings(instance: DeploymentInstance, report: ReportContext) -> Properties | None:
    """Return the settings of an instance's VM: in the in-memory mode those that the plan meant it to have."""
    if report.deployment.snapshot is None:
        return instance.made_with if instance.meant is None else instance.meant
    return settings_of(instance, report.config)


def _running(instance: DeploymentInstance) -> str:
    return STARTED if instance.state == DETACHED else instance.state


def _is_carried(held: Holding, vm: str) -> bool:
    return (held.carrier, held.plan) == (vm, None) and not any(label in held.labels for label in OF_A_PLAN)


def _carried(held: Holding, vm: str) -> Operation:
    labels = {name: text for name, text in held.labels.items() if name not in OF_A_PLAN}
    return modified(held, carrier=vm, plan=None, labels=labels)


def _part(books: Books, instance: DeploymentInstance, vm: str) -> None:
    """Let go what the new VM does not carry; a swapped VM takes its addresses along, as an orphan."""
    swapped = instance.swaps and instance.vm not in (None, vm)
    # What was reserved for an overtaken VM was never carried by the swapped one: it is let go, and not orphaned.
    books.let_go(each for each in instance.parting if not swapped or is_overtaken(each))
    if not swapped:
        return
    heir = orphan_of(instance.vm or "")
    document = {"deployment": instance.deployment, "instance": instance.name}
    books.do(
        Transfer(network=each.network, address=each.address, owner=each.owner, generation=each.generation, to=heir,
                 to_slot=each.address)
        for each in instance.parting
        if not is_overtaken(each)
    )  # fmt: skip
    books.do([WritePaper(kind=ORPHAN, name=instance.vm or "", document=document)])


async def fail(ledger: AsyncLedger, deployment: str, ident: str, *, plan: str | None = None) -> DeploymentInstance:
    """Take the report that no VM could be made: the instance keeps old and new, and the next good deploy frees.

    ``plan`` is the one that the VM was to be made for, and is needed where several are perhaps being made. What was
    kept only for an earlier one is freed. Who leaves is gone when no VM is perhaps being made for it any more; told of
    the plan that it leaves by, none is.
    """
    if plan is not None:
        check_name(plan, field="plan")

    def decide(report: ReportContext) -> Sequence[Operation]:
        instance, books = report.instance, report.books
        earlier = check_failed(instance, plan)
        if earlier is None:
            return []
        if earlier:
            books.end(instance, earlier, failures=_noted(instance, [each.plan for each in earlier]))
            return books.operations
        failures = instance.failures if instance.failed else _noted(instance, [instance.plan])
        after = replace(instance, failed=True, failures=failures)
        return [] if after == instance else [after.written()]

    return await reported(ledger, deployment, ident, decide)


def _noted(instance: DeploymentInstance, plans: Sequence[str | None]) -> tuple[str, ...]:
    """Return the plans whose VMs could not be made, with some more."""
    return (*instance.failures, *(each for each in plans if each is not None))[-MOST_FAILURES:]


async def stop(
    ledger: AsyncLedger, deployment: str, ident: str, *, hard: bool = False, vm: str | None = None
) -> DeploymentInstance:
    """Take the report that an instance is stopped; with ``hard`` its VM is gone, and its addresses wait for it.

    ``vm`` is the one that was stopped: if the instance has another by now, the report comes late and is refused.
    """

    def decide(report: ReportContext) -> Sequence[Operation]:
        instance = report.instance
        check_lost(instance, vm)
        if is_no_news(instance, vm):
            return []
        if not hard:
            after = replace(instance, state=STOPPED)
            return [] if after == instance else [after.written()]
        if instance.leaving:
            return _lost(report)
        books = report.books
        # Stopped hard, it waits for no VM: one that is perhaps being made without a plan is noted as an earlier one.
        remade = instance.rests and instance.is_told
        books.without_vm(instance, state=DETACHED, earlier=instance.makings if remade else instance.earlier)
        return books.operations

    return await reported(ledger, deployment, ident, decide)


async def start(ledger: AsyncLedger, deployment: str, ident: str) -> DeploymentInstance:
    """Let an instance be started again: if it was stopped hard, its VM is to be made on the addresses it has."""

    def decide(report: ReportContext) -> Sequence[Operation]:
        instance = report.instance
        after = replace(instance, state=STARTED)
        if instance.state == DETACHED and instance.plan is None:
            after = _told_again(replace(after, failed=False))
        return [] if after == instance else [after.written()]

    return await reported(ledger, deployment, ident, decide)


def _told_again(instance: DeploymentInstance) -> DeploymentInstance:
    """Return an instance that waits for a VM on what it has; one that was perhaps made on that before is the same."""
    waits_for = instance.making
    others = (each for each in instance.earlier if (each.plan, each.addresses) != (waits_for.plan, waits_for.addresses))
    return replace(instance, earlier=tuple(others)) if instance.is_told else instance


async def lose(ledger: AsyncLedger, deployment: str, ident: str, *, vm: str | None = None) -> DeploymentInstance | None:
    """Take the report that an instance's VM is gone. One that leaves is gone with it; others keep their addresses.

    ``vm`` is the one that is gone: if the instance has another by now, the report comes late and is refused. While
    another is perhaps being made it is no news. Who leaves meanwhile is gone only when it is known what became of that
    one: it is told next as lost, or as failed.
    """

    def decide(report: ReportContext) -> Sequence[Operation]:
        check_lost(report.instance, vm)
        return [] if is_no_news(report.instance, vm) else _lost(report)

    return await reported(ledger, deployment, ident, decide)


def _lost(report: ReportContext) -> list[Operation]:
    """Return the operations after which an instance has no VM; one that leaves is gone, unless another is made."""
    instance, books = report.instance, report.books
    if _leaves_another(instance):
        books.take_vm(instance, is_gone=True)
    else:
        books.lose(instance)
    return [*books.operations, *(begun(report.deployment, instance) if instance.leaving else [])]


def _leaves_another(instance: DeploymentInstance) -> bool:
    """Tell whether one that leaves and loses its VM is not gone with it: another is perhaps being made for it."""
    return instance.leaving and instance.vm is not None and bool(instance.earlier)


async def ignore(ledger: AsyncLedger, deployment: str, ident: str, *, ignored: bool = True) -> DeploymentInstance:
    """Leave an instance out of deploys, or take it in again."""

    def decide(report: ReportContext) -> Sequence[Operation]:
        after = replace(report.instance, ignored=ignored)
        return [] if after == report.instance else [after.written()]

    return await reported(ledger, deployment, ident, decide)


async def abort(ledger: AsyncLedger, deployment: str, plan: str, *, space: str = SPACE) -> list[Holding]:
    """Take a plan back: exactly what it reserved and no VM carries is freed, what it set to draining is held again.

    If nothing of it was done, the deployment is what it was before; after its first plan there is none.
    """
    check_name(plan, field="plan")

    async def attempt(turn: Turn) -> list[Holding]:
        known = await load_deployment(ledger, deployment)
        instances = await load_instances(ledger, deployment)
        taken_back = take_back(instances, known, plan, LedgerNetworks(await load_ours(ledger), space))
        back = await undone(ledger, deployment, known, plan, taken_back.left)
        with turn:
            await ledger.apply([*taken_back.operations, *back])
            return list(taken_back.freed)

    return await until_done(attempt)


async def clean_up_orphan(ledger: AsyncLedger, vm: str) -> list[Holding]:
    """Take the report that an orphaned VM is deleted: its addresses are free, or the ones' who wait for them."""

    async def attempt(turn: Turn) -> list[Holding]:
        try:
            paper = await ledger.paper(ORPHAN, vm)
        except NotFound:
            # The report is a repeated one: the orphan is gone already.
            return []
        held = await ledger.holdings(owner=orphan_of(vm))
        books = Books(await load_instances(ledger, paper.document["deployment"]))
        books.let_go(held)
        remove = RemovePaper(kind=ORPHAN, name=vm, revision=paper.revision)
        with turn:
            await ledger.apply([*books.operations, remove])
            return held

    return await until_done(attempt)


async def delete(ledger: AsyncLedger, deployment: str) -> list[DeploymentInstance]:
    """Let a deployment go: who has no VM is gone at once; the rest, which is returned, when its VMs are deleted.

    For whom a VM is perhaps being made, it is to be said what became of it: that it is gone, that it failed, or that
    the plan is taken back. No plan is taken back otherwise. The deployment is written down anew: who deploys in this
    moment sees that.
    """

    async def attempt(turn: Turn) -> list[DeploymentInstance]:
        known = await load_deployment(ledger, deployment)
        instances = await load_instances(ledger, deployment)
        if known is None and not instances:
            raise NotFound("deployment", deployment)
        _check_ignored(deployment, instances)
        left = [each for each in instances if each.vm is not None or each.is_awaited]
        bare = [each for each in instances if each not in left]
        operations: list[Operation] = [operation for each in bare for operation in _removal(each)]
        going = [(each, _going(each)) for each in left]
        operations += [after.written() for before, after in going if after != before]
        if known is not None:
            # Written even if nothing in it changes: its new revision refuses a deploy that is under way.
            operations += [replace(known, undo=None).written()] if left else await gone(ledger, known)
        operations += await ended(ledger, deployment)
        with turn:
            await ledger.apply(operations)
            return [after for _, after in going]

    return await until_done(attempt)


def _check_ignored(deployment: str, instances: Sequence[DeploymentInstance]) -> None:
    if any(each.ignored for each in instances):
        raise Refused(
            BoshErrorKind.DEPLOYMENT_IGNORED_INSTANCES_DELETION,
            f"You are trying to delete deployment '{deployment}', which contains ignored instance(s). "
            "Deleting ignored instances is not allowed.",
        )


def _going(instance: DeploymentInstance) -> DeploymentInstance:
    """Return an instance that leaves for good: it waits for no plan, and none can be taken back for it."""
    return replace(leaving(instance), plan=None, former=None)


def _removal(instance: DeploymentInstance) -> list[Operation]:
    return [ReleaseOwner(owner=instance.owner), instance.removed()]
