"""Who holds which of the listed static addresses: that one stays with it."""

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import InstanceGroup
from tenure.integrations.bosh.placement.placement_model import Present
from tenure.integrations.bosh.placement.static.static_lists import StaticNetwork


@dataclass(frozen=True, slots=True)
class StaticHolder:
    """An instance and the listed addresses that it holds, by network; none if it holds none."""

    present: Present
    held: dict[str, int]


def claim_held(
    group: InstanceGroup, networks: Sequence[StaticNetwork], present: Sequence[Present]
) -> list[StaticHolder]:
    """Tell for each instance which listed addresses it keeps: whoever has most to lose comes first.

    Two networks may list addresses of more instances than are wanted; then the last ones keep nothing.
    """
    claims: list[StaticHolder] = []
    taken: set[int] = set()
    places = group.instances
    for instance in sorted(present, key=_rank):
        held = _held(instance, networks, taken) if places else {}
        places -= bool(held)
        claims.append(StaticHolder(instance, held))
    for claim in claims:
        _check_az(group, networks, claim)
    return claims


def _rank(instance: Present) -> tuple[bool, bool, bool, int, str]:
    return not instance.ignored, not instance.has_disk, not instance.has_vm, instance.index, instance.uuid


def _held(instance: Present, networks: Sequence[StaticNetwork], taken: set[int]) -> dict[str, int]:
    """Take an address on each network: under the network's name, or under another that it had before."""
    held: dict[str, int] = {}
    for network in networks:
        names = sorted(instance.addresses, key=lambda name: (name != network.name, name))
        positions = (position for name in names for position in instance.addresses[name])
        found = next((each for each in positions if each in network.homes and each not in taken), None)
        if found is not None:
            held[network.name] = found
            taken.add(found)
    return held


def _check_az(group: InstanceGroup, networks: Sequence[StaticNetwork], claim: StaticHolder) -> None:
    for network in networks:
        position = claim.held.get(network.name)
        if position is not None and claim.present.az not in network.homes[position].azs:
            told = f"is using IP '{network.told(position)}' in availability zone '{claim.present.az or ''}'"
            raise Refused(
                BoshErrorKind.NETWORK_RESERVATION_ERROR,
                f"Existing instance '{group.name}/{claim.present.index}' {told}",
            )
