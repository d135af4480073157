"""Compiling: workers come with an address each, report their VMs, and go. Each is one ``apply``, and may be repeated.

A compile belongs to the plan of a deployment. If it breaks off, the next deploy (or a compile for another plan) ends
it, after everybody has what he wants: so what it left can be used only by whoever comes after.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from tenure.integrations.bosh.cloud_config.configs import Configs, load_configs
from tenure.integrations.bosh.model.address_diff import Bound, Wants
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import DYNAMIC, CloudConfig, Compilation
from tenure.integrations.bosh.model.pool_ranges import has_pool
from tenure.integrations.bosh.model.retry import Turn, until_done
from tenure.integrations.bosh.placement.placement_model import unused_indexes
from tenure.integrations.bosh.planning.step_operations import Work
from tenure.integrations.bosh.planning.steps import Step
from tenure.integrations.bosh.planning.translate_errors import explained, no_room
from tenure.integrations.bosh.state.compile_workers import CompileWorker, Compiling, load_compiling, worker_of
from tenure.integrations.bosh.state.instance_state import DEPLOYMENT, Deployment, load_deployment
from tenure.integrations.bosh.state.vm_holder import FoundVm, find_vm
from tenure.integrations.bosh.state.vm_settings import settings_of
from tenure.integrations.bosh.verbs.report_checks import orphans_among
from tenure.kernel.errors import AddressInUse, AddressReserved, Conflict, Invalid, NotFound, PoolExhausted
from tenure.kernel.names import check_name, shown
from tenure.service.apply.operations import Allocate, ExpectPaper, ModifyHolding, Operation
from tenure.service.ledger.async_ledger import AsyncLedger


async def begin(
    ledger: AsyncLedger, deployment: str, plan: str | None = None, *, workers: int | None = None
) -> Compiling:
    """Reserve an address for each worker of a plan's compile, all or none; as many as the cloud config says at most.

    The plan is the last one of the deployment; whoever names it is refused if there is a later one. Asked again for
    the same plan it answers the same, with more workers if more are wanted now.
    """
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise Invalid(f"workers: a number from 1 on is needed, not {shown(workers)}", field="workers")

    async def attempt(turn: Turn) -> Compiling:
        known, configs = await _ground(ledger, deployment, plan)
        where = configs.config.compilation
        if where is None:
            raise Refused(BoshErrorKind.GENERIC, "Required property 'compilation' was not specified in a cloud config")
        wanted = where.workers if workers is None else min(workers, where.workers)
        with turn:
            await _begin(ledger, known, configs, where, wanted)
            begun = await load_compiling(ledger, deployment)
            # A deploy may have ended the compile between the apply and this look.
            if begun is None or begun.plan != known.plan:
                raise Conflict(f"deployment {deployment!r} kept changing while its compile began; try again")
            return _settled(begun, configs.config)

    return await until_done(attempt, unless=lambda error: isinstance(error, AddressInUse | AddressReserved))


async def _ground(ledger: AsyncLedger, deployment: str, plan: str | None) -> tuple[Deployment, Configs]:
    _check_plan(plan)
    known = await load_deployment(ledger, check_name(deployment, field="deployment"))
    configs = await load_configs(ledger)
    if known is None:
        raise NotFound("deployment", deployment)
    if configs is None:
        raise Refused(BoshErrorKind.GENERIC, f"Deployment '{deployment}' was deployed without a cloud config")
    if plan not in (None, known.plan):
        raise Conflict(f"plan {plan} is not the last one of deployment {deployment!r}, which is {known.plan}")
    return known, configs


async def _begin(ledger: AsyncLedger, known: Deployment, configs: Configs, where: Compilation, wanted: int) -> None:
    """Let as many work as are wanted, and end what another compile left."""
    before = await load_compiling(ledger, known.name)
    after = Compiling(known.name, known.plan or "", where.network, where.az, where.orphan_workers)
    if before is not None and (before.plan, before.network, before.az) == (after.plan, after.network, after.az):
        after, left = before, []
    else:
        left = [] if before is None else before.freed(orphaned=True)
    # The numbers of a compile that ends here count, too: a worker is never used again, since its machine may still run.
    used = {each.number for each in (() if before is None else before.workers)}
    fresh = [CompileWorker(number) for number in islice(unused_indexes(used), max(wanted - len(after.workers), 0))]
    if not fresh and not left:
        return
    after = replace(after, workers=(*after.workers, *fresh), revision=0 if before is None else before.revision)
    work = _work(after, fresh, configs.config)
    rests = [*configs.expected(), ExpectPaper(kind=DEPLOYMENT, name=known.name, revision=known.revision)]
    try:
        # left stands behind the reservations: no new worker gets what the ended compile had.
        await ledger.apply([*rests, *work.operations, *left, after.written()])
    except (AddressInUse, AddressReserved, PoolExhausted) as error:
        raise await explained(ledger, error, work, configs.config) from error


def _work(compiling: Compiling, fresh: Sequence[CompileWorker], config: CloudConfig) -> Work:
    """Return the reservations of new workers; none on a dynamic network."""
    network = config.networks[compiling.network]
    if network.kind == DYNAMIC:
        return Work([], [], [])
    wish = Wants(compiling.network)
    steps = [Step(None, compiling.instance(each), Bound((), (wish,), ())) for each in fresh]
    if not has_pool(network, compiling.az):
        # The first step stands for all; without new workers there is nothing to refuse.
        for step in steps:
            raise no_room(step.instance.long_name, network, step.instance.az)
    takes = [
        Allocate(
            network=compiling.network, owner=worker_of(compiling.deployment, each.number), zone=compiling.az,
            plan=compiling.plan, request=compiling.plan,
        )
        for each in fresh
    ]  # fmt: skip
    return Work([], list(zip(steps, takes, strict=True)), [])


def _settled(compiling: Compiling, config: CloudConfig) -> Compiling:
    workers = [replace(each, settings=settings_of(compiling.instance(each), config)) for each in compiling.workers]
    return replace(compiling, workers=tuple(workers))


async def commit(ledger: AsyncLedger, deployment: str, plan: str | None, number: int, *, vm: str) -> None:
    """Take the report that a worker's VM is up: it carries the address, whatever becomes of the compile."""
    check_name(vm, field="vm")

    async def attempt(turn: Turn) -> None:
        compiling = await _going_on(ledger, deployment, plan)
        worker = None if compiling is None else compiling.worker(number)
        if compiling is None or worker is None:
            of = f"deployment {deployment}" if plan is None else f"plan {plan} of deployment {deployment}"
            raise NotFound("compile worker", str(number), of=of, field="number")
        if worker.vm == vm:
            return
        found = await _check_own(ledger, compiling, worker, vm)
        written = [*found.first, found.vm.written(deployment)]
        workers = tuple(replace(each, vm=vm) if each is worker else each for each in compiling.workers)
        with turn:
            await ledger.apply([*_carried(worker, vm), *written, replace(compiling, workers=workers).written()])
            return

    await until_done(attempt)


