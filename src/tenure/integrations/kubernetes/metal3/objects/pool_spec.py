"""What an IPPool's ``spec`` says: entries with their ranges, fixed addresses, and what is kept back.

Webhooks and the controller read pools here, so both mean the same by a range. An entry's ``bounds`` are where an
address may be held; ``range`` is what is handed out of them without being asked for.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.addresses import (
    V6_BASE,
    Family,
    family_of,
    family_span,
    format_address,
    is_v6,
    parse_address,
)
from tenure.kernel.addressing.ranges import AddressRange, Cidr, parse_range
from tenure.kernel.digits import read_digits
from tenure.kernel.errors import Invalid
from tenure.kernel.picking.free_set import FreeSet
from tenure.kernel.plan.plan_model import Policy

STRATEGIES = {"sequential": Policy.LOWEST, "random": Policy.RANDOM}

REALM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")

LONGEST_COOLING_S = 365 * 24 * 3600
EVERYWHERE = "*"

ALL_POSITIONS = (V6_BASE << 1) + 1
"""More than the highest position of any family."""

MAPPED = AddressRange(parse_address("::ffff:0:0"), parse_address("::ffff:ffff:ffff"))


class SpecFault(NamedTuple):
    """Something in an object that cannot be honoured."""

    field: str
    value: object
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


@dataclass(frozen=True, slots=True)
class AddressOptions:
    """What an address carries besides itself; copied when it is handed out, and not refreshed (KS4)."""

    prefix: int = 0
    """0: not known."""
    gateway: str = ""
    dns_servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolEntry:
    """One item of ``spec.pools``."""

    number: int
    bounds: AddressRange | None
    """Where an address of this entry may lie; nothing, if the entry has no address at all."""
    range: AddressRange | None
    """What is handed out: the bounds without an IPv4 subnet's last address, where only the subnet is given (KD9)."""
    options: AddressOptions
    start: int | None = None
    end: int | None = None
    subnet: Cidr | None = None
    """Start, end and subnet as they are written, whether they fit together or not; nothing, if one cannot be read."""


@dataclass(frozen=True, slots=True)
class LedgerBinding:
    """The network of a ledger that the addresses of a pool are held in."""

    network: str
    realm: str
    """Whose claims these are in the ledger; it moves along with the pool (KP18)."""
    secret: str
    """The Secret that says where the ledger is, in the namespace of the pool."""
    server: str = ""
    """Where the ledger is; empty: as the Secret says."""


