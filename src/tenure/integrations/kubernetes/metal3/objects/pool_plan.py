"""A pool whose addresses a ledger holds: what the plan of its network leaves of it.

A pool with entries of its own gives what lies in the subnets of the network; a pool without any gives what the
network's own pools have. What the plan reserves, keeps back or has set aside for owners is not picked, also where
another network of the same space does so: an address has one holder in a space, whatever its networks.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tenure.integrations.kubernetes.metal3.objects.pool_spec import AddressOptions, PoolEntry, PoolSpec
from tenure.kernel.addressing.addresses import format_address, width
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.holdings.holding_model import SpaceId
from tenure.kernel.plan.plan_model import KeepBack, Network, Subnet


@dataclass(frozen=True)
class NetworkPlan:
    """The network of a pool, and the networks of its space that lie over it."""

    network: Network
    neighbours: tuple[Network, ...] = ()
    """In the order of their names; none, where the token of the pool may not read them."""
    space: SpaceId | None = None
    """The space of all of them; nothing, where it may not be read."""

    @property
    def names(self) -> frozenset[str]:
        """Return the names of all of them."""
        return frozenset((self.network.name, *(each.name for each in self.neighbours)))

    def covers(self, position: int) -> bool:
        """Return whether an address is one of the network."""
        return any(position in subnet.cidr.range for subnet in self.network.subnets)


def neighbours_of(network: Network, space: Iterable[Network]) -> tuple[Network, ...]:
    """Return the networks of a space that have addresses of a network."""
    blocks = [subnet.cidr.range for subnet in network.subnets]
    others = sorted((each for each in space if each.id != network.id), key=lambda each: each.name)
    return tuple(
        each for each in others if any(block.overlaps(subnet.cidr.range) for subnet in each.subnets for block in blocks)
    )


def within_plan(spec: PoolSpec, plan: NetworkPlan) -> PoolSpec:
    """Return a pool as the plan of its network allows it."""
    network = plan.network
    found = _narrowed(spec, network) if spec.entries else _planned(spec, network)
    entries = tuple(replace(entry, number=number) for number, entry in enumerate(found))
    # The gateways of the network are among what is closed.
    closed = (*_closed(network), *(each for other in plan.neighbours for each in _closed_to_all(other)))
    return replace(spec, entries=entries, drained=(*spec.drained, *closed))


def _open_subnets(network: Network) -> list[Subnet]:
    """Return the subnets that addresses are picked from; those that hand out larger units have none for claims."""
    subnets = () if network.retired else network.subnets
    return [each for each in subnets if not each.retired and each.unit == width(each.cidr.first)]


def _narrowed(spec: PoolSpec, network: Network) -> Iterator[PoolEntry]:
    """Yield the part of each entry that lies in each subnet; what an entry does not say, the subnet does."""
    for entry in spec.entries:
        for subnet in _open_subnets(network):
            bounds = _common(entry.bounds, subnet.cidr.range)
            if bounds is not None:
                options = _options(subnet, entry.options)
                yield replace(entry, bounds=bounds, range=_common(entry.range, bounds), options=options)


def _planned(spec: PoolSpec, network: Network) -> Iterator[PoolEntry]:
    """Yield the pools of the network as entries, in the order in which the network is picked from."""
    pools = [(subnet, pool) for subnet in _open_subnets(network) for pool in subnet.pools if not pool.retired]
    for subnet, pool in sorted(pools, key=lambda each: each[1].rank):
        yield PoolEntry(0, pool.range, pool.range, _options(subnet, spec.options))


def _options(subnet: Subnet, said: AddressOptions) -> AddressOptions:
    gateway = "" if subnet.gateway is None else format_address(subnet.gateway)
    return AddressOptions(said.prefix or subnet.cidr.prefix, said.gateway or gateway, said.dns_servers or subnet.dns)


def _common(one: AddressRange | None, other: AddressRange) -> AddressRange | None:
    if one is None or not one.overlaps(other):
        return None
    return AddressRange(max(one.first, other.first), min(one.last, other.last))


def _closed(network: Network) -> Iterator[AddressRange]:
    """Yield what is not picked: it is reserved, kept back by its subnet, in a retired pool, or waits for an owner."""
    yield from _closed_to_all(network)
    for subnet in network.subnets:
        yield from (AddressRange(position, position) for position, _ in subnet.kept_back())
        yield from (pool.range for pool in subnet.pools if pool.retired)


def _closed_to_all(network: Network) -> Iterator[AddressRange]:
    """Yield what no network of the space gives: gateways, reserved ranges, and what waits for an owner (I3)."""
    for subnet in network.subnets:
        yield from (kept.range for kept in subnet.reserved)
        gateways = (position for position, why in subnet.kept_back() if why is KeepBack.GATEWAY)
        yield from (AddressRange(position, position) for position in gateways)
    yield from (AddressRange(each.position, each.position) for each in network.preallocations)
