"""What is done to a deployment as it was last deployed: by its own manifest, with the cloud configs of that time.

The ledger has the networks of the cloud configs in force. Where these changed since, an address is reserved only if it
fits the old ones as well: else the deployment is to be deployed again.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from tenure.integrations.bosh.cloud_config.configs import Configs, load_configs, load_snapshot
from tenure.integrations.bosh.documents.manifest import read_manifest
from tenure.integrations.bosh.model.address_diff import Has, fits
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import CloudConfig, InstanceGroup, Manifest
from tenure.integrations.bosh.model.retry import Again, Turn, until_done
from tenure.integrations.bosh.planning.hand_over import Offers
from tenure.integrations.bosh.planning.step_operations import Work, work_for
from tenure.integrations.bosh.planning.steps import Step
from tenure.integrations.bosh.planning.translate_errors import explained
from tenure.integrations.bosh.planning.vip_choice import Overtaken, choose_vips, was_picked
from tenure.integrations.bosh.state.instance_state import (
    Deployment,
    DeploymentInstance,
    load_deployment,
    load_instances,
)
from tenure.integrations.bosh.verbs.deploy import Deployed, check_pools, granted_by
from tenure.kernel.errors import (
    AddressInUse,
    AddressOutsideSubnet,
    AddressReserved,
    NotFound,
    PoolExhausted,
    TenureError,
)
from tenure.kernel.names import check_name
from tenure.service.apply.operations import Operation
from tenure.service.ledger.async_ledger import AsyncLedger


@dataclass(frozen=True, slots=True)
class LastDeployed:
    """A deployment as it was last deployed, with its instances as they are now."""

    deployment: Deployment
    manifest: Manifest
    config: CloudConfig
    instances: Sequence[DeploymentInstance]

    def group(self, name: str) -> InstanceGroup | None:
        """Find a group of the manifest."""
        return next((each for each in self.manifest.groups if each.name == name), None)


Choose = Callable[[LastDeployed], Sequence[Step]]
"""Says what is to be done to a deployment."""


async def remember(ledger: AsyncLedger, name: str) -> LastDeployed:
    """Read a deployment as it was last deployed."""
    deployment = await load_deployment(ledger, check_name(name, field="deployment"))
    if deployment is None:
        raise NotFound("deployment", name)
    if deployment.snapshot is None:
        raise Refused(BoshErrorKind.GENERIC, f"Deployment '{name}' was deployed without a cloud config")
    config = await load_snapshot(ledger, deployment.snapshot)
    manifest = read_manifest(name, deployment.manifest, config)
    return LastDeployed(deployment, manifest, config, await load_instances(ledger, name))


async def redo(ledger: AsyncLedger, name: str, plan: str, choose: Choose, *, dry: bool = False) -> Deployed:
    """Do steps for a deployment as it was last deployed, in one ``apply``, or (``dry``) tell what would be done."""
    # For all attempts: an address that could not be had is not chosen again.
    passed_over: set[int] = set()

    async def attempt(turn: Turn) -> Deployed:
        remembered = await remember(ledger, name)
        steps = choose(remembered)
        try:
            with turn:
                return await _attempt(ledger, remembered, steps, plan, passed_over, dry=dry)
        except Overtaken as late:
            if turn.last:
                raise await explained(ledger, late.error, late.work, late.config) from late
            passed_over.add(late.position)
            raise Again(late) from late

    return await until_done(attempt)


async def _attempt(
    ledger: AsyncLedger,
    remembered: LastDeployed,
    steps: Sequence[Step],
    plan: str,
    passed_over: Collection[int],
    *,
    dry: bool,
) -> Deployed:
    deployment, config = remembered.deployment, remembered.config
    configs = await load_configs(ledger)
    vips = await choose_vips(ledger, config, steps, Offers(config), passed_over=passed_over)
    work = work_for(steps, plan, vips)
    if not work.operations:  # nothing is this plan's
        return Deployed(deployment.plan or plan, deployment.name, config, steps, {})
    check_pools(config, steps)
    rests = _rests(deployment, configs)
    changed = configs is None or configs.snapshot != deployment.snapshot
    try:
        sure = await _pinned(ledger, remembered, rests, work) if changed else work
        answers = await (ledger.rehearse if dry else ledger.apply)([*rests, *sure.operations])
    except (NotFound, AddressOutsideSubnet) as error:
        if not changed or not _is_of_networks(error):
            raise
        raise _changed(remembered, steps[0]) from error
    except (AddressInUse, AddressReserved, PoolExhausted) as error:
        if not isinstance(error, PoolExhausted) and was_picked(error, vips):
            raise Overtaken(error, work, config) from error
        raise await explained(ledger, error, work, config) from error  # what was only made sure of is tried again
    return Deployed(plan, deployment.name, config, steps, granted_by(work, answers[len(rests) :]))


def _rests(deployment: Deployment, configs: Configs | None) -> list[Operation]:
    """Return what reservations rest on: the configs in force, and that nobody deploys in this moment."""
    # Written and not only expected: two errands or recreates in one moment must notice each other, too.
    return [*([] if configs is None else configs.expected()), deployment.written()]


async def _pinned(ledger: AsyncLedger, remembered: LastDeployed, rests: Sequence[Operation], work: Work) -> Work:
    """Try reservations on networks that changed, and make sure of those that fit what they were; or refuse."""
    if not work.takes:
        return work
    try:
        granted = granted_by(work, (await ledger.rehearse([*rests, *work.operations]))[len(rests) :])
    except (NotFound, AddressOutsideSubnet, AddressReserved) as error:
        if not _is_of_networks(error):
            raise
        raise _changed(remembered, work.takes[0][0]) from error
    takes = []
    for step, take in work.takes:
        held = granted[step.instance.uuid, take.network]
        wish = next(each for each in step.bound.new if each.network == take.network)
        has = Has(held.network, held.row.first, held.unit)
        if not fits(remembered.config.networks[take.network], step.instance.az, has, wish):
            raise _changed(remembered, step)
        # By address from here on: the apply must get what fitted in the rehearsal, and not another pick.
        takes.append((step, replace(take, address=held.address, zone=None)))
    return replace(work, takes=takes)


def _is_of_networks(error: TenureError) -> bool:
    """Tell whether networks are the reason: what is held stays where there is no pool any more."""
    return not isinstance(error, NotFound) or error.kind in ("network", "pool")


def _changed(remembered: LastDeployed, step: Step) -> TenureError:
    return Refused(
        BoshErrorKind.NETWORK_RESERVATION_ERROR,
        f"Failed to reserve IP for '{step.instance.long_name}': the cloud config changed since deployment "
        f"'{remembered.deployment.name}' was deployed. Deploy it again.",
    )
