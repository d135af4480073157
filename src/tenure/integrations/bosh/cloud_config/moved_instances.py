"""Whom a cloud config would move: addresses that instances have, and that would no longer fit. Pure: nothing is asked.

Told when a config is uploaded, so that nobody learns of it at his next deploy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.integrations.bosh.model.address_diff import Has, Wants, bind, is_restricted, is_static, subnet_of
from tenure.integrations.bosh.model.document_model import DYNAMIC, MANUAL, VIP, CloudConfig, CloudNetwork
from tenure.integrations.bosh.state.instance_state import DeploymentInstance
from tenure.kernel.addressing.ranges import Cidr
from tenure.kernel.holdings.holding_model import Holding


@dataclass(frozen=True, slots=True)
class Moved:
    """An address that an instance would have to give up at the next deploy, and why."""

    instance: DeploymentInstance
    held: Holding
    reason: str


def moved_by(config: CloudConfig, before: CloudConfig, instances: Sequence[DeploymentInstance]) -> list[Moved]:
    """Return whose addresses would no longer fit, and why.

    ``before`` is the config that the instances were deployed with: it tells which addresses were asked for by name.
    """
    looked_at = ((instance, held) for instance in instances if not instance.leaving for held in instance.wanted)
    found = ((instance, held, misfit(config, before, instance, held)) for instance, held in looked_at)
    return [Moved(instance, held, reason) for instance, held, reason in found if reason is not None]


def misfit(config: CloudConfig, before: CloudConfig, instance: DeploymentInstance, held: Holding) -> str | None:
    """Say why an address would not fit under a config; None if it would, perhaps in a network of another name."""
    has, address = _has(held), _asked(before, held)
    if _is_kept(config, before, instance, has):
        return None
    network = config.networks.get(held.network)
    if network is None:
        renamed = any(bind(config, instance.az, [has], [Wants(name, address)]).kept for name in config.networks)
        return None if renamed else f"network '{held.network}' is in no cloud config any more"
    if network.kind == DYNAMIC:
        return f"network '{network.name}' is dynamic now"
    if network.kind == VIP:
        return f"it is in no pool of vip network '{network.name}' for its availability zone any more"
    return _reason(network, instance.az, has, asked=address is not None)


def _is_kept(config: CloudConfig, before: CloudConfig, instance: DeploymentInstance, has: Has) -> bool:
    """Tell whether a deploy would keep an address: in its network, or in another that its instance is on."""
    held = {each.network: each for each in instance.wanted}
    has_all = [_has(each) for each in held.values()]
    names = dict.fromkeys([*held, *(said["name"] for said in instance.networks)])
    kinds = ((name, config.networks[name].kind) for name in names if name in config.networks)
    wants = [Wants(name, _asked(before, held.get(name))) for name, kind in kinds if kind != DYNAMIC]
    return any(each.has == has for each in bind(config, instance.az, has_all, wants).kept)


def _has(held: Holding) -> Has:
    return Has(held.network, held.row.first, held.unit, held.carrier is not None)


def _asked(before: CloudConfig, held: Holding | None) -> int | None:
    """Return an address if it was asked for by name."""
    return held.row.first if held is not None and was_asked_for(before, held) else None


def was_asked_for(before: CloudConfig, held: Holding) -> bool:
    """Tell whether an address was asked for by name, and not picked, when its instance was deployed."""
    network = before.networks.get(held.network) or _around(before, held.row.first)
    if network is None:
        return False
    if network.kind == VIP:
        return not network.subnets
    subnet = subnet_of(network, held.row.first, None)
    return subnet is not None and is_static(subnet, held.row.first)


def _around(config: CloudConfig, position: int) -> CloudNetwork | None:
    """Find the network that an address lay in before it was renamed."""
    manual = (network for network in config.networks.values() if network.kind == MANUAL)
    return next((network for network in manual if subnet_of(network, position, None) is not None), None)


def _reason(network: CloudNetwork, az: str | None, has: Has, *, asked: bool) -> str:
    """Say what is wrong with an address in a manual network."""
    anywhere, subnet = (subnet_of(network, has.position, each) for each in (None, az))
    if anywhere is None:
        return f"no subnet of network '{network.name}' has it any more"
    if subnet is None:
        return f"subnet {anywhere.range} serves availability zone '{az}' no more"
    if subnet.prefix != has.prefix:
        return f"subnet {subnet.range} hands out prefixes of length {subnet.prefix} now"
    if subnet.gateway == has.position:
        return f"it is the gateway of subnet {subnet.range} now"
    whole = Cidr(has.position, has.prefix).range
    if any(each.overlaps(whole) for each in subnet.reserved):
        return f"it is reserved in subnet {subnet.range} now"
    if is_restricted(subnet, has.position, has.prefix):
        return f"it is kept back in subnet {subnet.range} now: for DNS, Tenure's own host, or as first or last address"
    if asked:
        return f"it is no longer among the static addresses of subnet {subnet.range}"
    return f"it is among the static addresses of subnet {subnet.range} now, and nobody asked for it by name"