async def _check_own(ledger: AsyncLedger, compiling: Compiling, worker: CompileWorker, vm: str) -> FoundVm:
    """Refuse a second VM for a worker, and one that is somebody else's: one VM cannot be two orphans in the end."""
    who = f"compile worker {worker.number} of deployment {compiling.deployment}"
    if worker.vm is not None:
        raise Conflict(f"{who} has VM {worker.vm!r} already; end the compile, and begin it anew", field="vm")
    found = await find_vm(ledger, vm)
    if found.holder is not None and found.holder.owner != worker_of(compiling.deployment, worker.number):
        raise Conflict(f"{who} cannot have VM {vm!r}: {found.holder.told(compiling.deployment)} has it", field="vm")
    if await orphans_among(ledger, [vm]):
        raise Conflict(f"{who}: VM {vm!r} is an orphan; report first that the orphan is deleted", field="vm")
    return found


def _carried(worker: CompileWorker, vm: str) -> list[Operation]:
    held = worker.holding
    if held is None:
        return []
    return [ModifyHolding(network=held.network, address=held.address, owner=held.owner, carrier=vm)]


async def end(ledger: AsyncLedger, deployment: str, plan: str | None = None) -> Compiling | None:
    """Take the report that a plan's compile is over and its VMs are deleted: what the workers had is free.

    With ``orphan_workers`` the VMs are not deleted but orphaned, and keep what they have until they are cleaned up.
    Returns what was ended; None if there is nothing (any more).
    """

    async def attempt(turn: Turn) -> Compiling | None:
        compiling = await _going_on(ledger, deployment, plan)
        if compiling is None:
            return None
        with turn:
            await ledger.apply([*compiling.freed(orphaned=compiling.orphans), compiling.removed()])
            return compiling

    return await until_done(attempt)


async def _going_on(ledger: AsyncLedger, deployment: str, plan: str | None) -> Compiling | None:
    _check_plan(plan)
    found = await load_compiling(ledger, check_name(deployment, field="deployment"))
    return found if found is not None and plan in (None, found.plan) else None


def _check_plan(plan: str | None) -> None:
    if plan is not None:
        check_name(plan, field="plan")