@dataclass(frozen=True)
class PoolSpec:
    """A pool as it is served."""

    name_prefix: str = ""
    policy: Policy = Policy.LOWEST
    cluster_name: str = ""
    entries: tuple[PoolEntry, ...] = ()
    pre_allocations: Mapping[str, int] = field(default_factory=dict)
    """Positions by the name of the claim that they wait for."""
    gateways: frozenset[int] = frozenset()
    """Every gateway of the pool and its entries: none of them is handed out, in any entry (A20, KD9)."""
    options: AddressOptions = AddressOptions()
    """Of an address that lies in no entry."""
    allows_outside: bool | None = None
    """Whether pre-allocations may lie outside the entries (A10); nothing: as the operator's flag says."""
    external: bool = False
    """Somebody else makes the addresses; none is picked (KS2)."""
    gives_reserved: bool = False
    """Gateways and last addresses of subnets are handed out like others."""
    drained: tuple[AddressRange, ...] = ()
    """Nothing is picked from there any more; what is held stays."""
    excluded: tuple[AddressRange, ...] = ()
    """What the pool does not have, although it lies in its entries."""
    gives_prefixes: bool = False
    """Whether claims get prefixes, all of one length (KD18); at the longest they are single addresses."""
    unit: int = 1
    """How many addresses a claim gets at once: more than one only in a pool of prefixes."""
    namespaces: frozenset[str] = frozenset()
    """Namespaces besides its own from which the pool may be claimed; ``*`` is every one."""
    outlives_cluster: bool = False
    ledger: LedgerBinding | None = None
    """Where the addresses are held; nothing: the objects of the cluster are all there is."""
    cooling_s: int = 0
    """For how long a released address is not given to another claim. A ledger has its own rule for that."""
    network: str = ""
    """Which network the addresses are of, where pools of several networks, or namespaces, are to be told apart."""
    sticky: bool = False
    """A claim that is made again under its name gets its former address, if that is free."""

    @cached_property
    def _bounds(self) -> "EntryMap":
        return EntryMap(self.entries)

    @cached_property
    def fixed(self) -> frozenset[int]:
        """The addresses that wait for claims of certain names."""
        return frozenset(self.pre_allocations.values())

    @property
    def size(self) -> int:
        """Return how many units the entries have, held and kept back ones included."""
        return sum(self._bounds.sizes.values()) // self.unit

    def size_of(self, family: Family) -> int:
        """Return how many units of a family the entries have."""
        return self._bounds.sizes[family] // self.unit

    def is_shared_with(self, namespace: str) -> bool:
        """Return whether claims of another namespace than its own are served."""
        return namespace in self.namespaces or EVERYWHERE in self.namespaces

    def unit_at(self, position: int) -> int:
        """Return where the unit begins that an address lies in: the address itself where units are addresses."""
        return position if self.unit == 1 else position - (position - family_span(position)[0]) % self.unit

    def prefix_around(self, position: int) -> str:
        """Return the prefix that an address lies inside of; empty where the address is what a claim gets."""
        first = self.unit_at(position)
        return "" if first == position else f"{format_address(first)}/{self.options.prefix}"

    def gives(self, position: int) -> bool:
        """Return whether an address is one that is picked, as long as nobody holds it. O(log n) of the entries."""
        index = bisect_right(self._given, position, key=lambda given: given.first) - 1
        return index >= 0 and position in self._given[index]

    @cached_property
    def _given(self) -> list[AddressRange]:
        return sorted(given for of_entry in self.runs() for given in of_entry)

    def entry_at(self, position: int) -> PoolEntry | None:
        """Return the first entry that an address lies in. O(log n) of the entries."""
        return self._bounds.entry_at(position)

    def options_at(self, position: int) -> AddressOptions:
        """Return what an address is handed out with. O(log n) of the entries."""
        entry = self.entry_at(position)
        return entry.options if entry else self.options

    def spans(self) -> Iterator[AddressRange]:
        """Yield what this pool may give: its entries without what it excludes, each address once, and fixed ones."""
        yield from self._without_excluded
        yield from (AddressRange(each, each) for each in sorted(self.fixed) if self.entry_at(each) is None)

    @cached_property
    def _without_excluded(self) -> list[AddressRange]:
        unused = FreeSet(ALL_POSITIONS)
        for closed in self.excluded:
            self._close(unused, closed)
        spans = self._bounds.spans()
        return [AddressRange(*each) for span in spans for each in unused.take(span.first, span.last)]

    def _close(self, unused: FreeSet, closed: AddressRange) -> None:
        """Take all units that have any part of a range."""
        unused.take(self.unit_at(closed.first), self.unit_at(closed.last) + self.unit - 1)

    def runs(self) -> Iterator[list[AddressRange]]:
        """Yield what is handed out of each entry, in their order; an address of two entries belongs to the first.

        In a pool of prefixes each range is made of whole units: a unit that is kept back in part is not handed out.
        """
        kept = FreeSet(ALL_POSITIONS)
        for position in self.pre_allocations.values():
            kept.take(position, position)
        for position in () if self.gives_reserved else self.gateways:
            kept.take(position, position)
        for closed in (*self.drained, *self.excluded):
            self._close(kept, closed)
        if self.unit == 1:
            kept.take(MAPPED.first, MAPPED.last)  # an object with one of these holds an IPv4 address (``unmapped``)
        for entry in self.entries:
            given = entry.bounds if self.gives_reserved else entry.range
            yield [] if given is None else [AddressRange(*each) for each in kept.take(given.first, given.last)]


