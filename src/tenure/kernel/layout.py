"""Quick answers about a configuration: which subnet, what is blocked, which line a wish is served from."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from tenure.kernel.addresses import format_address
from tenure.kernel.configuration import Configuration, KeepBack, Network, Policy, Pool, Subnet
from tenure.kernel.errors import AddressOutsideSubnet, AddressReserved, Invalid, NotFound
from tenure.kernel.lines import Line
from tenure.kernel.names import Owner
from tenure.kernel.ranges import AddressRange, merge, subtract

Reach = str
"""How far a named address may go into what is kept away: ``refuse``, ``allow`` or ``force``."""


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
