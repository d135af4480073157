"""Quick answers about a configuration: which subnet, what is blocked, and each pool laid out as a line.

A *line* numbers the units a wish may be served from, in the order *lowest* picks them: 0, 1, 2, … Reserved, kept
back and pre-allocated addresses are left out when the line is laid, so a pick can never meet them, and policies
work on plain numbers whatever the family, the unit, or the order the ranges were written in.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tenure.kernel.addresses import format_address
from tenure.kernel.configuration import Configuration, KeepBack, Network, Policy, Pool, Subnet
from tenure.kernel.errors import AddressOutsideSubnet, AddressReserved, Invalid, NotFound
from tenure.kernel.names import Owner
from tenure.kernel.ranges import AddressRange, merge, subtract

Reach = str
"""How far a named address may go into what is kept away: ``refuse``, ``allow`` or ``force``."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of units: numbers ``start..start+count-1`` of the line, at consecutive addresses."""

    start: int
    first: int
    unit_size: int
    count: int

    @property
    def last(self) -> int:
        """Return the last position of the run."""
        return self.first + self.unit_size * self.count - 1


class Line:
    """The units of one pool (or of a whole network), numbered in the order they are handed out."""

    def __init__(self, runs: Iterable[tuple[int, int, int]], policy: Policy) -> None:
        """Lay runs of (first position, unit size, count) behind each other."""
        self.policy = policy
        self.pieces: list[Piece] = []
        self.size = 0
        for first, unit_size, count in runs:
            self.pieces.append(Piece(self.size, first, unit_size, count))
            self.size += count
        self.ascending = all(a.first < b.first for a, b in zip(self.pieces, self.pieces[1:], strict=False))
        self._starts = [piece.start for piece in self.pieces]
        self._by_position = sorted(self.pieces, key=lambda piece: piece.first)
        self._firsts = [piece.first for piece in self._by_position]

    @property
    def lowest(self) -> int:
        """Return the lowest position on the line, which is not empty."""
        return self._by_position[0].first

    @property
    def highest(self) -> int:
        """Return the highest position on the line, which is not empty."""
        return self._by_position[-1].last

    def unit(self, number: int) -> tuple[int, int]:
        """Return first and last position of a unit."""
        piece = self.pieces[bisect_right(self._starts, number) - 1]
        first = piece.first + (number - piece.start) * piece.unit_size
        return first, first + piece.unit_size - 1

    def number(self, position: int) -> int | None:
        """Return the number of the unit that a position lies in, if it is on the line."""
        index = bisect_right(self._firsts, position) - 1
        if index < 0 or position > (piece := self._by_position[index]).last:
            return None
        return piece.start + (position - piece.first) // piece.unit_size

    def numbers(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the intervals of the line that ``first..last`` lies over."""
        index = max(bisect_right(self._firsts, first) - 1, 0)
        while index < len(self._by_position) and (piece := self._by_position[index]).first <= last:
            index += 1
            if piece.last >= first:
                low = max(first - piece.first, 0) // piece.unit_size
                high = min((last - piece.first) // piece.unit_size, piece.count - 1)
                yield piece.start + low, piece.start + high

    def taken(self, spans: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
        """Turn held spans, sorted by position, into intervals of the line, sorted and joined."""
        joined = _joined(interval for first, last in spans for interval in self.numbers(first, last))
        return joined if self.ascending else sorted(joined)


def _joined(intervals: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    current: tuple[int, int] | None = None
    for first, last in intervals:
        if current is not None and current[0] <= first <= current[1] + 1:
            current = (current[0], max(current[1], last))
            continue
        if current is not None:
            yield current
        current = (first, last)
    if current is not None:
        yield current


class Layout:
    """A configuration, indexed. Made once a version, then read only."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.mixed_units = configuration.mixed_units
        self._subnets: dict[str, tuple[list[int], list[int], list[Subnet]]] = {}
        self._lines: dict[tuple[str, str | None, str | None], Line] = {}
        self._names = {network.id: name for name, network in configuration.networks.items()}
        self._shown: dict[str, tuple[int, str | None]] = {}
        self._remembering: dict[str, bool] = {}
        self._waiting: dict[str, dict[tuple[str, str], int]] = {}
        self._common = list(_binding_everywhere(configuration))
        self._bound = merge(kept for kept, _ in self._common)
        self._bound_firsts = [kept.first for kept in self._bound]

    def name_of(self, network: int) -> str:
        """Name a network by its number."""
        return self._names[network]

    def subnet_at(self, network: str, position: int) -> Subnet:
        """Find the subnet of a network that a position lies in. O(log subnets)."""
        found = self._subnets.get(network)
        if found is None:
            ordered = sorted(self.configuration.network(network).subnets, key=lambda subnet: subnet.cidr.first)
            firsts = [subnet.cidr.first for subnet in ordered]
            found = self._subnets[network] = (firsts, [subnet.cidr.last for subnet in ordered], ordered)
        firsts, lasts, subnets = found
        index = bisect_right(firsts, position) - 1
        if index < 0 or position > lasts[index]:
            raise AddressOutsideSubnet(format_address(position), network)
        return subnets[index]

    def shown(self, network: str, position: int) -> tuple[int, str | None]:
        """Return prefix length and gateway of the subnet around a position, as users see them."""
        subnet = self.subnet_at(network, position)
        found = self._shown.get(subnet.uuid)
        if found is None:
            gateway = None if subnet.gateway is None else format_address(subnet.gateway)
            found = self._shown[subnet.uuid] = (subnet.cidr.prefix, gateway)
        return found

    def line(self, network: str, pool: str | None = None, subnet: str | None = None) -> Line:
        """Lay out a network's pools, or those of one name, or of one subnet; built once."""
        wanted = (network, pool, subnet)
        if wanted not in self._lines:
            self._lines[wanted] = self._lay(self.configuration.network(network), pool, subnet)
        return self._lines[wanted]

    def _lay(self, network: Network, name: str | None, subnet_ident: str | None) -> Line:
        pools = network.pools_named(name) if name is not None else list(network.pools())
        if subnet_ident is not None:
            chosen = network.subnet(subnet_ident)
            pools = [(subnet, pool) for subnet, pool in pools if subnet == chosen]
        if not pools:
            hint = "add one with add_pool, or name the address you want"
            raise NotFound("pool", f"of network {network.name}", hint=hint)
        own = [AddressRange(p, p) for s in network.subnets for p, why in s.kept_back() if why != KeepBack.GATEWAY]
        blocked = merge([*own, *(kept for kept, _ in self._common)])
        policies = {pool.policy for _, pool in pools}
        open_pools = [] if network.retired else [(s, p) for s, p in pools if not (s.retired or p.retired)]
        runs = (run for subnet, pool in open_pools for run in _runs(subnet, pool, blocked))
        return Line(runs, policies.pop() if len(policies) == 1 else Policy.LOWEST)

    def preallocated(self, network: str, owner: Owner, slot: str) -> int | None:
        """Return the position that waits for this owner, if any."""
        waiting = self._waiting.get(network)
        if waiting is None:
            wishes = self.configuration.network(network).preallocations
            waiting = self._waiting[network] = {(wish.owner, wish.slot): wish.position for wish in wishes}
        return waiting.get((owner, slot)) if waiting else None

    def remembers(self, network: str) -> bool:
        """Tell whether the network has a sticky pool, so that owners' former addresses must be noted."""
        if network not in self._remembering:
            pools = self.configuration.network(network).pools()
            self._remembering[network] = any(pool.policy is Policy.STICKY for _, pool in pools)
        return self._remembering[network]

    def pool_at(self, network: str, position: int) -> Pool | None:
        """Find the pool a position lies in."""
        subnet = self.subnet_at(network, position)
        return next((pool for pool in subnet.pools if position in pool.range), None)

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
        if subnet.retired or self.configuration.network(network).retired:
            raise AddressReserved(format_address(position), f"{subnet.cidr} of network {network!r} is retired")
        if reason := self.blocked_by(network, unit, owner, slot, reach):
            raise AddressReserved(format_address(position), reason)
        return unit

    def blocked_by(self, network: str, unit: AddressRange, owner: Owner | None, slot: str, reach: Reach) -> str | None:
        """Say why a unit is kept away from this owner, if it is."""
        if reach == "force":
            return None
        for subnet in self.configuration.network(network).subnets:
            for position, why in subnet.kept_back():
                if position in unit and why != KeepBack.GATEWAY:
                    return f"kept back as the {why} address of {subnet.cidr}"
        place = bisect_right(self._bound_firsts, unit.last) - 1
        if place < 0 or self._bound[place].last < unit.first:
            return None
        for kept, source in self._common:
            if kept.overlaps(unit) and not source.spares(owner, slot, reach):
                return source.text
        return None


@dataclass(frozen=True, slots=True)
class _Source:
    """Why something binds the whole space, and whom it spares."""

    kind: str
    text: str
    owner: Owner | None = None
    slot: str = ""

    def spares(self, owner: Owner | None, slot: str, reach: Reach) -> bool:
        if self.kind == "reserved":
            return reach == "allow"
        return self.kind == "preallocation" and self.owner == owner and self.slot == slot


def _binding_everywhere(configuration: Configuration) -> Iterator[tuple[AddressRange, _Source]]:
    """Yield what keeps addresses away in the whole space: gateways, reserved ranges, pre-allocations."""
    for network in configuration.networks.values():
        for subnet in network.subnets:
            for position, why in subnet.kept_back():
                if why == KeepBack.GATEWAY:
                    text = f"kept back as the gateway of {subnet.cidr}"
                    yield AddressRange(position, position), _Source("kept back", text)
            for kept in subnet.reserved:
                text = f"reserved in network {network.name!r}{kept.reason and ': ' + kept.reason}"
                yield kept.range, _Source("reserved", text)
        for wish in network.preallocations:
            text = f"pre-allocated to {wish.owner}"
            unit = next(
                subnet.unit_at(wish.position) for subnet in network.subnets if wish.position in subnet.cidr.range
            )
            yield unit, _Source("preallocation", text, wish.owner, wish.slot)


def _runs(subnet: Subnet, pool: Pool, blocked: list[AddressRange]) -> Iterator[tuple[int, int, int]]:
    """Cut a pool's range at blocked addresses and keep the whole units."""
    size = subnet.unit_size
    block = subnet.cidr.range
    nearby = [_whole_units(subnet, piece) for piece in blocked if piece.overlaps(block)]
    for free in subtract(pool.range, merge(nearby)):
        first = subnet.cidr.first + -(-(free.first - subnet.cidr.first) // size) * size
        count = (free.last + 1 - first) // size
        if count > 0:
            yield first, size, count


def _whole_units(subnet: Subnet, piece: AddressRange) -> AddressRange:
    """Widen a range, as far as it lies in the subnet, to the units it touches."""
    first, last = max(piece.first, subnet.cidr.first), min(piece.last, subnet.cidr.last)
    return AddressRange(subnet.unit_at(first).first, subnet.unit_at(last).last)
