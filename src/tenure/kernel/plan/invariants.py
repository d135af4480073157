"""The final state judged: invariant I3, and what a new configuration asks of the holdings."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from tenure.kernel.addressing.addresses import format_address, is_v6
from tenure.kernel.addressing.ranges import AddressRange, subtract
from tenure.kernel.errors import (
    AddressOutsideSubnet,
    AlreadyExists,
    Conflict,
    Invalid,
    Overlap,
    StillInUse,
    TenureError,
)
from tenure.kernel.plan.plan_model import Configuration, KeepBack, Network, Places, PreAllocation, Subnet

WAITS = "waits for it"
"""By these words a holder is known that holds nothing yet: an address is pre-allocated to it."""


def judge(configuration: Configuration, before: Configuration | None = None) -> None:
    """Raise unless the configuration keeps invariant I3, and its networks that changed the rule of DHCP."""
    known = {} if before is None else before.networks
    for network in configuration.networks.values():
        _disjoint(((s.cidr.range, f"subnet {s.cidr}") for s in network.subnets), "cidr")
        _disjoint(((p.range, f"pool {p.name or p.range} ({p.range})") for _, p in network.pools()), "range")
        _judge_pool_policies(network)
        # A network that breaks this rule already must not block the edits of other networks in its space.
        if known.get(network.name) is not network:
            _judge_dhcp(network)
        for subnet in network.subnets:
            _judge_contents(network, subnet)
    _judge_preallocations(configuration, before)


def _disjoint(ranges: Iterable[tuple[AddressRange, str]], field: str) -> None:
    previous: tuple[AddressRange, str] | None = None
    # In order of position, neighbours are enough: a range that overlaps any later range overlaps the next one.
    for piece, text in sorted(ranges):
        if previous is not None and previous[0].overlaps(piece):
            raise Overlap(text, previous[1], field=field)
        previous = (piece, text)


def _judge_contents(network: Network, subnet: Subnet) -> None:
    block = subnet.cidr.range
    pools = [(f"pool {pool.name or pool.range}", pool.range) for pool in subnet.pools]
    reserved = [(f"reserved range {kept.range}", kept.range) for kept in subnet.reserved]
    for text, piece in [*pools, *reserved]:
        if not block.covers(piece):
            raise Overlap(text, f"what lies outside {subnet.cidr}", field="cidr", network=network.name)


def _judge_pool_policies(network: Network) -> None:
    policies: dict[str, str] = {}
    for _, pool in network.pools():
        if pool.name is not None and policies.setdefault(pool.name, pool.policy) != pool.policy:
            raise AlreadyExists("pool", pool.name, hint="pools of one name share one policy", field="name")


def _judge_dhcp(network: Network) -> None:
    """Raise if two subnets of one IP version have DHCP: a server on the wire could not tell which one is meant."""
    served: dict[bool, Subnet] = {}
    for subnet in network.subnets:
        if subnet.dhcp and (other := served.setdefault(is_v6(subnet.cidr.first), subnet)) is not subnet:
            version = 6 if is_v6(subnet.cidr.first) else 4
            both = f"subnets {other.cidr} and {subnet.cidr} of network {network.name!r}"
            raise Conflict(f"{both} cannot both have DHCP; one subnet of IPv{version} can", field="dhcp")


def _judge_preallocations(configuration: Configuration, before: Configuration | None) -> None:
    """Raise unless each waits at the beginning of a unit, and no two units that wait lie over each other."""
    known = {} if before is None else {network.id: network for network in before.networks.values()}
    waiting: list[tuple[AddressRange, str, str]] = []
    for network in configuration.networks.values():
        places = Places(network.subnets)
        for wish in network.preallocations:
            unit = _unit_of(places, wish.position)
            if unit is None:
                raise _without_ground(wish, network, places, known.get(network.id))
            waiting.append((unit, wish.owner, format_address(wish.position)))
    # In order, neighbours are enough, as in `_disjoint`.
    waiting.sort()
    for (unit, owner, _), (later, _, text) in pairwise(waiting):
        if unit.overlaps(later):
            raise AlreadyExists("pre-allocation", text, hint=f"it waits for {owner}", field="address")


def _unit_of(places: Places, position: int) -> AddressRange | None:
    """Return the unit that begins at a position, if a subnet has one there."""
    subnet = places.around(position)
    unit = None if subnet is None else subnet.unit_at(position)
    return unit if unit is not None and unit.first == position else None


def _without_ground(wish: PreAllocation, network: Network, places: Places, before: Network | None) -> TenureError:
    """Return the error of an address that waits where it cannot: what it says is wrong, or its ground is taken away."""
    text = format_address(wish.position)
    stood = before is not None and wish in before.preallocations
    if before is not None and stood and (was := Places(before.subnets).around(wish.position)) is not None:
        holders, name = [f"{wish.owner} ({text} {WAITS})"], was.name or str(was.cidr)
        hint = "remove the pre-allocation first"
        return StillInUse("subnet", name, holders, hint=hint, addresses=[text], field="cidr", network=network.name)
    subnet = places.around(wish.position)
    if subnet is None:
        return AddressOutsideSubnet(text, network.name)
    problem = f"address: {text} does not begin a /{subnet.unit}, the unit of {subnet.cidr}"
    return Invalid(problem, field="address")


@dataclass(frozen=True, slots=True)
class Lost:
    """Addresses that a network no longer covers, or hands out in another unit."""

    network: Network
    subnet: Subnet
    range: AddressRange
    whole: bool
    """Whether the network itself is gone, and not only this subnet of it, or a part."""


def lost_ground(old: Configuration, new: Configuration) -> Iterator[Lost]:
    """Yield what networks no longer cover: no holding of theirs may lie there."""
    # By number: a renamed network is still the same network.
    by_id: Mapping[int, Network] = {network.id: network for network in new.networks.values()}
    for network in old.networks.values():
        gone = network.id not in by_id
        after = () if gone else by_id[network.id].subnets
        standing = {(subnet.cidr, subnet.unit) for subnet in after}
        for subnet in network.subnets:
            # Most subnets stay as they are; comparing each of them with all others would make an edit quadratic.
            if (subnet.cidr, subnet.unit) in standing:
                continue
            # A holding is a whole unit of its subnet, so under another unit it loses its ground as well.
            kept = sorted(other.cidr.range for other in after if other.unit == subnet.unit)
            for piece in subtract(subnet.cidr.range, kept):
                yield Lost(network, subnet, piece, gone)


def new_gateways(old: Configuration, new: Configuration) -> Iterator[int]:
    """Yield the gateways that were not kept back before: nobody in the space may hold them."""
    before = set(_gateways(old))
    return (position for position in _gateways(new) if position not in before)


def _gateways(configuration: Configuration) -> Iterator[int]:
    for network in configuration.networks.values():
        for subnet in network.subnets:
            yield from (position for position, why in subnet.kept_back() if why == KeepBack.GATEWAY)
