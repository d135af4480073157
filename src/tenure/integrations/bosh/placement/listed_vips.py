"""Gives out the VIPs that a group lists: who has one that is still listed keeps it, others take the rest in order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tenure.integrations.bosh.model.document_model import VIP, CloudConfig, InstanceGroup
from tenure.integrations.bosh.placement.placement_model import Placed, Present


def give_vips(group: InstanceGroup, config: CloudConfig, placed: Sequence[Placed]) -> list[Placed]:
    """Give each instance a VIP on every VIP network for which the group lists any; pools are not touched here."""
    given = list(placed)
    for wish in group.networks:
        if wish.static_ips is not None and config.networks[wish.name].kind == VIP:
            vips = _dealt(wish.name, wish.static_ips, given)
            given = [
                replace(each, static={**each.static, wish.name: vip}) for each, vip in zip(given, vips, strict=True)
            ]
    return given


def _dealt(name: str, listed: Iterable[int], placed: Sequence[Placed]) -> list[int]:
    """Tell the VIP of each instance."""
    # A dict and not a set: the rest is dealt in the order listed.
    left = dict.fromkeys(listed)
    kept: dict[int, int] = {}
    for number, each in enumerate(placed):
        held = () if each.present is None else _held(each.present, name)
        found = next((position for position in held if position in left), None)
        if found is not None:
            kept[number] = found
            del left[found]
    rest = iter(left)
    # A manifest lists as many VIPs as a group has instances, so the rest does not run out.
    return [kept[number] if number in kept else next(rest) for number in range(len(placed))]


def _held(instance: Present, network: str) -> Iterator[int]:
    """Give what an instance has, first in the network itself: it may have had another name."""
    for name in sorted(instance.addresses, key=lambda name: (name != network, name)):
        yield from instance.addresses[name]
