"""VMs made anew without a deploy: same manifest, same networks as remembered, same addresses unless VMs are swapped."""

import secrets
from collections.abc import Sequence
from dataclasses import replace

from tenure.integrations.bosh.model.address_diff import Bound, Has, Kept, Wants
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import DETACHED, DYNAMIC, ERRAND
from tenure.integrations.bosh.planning.steps import Step, swaps
from tenure.integrations.bosh.state.instance_state import DeploymentInstance, find_instance
from tenure.integrations.bosh.verbs.deploy import Deployed
from tenure.integrations.bosh.verbs.last_deployed import LastDeployed, redo
from tenure.kernel.holdings.holding_model import Holding
from tenure.service.ledger.async_ledger import AsyncLedger

NOTHING = Bound((), (), ())


async def recreate(ledger: AsyncLedger, deployment: str, ident: str | None = None, *, dry: bool = False) -> Deployed:
    """Let an instance, or all of a deployment, wait for a new VM; swapped ones get new addresses beside the old.

    Who waits already, never had a VM, is stopped hard, leaves, is of an errand at rest or (of all) is ignored stays as
    it is. If nothing is left to do, the answer tells the plan that they wait for.
    """
    plan, known = secrets.token_hex(8), set[str]()

    def choose(remembered: LastDeployed) -> Sequence[Step]:
        if ident is None:
            chosen = [each for each in remembered.instances if not each.ignored]
        else:
            chosen = [find_instance(remembered.instances, deployment, ident)]
            _check_ignored(chosen[0])
        # choose runs in every attempt: the plans of an overtaken attempt do not count.
        known.clear()
        known.update(each.plan for each in chosen if each.plan is not None)
        return [_step(remembered, each, plan) for each in chosen if _is_up(remembered, each)]

    done = await redo(ledger, deployment, plan, choose, dry=dry)
    return done if done.steps or len(known) != 1 else replace(done, plan=known.pop())


def _check_ignored(instance: DeploymentInstance) -> None:
    if instance.ignored:
        raise Refused(
            BoshErrorKind.DEPLOYMENT_IGNORED_INSTANCES_MODIFICATION,
            f"You are trying to change the state of the ignored instance '{instance.name}'. "
            "This operation is not allowed. You need to unignore it first.",
        )


def _is_up(remembered: LastDeployed, instance: DeploymentInstance) -> bool:
    """Tell whether an instance is wanted with a VM, and waits for none yet."""
    group = remembered.group(instance.group)
    if group is None or instance.leaving or instance.plan is not None or instance.state == DETACHED or instance.is_new:
        return False
    return group.lifecycle != ERRAND or instance.vm is not None


def _step(remembered: LastDeployed, instance: DeploymentInstance, plan: str) -> Step:
    group = remembered.group(instance.group)
    assert group is not None
    config = remembered.config
    after = replace(instance, plan=plan, failed=False)
    as_it_was = instance.snapshot is not None  # its networks are not the deployment's, so it can have no others
    if as_it_was or not swaps(group, config, NOTHING, recreate=True, vm=instance.vm):
        return Step(instance, after, Bound(tuple(map(_kept, instance.wanted)), (), ()))
    kinds = ((each, config.networks[each.name].kind) for each in group.networks)
    wants = tuple(Wants(each.name, None, each.nic_group) for each, kind in kinds if kind != DYNAMIC)
    return Step(instance, replace(after, swaps=True), Bound((), wants, instance.has), swaps=True)


def _kept(held: Holding) -> Kept:
    """Return an address as what it is: whatever networks are called by now, nothing is done to it."""
    return Kept(Wants(held.network), Has(held.network, held.row.first, held.unit, held.carrier is not None))
