"""Decides who stays and on which spot, and how many stand on each spot when all are placed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import InstanceGroup
from tenure.integrations.bosh.placement.placement_model import by_index
from tenure.integrations.bosh.placement.static.held_statics import StaticHolder
from tenure.integrations.bosh.placement.static.spots import GroupSpots, shared_nic_groups
from tenure.integrations.bosh.placement.static.spread import Spread, Stock
from tenure.integrations.bosh.placement.static.static_lists import StaticNetwork


@dataclass(frozen=True, slots=True)
class SpotCounts:
    """Who stays and on which spot, by index; and how many are to stand on each spot."""

    ground: GroupSpots
    stocks: Sequence[Stock]
    numbers: Sequence[int]
    kept: Sequence[tuple[StaticHolder, int]]


def settle(group: InstanceGroup, networks: Sequence[StaticNetwork], claims: Sequence[StaticHolder]) -> SpotCounts:
    """Decide; or refuse, and say whether a nic_group is in the way."""
    try:
        return _Settling(group, networks).settle(claims)
    except Refused as refusal:
        raise _blame_on_nic_group(group, networks, claims) or refusal from None


class _Settling:
    """One try to place a group, with its networks in the nic_groups that are told."""

    def __init__(self, group: InstanceGroup, networks: Sequence[StaticNetwork]) -> None:
        self._group = group
        self._ground = GroupSpots(sorted(set(group.azs)) if group.azs else [None], networks)
        self._stocks = [Stock(self._ground, network) for network in networks]
        self._spread = Spread(self._ground, self._stocks, group.instances)

    def settle(self, claims: Sequence[StaticHolder]) -> SpotCounts:
        """Place holders first, then others that can stay, then count where new ones are to come."""
        if not self._spread.is_possible():
            raise self._uneven()
        holders = sorted((claim for claim in claims if claim.held), key=lambda claim: by_index(claim.present))
        kept = self._keep_holders(holders)
        # The claims come ranked (claim_held): ignored instances, then those with disks, then those with VMs go first.
        for claim in claims:
            spots = () if claim.held else self._ground.spots_of(claim.present.az)
            spot = next((spot for spot in spots if self._spread.add(spot)), None)
            if spot is not None:
                kept.append((claim, spot))
        if not self._spread.complete():
            raise self._uneven()
        kept.sort(key=lambda pair: by_index(pair[0].present))
        return SpotCounts(self._ground, self._stocks, self._spread.numbers, kept)

    def stranded(self, claims: Sequence[StaticHolder]) -> list[StaticHolder]:
        """Tell who holds an address and has no spot."""
        return [claim for claim in claims if claim.held and not self._options(claim)]

    def _keep_holders(self, holders: Sequence[StaticHolder]) -> list[tuple[StaticHolder, int]]:
        options = [self._options(claim) for claim in holders]
        # All are pinned before the first one chooses: a choice must leave room for the holders that choose later.
        for claim, spots in zip(holders, options, strict=True):
            self._pin(claim, spots)
        kept = [(claim, self._choose(claim, spots)) for claim, spots in zip(holders, options, strict=True)]
        if not self._spread.is_possible():
            raise _unsatisfied()
        return kept

    def _options(self, claim: StaticHolder) -> tuple[int, ...]:
        """Number the spots of its AZ on which all that it holds can stand."""
        spots = set(self._ground.spots_of(claim.present.az))
        for stock in self._stocks:
            if stock.network.name in claim.held:
                spots &= set(stock.spots[claim.held[stock.network.name]])
        return tuple(sorted(spots))

    def _choose(self, claim: StaticHolder, spots: Sequence[int]) -> int:
        for spot in spots:
            self._pin(claim, (spot,))
            self._spread.numbers[spot] += 1
            # Where there is no choice, one question after all of them is enough.
            if len(spots) == 1 or self._spread.is_possible():
                return spot
            self._spread.numbers[spot] -= 1
        raise _unsatisfied()

    def _pin(self, claim: StaticHolder, spots: tuple[int, ...]) -> None:
        for stock in self._stocks:
            if stock.network.name in claim.held:
                stock.pin(claim.held[stock.network.name], spots)

    def _uneven(self) -> Refused:
        told = f"Failed to evenly distribute static IPs between zones for instance group '{self._group.name}'"
        return Refused(BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH, told)


def _unsatisfied() -> Refused:
    told = "Failed to distribute static IPs to satisfy existing instance reservations"
    return Refused(BoshErrorKind.NETWORK_RESERVATION_ERROR, told)


def _blame_on_nic_group(
    group: InstanceGroup, networks: Sequence[StaticNetwork], claims: Sequence[StaticHolder]
) -> Refused | None:
    """Name the first network that cannot follow its siblings; None if there would be no way without nic_groups either.

    Networks leave their nic_groups and join again one by one, until nothing fits any more.
    """
    loose = [replace(network, nic_group=None) for network in networks]
    if not shared_nic_groups(networks) or not _fits(group, loose, claims):
        return None
    for number, network in enumerate(networks, 1):
        tried = [*networks[:number], *loose[number:]]
        if not _fits(group, tried, claims):
            return _unfollowed(network, _Settling(group, tried).stranded(claims))
    return None


def _fits(group: InstanceGroup, networks: Sequence[StaticNetwork], claims: Sequence[StaticHolder]) -> bool:
    try:
        _Settling(group, networks).settle(claims)
    except Refused:
        return False
    return True


def _unfollowed(network: StaticNetwork, stranded: Sequence[StaticHolder]) -> Refused:
    told = f"Failed to find a static IP for network '{network.name}' on a matching subnet in nic_group"
    azs = sorted({claim.present.az for claim in stranded if claim.present.az is not None})
    where = f" in availability zone '{azs[0]}'" if azs else ""
    return Refused(BoshErrorKind.NETWORK_RESERVATION_ERROR, f"{told} '{network.nic_group}'{where}")
