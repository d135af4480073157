"""Spots: where an instance can stand so that it gets a static address on each of its networks.

A spot is an AZ. Where several static networks share a nic_group, it is an AZ and a kind of subnet for each such
nic_group: all addresses of one NIC come from subnets of one kind.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

from tenure.integrations.bosh.placement.static.static_lists import Home, StaticNetwork


class Spot(NamedTuple):
    """An AZ, and for each shared nic_group the kind of subnet its NIC is on."""

    az: str | None
    kinds: tuple[int, ...]


class GroupSpots:
    """All spots of a group, by number: lowest AZ first. ``shared`` are the nic_groups of several static networks."""

    def __init__(self, azs: Iterable[str | None], networks: Sequence[StaticNetwork]) -> None:
        self._networks = networks
        self.shared = shared_nic_groups(networks)
        self.spots = [spot for az in azs for spot in self._spots_in(az)]

    def serving(self, network: StaticNetwork, home: Home) -> tuple[int, ...]:
        """Number the spots on which an address of a network can stand."""
        at = self.shared.index(network.nic_group) if network.nic_group in self.shared else None
        return tuple(
            number
            for number, spot in enumerate(self.spots)
            if spot.az in home.azs and (at is None or spot.kinds[at] == home.kind)
        )

    def spots_of(self, az: str | None) -> tuple[int, ...]:
        """Number the spots of an AZ."""
        return tuple(number for number, spot in enumerate(self.spots) if spot.az == az)

    def _spots_in(self, az: str | None) -> list[Spot]:
        kinds = [sorted(self._common_kinds(az, nic_group)) for nic_group in self.shared]
        return [Spot(az, chosen) for chosen in product(*kinds)]

    def _common_kinds(self, az: str | None, nic_group: str | None) -> set[int]:
        """Tell the kinds of subnet on which all networks of a nic_group have an address in an AZ."""
        siblings = [network for network in self._networks if network.nic_group == nic_group]
        return set.intersection(*({home.kind for home in each.homes.values() if az in home.azs} for each in siblings))


def shared_nic_groups(networks: Iterable[StaticNetwork]) -> tuple[str | None, ...]:
    """Tell the nic_groups that hold several of the networks, in the order listed."""
    counted = Counter(network.nic_group for network in networks if network.nic_group is not None)
    return tuple(nic_group for nic_group, number in counted.items() if number > 1)
