"""What VMs may come up on that nobody told of, where only VMs know addresses: it is kept for them all the same.

So it is without a cloud config, and once when the first one comes: an instance remembers the settings of the VM that
it waits for, and the addresses of earlier ones.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tenure.integrations.bosh.model.address_diff import subnet_of
from tenure.integrations.bosh.model.document_model import DYNAMIC, VIP, CloudConfig, Properties
from tenure.integrations.bosh.running_vms.vm_state import Carries
from tenure.integrations.bosh.state.instance_state import DeploymentInstance, addresses_in
from tenure.kernel.addressing.addresses import parse_address, width
from tenure.kernel.addressing.ranges import Cidr, parse_cidr


@dataclass(frozen=True, slots=True)
class PossibleAddress:
    """An address that an instance's VM carries, or may come up on, and the network of the ledger that has it.

    ``remnant``: no subnet of today has it. It gets a block of its own that nobody picks from: BOSH's dummy subnet.
    ``perhaps``: no VM carries it yet, but one (of ``plan``, if there is one) may come up on it. ``parting``: it is not
    wanted any more.
    """

    instance: DeploymentInstance
    network: str
    block: Cidr
    remnant: bool = False
    request: str | None = None
    plan: str | None = None
    perhaps: bool = False
    parting: bool = False


def still_meant(paper: DeploymentInstance) -> Properties | None:
    """Return the settings of the VM that is perhaps being made; without one, nothing is meant any more."""
    return paper.meant if paper.plan is not None and paper.is_told else None


def meant_for(instance: DeploymentInstance) -> dict[str, Cidr]:
    """Return what the VM that an instance waits for is perhaps being made on, by network."""
    return {name: _block(ip) for name, ip in addresses_in(instance.meant or {}).items()}


def made_with(settings: Properties) -> dict[str, Carries]:
    """Return what a VM carries that does not answer: what it was made with."""
    return {name: Carries(_block(ip), settings[name]["type"]) for name, ip in addresses_in(settings).items()}


def perhaps(
    instances: Sequence[DeploymentInstance], founds: Sequence[PossibleAddress], config: CloudConfig
) -> list[PossibleAddress]:
    """Return what VMs may come up on that nobody told of, as far as no VM carries it.

    Where a subnet that has it hands out units of another length, it cannot be kept.
    """
    earlier = [
        PossibleAddress(instance, "", _block(text), plan=making.plan, request=making.plan, perhaps=True, parting=True)
        for instance in instances
        for making in instance.earlier
        for text in making.addresses
    ]
    awaited = [
        PossibleAddress(instance, name, block, plan=instance.plan, request=instance.plan, perhaps=True)
        for instance in instances
        for name, block in meant_for(instance).items()
    ]
    taken: dict[int, set[int]] = {}
    for found in founds:
        taken.setdefault(found.block.prefix, set()).add(found.block.first)
    keeps = {(found.instance.uuid, found.network) for found in founds if not found.parting}
    kept: list[PossibleAddress] = []
    # Awaited ones go first: an address that is in both lists is wanted, and is kept as such.
    for found in (*awaited, *earlier):
        at = _homed(found, config)
        if at is None or _is_taken(found.block, taken):
            continue
        taken.setdefault(found.block.prefix, set()).add(found.block.first)
        place = (at.instance.uuid, at.network)
        kept.append(replace(at, parting=at.parting or place in keeps))  # of a network it is to keep one
        if not at.parting:
            keeps.add(place)
    return kept


def _homed(found: PossibleAddress, config: CloudConfig) -> PossibleAddress | None:
    """Return an address that a VM may come up on with the network that has it, or with none a block of its own."""
    # VIP networks go last: they take any address, also one that lies in a manual subnet.
    last = sorted(config.networks, key=lambda name: config.networks[name].kind == VIP)
    home = next((name for name in (found.network, *last) if _is_home(name, found, config)), None)
    if home is not None:
        return replace(found, network=home)
    if any(subnet_of(each, found.block.first, None) for each in config.networks.values()):
        return None
    own = found.network or next((said["name"] for said in found.instance.networks), None)
    return None if own is None else replace(found, network=own, remnant=True)


def _is_taken(block: Cidr, taken: Mapping[int, Collection[int]]) -> bool:
    """Tell whether a block lies in one that is taken, or has one in it; ``taken`` is by length."""
    for prefix, firsts in taken.items():
        if prefix > block.prefix and any(block.first <= each <= block.last for each in firsts):
            return True
        shift = max(width(block.first) - prefix, 0)
        if prefix <= block.prefix and block.first >> shift << shift in firsts:
            return True
    return False


def _is_home(name: str, found: PossibleAddress, config: CloudConfig) -> bool:
    """Tell whether a network can have what a VM may come up on; of an earlier one it is not known which network."""
    network = config.networks.get(name)
    if network is None or network.kind == DYNAMIC:
        return False
    if network.kind == VIP:
        return found.network in (name, "")
    subnet = subnet_of(network, found.block.first, None)
    return subnet is not None and subnet.prefix == found.block.prefix


def _block(text: str) -> Cidr:
    if "/" in text:
        return parse_cidr(text)
    position = parse_address(text)
    return Cidr(position, width(position))
