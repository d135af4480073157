"""Instances that an operator told us to leave alone: what would change one is refused."""

import json
from collections.abc import Sequence

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import DYNAMIC, CloudConfig, InstanceGroup
from tenure.integrations.bosh.placement.placement_model import Present


def check_ignored(group: InstanceGroup, config: CloudConfig, present: Sequence[Present]) -> None:
    """Refuse a group that would remove, move or change an ignored instance."""
    ignored = [instance for instance in present if instance.ignored]
    _check_number(group, len(ignored))
    _check_azs(group, ignored)
    for instance in ignored:
        _check_networks(group, config, instance)
        _check_static(group, instance)


def static_ip_removed(group: InstanceGroup) -> Refused:
    """Tell that an ignored instance would lose its static address."""
    told = "an attempt was made to remove a static ip that is used by an ignored instance"
    return _refusal(f"In instance group '{group.name}', {told}. This operation is not allowed.")


def _check_number(group: InstanceGroup, number: int) -> None:
    if number > group.instances:
        raise _refusal(
            f"Instance Group '{group.name}' has {number} ignored instance(s). {group.instances} instance(s) of that "
            "instance group were requested. Deleting ignored instances is not allowed."
        )


def _check_azs(group: InstanceGroup, ignored: Sequence[Present]) -> None:
    wanted = group.azs or (None,)
    gone = sorted({instance.az or "" for instance in ignored if instance.az not in wanted})
    if gone:
        told = f"no longer contains AZs {json.dumps(gone)} where ignored instance(s) exist."
        raise _refusal(f"Instance Group '{group.name}' {told}")


def _check_networks(group: InstanceGroup, config: CloudConfig, instance: Present) -> None:
    """Refuse other networks than it has. On dynamic ones it holds nothing; who holds nothing at all has none yet."""
    dynamic = {name for name, network in config.networks.items() if network.kind == DYNAMIC}
    held = {name for name, positions in instance.addresses.items() if positions} - dynamic
    if held and held != {wish.name for wish in group.networks} - dynamic:
        told = "which contains ignored vms, an attempt was made to modify the networks"
        raise _refusal(f"In instance group '{group.name}', {told}. This operation is not allowed.")


def _check_static(group: InstanceGroup, instance: Present) -> None:
    for wish in group.networks:
        held = instance.addresses.get(wish.name, ())
        if wish.static_ips is not None and not set(held) <= set(wish.static_ips):
            raise static_ip_removed(group)


def _refusal(message: str) -> Refused:
    return Refused(BoshErrorKind.DEPLOYMENT_IGNORED_INSTANCES_MODIFICATION, message)