class EntryMap:
    """Finds the entry of an address: the bounds of all entries, cut so that no two overlap."""

    def __init__(self, entries: tuple[PoolEntry, ...]) -> None:
        unused = FreeSet(ALL_POSITIONS)
        pieces = [
            (first, last, entry)
            for entry in entries
            if entry.bounds is not None
            for first, last in unused.take(entry.bounds.first, entry.bounds.last)
        ]
        pieces.sort(key=lambda piece: piece[0])
        self._firsts = [first for first, _, _ in pieces]
        self._pieces = pieces
        self.sizes = dict.fromkeys(Family, 0)
        """How many addresses of each family the entries have."""
        for first, last, _ in pieces:
            self.sizes[family_of(first)] += last - first + 1

    def spans(self) -> Iterator[AddressRange]:
        """Yield the pieces in the order of their addresses."""
        return (AddressRange(first, last) for first, last, _ in self._pieces)

    def entry_at(self, position: int) -> PoolEntry | None:
        """Return the first entry that an address lies in."""
        index = bisect_right(self._firsts, position) - 1
        if index < 0 or position > self._pieces[index][1]:
            return None
        return self._pieces[index][2]


class PoolReading(NamedTuple):
    """A pool that was read, and what could not be read of it."""

    spec: PoolSpec
    faults: list[SpecFault]


def read_pool_spec(written: Any) -> PoolReading:
    """Read a ``spec``. With faults, the pool that is returned lacks what they name and must not be picked from."""
    spec = written if isinstance(written, dict) else {}
    faults: list[SpecFault] = []
    tenure = _map(spec, "tenure", faults, "spec")
    options = _options(spec, "spec", AddressOptions(), faults)
    entries = tuple(
        _entry(number, each if isinstance(each, dict) else {}, options, faults)
        for number, each in enumerate(_list(spec, "pools", faults, "spec"))
    )
    gateways = {options.gateway, *(entry.options.gateway for entry in entries)} - {""}
    read = PoolSpec(
        name_prefix=str(spec.get("namePrefix") or ""),
        policy=_policy(spec.get("allocationStrategy"), faults),
        cluster_name=str(spec.get("clusterName") or ""),
        entries=entries,
        pre_allocations=_pre_allocations(_map(spec, "preAllocations", faults, "spec"), faults),
        gateways=frozenset(parse_address(gateway) for gateway in gateways),
        options=options,
        allows_outside={"allow": True, "strict": False}.get(str(tenure.get("outsidePreAllocations"))),
        external=tenure.get("external") is True,
        gives_reserved=tenure.get("reservedAddresses") == "give",
        drained=tuple(_drained(_list(tenure, "drain", faults, "spec.tenure"), faults)),
        namespaces=frozenset(str(each) for each in _list(tenure, "namespaces", faults, "spec.tenure")),
        outlives_cluster=tenure.get("outlivesCluster") is True,
        ledger=_ledger(_map(tenure, "ledger", faults, "spec.tenure"), faults),
        cooling_s=_cooling_s(tenure.get("coolingSeconds"), faults),
        network=str(tenure.get("network") or ""),
        sticky=tenure.get("sticky") is True,
    )
    return PoolReading(read, faults)


def read_address(value: object, path: str, faults: list[SpecFault]) -> int | None:
    """Read an address; what is none is noted."""
    try:
        if isinstance(value, str):
            position = parse_address(value)
            if position in MAPPED:
                reason = f"is an IPv4 address in IPv6 spelling; write {format_address(unmapped(position))}"
                faults.append(SpecFault(path, value, reason))
                return None
            return position
    except Invalid:
        pass
    faults.append(SpecFault(path, value, "is not a valid IP address"))
    return None


