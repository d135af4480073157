"""The static addresses that a group asks for, each with its subnet and the AZs in which it can be had."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from tenure.doors.deployments.faults import Kind, Refused
from tenure.doors.deployments.model import VIP, CloudConfig, Group, GroupNetwork, Network, Subnet
from tenure.kernel.addresses import format_address
from tenure.kernel.ranges import merge


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
        return f"{format_address(position)}/{self.homes[position].prefix}"


def list_static(group: Group, config: CloudConfig) -> tuple[StaticNetwork, ...]:
    """Return the networks on which a group asks for static addresses, as it lists them; VIPs are not among them."""
    kinds: list[object] = []
    wishes = [wish for wish in group.networks if wish.static_ips is not None]
    pairs = [(wish, config.networks[wish.name]) for wish in wishes]
    return tuple(_listed(group, wish, network, kinds) for wish, network in pairs if network.kind != VIP)


def _listed(group: Group, wish: GroupNetwork, network: Network, kinds: list[object]) -> StaticNetwork:
    homes = _Homes(group, network, kinds)
    return StaticNetwork(wish.name, wish.nic_group, {each: homes.of(each) for each in wish.static_ips or ()})


class _Homes:
    """Finds the home of an address. Cost: O(log n) of n static ranges."""

    def __init__(self, group: Group, network: Network, kinds: list[object]) -> None:
        self._group = group
        self._network = network
        homes = [_home(group, subnet, kinds) for subnet in network.subnets]
        pieces = [
            (piece, home) for subnet, home in zip(network.subnets, homes, strict=True) for piece in merge(subnet.static)
        ]
        self._pieces = sorted(pieces, key=lambda pair: pair[0])
        self._firsts = [piece.first for piece, _ in self._pieces]

    def of(self, position: int) -> Home:
        at = bisect_right(self._firsts, position) - 1
        if at < 0 or position not in self._pieces[at][0]:
            raise self._refusal(
                Kind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH,
                f"with network '{self._network.name}' declares static ip '{format_address(position)}', "
                "which belongs to no subnet",
            )
        home = self._pieces[at][1]
        if not home.azs:
            raise self._refusal(
                Kind.JOB_STATIC_IPS_FROM_INVALID_AVAILABILITY_ZONE,
                f"declares static ip '{format_address(position)}' which does not belong to any of the instance "
                "group's availability zones.",
            )
        return home

    def _refusal(self, kind: Kind, told: str) -> Refused:
        return Refused(kind, f"Instance group '{self._group.name}' {told}")


def _home(group: Group, subnet: Subnet, kinds: list[object]) -> Home:
    azs: Sequence[str | None] = sorted(set(group.azs)) if group.azs else [None]
    # Cloud properties may be anything that YAML can say, so they are compared and not hashed.
    if subnet.cloud_properties not in kinds:
        kinds.append(subnet.cloud_properties)
    return Home(tuple(az for az in azs if subnet.serves(az)), kinds.index(subnet.cloud_properties), subnet.prefix)
