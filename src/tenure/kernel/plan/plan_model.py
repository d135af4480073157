"""The address plan as values: a space's networks, their subnets, pools, reserved ranges and pre-allocations.

All of it is frozen. ``apply_edit`` makes a new configuration of an old one; ``document`` reads and writes it;
``layout`` answers questions about it quickly.
"""

import enum
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tenure.kernel.addressing.addresses import Family, family_of, format_address, is_v6, width
from tenure.kernel.addressing.ranges import AddressRange, Cidr
from tenure.kernel.errors import Invalid, NotFound
from tenure.kernel.holdings.holding_model import NetworkId, SpaceId
from tenure.kernel.names import Owner


class Policy(enum.StrEnum):
    """How a free address is picked; ``picking/policies`` has the rules of each."""

    LOWEST = "lowest"
    RANDOM = "random"
    HASHED = "hashed"
    STICKY = "sticky"


DEFAULT_POLICY = Policy.LOWEST
"""The policy of a pool that names none, and of pools that are picked from together and have different ones."""


class NetworkKind(enum.StrEnum):
    """What a network is to the machines on it."""

    MANUAL = "manual"
    DYNAMIC = "dynamic"
    VIP = "vip"


class KeepBack(enum.StrEnum):
    """What a subnet keeps back by itself."""

    NETWORK = "network"
    BROADCAST = "broadcast"
    GATEWAY = "gateway"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Notes:
    """What people write on an object."""

    labels: Mapping[str, str] = field(default_factory=dict)
    description: str = ""


@dataclass(frozen=True, slots=True)
class Pool:
    """A range to pick from. Pools of one name are one pool of several ranges, in written order.

    Where pools are picked from together, those of the lowest ``rank`` that has room are picked from.
    """

    range: AddressRange
    name: str | None = None
    policy: Policy = DEFAULT_POLICY
    cooling_s: int = 0
    retired: bool = False
    notes: Notes = field(default_factory=Notes)
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Reserved:
    """A range kept away from picking, and on whose word."""

    range: AddressRange
    reason: str = ""
    request: str | None = None
    notes: Notes = field(default_factory=Notes)

    @property
    def word(self) -> tuple[str, str | None, Notes]:
        """Return all that is said of it: ranges of which the same is said become one where they touch."""
        return (self.reason, self.request, self.notes)