def unmapped(position: int) -> int:
    """Return the IPv4 address that is meant by one in IPv6 spelling; any other address is itself.

    New ones are refused (``read_address``). But one that is held already, in an object that no webhook judged, is the
    IPv4 address of a machine, and must not be given to another.
    """
    return position - MAPPED.first + _V4 if position in MAPPED else position


LONGEST_ADDRESS = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")


def position_in(text: str) -> int | None:
    """Return the address that a text says, or nothing."""
    # A longer text is none, and must not stay in the cache: where no webhook is asked, it may have 256 KB.
    return _position_in(text) if len(text) <= LONGEST_ADDRESS else None


@lru_cache(1024)
def _position_in(text: str) -> int | None:
    """Return the address that a short text says. Cached: each text is read a dozen times while a claim is served."""
    try:
        return unmapped(parse_address(text))
    except Invalid:
        return None


_V4 = parse_address("0.0.0.0")  # noqa: S104 - a number to count from, nothing listens on it


def _policy(value: object, faults: list[SpecFault]) -> Policy:
    if value in (None, ""):
        return Policy.LOWEST
    if (policy := STRATEGIES.get(str(value))) is None:
        faults.append(SpecFault("spec.allocationStrategy", value, f"must be one of {', '.join(STRATEGIES)}"))
        return Policy.LOWEST
    return policy


def _map(spec: Object, name: str, faults: list[SpecFault], path: str) -> Object:
    value = spec.get(name) or {}
    if isinstance(value, dict):
        return value
    faults.append(SpecFault(f"{path}.{name}", value, "must be a map"))
    return {}


def _list(spec: Object, name: str, faults: list[SpecFault], path: str) -> list[Any]:
    value = spec.get(name) or []
    if isinstance(value, list):
        return value
    faults.append(SpecFault(f"{path}.{name}", value, "must be a list"))
    return []


def _options(
    written: Object, path: str, usual: AddressOptions, faults: list[SpecFault], subnet_length: int = 0
) -> AddressOptions:
    gateway = written.get("gateway")
    position = read_address(gateway, f"{path}.gateway", faults) if gateway else None
    servers = []
    for number, server in enumerate(_list(written, "dnsServers", faults, path)):
        found = read_address(server, f"{path}.dnsServers[{number}]", faults)
        servers += [format_address(found)] if found is not None else []
    prefix = written.get("prefix") or usual.prefix or subnet_length
    if not isinstance(prefix, int) or not 0 <= prefix <= 128:
        faults.append(SpecFault(f"{path}.prefix", prefix, "must be a number from 0 to 128"))
        prefix = 0
    return AddressOptions(
        prefix,
        format_address(position) if position is not None else usual.gateway,
        tuple(servers) or usual.dns_servers,
    )


def _entry(number: int, written: Object, usual: AddressOptions, faults: list[SpecFault]) -> PoolEntry:
    path = f"spec.pools[{number}]"
    before = len(faults)
    start = read_address(written["start"], f"{path}.start", faults) if written.get("start") else None
    end = read_address(written["end"], f"{path}.end", faults) if written.get("end") else None
    subnet = read_subnet(written["subnet"], f"{path}.subnet", faults) if written.get("subnet") else None
    options = _options(written, path, usual, faults, subnet.length if subnet else 0)
    if len(faults) > before:
        return PoolEntry(number, None, None, options)
    reason = _fault_of(start, end, subnet)
    if reason:
        faults.append(SpecFault(path, written, reason))
        return PoolEntry(number, None, None, options)
    bounds = _bounds(start, end, subnet)
    given = bounds
    # A network of two addresses has no address to speak to all of its hosts.
    if bounds and subnet and start is None and end is None and not is_v6(bounds.last) and subnet.length < 31:
        given = AddressRange(bounds.first, bounds.last - 1) if bounds.size > 1 else None
    block = Cidr(subnet.block.first, subnet.length) if subnet else None
    return PoolEntry(number, bounds, given, options, start, end, block)


