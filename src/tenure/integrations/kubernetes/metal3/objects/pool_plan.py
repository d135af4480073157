"""A pool whose addresses a ledger holds: what the plan of its network leaves of it.

A pool with entries of its own gives what lies in the subnets of the network; a pool without any gives what the
network's own pools have. What the plan reserves, keeps back or has set aside for owners is not picked.
"""

from collections.abc import Iterator
from dataclasses import replace

from tenure.integrations.kubernetes.metal3.objects.pool_spec import AddressOptions, PoolEntry, PoolSpec
from tenure.kernel.addressing.addresses import format_address, width
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.plan.plan_model import Network, Subnet


def within_plan(spec: PoolSpec, network: Network) -> PoolSpec:
    """Return a pool as the plan of its network allows it."""
    found = _narrowed(spec, network) if spec.entries else _planned(spec, network)
    entries = tuple(replace(entry, number=number) for number, entry in enumerate(found))
    # The gateways of the network are among what is closed.
    return replace(spec, entries=entries, drained=(*spec.drained, *_closed(network)))


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
    for subnet in network.subnets:
        yield from (kept.range for kept in subnet.reserved)
        yield from (AddressRange(position, position) for position, _ in subnet.kept_back())
        yield from (pool.range for pool in subnet.pools if pool.retired)
    yield from (AddressRange(each.position, each.position) for each in network.preallocations)