@dataclass(frozen=True, slots=True)
class Subnet:
    """A block of a network: its gateway, the unit it hands out, its pools and reserved ranges."""

    cidr: Cidr
    uuid: str
    name: str | None = None
    gateway: int | None = None
    dns: tuple[str, ...] = ()
    dhcp: bool = False
    zones: tuple[str, ...] = ()
    unit: int = 32
    keep_back: frozenset[KeepBack] = frozenset()
    pools: tuple[Pool, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    retired: bool = False
    notes: Notes = field(default_factory=Notes)

    @property
    def unit_size(self) -> int:
        """Count the addresses of one unit."""
        return 1 << (width(self.cidr.first) - self.unit)

    @property
    def family(self) -> Family:
        """Return the family of the subnet's addresses."""
        return family_of(self.cidr.first)

    def serves_zone(self, zone: str) -> bool:
        """Return whether a claim that names a zone may be served from here: a subnet without zones serves them all."""
        return not self.zones or zone in self.zones

    def answers_to(self, ident: str) -> bool:
        """Tell whether the subnet is meant by a name, a block or a uuid."""
        # Writing the block out is the dear part, and a plan has thousands of subnets to ask.
        return ident in (self.name, self.uuid) or ("/" in ident and ident == str(self.cidr))

    def unit_at(self, position: int) -> AddressRange:
        """Return the unit that a position lies in."""
        first = self.cidr.first + (position - self.cidr.first) // self.unit_size * self.unit_size
        return AddressRange(first, first + self.unit_size - 1)

    def kept_back(self) -> Iterator[tuple[int, KeepBack]]:
        """Yield each position the subnet keeps back, and why."""
        if KeepBack.NETWORK in self.keep_back:
            yield self.cidr.first, KeepBack.NETWORK
        if KeepBack.BROADCAST in self.keep_back:
            yield self.cidr.last, KeepBack.BROADCAST
        if KeepBack.LAST in self.keep_back:
            yield self.cidr.last, KeepBack.LAST
        # A link-local gateway lies outside of the block and keeps nothing back.
        if KeepBack.GATEWAY in self.keep_back and self.gateway is not None and self.gateway in self.cidr.range:
            yield self.gateway, KeepBack.GATEWAY


def check_unit_length(subnet: Subnet, position: int, length: int | None, field: str = "address") -> None:
    """Raise unless ``address/length`` names a unit of the subnet; without a length all is well.

    This is the one rule for every verb that takes an address.
    """
    if length is None:
        return
    first = format_address(subnet.unit_at(position).first)
    if length != subnet.unit:
        reason = f"{subnet.cidr} hands out /{subnet.unit}, not /{length}"
    elif subnet.unit_at(position).first != position:
        reason = f"{format_address(position)} lies inside {first}/{subnet.unit}"
    else:
        return
    raise Invalid(f"{field}: {reason}; write {first} or {first}/{subnet.unit}", field=field)


class Places:
    """The subnets of a network by where they lie; they are disjoint (I3)."""

    def __init__(self, subnets: Iterable[Subnet]) -> None:
        self._subnets = sorted(subnets, key=lambda subnet: subnet.cidr.first)
        self._firsts = [subnet.cidr.first for subnet in self._subnets]
        self._lasts = [subnet.cidr.last for subnet in self._subnets]

    def around(self, position: int) -> Subnet | None:
        """Find the subnet that a position lies in. O(log subnets)."""
        place = bisect_right(self._firsts, position) - 1
        return self._subnets[place] if place >= 0 and position <= self._lasts[place] else None


def usual_keep_back(cidr: Cidr, unit: int) -> frozenset[KeepBack]:
    """Return what a subnet keeps back unless told otherwise.

    The gateway always; the network address, and the broadcast address of IPv4, where single addresses are handed
    out and the block is large enough to have them.
    """
    bits = width(cidr.first)
    # A block of one or two addresses has none to spare (RFC 3021, RFC 6164), and larger units have no such addresses.
    if unit != bits or cidr.prefix >= bits - 1:
        return frozenset({KeepBack.GATEWAY})
    # IPv6 has no broadcast; the first address is the routers' anycast address (RFC 4291).
    if is_v6(cidr.first):
        return frozenset({KeepBack.NETWORK, KeepBack.GATEWAY})
    return frozenset({KeepBack.NETWORK, KeepBack.BROADCAST, KeepBack.GATEWAY})


@dataclass(frozen=True, slots=True)
class PreAllocation:
    """An address that waits for one owner."""

    owner: Owner
    position: int
    slot: str = ""
    request: str | None = None
    notes: Notes = field(default_factory=Notes)


@dataclass(frozen=True, slots=True)
class Connection:
    """How a network reaches a group of nodes: the second layer that a machine's interface gets there."""

    group: str
    mode: str
    link: str
    vlan: str = ""


@dataclass(frozen=True, slots=True)
class Network:
    """A named thing machines attach to. ``serial`` counts its changes; times are by the store's clock."""

    id: NetworkId
    name: str
    uuid: str
    kind: NetworkKind = NetworkKind.MANUAL
    mac_prefix: str | None = None
    tags: tuple[str, ...] = ()
    subnets: tuple[Subnet, ...] = ()
    preallocations: tuple[PreAllocation, ...] = ()
    retired: bool = False
    notes: Notes = field(default_factory=Notes)
    connections: tuple[Connection, ...] = ()
    serial: int = 1
    created_us: int = 0
    modified_us: int = 0
    # Not compared: the answer to an edit is the network that is read later.
    warnings: tuple[str, ...] = field(default=(), compare=False)
    """What the edits that this answers did beside what they say; readings of a network have none."""

    def connection(self, group: str) -> Connection | None:
        """Find how the network reaches a group, if it does."""
        return next((each for each in self.connections if each.group == group), None)

    def subnet(self, ident: str) -> Subnet:
        """Find a subnet by name, block or uuid."""
        for subnet in self.subnets:
            if subnet.answers_to(ident):
                return subnet
        raise NotFound("subnet", ident, network=self.name)

    def pools(self) -> Iterator[tuple[Subnet, Pool]]:
        """Yield the pools in written order: subnets first, then pools."""
        for subnet in self.subnets:
            for pool in subnet.pools:
                yield subnet, pool

    def pools_named(self, name: str) -> list[tuple[Subnet, Pool]]:
        """Find the pools that go by a name."""
        found = [(subnet, pool) for subnet, pool in self.pools() if pool.name == name]
        if not found:
            raise NotFound("pool", name, network=self.name)
        return found


@dataclass(frozen=True, slots=True)
class Configuration:
    """A space: the scope in which an address has at most one holder.

    ``queued``: claims wait in it, so its grants run in order of arrival; the store sets it, no document carries it.
    """

    space: SpaceId
    name: str
    version: int = 0
    networks: Mapping[str, Network] = field(default_factory=dict)
    queued: bool = False

    def network(self, name: str) -> Network:
        """Find a network by name."""
        try:
            return self.networks[name]
        except KeyError:
            raise NotFound("network", name) from None

    @property
    def mixed_units(self) -> bool:
        """Tell whether subnets that lie over each other hand out units of different size.

        Then equal keys no longer decide overlap, and grants run in the space's lane and probe their neighbours.
        """
        blocks = sorted((s.cidr.first, s.cidr.last, s.unit) for n in self.networks.values() for s in n.subnets)
        reach: tuple[int, int] | None = None  # last position and unit of the run of overlapping blocks
        for first, last, unit in blocks:
            if reach and first <= reach[0]:
                if unit != reach[1]:
                    return True
                reach = (max(reach[0], last), unit)
            else:
                reach = (last, unit)
        return False


def address_text(position: int | None) -> str | None:
    """Write an optional position."""
    return None if position is None else format_address(position)
