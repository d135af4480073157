"""Quick answers about a configuration: which subnet, what is blocked, which line a wish is served from."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from tenure.kernel.addressing.addresses import FAMILY_NAMES, Family, format_address
from tenure.kernel.addressing.ranges import AddressRange, merge, subtract
from tenure.kernel.errors import AddressOutsideSubnet, AddressReserved, Invalid, NotFound
from tenure.kernel.names import Owner
from tenure.kernel.plan.blocked_ranges import Barrier, Barriers, Reach
from tenure.kernel.plan.plan_model import (
    DEFAULT_POLICY,
    Configuration,
    KeepBack,
    Network,
    Places,
    Policy,
    Pool,
    Subnet,
    check_unit_length,
)
from tenure.kernel.plan.pool_line import Line

LineKey = tuple[str, str | None, str | None, str | None, Family | None]
"""A network, and where they are named a pool, a subnet, a zone and a family: what a claim may be served from."""

ADD_POOL = "add one with add_pool, or name the address you want"


class BrokenLimit(NamedTuple):
    """What a claim asks for and an address is not: the field that says so, its words, and the family if it is that."""

    field: str
    text: str
    family: Family | None = None


class OpenPools(NamedTuple):
    """Pools that are picked from together, in their order and without retired ones, and the policy that they share."""

    pools: list[tuple[Subnet, Pool]]
    policy: Policy


class Layout:
    """A configuration, indexed. Made once a version, then read only."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.mixed_units = configuration.mixed_units
        self._places: dict[str, Places] = {}
        self._lines: dict[LineKey, Line] = {}
        self._names = {network.id: name for name, network in configuration.networks.items()}
        self._shown: dict[str, tuple[int, str | None]] = {}
        self._policies: dict[str, frozenset[Policy]] = {}
        self._waiting: dict[str, dict[tuple[str, str], int]] = {}
        self._pools: dict[str, tuple[list[int], list[Pool]]] = {}
        self._cooling: dict[str, tuple[list[int], list[Pool]]] = {}
        self._barriers = Barriers(configuration)

    def name_of(self, network: int) -> str:
        """Name a network by its number."""
        return self._names[network]

    def has_network(self, network: int) -> bool:
        """Return whether the space has a network of this number."""
        return network in self._names

    def subnet_at(self, network: str, position: int) -> Subnet:
        """Find the subnet of a network that a position lies in. O(log subnets)."""
        places = self._places.get(network)
        if places is None:
            places = self._places[network] = Places(self.configuration.network(network).subnets)
        subnet = places.around(position)
        if subnet is None:
            raise AddressOutsideSubnet(format_address(position), network)
        return subnet

    def shown(self, network: str, position: int) -> tuple[int, str | None]:
        """Return prefix length and gateway of the subnet around a position, as users see them."""
        subnet = self.subnet_at(network, position)
        found = self._shown.get(subnet.uuid)
        if found is None:
            gateway = None if subnet.gateway is None else format_address(subnet.gateway)
            found = self._shown[subnet.uuid] = (subnet.cidr.prefix, gateway)
        return found

    def line(
        self,
        network: str,
        pool: str | None = None,
        subnet: str | None = None,
        zone: str | None = None,
        family: Family | None = None,
    ) -> Line:
        """Lay out a network's pools, or those of one name, subnet, zone or family; built once."""
        wanted = (network, pool, subnet, zone, family)
        if wanted not in self._lines:
            self._lines[wanted] = self._lay(self.configuration.network(network), *wanted[1:])
        return self._lines[wanted]

    def _lay(
        self, network: Network, name: str | None, subnet_ident: str | None, zone: str | None, family: Family | None
    ) -> Line:
        pools, policy = open_pools(network, name, subnet_ident, zone, family)
        # Gateways are among the barriers of the space already.
        own = [AddressRange(p, p) for s in network.subnets for p, why in s.kept_back() if why != KeepBack.GATEWAY]
        blocked = merge([*own, *(barrier.range for barrier in self._barriers)])
        # `or [[]]`: where all pools are retired the line has no units, but it is a line, and full.
        first, *later = [
            [run for subnet, pool in of_one_rank for run in _runs(subnet, pool, blocked)]
            for _, of_one_rank in groupby(pools, key=lambda pair: pair[1].rank)
        ] or [[]]
        return Line(first, policy, later=later)

    def broken_limit(self, key: LineKey, position: int) -> BrokenLimit | None:
        """Return the first of the limits that an address of the network does not keep; None if it keeps them all.

        A retired pool counts here, and so does an address that is reserved by now: a holding stays what it was.
        NotFound if the pool or the subnet is not there.
        """
        name, pool, subnet, zone, family = key
        network, around = self.configuration.network(name), self.subnet_at(name, position)
        if pool is not None and not any(position in part.range for _, part in network.pools_named(pool)):
            return BrokenLimit("pool", f"in pool {pool!r}")
        limits = _limits(network, subnet, zone, family)
        return next((limit for limit, is_kept in limits if not is_kept(around)), None)

    def check_length(self, network: str, position: int, length: int | None) -> None:
        """Raise unless a length that was said of an address is that of the unit there; without one all is well."""
        if length is not None:
            check_unit_length(self.subnet_at(network, position), position, length)

    def preallocated(self, network: str, owner: Owner, slot: str) -> int | None:
        """Return the position that waits for this owner, if any."""
        waiting = self._waiting.get(network)
        if waiting is None:
            wishes = self.configuration.network(network).preallocations
            waiting = self._waiting[network] = {(wish.owner, wish.slot): wish.position for wish in wishes}
        # Asked of every claim, and most networks have no pre-allocations.
        return waiting.get((owner, slot)) if waiting else None

    def policies(self, network: str) -> frozenset[Policy]:
        """Return the policies of a network's pools."""
        found = self._policies.get(network)
        if found is None:
            pools = self.configuration.network(network).pools()
            found = self._policies[network] = frozenset(pool.policy for _, pool in pools)
        return found

    def pool_at(self, network: str, position: int) -> Pool | None:
        """Find the pool of a network that a position lies in. O(log pools)."""
        if network not in self._pools:
            self._pools[network] = self._ordered_pools(network, lambda pool: True)
        return _pool_around(self._pools[network], position)

    def pool_cooling_us(self, network: str, position: int) -> int:
        """Return for how many microseconds the pool around an address lets it cool; 0 outside of pools.

        What a release makes of it, ``holding_states.cooling_us`` says. O(1) in a network without cooling pools.
        """
        cooling = self._cooling.get(network)
        if cooling is None:
            cooling = self._cooling[network] = self._ordered_pools(network, lambda pool: pool.cooling_s > 0)
        pool = _pool_around(cooling, position) if cooling[0] else None
        return 0 if pool is None else pool.cooling_s * 1_000_000

    def _ordered_pools(self, network: str, wanted: Callable[[Pool], bool]) -> tuple[list[int], list[Pool]]:
        pools = [pool for _, pool in self.configuration.network(network).pools() if wanted(pool)]
        pools.sort(key=lambda pool: pool.range)
        return [pool.range.first for pool in pools], pools

    def check_wanted(
        self, network: str, position: int, owner: Owner, slot: str, reach: Reach = "refuse"
    ) -> AddressRange:
        """Return the unit at a wanted position, or say why it is not to be had."""
        subnet = self.subnet_at(network, position)
        unit = subnet.unit_at(position)
        if unit.first != position:
            raise Invalid(
                f"address: {format_address(position)} does not begin a /{subnet.unit}, the unit of {subnet.cidr}",
                field="address",
            )
        # Before the barriers: a retired subnet or network hands nothing out, however far the claim may reach.
        if subnet.retired or self.configuration.network(network).retired:
            reason = f"{subnet.cidr} of network {network!r} is retired"
            raise AddressReserved(format_address(position), reason, kept_as="retired")
        if barrier := self.barrier_over(network, unit, owner, slot, reach):
            raise AddressReserved(format_address(position), barrier.text, kept_as=barrier.kept_as)
        return unit

    def barrier_over(
        self, network: str, unit: AddressRange, owner: Owner | None, slot: str, reach: Reach
    ) -> Barrier | None:
        """Find what keeps a unit of a network away from this owner, if anything does."""
        if reach == "force":
            return None
        subnet = self.subnet_at(network, unit.first)
        for position, why in subnet.kept_back():
            if position in unit and why != KeepBack.GATEWAY:
                text = f"kept back as the {why} address of {subnet.cidr}"
                return Barrier(AddressRange(position, position), network, text, kept_back=why)
        return next((each for each in self._barriers.over(unit) if not each.spares(owner, slot, reach)), None)


