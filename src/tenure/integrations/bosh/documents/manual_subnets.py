"""Manual subnets as they are written: a range, and what is said about its addresses."""

from typing import Any

from tenure.integrations.bosh.documents.address_lists import Spans, parse_address_or_block, read_spans
from tenure.integrations.bosh.documents.subnet_pools import Pools, SubnetDraft, divide
from tenure.integrations.bosh.documents.subnet_properties import (
    NetworkReading,
    read_cloud_properties,
    read_name_servers,
    read_subnet_azs,
)
from tenure.integrations.bosh.documents.yaml_tree import Tree
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, BoshFault, DocumentPlace
from tenure.integrations.bosh.model.document_model import CloudSubnet
from tenure.kernel.addressing.addresses import V4_BASE, V6_BASE, format_address, width
from tenure.kernel.addressing.ranges import AddressRange, Cidr
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown

NEEDING_RANGE = ("gateway", "reserved", "static", "point_to_point")
KEYS = ("range", *NEEDING_RANGE, "dns", "prefix", "az", "azs", "cloud_properties", "name", "netmask_bits")


def read_manual_subnet(tree: Tree, network: str, reading: NetworkReading, *, managed: bool) -> CloudSubnet:
    """Read a manual subnet; where something in it is wrong, what is returned is good only to go on reading."""
    return _ManualSubnet(tree, network, reading, managed).read()


