"""Sites, groups and instances as chance has them, for properties of placing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tenure.integrations.bosh.model.document_model import CloudConfig, CloudNetwork, GroupNetwork, InstanceGroup
from tenure.integrations.bosh.placement import Present
from tenure.kernel.addressing.addresses import parse_address
from tests.integrations.bosh.placement.builders import AZS, config, group, manual, subnet


@dataclass(frozen=True, slots=True)
class Case:
    """Something to place."""

    group: InstanceGroup
    config: CloudConfig
    present: list[Present]


@st.composite
def balanced_cases(draw: st.DrawFn, *, pins: bool = True) -> Case:
    """Draw a group without static addresses; with ``pins``, disks and ignore flags hold some instances."""
    azs = draw(st.none() | st.lists(st.sampled_from(AZS), min_size=1, unique=True))
    site = config(manual("lab", subnet("10.0.0.0/16", azs=azs)))
    indexes = draw(st.lists(st.integers(0, 9), max_size=7, unique=True))
    places = st.sampled_from([*(azs or []), None, "z1"])
    present = [
        Present(
            f"uuid-{index}",
            index,
            draw(places),
            ignored=pins and draw(st.integers(0, 9)) == 0,
            has_disk=pins and draw(st.booleans()),
            has_vm=draw(st.booleans()),
            addresses={"lab": (parse_address(f"10.0.0.{10 + index}"),)},
        )
        for index in indexes
    ]
    return Case(group(draw(st.integers(0, 8)), GroupNetwork("lab"), azs=azs), site, present)


@st.composite
def static_cases(
    draw: st.DrawFn,
    *,
    networks: int = 3,
    azs: int = 3,
    instances: int = 4,
    nic_groups: bool = True,
    fresh: bool = False,
) -> Case:
    """Draw a group with static addresses on some networks; unless it is ``fresh``, with instances that hold some."""
    wanted = AZS[: draw(st.integers(1, azs))]
    number = draw(st.integers(1, instances))
    drawn = [draw(_networks(f"n{each}", each, wanted, number)) for each in range(draw(st.integers(1, networks)))]
    nics = st.sampled_from([None, "1"]) if nic_groups else st.none()
    wishes = [replace(wish, nic_group=draw(nics)) for _, wish in drawn]
    present = [] if fresh else draw(_instances(wanted, wishes))
    return Case(group(number, *wishes, azs=wanted), config(*(network for network, _ in drawn)), present)


@st.composite
def _networks(
    draw: st.DrawFn, name: str, number: int, azs: Sequence[str], instances: int
) -> tuple[CloudNetwork, GroupNetwork]:
    reached = draw(st.lists(st.lists(st.sampled_from(azs), min_size=1, unique=True), min_size=1, max_size=3))
    subnets = [
        subnet(
            f"10.{number}.{each}.0/24",
            f"10.{number}.{each}.10-10.{number}.{each}.99",
            azs=reach,
            vlan=draw(st.integers(1, 2)),
        )
        for each, reach in enumerate(reached)
    ]
    homes = [draw(st.integers(0, len(subnets) - 1)) for _ in range(instances)]
    listed = [parse_address(f"10.{number}.{home}.{10 + order}") for order, home in enumerate(homes)]
    return manual(name, *subnets), GroupNetwork(name, tuple(listed))


@st.composite
def _instances(draw: st.DrawFn, azs: Sequence[str], wishes: Sequence[GroupNetwork]) -> list[Present]:
    """Draw instances. Each holds on each network a listed address, one that is listed no more, or none."""
    indexes = draw(st.lists(st.integers(0, 9), max_size=5, unique=True))
    held: dict[int, dict[str, tuple[int, ...]]] = {index: {} for index in indexes}
    for wish in wishes:
        left = draw(st.permutations(wish.static_ips or ()))
        for index in indexes:
            choice = draw(st.integers(0, 2))
            if choice and left:
                held[index][wish.name] = (left.pop() if choice == 1 else left[0] + 100 + index,)
    return [
        Present(
            f"uuid-{index}",
            index,
            draw(st.sampled_from(azs)),
            has_disk=draw(st.booleans()),
            has_vm=draw(st.booleans()),
            addresses=held[index],
        )
        for index in indexes
    ]