def _limits(
    network: Network, subnet: str | None, zone: str | None, family: Family | None
) -> Iterator[tuple[BrokenLimit, Callable[[Subnet], bool]]]:
    """Yield what a claim asks of the subnet that it is served from, and whether a subnet keeps that."""
    if subnet is not None:
        chosen = network.subnet(subnet)
        yield BrokenLimit("subnet", f"in subnet {subnet!r}"), lambda each: each == chosen
    if zone is not None:
        yield BrokenLimit("zone", f"in zone {zone!r}"), lambda each: each.serves_zone(zone)
    if family is not None:
        yield BrokenLimit("family", f"of family {family}", family), lambda each: each.family is family


def pools_of_line(
    network: Network, name: str | None, subnet: str | None, zone: str | None, family: Family | None
) -> list[tuple[Subnet, Pool]]:
    """Return the pools that a claim with these limits is served from, in the order they are picked from."""
    pools = network.pools_named(name) if name is not None else list(network.pools())
    kept = [] if name is None else [f"pool {name!r}"]
    for limit, is_kept in _limits(network, subnet, zone, family):
        left = [pair for pair in pools if is_kept(pair[0])]
        if pools and not left:
            raise _nothing_left(network, name or "", kept, limit, [subnet for subnet, _ in pools])
        pools = left
        kept.append(limit.text.removeprefix("in "))
    if not pools:
        raise NotFound("pool", name or "", network=network.name, hint=ADD_POOL, field="pool")
    # Stable: pools of one rank stay as they are written.
    return sorted(pools, key=lambda pair: pair[1].rank)


