"""Cloud configs, groups and instances in a few words, for tests that place them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tenure.integrations.bosh.model.bosh_errors import Refused
from tenure.integrations.bosh.model.document_model import (
    DYNAMIC,
    MANUAL,
    VIP,
    Az,
    CloudConfig,
    CloudNetwork,
    CloudSubnet,
    GroupNetwork,
    InstanceGroup,
)
from tenure.integrations.bosh.placement import Placement, Present, place
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import parse_cidr, parse_range

AZS = ("z1", "z2", "z3", "z4")


def subnet(
    cidr: str, *static: str, azs: Sequence[str] | None = None, vlan: int = 1, prefix: int | None = None
) -> CloudSubnet:
    """Make a manual subnet; its vlan is its only cloud property."""
    block = parse_cidr(cidr)
    return CloudSubnet(
        azs=None if azs is None else tuple(azs),
        cloud_properties={"vlan": vlan},
        range=block,
        static=tuple(parse_range(each) for each in static),
        prefix=prefix or (128 if ":" in cidr else 32),
    )


def manual(name: str, *subnets: CloudSubnet) -> CloudNetwork:
    """Make a manual network."""
    return CloudNetwork(name, MANUAL, subnets)


def vip(name: str) -> CloudNetwork:
    """Make a VIP network without a pool."""
    return CloudNetwork(name, VIP)


def dynamic(name: str, azs: Sequence[str] | None = None) -> CloudNetwork:
    """Make a dynamic network of one subnet."""
    return CloudNetwork(name, DYNAMIC, (CloudSubnet(azs=None if azs is None else tuple(azs)),))


def config(*networks: CloudNetwork) -> CloudConfig:
    """Put networks together, with all AZs."""
    return CloudConfig({name: Az(name) for name in AZS}, {network.name: network for network in networks})


def on(name: str, *static: str, nic_group: str | None = None) -> GroupNetwork:
    """List a network, with static addresses if any are told."""
    positions = tuple(parse_address(each) for each in static)
    return GroupNetwork(name, positions or None, nic_group=nic_group)


def group(instances: int, *networks: GroupNetwork, azs: Sequence[str] | None = None) -> InstanceGroup:
    """Make the group ``app``."""
    return InstanceGroup("app", instances, networks, None if azs is None else tuple(azs))


def present(index: int, az: str | None = None, **addresses: str | tuple[str, ...]) -> Present:
    """Make an instance that has a VM; keywords are its networks, and the addresses that it holds there."""
    listed = {name: (each,) if isinstance(each, str) else each for name, each in addresses.items()}
    held = {name: tuple(map(parse_address, texts)) for name, texts in listed.items()}
    return Present(f"uuid-{index}", index, az, has_vm=True, addresses=held)


def ignored(instance: Present) -> Present:
    """Set an instance's ignore flag."""
    return replace(instance, ignored=True)


def with_disk(instance: Present) -> Present:
    """Give an instance a disk."""
    return replace(instance, has_disk=True)


def without_vm(instance: Present) -> Present:
    """Take an instance's VM away."""
    return replace(instance, has_vm=False)


def settled(placement: Placement) -> list[Present]:
    """Return a group's instances after a placement was carried out: all have VMs and hold what they were to have."""
    return [
        Present(
            f"uuid-{each.index}" if each.present is None else each.present.uuid,
            each.index,
            each.az,
            ignored=each.present is not None and each.present.ignored,
            has_disk=each.present is not None and each.present.has_disk,
            has_vm=True,
            addresses=_held(each.present, each.static),
        )
        for each in placement.placed
    ]


def _held(before: Present | None, static: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    held = {} if before is None else dict(before.addresses)
    return held | {name: (position,) for name, position in static.items()}


def where(placement: Placement) -> list[tuple[int, str | None]]:
    """Write a placement down: index and AZ of each."""
    return [(each.index, each.az) for each in placement.placed]


def static(placement: Placement, network: str) -> dict[int, str]:
    """Write down the static address of each on a network, by index."""
    return {each.index: format_address(each.static[network]) for each in placement.placed}


def stays(placement: Placement) -> dict[int, str | None]:
    """Write down by index which uuid each has; None for new ones."""
    return {each.index: None if each.present is None else each.present.uuid for each in placement.placed}


def gone(placement: Placement) -> list[int]:
    """Write down who goes, by index."""
    return [each.index for each in placement.obsolete]


def refusal(group: InstanceGroup, config: CloudConfig, instances: Sequence[Present] = ()) -> tuple[str, int, str]:
    """Return the error with which a group is refused: name, number, message."""
    try:
        place(group, config, instances)
    except Refused as error:
        return error.kind.title, error.kind.value, error.message
    raise AssertionError("it was not refused")
