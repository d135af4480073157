"""NetBox's words in ours: VRFs, prefixes, IP ranges and IP addresses become networks, subnets, pools and holdings."""

from collections.abc import Iterable, Iterator, Sequence

from tenure.interchange.formats.netbox_records import ADDRESSES, PREFIXES, RANGES, Record
from tenure.interchange.formats.source_items import Item, Oddity, SourceHolding
from tenure.kernel.addressing.ranges import Cidr, parse_cidr
from tenure.kernel.errors import Invalid
from tenure.kernel.plan.edits import AddNetwork, AddPool, AddSubnet, ModifySubnet, Reserve

GLOBAL = "global"
"""The network that takes what is in no VRF."""

HOLDING_STATUSES = {"active", "deprecated", "dhcp", "slaac"}
OWNING_FIELDS = (("device", "device"), ("virtual_machine", "virtual-machine"), ("parent", "device"))


def read_netbox(records: Iterable[Record], *, request: str, global_network: str = GLOBAL) -> Iterator[Item]:
    """Turn records into items: networks and subnets first, then ranges, then addresses."""
    by_kind: dict[str, list[Record]] = {PREFIXES: [], RANGES: [], ADDRESSES: []}
    for record in records:
        by_kind[record.kind].append(record)
    mapping = _Mapping(global_network, request)
    yield from mapping.prefixes(by_kind[PREFIXES])
    for record in by_kind[RANGES]:
        yield from mapping.range(record)
    for record in by_kind[ADDRESSES]:
        yield from mapping.address(record)


class _Mapping:
    """The mapping that ``docs/reference/formats.md`` writes down."""

    def __init__(self, global_network: str, request: str) -> None:
        self._global = global_network
        self._request = request

    def _network(self, record: Record) -> str:
        return record.text("vrf") or self._global

    def prefixes(self, records: Sequence[Record]) -> Iterator[Item]:
        parents = set(_parents(records))
        networks: set[str] = set()
        for index, record in enumerate(records):
            if (status := record.text("status").lower() or "active") == "container":
                yield _oddity(record, "status", "container", "a container is no subnet; left out")
                continue
            if index in parents:
                reason = "holds other prefixes, so it is taken for a container; left out"
                yield _oddity(record, "prefix", "container", reason)
                continue
            network = self._network(record)
            if network not in networks:
                networks.add(network)
                yield Item(record.place, AddNetwork(network=network))
            yield from self._subnet(record, network, status)

    def _subnet(self, record: Record, network: str, status: str) -> Iterator[Item]:
        cidr = record.text("prefix")
        yield Item(
            record.place,
            AddSubnet(
                network=network,
                cidr=cidr,
                keep_back=["gateway"] if record.flag("is_pool") else None,
                labels=_labels(record, "tenant", "role", "site", "scope", "vlan", "tags"),
                description=record.text("description"),
            ),
        )
        if status == "reserved":
            reason = record.text("description") or "reserved in NetBox"
            yield Item(record.place, Reserve(network=network, range=cidr, reason=reason, request=self._request))
        elif status == "deprecated":
            yield Item(record.place, ModifySubnet(network=network, subnet=cidr, retired=True))
        elif status != "active":
            yield _unknown_status(record, status)

    def range(self, record: Record) -> Iterator[Item]:
        network, status = self._network(record), record.text("status").lower() or "active"
        span = f"{_bare(record.text('start_address'))}-{_bare(record.text('end_address'))}"
        full = record.flag("mark_utilized") or record.flag("mark_populated")
        if status in ("reserved", "deprecated") or full:
            reason = record.text("description") or f"{'in use' if full else status} in NetBox"
            yield Item(record.place, Reserve(network=network, range=span, reason=reason, request=self._request))
            return
        labels = _labels(record, "tenant", "role", "tags")
        pool = AddPool(network=network, range=span, labels=labels, description=record.text("description"))
        yield Item(record.place, pool)
        if status != "active":
            yield _unknown_status(record, status)

    def address(self, record: Record) -> Iterator[Item]:
        network, status = self._network(record), record.text("status").lower() or "active"
        address = _bare(record.text("address"))
        owner, slot = _owner(record, address)
        if status == "reserved" and owner is None:
            reason = record.text("description") or record.text("dns_name") or "reserved in NetBox"
            yield Item(record.place, Reserve(network=network, range=address, reason=reason, request=self._request))
            return
        if status not in HOLDING_STATUSES | {"reserved"}:
            yield _unknown_status(record, status)
        labels = _labels(record, "tenant", "role", "tags")
        if record.text("dns_name"):
            labels["hostname"] = record.text("dns_name")
        if status != "active":
            labels["status"] = status
        owner = owner or (f"dns-name/{record.text('dns_name')}" if record.text("dns_name") else f"netbox/{address}")
        held = SourceHolding(
            network, address, owner, slot, labels=labels or None, description=record.text("description")
        )
        yield Item(record.place, held)


def _owner(record: Record, address: str) -> tuple[str | None, str]:
    """Name who an address is assigned to, and the slot: an interface may have several addresses."""
    # The slot carries the address and not a count, so that an import with other rows finds what it wrote before.
    interface = record.text("interface")
    for field, kind in OWNING_FIELDS:
        if record.text(field):
            return f"{kind}/{record.text(field)}", f"{interface}/{address}" if interface else address
    if record.text("fhrp_group"):
        return f"fhrp-group/{record.text('fhrp_group')}", address
    return None, address if record.text("dns_name") else ""


def _labels(record: Record, *names: str) -> dict[str, str]:
    return {name: record.text(name) for name in names if record.text(name)}


def _bare(text: str) -> str:
    """Drop the length that NetBox writes behind every address."""
    return text.partition("/")[0]


def _oddity(record: Record, field: str, code: str, reason: str) -> Item:
    return Item(record.place, Oddity(record.place, field, code, reason))


def _unknown_status(record: Record, status: str) -> Item:
    return _oddity(record, "status", "unknown_status", f"{status!r} is not known here; taken as active")


def _parents(records: Sequence[Record]) -> Iterator[int]:
    """Find prefixes that hold others of their VRF, containers not counted: subnets lie beside each other."""
    blocks: list[tuple[str, int, int, int]] = []
    for index, record in enumerate(records):
        if record.text("status").lower() != "container" and (cidr := _cidr(record.text("prefix"))):
            blocks.append((record.text("vrf"), cidr.first, cidr.prefix, index))
    # In this order a block comes before those inside it: the stack holds the blocks around the present one.
    open_blocks: list[tuple[str, Cidr, int]] = []
    for vrf, first, prefix, index in sorted(blocks):
        while open_blocks and not (open_blocks[-1][0] == vrf and first in open_blocks[-1][1].range):
            open_blocks.pop()
        if open_blocks and open_blocks[-1][1].prefix < prefix:
            yield open_blocks[-1][2]
        open_blocks.append((vrf, Cidr(first, prefix), index))


def _cidr(text: str) -> Cidr | None:
    try:
        return parse_cidr(text)
    except Invalid:
        return None
