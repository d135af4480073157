"""What may be asked of one deployment: how it stands, why it has its addresses, how a manifest differs from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tenure.integrations.bosh.cloud_config.configs import Configs, load_configs, load_networks, load_snapshot
from tenure.integrations.bosh.documents.manifest import read_manifest
from tenure.integrations.bosh.model.document_model import CloudConfig
from tenure.integrations.bosh.planning.explain_instance import Reason, explain
from tenure.integrations.bosh.planning.step_operations import DRAINED_BY
from tenure.integrations.bosh.rollback.original_network import strays_of
from tenure.integrations.bosh.state.instance_state import (
    Deployment,
    DeploymentInstance,
    load_deployment,
    load_instance,
    load_instances,
)
from tenure.integrations.bosh.views.manifest_diff import Difference, changed_networks, manifest_differences
from tenure.kernel.errors import NotFound
from tenure.service.ledger.async_ledger import AsyncLedger

AS_DEPLOYED = "as deployed"
"""How the manifest that a deployment was deployed with is called, should it be found wrong."""


@dataclass(frozen=True, slots=True)
class DeploymentStatus:
    """How a deployment stands: its instances, the config it was deployed with, and whether that is the one in force."""

    deployment: Deployment
    instances: Sequence[DeploymentInstance]
    config: CloudConfig
    up_to_date: bool
    older: Mapping[str, CloudConfig] = field(default_factory=dict)
    """By name of snapshot: what instances are made with for which a plan was taken back."""

    def config_of(self, instance: DeploymentInstance) -> CloudConfig:
        """Return the config that an instance is made with."""
        return self.older.get(instance.snapshot or "", self.config)

    def has(self, instance: DeploymentInstance) -> bool:
        """Tell whether an instance is still there."""
        return any(each.uuid == instance.uuid for each in self.instances)

    def can_take_back(self, plan: str) -> bool:
        """Tell whether anything is left of a plan that could be taken back."""
        if self.deployment.plan == plan and self.deployment.undo is not None:
            return True
        held = (each for instance in self.instances for each in instance.holdings)
        return any(each.plan == plan or strays_of(each, plan) for each in self.instances) or any(
            plan in (each.plan, each.labels.get(DRAINED_BY)) for each in held
        )


@dataclass(frozen=True, slots=True)
class Explained:
    """Why an instance has its addresses."""

    instance: DeploymentInstance
    reasons: Sequence[Reason]


@dataclass(frozen=True, slots=True)
class Compared:
    """How a manifest differs from what is deployed, and which networks changed in the cloud config since."""

    deployment: str
    differences: Sequence[Difference]
    networks: Sequence[str]


async def stand(ledger: AsyncLedger, name: str) -> DeploymentStatus:
    """Read how a deployment stands."""
    deployment, config, configs = await _deployed(ledger, name)
    up_to_date = configs is not None and configs.snapshot == deployment.snapshot
    instances = await load_instances(ledger, name)
    snapshots = {each.snapshot for each in instances if each.snapshot is not None}
    older = {each: await load_snapshot(ledger, each) for each in sorted(snapshots)}
    return DeploymentStatus(deployment, instances, config, up_to_date, older)


async def explain_instance(ledger: AsyncLedger, name: str, ident: str) -> Explained:
    """Explain the addresses of an instance."""
    _, config, configs = await _deployed(ledger, name)
    instance = await load_instance(ledger, name, ident)
    config = config if instance.snapshot is None else await load_snapshot(ledger, instance.snapshot)
    return Explained(instance, explain(instance, config, None if configs is None else configs.config))


async def compare(ledger: AsyncLedger, document: str, text: str) -> Compared:
    """Hold a manifest against the one that its deployment was last deployed with."""
    configs = await load_configs(ledger)
    after = read_manifest(document, text, None if configs is None else configs.config)
    deployment, config, _ = await _deployed(ledger, after.name)
    before = read_manifest(AS_DEPLOYED, deployment.manifest, None if deployment.snapshot is None else config)
    now = after.own if configs is None else configs.config
    networks = [] if now is None else changed_networks(config, now)
    return Compared(after.name, manifest_differences(before, after), networks)


async def _deployed(ledger: AsyncLedger, name: str) -> tuple[Deployment, CloudConfig, Configs | None]:
    """Read a deployment, the config it was deployed with (perhaps its own), and the configs in force."""
    deployment = await load_deployment(ledger, name)
    if deployment is None:
        raise NotFound("deployment", name)
    return deployment, await load_networks(ledger, deployment), await load_configs(ledger)
