"""What VMs are perhaps being made with while another plan comes: one that means another does not take them over."""

from collections.abc import Sequence

from tenure.integrations.bosh.cloud_config.configs import Configs, load_snapshot
from tenure.integrations.bosh.model.bosh_errors import Refused
from tenure.integrations.bosh.model.document_model import CloudConfig, Properties
from tenure.integrations.bosh.state.instance_state import Deployment, DeploymentInstance
from tenure.integrations.bosh.state.vm_settings import settings_of
from tenure.service.ledger.async_ledger import AsyncLedger


def remembered_begun(instances: Sequence[DeploymentInstance]) -> dict[str, Properties]:
    """Return the settings of VMs that are perhaps being made, by uuid, where instances remember them themselves."""
    return {each.uuid: each.meant for each in instances if each.is_told and each.meant is not None}


async def settings_begun(
    ledger: AsyncLedger, deployment: Deployment | None, instances: Sequence[DeploymentInstance], configs: Configs
) -> dict[str, Properties]:
    """Return the settings of VMs that are perhaps being made, by uuid; of cloud configs no more in force, too."""
    found = remembered_begun(instances)
    if deployment is None:
        return found
    # The cloud configs in force are read already, and most instances are made with them.
    known: dict[str, CloudConfig] = {configs.snapshot: configs.config}
    for each in instances:
        name = deployment.as_of(each).snapshot
        if name is None or not each.is_told:
            continue
        if name not in known:
            known[name] = await load_snapshot(ledger, name)
        settings = _settings(each, known[name])
        if settings is not None:
            found[each.uuid] = settings
    return found


def _settings(instance: DeploymentInstance, config: CloudConfig) -> Properties | None:
    """Return what an instance's VM is made with; None if somebody took an address away: then it gets another."""
    try:
        return settings_of(instance, config)
    except Refused:
        return None
