"""What VMs say at a deploy with a cloud config: who is silent, and what a deployment brings that had none so far.

A deployment that was deployed without a cloud config has VMs, and no address in the ledger. Its first deploy with one
reserves what its VMs carry, and ends that its networks are kept for it alone; all in the ``apply`` of that deploy.
Whoever takes that deploy back makes it so again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tenure.integrations.bosh.cloud_config.configs import load_configs
from tenure.integrations.bosh.cloud_config.ledger_networks import is_ours
from tenure.integrations.bosh.cloud_config.legacy_deployments import (
    Legacy,
    legacy_of,
    load_legacy,
    load_mode,
    relaid,
    turned,
)
from tenure.integrations.bosh.model.document_model import CloudConfig
from tenure.integrations.bosh.planning.step_operations import Work
from tenure.integrations.bosh.planning.steps import Step
from tenure.integrations.bosh.running_vms.match_vm_state import Hearing, listen
from tenure.integrations.bosh.running_vms.reserve_running import (
    heard,
    operations_for,
    refused,
    with_hints,
    with_holdings,
)
from tenure.integrations.bosh.state.instance_state import Deployment, DeploymentInstance
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import AddressInUse
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.plan.plan_model import Network
from tenure.service.apply.operations import Expect, OfHolding, Operation, ReleaseOwner
from tenure.service.ledger.async_ledger import AsyncLedger


@dataclass(frozen=True, slots=True)
class Arrival:
    """Instances as their VMs say they are, and the operations that make the ledger so."""

    papers: Sequence[DeploymentInstance]
    instances: Sequence[DeploymentInstance]
    operations: Sequence[Operation]
    turned: bool = False
    silent: frozenset[str] = frozenset()
    """Whose VMs did not answer, and are to be replaced: they may still run, so they keep what they have until then."""

    def compared(self, steps: Sequence[Step]) -> list[Step]:
        """Return steps held against the papers: an instance that its VM tells otherwise is written down anew."""
        papers = {each.uuid: each for each in self.papers}
        return [
            step
            if step.before is None or step.after is None
            else replace(step, before=_as_written(step.before, papers))
            for step in steps
        ]

    def settled(self, work: Work) -> Work:
        """Put before the work what it rests on. All is one ``apply``: what comes into being there has no number yet."""
        if not self.turned:
            return replace(work, first=[*self.operations, *work.first])
        first, handed, last = ([_any(each) for each in part] for part in (work.first, work.handed, work.last))
        return replace(work, first=[*self.operations, *first], handed=handed, last=last)


def _as_written(before: DeploymentInstance, papers: dict[str, DeploymentInstance]) -> DeploymentInstance:
    return replace(papers[before.uuid], holdings=before.holdings)


def _any(operation: Operation) -> Operation:
    return replace(operation, generation=None) if isinstance(operation, OfHolding) else operation


async def arrive(
    ledger: AsyncLedger,
    config: CloudConfig,
    known: Deployment | None,
    papers: Sequence[DeploymentInstance],
    hearing: Hearing,
) -> Arrival:
    """Take what VMs say into a deploy with a cloud config."""
    if known is not None and known.snapshot is None:
        return await _turn(ledger, config, known, papers, hearing)
    who = listen(papers, hearing, everybody=False)
    spoken = [with_hints(each, who.answers[each.uuid], config) if each.uuid in who.answers else each for each in papers]
    return Arrival(papers, spoken, [], silent=who.lost)


async def _turn(
    ledger: AsyncLedger, config: CloudConfig, known: Deployment, papers: Sequence[DeploymentInstance], hearing: Hearing
) -> Arrival:
    instances, founds, silent = heard(papers, config, hearing, keep_silent=True)
    present = await load_ours(ledger)
    lifts = await lifted(ledger, config, known.name, present)
    # Each round leaves out at least one address, so the loop ends.
    while True:
        operations = [*lifts, *operations_for(founds, present, hearing.space)]
        try:
            # What is tried here is done in the deploy's own ``apply``: until then nobody else sees it.
            answers = await ledger.rehearse(operations)
            break
        except AddressInUse as error:
            unsure = [each for each in founds if each.perhaps or each.instance.uuid in silent]
            there = [each for each in unsure if format_address(each.block.first) == error.address]
            if not there:
                raise await refused(ledger, error, founds) from error
            founds = [each for each in founds if each not in there]  # it is another's already
    held = [each for each in answers if isinstance(each, Holding)]
    return Arrival(papers, with_holdings(instances, held), operations, turned=True, silent=silent)


async def load_ours(ledger: AsyncLedger) -> dict[str, Network]:
    """Read the networks of the ledger that cloud configs laid."""
    return {each.name: each for each in await ledger.networks() if is_ours(each)}


async def lifted(
    ledger: AsyncLedger, config: CloudConfig, deployment: str, present: dict[str, Network] | None = None
) -> list[Operation]:
    """Return the operations after which a deployment's networks are no longer kept for it alone."""
    networks = await load_ours(ledger) if present is None else present
    others = await load_legacy(ledger, but=deployment)
    return [*(each.expected() for each in others), *_laid(networks, others, config)]


def _laid(networks: Mapping[str, Network], legacies: Sequence[Legacy], config: CloudConfig) -> list[Operation]:
    edits = relaid(networks, legacies, config)
    touched = {edit.network for edit in edits}
    rests = [Expect(network=name, serial=networks[name].serial, uuid=networks[name].uuid) for name in sorted(touched)]
    # The expectations stand first, because the edits behind them raise the serials.
    return [*rests, *edits]


async def turned_back(
    ledger: AsyncLedger, before: Deployment, instances: Iterable[DeploymentInstance]
) -> list[Operation]:
    """Return the operations after which a deployment has no cloud config again: its first deploy with one is undone.

    Nothing is held for it, as its VMs alone tell what they carry; and what lies in its networks is kept for it.
    """
    mode = await load_mode(ledger)  # before all else that is read: who uploads in this moment does not know it yet
    configs = await load_configs(ledger)
    assert configs is not None  # the last one stays
    others = await load_legacy(ledger, but=before.name)
    legacies = sorted([*others, legacy_of(before)], key=lambda each: each.name)
    return [
        turned(mode),
        *configs.expected(),
        *(each.expected() for each in others),
        *(ReleaseOwner(owner=each.owner) for each in instances),
        *_laid(await load_ours(ledger), legacies, configs.config),
    ]
