"""The static addresses that a group asks for, each with its subnet and the AZs in which it can be had."""

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.integrations.bosh.model.address_text import written
from tenure.integrations.bosh.model.document_model import (
    VIP,
    CloudConfig,
    CloudNetwork,
    CloudSubnet,
    GroupNetwork,
    InstanceGroup,
)
from tenure.integrations.bosh.model.pool_ranges import StaticPools


@dataclass(frozen=True, slots=True)
class Home:
    """Where static addresses lie: the AZs of a subnet that the group has, and which kind of subnet it is.

    Subnets are of one kind if their cloud properties are equal: a NIC can have addresses of both.
    """

    azs: tuple[str | None, ...]
    kind: int
    prefix: int


@dataclass(frozen=True, slots=True)
class StaticNetwork:
    """A network of a group with static addresses: the home of each, in the order listed."""

    name: str
    nic_group: str | None
    homes: dict[int, Home]

    def told(self, position: int) -> str:
        """Write an address for a message."""
        return written(position, self.homes[position].prefix)


def list_static(group: InstanceGroup, config: CloudConfig) -> tuple[StaticNetwork, ...]:
    """Return the networks on which a group asks for static addresses, as it lists them; VIPs are not among them."""
    kinds: list[object] = []
    wishes = [wish for wish in group.networks if wish.static_ips is not None]
    pairs = [(wish, config.networks[wish.name]) for wish in wishes]
    return tuple(_listed(group, wish, network, kinds) for wish, network in pairs if network.kind != VIP)


def _listed(group: InstanceGroup, wish: GroupNetwork, network: CloudNetwork, kinds: list[object]) -> StaticNetwork:
    pools = StaticPools(network)
    # By id: a subnet holds mappings, so it cannot be hashed.
    homes = {id(subnet): _home(group, subnet, kinds) for subnet in network.subnets}
    found: dict[int, Home] = {}
    for position in wish.static_ips or ():
        subnet = pools.subnet_of(position)
        assert subnet is not None, "a manifest with such an address is not read"
        found[position] = homes[id(subnet)]
    return StaticNetwork(wish.name, wish.nic_group, found)


def _home(group: InstanceGroup, subnet: CloudSubnet, kinds: list[object]) -> Home:
    azs: Sequence[str | None] = sorted(set(group.azs)) if group.azs else [None]
    # Cloud properties may be anything that YAML can say, so they are compared and not hashed.
    if subnet.cloud_properties not in kinds:
        kinds.append(subnet.cloud_properties)
    return Home(tuple(az for az in azs if subnet.serves(az)), kinds.index(subnet.cloud_properties), subnet.prefix)
