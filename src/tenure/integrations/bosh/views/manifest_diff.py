"""Two manifests held against each other, and two cloud configs: what somebody changed, as they write it. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tenure.integrations.bosh.model.document_model import CloudConfig, GroupNetwork, InstanceGroup, Manifest
from tenure.kernel.addressing.addresses import format_address

GROUP_FIELDS = ("instances", "azs", "lifecycle", "vm_strategy", "persistent_disk")
NETWORK_FIELDS = ("static_ips", "defaults", "nic_group")


@dataclass(frozen=True, slots=True)
class Difference:
    """What is different: the way there (``web.networks.apps.static_ips``), and both values; None where it is absent."""

    path: str
    before: Any
    after: Any


def manifest_differences(before: Manifest, after: Manifest) -> list[Difference]:
    """Return what one manifest says otherwise than another, group by group; the order of groups does not count."""
    had, has = ({group.name: group for group in each.groups} for each in (before, after))
    return [each for name in _names(had, has) for each in _group(name, had.get(name), has.get(name))]


def _group(name: str, before: InstanceGroup | None, after: InstanceGroup | None) -> Iterator[Difference]:
    if before is None or after is None:
        yield Difference(name, _whole(before), _whole(after))
        return
    for field in GROUP_FIELDS:
        yield from _field(f"{name}.{field}", getattr(before, field), getattr(after, field))
    sources = ([each.name for each in group.migrated_from] for group in (before, after))
    yield from _field(f"{name}.migrated_from", *sources)
    had, has = ({network.name: network for network in group.networks} for group in (before, after))
    for network in _names(had, has):
        yield from _network(f"{name}.networks.{network}", had.get(network), has.get(network))


def _network(path: str, before: GroupNetwork | None, after: GroupNetwork | None) -> Iterator[Difference]:
    if before is None or after is None:
        yield Difference(path, _network_words(before), _network_words(after))
        return
    had, has = _network_words(before), _network_words(after)
    assert had is not None
    assert has is not None
    for field in NETWORK_FIELDS:
        yield from _field(f"{path}.{field}", had[field], has[field])


def _field(path: str, before: Any, after: Any) -> Iterator[Difference]:
    if before != after:
        yield Difference(path, _plain(before), _plain(after))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _whole(group: InstanceGroup | None) -> dict[str, Any] | None:
    if group is None:
        return None
    networks = {network.name: _network_words(network) for network in group.networks}
    return {**{field: _plain(getattr(group, field)) for field in GROUP_FIELDS}, "networks": networks}


def _network_words(network: GroupNetwork | None) -> dict[str, Any] | None:
    if network is None:
        return None
    named = network.static_ips
    return {
        "static_ips": None if named is None else [format_address(each) for each in named],
        "defaults": sorted(network.defaults),
        "nic_group": network.nic_group,
    }


def changed_networks(before: CloudConfig, after: CloudConfig) -> list[str]:
    """Name the networks that came, went or say something else in another cloud config."""
    names = _names(before.networks, after.networks)
    return [name for name in names if before.networks.get(name) != after.networks.get(name)]


def _names(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return all names: those that are there now as they are written, then those that are gone."""
    return [*after, *(name for name in before if name not in after)]
