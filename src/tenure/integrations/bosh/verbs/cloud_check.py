"""Cloud check: which instances lost their VMs, and what is done about it, with the networks that they were made on."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tenure.integrations.bosh.state.instance_state import DeploymentInstance, load_deployment, load_instances
from tenure.integrations.bosh.verbs.report_checks import ReportContext, check_lost, reported
from tenure.kernel.errors import Conflict, NotFound
from tenure.kernel.names import check_name
from tenure.service.apply.operations import Operation
from tenure.service.ledger.async_ledger import AsyncLedger


@dataclass(frozen=True, slots=True)
class Missing:
    """An instance whose VM is not there any more."""

    instance: DeploymentInstance
    vm: str


async def check(ledger: AsyncLedger, deployment: str, vms: Collection[str]) -> list[Missing]:
    """Tell which instances lost their VMs, given all that exist; ignored ones are left alone."""
    if await load_deployment(ledger, check_name(deployment, field="deployment")) is None:
        raise NotFound("deployment", deployment)
    for vm in vms:
        check_name(vm, field="vms")
    return [
        Missing(each, each.vm)
        for each in await load_instances(ledger, deployment)
        if each.vm is not None and each.vm not in vms and not each.ignored
    ]


async def recreate(ledger: AsyncLedger, deployment: str, ident: str, *, vm: str) -> DeploymentInstance:
    """Let an instance wait for a VM in place of the lost one, on what it has; its settings are as remembered.

    Once that VM is reported, what it does not carry is freed. Whoever waits for something of the lost one gets it now.
    """
    check_name(vm, field="vm")
    plan = secrets.token_hex(8)

    def decide(report: ReportContext) -> Sequence[Operation]:
        instance = report.instance
        check_lost(instance, vm)
        if instance.leaving:
            raise Conflict(f"instance {instance.name} is not wanted any more; report that its VM is gone")
        books = report.books
        # An instance that waits for the VM of a plan already goes on to wait for that one.
        books.without_vm(instance, plan=instance.plan or plan, failed=False)
        return books.operations

    return await reported(ledger, deployment, ident, decide)


async def delete_reference(ledger: AsyncLedger, deployment: str, ident: str, *, vm: str) -> DeploymentInstance:
    """Forget an instance's VM and leave the rest as it is: it may still be there, so nobody else gets what it has."""
    check_name(vm, field="vm")

    def decide(report: ReportContext) -> Sequence[Operation]:
        check_lost(report.instance, vm)
        books = report.books
        books.take_vm(report.instance, is_gone=False)
        return books.operations

    return await reported(ledger, deployment, ident, decide)