def _nothing_left(
    network: Network, pool: str, kept: Sequence[str], limit: BrokenLimit, left: Sequence[Subnet]
) -> NotFound:
    """Return the error of limits that no pool keeps together: what was ``left`` in the last step keeps those before."""
    where = f"{', '.join(kept)} of network {network.name!r}" if kept else f"network {network.name!r}"
    # A pool that is added does not help where the limits themselves are at odds.
    said = [text.partition(" ")[0] for text in kept] + [limit.field]
    hint = f"leave out the {' or the '.join(said)}" if kept else ADD_POOL
    if limit.family is None:
        problem = f"{where} has no {'range' if pool else 'pool'} {limit.text}"
        return NotFound("pool", pool, network=network.name, problem=problem, hint=hint, field=limit.field)
    wanted = FAMILY_NAMES[limit.family]
    others = ", ".join(sorted({FAMILY_NAMES[subnet.family] for subnet in left}))
    problem = f"{where} is {others}, not {wanted}" if kept else ""
    if kept and kept[-1].startswith("zone "):  # of no family itself: subnets that name no zone serve it, too
        problem = f"{where} has no {wanted} pool"
    kind = "pool" if pool else f"{wanted} pool"
    return NotFound(kind, pool, network=network.name, problem=problem, hint=hint, field=limit.field)


def open_pools(
    network: Network, name: str | None, subnet: str | None, zone: str | None, family: Family | None
) -> OpenPools:
    """Return what a claim with these limits is picked from, and how; NotFound if no pool keeps the limits."""
    pools = pools_of_line(network, name, subnet, zone, family)
    policies = {pool.policy for _, pool in pools}
    # Retired pools are left out only now: a line of retired pools alone is full, not unknown, and keeps its policy.
    open_now = [] if network.retired else [(s, p) for s, p in pools if not (s.retired or p.retired)]
    return OpenPools(open_now, policies.pop() if len(policies) == 1 else DEFAULT_POLICY)


def _pool_around(ordered: tuple[list[int], list[Pool]], position: int) -> Pool | None:
    firsts, pools = ordered
    place = bisect_right(firsts, position) - 1
    return pools[place] if place >= 0 and position in pools[place].range else None


def _runs(subnet: Subnet, pool: Pool, blocked: list[AddressRange]) -> Iterator[tuple[int, int, int]]:
    """Cut a pool's range at blocked addresses, which are in order and disjoint, and keep the whole units."""
    size = subnet.unit_size
    # A blocked address blocks its whole unit, so the first and the last unit of the pool are looked at whole.
    touched = AddressRange(subnet.unit_at(pool.range.first).first, subnet.unit_at(pool.range.last).last)
    # By bisection: a space has thousands of blocked ranges, and a network has thousands of pools.
    start = bisect_left(blocked, touched.first, key=lambda piece: piece.last)
    end = bisect_right(blocked, touched.last, lo=start, key=lambda piece: piece.first)
    nearby = [_whole_units(subnet, piece) for piece in blocked[start:end]]
    for free in subtract(pool.range, merge(nearby)):
        # Rounded up to the next beginning of a unit: the free piece may begin in the middle of a unit.
        first = subnet.cidr.first + -(-(free.first - subnet.cidr.first) // size) * size
        count = (free.last + 1 - first) // size
        if count > 0:
            yield first, size, count


def _whole_units(subnet: Subnet, piece: AddressRange) -> AddressRange:
    """Widen a range, as far as it lies in the subnet, to the units it touches."""
    first, last = max(piece.first, subnet.cidr.first), min(piece.last, subnet.cidr.last)
    return AddressRange(subnet.unit_at(first).first, subnet.unit_at(last).last)