class WrittenSubnet(NamedTuple):
    """A network as it was written: its address need not be the network's own."""

    written: int
    """The address as it was written: without a start, the pool begins behind it."""
    block: AddressRange
    length: int


def read_subnet(value: object, path: str, faults: list[SpecFault]) -> WrittenSubnet | None:
    """Read a network; what is none is noted."""
    address, _, said = str(value).partition("/")
    try:
        written = parse_address(address)
        size = 128 if is_v6(written) else 32
        length = read_digits(said, longest=3)
        if length is None or length > size:
            raise Invalid("no length", field=path)
        if written in MAPPED:
            raise Invalid("IPv4 in IPv6 spelling", field=path)
    except Invalid:
        faults.append(SpecFault(path, value, "is not a valid subnet"))
        return None
    low = family_span(written)[0]
    host_bits = size - length
    first = low + ((written - low) >> host_bits << host_bits)
    return WrittenSubnet(written, AddressRange(first, first + (1 << host_bits) - 1), length)


def _fault_of(start: int | None, end: int | None, subnet: WrittenSubnet | None) -> str:
    """Return why an entry has no first address, or no order; nothing if it has."""
    if start is None and end is None and subnet is None:
        return "pool entry must specify at least one of start, end, or subnet"
    if start is None and subnet is None:
        return "either start or subnet is required to find the first address"
    families = {is_v6(position) for position in (start, end, subnet and subnet.written) if position is not None}
    if len(families) > 1:
        return "start, end and subnet must be of one address family"
    if start is not None and end is not None and end < start:
        return f"end IP {format_address(end)} is before start IP {format_address(start)}"
    return ""


def _bounds(start: int | None, end: int | None, subnet: WrittenSubnet | None) -> AddressRange | None:
    """Return the addresses of an entry that has a first one; nothing, if none of them lies in the subnet (KS5)."""
    if start is not None:
        first = start
    else:
        assert subnet is not None
        first = subnet.written + 1
    highest = subnet.block.last if subnet else family_span(first)[1]
    last = highest if end is None else end
    if subnet is not None:
        first, last = max(first, subnet.block.first), min(last, subnet.block.last)
    return AddressRange(first, last) if first <= last else None


def _pre_allocations(written: Object, faults: list[SpecFault]) -> dict[str, int]:
    found = {}
    for name, value in written.items():
        position = read_address(value, f"spec.preAllocations.{name}", faults)
        if position is not None:
            found[str(name)] = position
    return found


def _ledger(written: Object, faults: list[SpecFault]) -> LedgerBinding | None:
    if not written:
        return None
    read = {name: str(written.get(name) or "") for name in ("network", "realm", "secretName", "server")}
    missing = [name for name in ("network", "realm", "secretName") if not read[name]]
    faults += [SpecFault(f"spec.tenure.ledger.{name}", read[name], "cannot be empty") for name in missing]
    if read["realm"] and not REALM.fullmatch(read["realm"]):
        reason = "must begin with a letter or digit, and has letters, digits, '-', '_' and '.'"
        faults.append(SpecFault("spec.tenure.ledger.realm", read["realm"], reason))
    return LedgerBinding(read["network"], read["realm"], read["secretName"], read["server"])


def _cooling_s(written: object, faults: list[SpecFault]) -> int:
    if written is None:
        return 0
    if isinstance(written, bool) or not isinstance(written, int) or not 0 <= written <= LONGEST_COOLING_S:
        reason = f"must be a number of seconds from 0 to {LONGEST_COOLING_S}"
        faults.append(SpecFault("spec.tenure.coolingSeconds", written, reason))
        return 0
    return written


def _drained(written: list[object], faults: list[SpecFault]) -> Iterator[AddressRange]:
    for number, value in enumerate(written):
        try:
            yield parse_range(str(value))
        except Invalid as error:
            faults.append(SpecFault(f"spec.tenure.drain[{number}]", value, str(error).removeprefix("range: ")))
