"""Gives out the VIPs that a group lists: who has one that is still listed keeps it, others take the rest in order."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tenure.doors.deployments.model import VIP, CloudConfig, Group
from tenure.doors.deployments.placing.values import Placed


def give_vips(group: Group, config: CloudConfig, placed: Sequence[Placed]) -> list[Placed]:
    """Give each instance a VIP on every VIP network for which the group lists any; pools are not touched here."""
    given = list(placed)
    for wish in group.networks:
        if wish.static_ips is not None and config.networks[wish.name].kind == VIP:
            vips = _dealt(wish.name, wish.static_ips, given)
            given = [replace(each, static={**each.static, wish.name: vips[each.index]}) for each in given]
    return given


def _dealt(name: str, listed: Iterable[int], placed: Sequence[Placed]) -> dict[int, int]:
    """Tell the VIP of each instance, by index."""
    left = dict.fromkeys(listed)
    vips: dict[int, int] = {}
    for each in sorted(placed, key=lambda each: each.present is None or not each.present.has_vm):
        held = () if each.present is None else each.present.addresses.get(name, ())
        kept = next((position for position in held if position in left), None)
        if kept is not None:
            vips[each.index] = kept
            del left[kept]
    others = [each.index for each in placed if each.index not in vips]
    return vips | dict(zip(others, left, strict=True))
