"""What an instance has, held against what it is to have: kept, new, or no longer needed. Pure: nothing is asked.

An address is kept where it still fits, whatever its network is called by now: so a renamed network moves nobody. What
fits is decided by the pools of today, not by how the address was once asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.integrations.bosh.model.document_model import MANUAL, VIP, CloudConfig, CloudNetwork, CloudSubnet
from tenure.kernel.addressing.addresses import width


@dataclass(frozen=True, slots=True)
class Has:
    """An address that an instance holds: in which network of the ledger, how large, and whether a VM carries it."""

    network: str
    position: int
    prefix: int
    carried: bool = False


@dataclass(frozen=True, slots=True)
class Wants:
    """One reservation that an instance is to have. ``address`` is None where one is picked for it."""

    network: str
    address: int | None = None
    nic_group: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """A reservation that is met by what the instance has; perhaps under another name."""

    wants: Wants
    has: Has


@dataclass(frozen=True, slots=True)
class Bound:
    """An instance's reservations: kept ones, those to be made, and what is not needed any more."""

    kept: tuple[Kept, ...]
    new: tuple[Wants, ...]
    obsolete: tuple[Has, ...]


def bind(config: CloudConfig, az: str | None, has: Sequence[Has], wants: Sequence[Wants]) -> Bound:
    """Bind what an instance has to what it wants; of several that fit, the one that a live VM carries is kept."""
    left = sorted(has, key=lambda each: (not each.carried, each.network, each.position))
    kept: dict[str, Has] = {}
    for same_name in (True, False):  # whoever has the right name goes first
        for wish in wants:
            if wish.network in kept:
                continue
            network = config.networks[wish.network]
            fitting = (each for each in left if (each.network == wish.network) is same_name)
            found = next((each for each in fitting if fits(network, az, each, wish)), None)
            if found is not None:
                kept[wish.network] = found
                left.remove(found)
    return Bound(
        tuple(Kept(wish, kept[wish.network]) for wish in wants if wish.network in kept),
        tuple(wish for wish in wants if wish.network not in kept),
        tuple(left),
    )


def fits(network: CloudNetwork, az: str | None, has: Has, wants: Wants) -> bool:
    """Tell whether an address can be what is wanted in a network, by the pools that the network has."""
    if wants.address is not None and wants.address != has.position:
        return False
    if network.kind == VIP:
        return _fits_vip(network, az, has, wants)
    if network.kind != MANUAL:
        return False
    subnet = subnet_of(network, has.position, az)
    if subnet is None or subnet.prefix != has.prefix or is_restricted(subnet, has.position, has.prefix):
        return False
    # Both ways: an instance gives up an address that became static, since only a wish by address gets a static one.
    return is_static(subnet, has.position) is (wants.address is not None)


def _fits_vip(network: CloudNetwork, az: str | None, has: Has, wants: Wants) -> bool:
    """Tell whether a VIP can stay: one that is named is that one, one of a pool is still in it."""
    if not network.subnets:
        # The caller has compared the two addresses: an address that is named here is the one that the instance has.
        return wants.address is not None
    return any(subnet.serves(az) and is_static(subnet, has.position) for subnet in network.subnets)


def subnet_of(network: CloudNetwork, position: int, az: str | None) -> CloudSubnet | None:
    """Find the manual subnet around an address, among those that serve an AZ."""
    for subnet in network.subnets:
        if subnet.range is not None and position in subnet.range.range and subnet.serves(az):
            return subnet
    return None


def is_static(subnet: CloudSubnet, position: int) -> bool:
    """Tell whether an address is given only to whoever asks for it by name."""
    return any(position in each for each in subnet.static)


def is_restricted(subnet: CloudSubnet, position: int, prefix: int) -> bool:
    """Tell whether an address, or any of a block that begins with it, is given to nobody."""
    last = position + (1 << (width(position) - prefix)) - 1
    return any(each.first <= last and position <= each.last for each in subnet.restricted)