class _ManualSubnet:
    """One subnet while it is read. Every text is looked at even if the range is wrong: all faults at once."""

    def __init__(self, tree: Tree, network: str, reading: NetworkReading, managed: bool) -> None:
        self._tree = tree
        self._network = network
        self._reading = reading
        self._managed = managed

    def read(self) -> CloudSubnet:
        self._reading.reader.refuse_others(self._tree, KEYS)
        cidr = self._range()
        prefix = self._prefix(cidr)
        usable_ends = self._point_to_point(cidr)
        gateway = self._gateway(cidr, usable_ends)
        servers = read_name_servers(self._tree, self._network, self._reading)
        reserved, static = self._spans("reserved"), self._spans("static")
        pools = Pools((), (), ())
        if cidr is not None:
            draft = SubnetDraft(self._network, cidr, prefix, usable_ends, gateway, servers, reserved, static)
            pools = divide(draft, self._reading)
        return CloudSubnet(
            azs=read_subnet_azs(self._tree, self._network, self._reading),
            dns=tuple(format_address(server) for server, _ in servers),
            cloud_properties=read_cloud_properties(self._tree, self._reading),
            range=cidr,
            gateway=gateway,
            reserved=pools.reserved,
            restricted=pools.restricted,
            static=pools.static,
            prefix=prefix,
            name=self._get("name", str, needed=self._managed),
            netmask_bits=self._netmask_bits(cidr),
        )

    def _range(self) -> Cidr | None:
        """Read the range. A managed subnet may come without: then the cloud chooses, and nothing can be said of it."""
        text = self._get("range", str, needed=not self._managed)
        if text is None:
            # The reader has reported a range that is no text: what needs a range is then no error besides.
            if self._managed and not self._says("range"):
                self._refuse_without_range()
            return None
        span = self._address_or_block("range", text)
        if span is None:
            return None
        if span.size < 2:
            told = f"Invalid network range '{text}', should include at least 2 IPs"
            self._fault(BoshErrorKind.NETWORK_INVALID_RANGE, told, "range")
            return None
        return Cidr(span.first, width(span.first) - (span.size.bit_length() - 1))

    def _refuse_without_range(self) -> None:
        for key in NEEDING_RANGE:
            if self._says(key):
                told = f"Network '{self._network}' must not specify '{key}' without specifying 'range'."
                self._fault(BoshErrorKind.NETWORK_INVALID_PROPERTY, told, key)

    def _prefix(self, cidr: Cidr | None) -> int:
        """Read the length of what is handed out: one address unless it says otherwise."""
        most = width(V4_BASE if cidr is None else cidr.first)
        prefix: int | None = self._get("prefix", int)
        if prefix is None:
            return most
        if cidr is None:
            # The cloud may choose a range of either family; whether the prefix fits is judged when it has.
            return most if self._refuse_beyond("prefix", prefix, width(V6_BASE)) else prefix
        if prefix < cidr.prefix:
            told = f"Prefix size '{prefix}' is larger than range prefix '{cidr.prefix}'"
            self._fault(BoshErrorKind.NETWORK_PREFIX_SIZE_TOO_BIG, told, "prefix")
            return most
        if prefix > most:
            told = f"Network '{self._network}' must not specify a 'prefix' above '{most}'."
            self._fault(BoshErrorKind.NETWORK_INVALID_PROPERTY, told, "prefix")
            return most
        return prefix

    def _netmask_bits(self, cidr: Cidr | None) -> int | None:
        """Read how long a range the cloud is to choose, of either family, with room for at least two addresses."""
        bits: int | None = self._get("netmask_bits", int)
        most = width(V6_BASE if cidr is None else cidr.first) - 1
        return None if bits is None or self._refuse_beyond("netmask_bits", bits, most) else bits

    def _refuse_beyond(self, key: str, bits: int, most: int) -> bool:
        """Refuse a length that no block has."""
        if 1 <= bits <= most:
            return False
        told = f"Property '{self._place(key).path}' must be from 1 to {most}, not {shown(bits)}"
        self._fault(BoshErrorKind.GENERIC, told, key)
        return True

    def _point_to_point(self, cidr: Cidr | None) -> bool:
        """Tell whether both ends of the range may be used, as on a link between two (RFC 3021, RFC 6164)."""
        wanted = bool(self._get("point_to_point", bool))
        two = cidr is not None and cidr.range.size == 2
        if wanted and cidr is not None and not two:
            told = f"Network '{self._network}' must not specify 'point_to_point' for more than 2 IPs."
            self._fault(BoshErrorKind.NETWORK_INVALID_PROPERTY, told, "point_to_point")
        if two and not wanted:
            told = f"Network '{self._network}' has no IP to give in range '{cidr}': 'point_to_point: true' frees both"
            self._reading.warnings.append(BoshFault(BoshErrorKind.GENERIC, told, self._place("range")))
        return wanted and two

    def _gateway(self, cidr: Cidr | None, usable_ends: bool) -> int | None:
        # A block of two has no room for a gateway between its ends, so it needs none.
        roomless = cidr is not None and cidr.range.size == 2
        text = self._get("gateway", str, needed=not (self._managed or roomless))
        span = None if text is None else self._address_or_block("gateway", text)
        if span is None:
            return None
        wrong = "must be a single IP" if span.size > 1 else _misplaced(span.first, cidr, usable_ends)
        if wrong:
            told = f"Invalid gateway for network '{self._network}': {wrong}"
            self._fault(BoshErrorKind.NETWORK_INVALID_GATEWAY, told, "gateway")
            return None
        return span.first

    def _says(self, key: str) -> bool:
        """Tell whether a key is there; null says nothing."""
        return key in self._tree and self._tree.value[key].value is not None

    def _spans(self, key: str) -> Spans:
        if not self._says(key):
            return []
        return read_spans(self._tree.value[key], self._reading.faults)

    def _address_or_block(self, key: str, text: str) -> AddressRange | None:
        try:
            return parse_address_or_block(text.strip())
        except Invalid as error:
            self._fault(BoshErrorKind.GENERIC, error.message, key)
            return None

    def _get(self, key: str, kind: type, *, needed: bool = False) -> Any:
        return self._reading.reader.get(self._tree, key, kind, needed=needed)

    def _place(self, key: str) -> DocumentPlace:
        place: DocumentPlace = self._tree.value[key].place
        return place

    def _fault(self, kind: BoshErrorKind, told: str, key: str) -> None:
        self._reading.faults.add(kind, told, self._place(key))


def _misplaced(gateway: int, cidr: Cidr | None, usable_ends: bool) -> str:
    """Say why a gateway cannot be where it is; nothing if it can, or if nobody knows the range."""
    if cidr is None:
        return ""
    if gateway not in cidr.range:
        return "must be inside the range"
    if gateway == cidr.first and not usable_ends:
        return "can't be the network id"
    if gateway == cidr.last and not usable_ends:
        return "can't be the broadcast IP"
    return ""
